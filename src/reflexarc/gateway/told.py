"""What a client tells the gateway itself, in headers that go no further:

x-reflexarc: off                  System 1 does not act on this request
x-reflexarc-session: NAME         the conversation it belongs to
x-reflexarc-task: NAME            what the conversation is for
x-reflexarc-tier: TIER            interactive, standard or batch: where System 2 is to be asked
x-reflexarc-local: only           it must not leave for a provider that is not local
"""

import re

import msgspec

from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.config_pool import TIERS, Tier
from reflexarc.steps.errors import InputError

MAX_NAME_BYTES = 256
_name = re.compile(rb"[\x20-\x7e\x80-\xff]{1,%d}" % MAX_NAME_BYTES)
_OURS = b"x-reflexarc"


class Told(msgspec.Struct, frozen=True):
    """Nothing of it where the client said nothing."""

    off: bool = False
    session: str | None = None
    task: str | None = None
    tier: Tier | None = None
    local_only: bool = False


_NOTHING = Told()


def told(headers: Headers) -> Told:
    """Raises `InputError` for a value that is not understood: a misspelt `off` must not act."""
    said = _NOTHING
    for name, value in headers:
        if not name.startswith(_OURS):
            continue
        if name == b"x-reflexarc":
            _only(name, value, b"off")
            said = msgspec.structs.replace(said, off=True)
        elif name == b"x-reflexarc-local":
            _only(name, value, b"only")
            said = msgspec.structs.replace(said, local_only=True)
        elif name == b"x-reflexarc-tier":
            said = msgspec.structs.replace(said, tier=_tier(value))
        elif name == b"x-reflexarc-session":
            said = msgspec.structs.replace(said, session=_text(name, value))
        elif name == b"x-reflexarc-task":
            said = msgspec.structs.replace(said, task=_text(name, value))
    return said


def _only(name: bytes, value: bytes, word: bytes) -> None:
    if value.strip().lower() != word:
        shown = value[:40].decode("latin-1")
        raise InputError(f"{name.decode()}: {shown!r} is not known; {word.decode()} is")


def _tier(value: bytes) -> Tier:
    given = value.strip().lower().decode("latin-1")
    for tier in TIERS:
        if given == tier:
            return tier
    raise InputError(f"x-reflexarc-tier: {given[:40]!r} is not known; {', '.join(TIERS)} are")


def _text(name: bytes, value: bytes) -> str:
    if _name.fullmatch(value) is None:
        raise InputError(
            f"{name.decode()} must be 1 to {MAX_NAME_BYTES} bytes without control characters"
        )
    return value.decode("utf-8", "replace")
