"""What a client tells the gateway itself, in headers that go no further:

x-reflexarc: off                  System 1 does not act on this request
x-reflexarc-session: NAME         the conversation it belongs to
x-reflexarc-task: NAME            what the conversation is for
"""

import re

import msgspec

from reflexarc.gateway.asgi import Headers
from reflexarc.steps.errors import InputError

MAX_NAME_BYTES = 256
_name = re.compile(rb"[\x20-\x7e\x80-\xff]{1,%d}" % MAX_NAME_BYTES)


class Told(msgspec.Struct, frozen=True):
    """Nothing of it where the client said nothing."""

    off: bool = False
    session: str | None = None
    task: str | None = None


_NOTHING = Told()


def told(headers: Headers) -> Told:
    """Raises `InputError` for a value that is not understood: a misspelt `off` must not act."""
    off = False
    names: dict[bytes, str] = {}
    for name, value in headers:
        if name == b"x-reflexarc":
            if value.strip().lower() != b"off":
                shown = value[:40].decode("latin-1")
                raise InputError(f"x-reflexarc: {shown!r} is not known; off is")
            off = True
        elif name in (b"x-reflexarc-session", b"x-reflexarc-task"):
            if _name.fullmatch(value) is None:
                raise InputError(
                    f"{name.decode()} must be 1 to {MAX_NAME_BYTES} bytes without control "
                    "characters"
                )
            names[name] = value.decode("utf-8", "replace")
    if not off and not names:
        return _NOTHING
    return Told(off, names.get(b"x-reflexarc-session"), names.get(b"x-reflexarc-task"))
