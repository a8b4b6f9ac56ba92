"""Cache marks: what tells a provider where to cut, and says nothing to a model.

Clients move them from turn to turn: a message that had one has none when it is sent again.
"""

import re
from typing import Any, cast

import msgspec

MARK = "cache_control"
_KEY = b'"cache_control"'
_SPACE = b" \t\r\n"
_mark = re.compile(rb'"cache_control"[ \t\r\n]*:[ \t\r\n]*(?:null|\{[^{}]*\})')
_comma = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")


def unmarked(raw: bytes) -> bytes:
    """A message's text without its marks, as its client writes it where it sets none. Marks in
    arguments or results are words like any other and stay. What is no JSON stays as it is."""
    if _KEY not in raw:
        return raw
    try:
        value = msgspec.json.decode(raw)
        plain = without_marks(value)
        if plain == value:
            return raw
        cut = _without(raw)
        if msgspec.json.decode(cut) == plain:
            return cut
        return msgspec.json.encode(plain)
    except (msgspec.DecodeError, RecursionError):
        return raw


def _without(raw: bytes) -> bytes:
    """Without what is written as a mark, each with one comma. From the key on: an expression that
    begins with white space goes through every stretch of it once for each of its bytes."""
    parts: list[bytes] = []
    end = 0
    for found in _mark.finditer(raw):
        bare = _space_before(raw, end, found.start())
        if bare > end and raw[bare - 1 : bare] == b",":
            parts.append(raw[end : _space_before(raw, end, bare - 1)])
            end = found.end()
        elif after := _comma.match(raw, found.end()):
            parts.append(raw[end : found.start()])
            end = after.end()
    parts.append(raw[end:])
    return b"".join(parts)


def _space_before(raw: bytes, begin: int, at: int) -> int:
    """Where the white space that ends at `at` begins, not before `begin`."""
    size = 64
    while True:
        stretch = raw[max(begin, at - size) : at]
        bare = stretch.rstrip(_SPACE)
        if bare or at - size <= begin:
            return at - len(stretch) + len(bare)
        size *= 8


def without_marks(message: Any) -> Any:
    """A message, a block of one or a tool, as a JSON value, without its own marks and those of the
    blocks in it."""
    if not isinstance(message, dict):
        return message
    plain = {key: value for key, value in cast("dict[str, Any]", message).items() if key != MARK}
    for name in ("content", "parts"):
        inner = plain.get(name)
        if isinstance(inner, list):
            plain[name] = [without_marks(one) for one in cast("list[Any]", inner)]
    return plain
