"""Signatures of one provider, carried through a dialect that has no place for them.

What a provider signs must come back to it byte for byte. Where client and provider speak different
dialects, the signature travels in the client's nearest field, in an envelope that says whose it is:
a client that replays its history as it should brings it back, and nothing is kept in between.
"""

import base64
import binascii
from typing import Any

import msgspec

_PREFIX = "reflexarc-1."


class Sealed(msgspec.Struct, frozen=True):
    """`origin` is the dialect it is for. `signature`: thinking's; `calls`: those of calls, by their
    ids; `id`: of the item it came in; `more`: what else that dialect needs to say it again."""

    origin: str
    signature: str | None = None
    redacted: bool = False
    calls: dict[str, str] = {}
    id: str | None = None
    more: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(Sealed)


def seal(sealed: Sealed) -> str:
    return _PREFIX + base64.urlsafe_b64encode(msgspec.json.encode(sealed)).decode()


def unseal(text: str | None) -> Sealed | None:
    """None for a signature that is no envelope: it belongs to the dialect it stands in."""
    if text is None or not text.startswith(_PREFIX):
        return None
    try:
        return _decoder.decode(base64.b64decode(text[len(_PREFIX) :], b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
