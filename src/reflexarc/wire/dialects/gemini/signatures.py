"""Thought signatures: Gemini's own, others' that travel in their place, and parts that only sign.

Gemini signs any part, thinking or not. A signature that stands on a text or an image, or alone,
becomes redacted thinking after that part, so that it lives through every dialect; `more["signs"]`
says where it stood: `part` (on the part before it), `text` (on an empty text), `bare` (alone).

`thoughtSignature` is bytes in base64, and clients decode it: what is sealed is base64 of that.
"""

import base64
import binascii
import re
from typing import Any

from reflexarc.wire.dialects.gemini.shapes import NAME
from reflexarc.wire.sealed import Sealed, seal, unseal
from reflexarc.wire.turns import Thinking

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What Google wants in place of a signature on a call that no Gemini made. From Gemini 3 on, a turn
whose first call has none is refused (https://ai.google.dev/gemini-api/docs/thought-signatures)."""

_GOES_ON = "reflexarc.goes_on"
_BEFORE_GEMINI_3 = re.compile(r"(?:.*/)?(?:gemini-[12](?:\D|$)|gemma|learnlm)")
_SEALED_START = base64.b64encode(b"reflexarc-1.").decode()


def is_before_gemini_3(model: str) -> bool:
    """Models that know budgets but no levels of thinking, no media in results, and sign nothing
    that must come back. A name without a number is that of a later one."""
    return _BEFORE_GEMINI_3.match(model) is not None


def is_skipped(signature: str) -> bool:
    """Whether it is what stands for no signature, in either alphabet."""
    return signature.translate(_STANDARD) == SKIP_SIGNATURE.translate(_STANDARD)


def sealed_signature(sealed: Sealed) -> str:
    return base64.b64encode(seal(sealed).encode()).decode()


def unsealed_signature(signature: str) -> Sealed | None:
    """None for a signature that is Gemini's own."""
    if not signature.startswith(_SEALED_START):
        return unseal(signature)
    plain = signature.translate(_STANDARD).rstrip("=")
    try:
        return unseal(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode())
    except (binascii.Error, ValueError):
        return None


# Clients that hold bytes write them again in either alphabet.
_STANDARD = str.maketrans("-_", "+/")


def signed_thinking(text: str, signature: str | None, more: dict[str, Any]) -> Thinking:
    """A thought as it came, or as the dialect it is from had it."""
    if signature is None:
        return Thinking(text, None, NAME, more=more)
    sealed = unsealed_signature(signature)
    if sealed is None:
        return Thinking(text, signature, NAME, more=more)
    shown = "" if sealed.redacted else text
    more = dict(sealed.more)
    joins = more.pop(_GOES_ON, 0)
    return Thinking(
        shown,
        sealed.signature,
        sealed.origin,
        sealed.redacted,
        sealed.id,
        more,
        joins=joins if isinstance(joins, int) and not text else 0,
    )


def signing(signature: str, where: str, more: dict[str, Any]) -> Thinking:
    """What only signs."""
    sealed = unsealed_signature(signature)
    if sealed is None:
        return Thinking("", signature, NAME, redacted=True, more={**more, "signs": where})
    return signed_thinking("", signature, more)


def signature_of(part: Thinking, grown: int = 0) -> str | None:
    """As a client of this dialect gets it and brings it back; another dialect's comes back as what
    it was, signed or not. `grown`: characters that it was told before, in parts of their own."""
    if part.origin in (NAME, ""):
        return part.signature
    more = {**part.more, _GOES_ON: grown} if grown else part.more
    return sealed_signature(
        Sealed(part.origin, part.signature, part.redacted, id=part.id, more=more)
    )
