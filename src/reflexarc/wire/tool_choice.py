"""A chat request's bytes with only its `tool_choice` changed; every other byte stays.

What reads a prompt's cache, a signature or a log by bytes then sees the same request, but for the
one value that is meant to change.
"""

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.json import decode_strict, split_object

_SPACE = b" \t\r\n"


def with_tool_choice(body: bytes, name: str) -> bytes | None:
    """The request with `tool_choice` set to the function `name`: in place of a value that is null
    or "auto", else added before the closing brace.

    None where that cannot be done: the body is not one plain JSON object, or it chooses already.
    """
    try:
        fields = split_object(body)
    except MalformedError:
        return None
    choice = msgspec.json.encode({"type": "function", "function": {"name": name}})
    given = fields.get("tool_choice")
    if given is None:
        end = body.rindex(b"}")
        head = body[:end].rstrip(_SPACE)
        comma = b"," if fields else b""
        return head + comma + b'"tool_choice":' + choice + body[len(head) :]
    value = bytes(given)
    try:
        if decode_strict(value, "tool_choice") not in (None, "auto"):
            return None
    except MalformedError:
        return None
    place = _place(body, fields)
    return None if place is None else body[:place] + choice + body[place + len(value) :]


def _place(body: bytes, fields: dict[str, msgspec.Raw]) -> int | None:
    """Where the value of `tool_choice` begins. The members stand in the order of the object, each
    value as its own bytes, so that each is found after the one before."""
    position = body.index(b"{") + 1
    for name, raw in fields.items():
        value = bytes(raw)
        position = _after_key(body, position)
        if name == "tool_choice":
            return position if body[position : position + len(value)] == value else None
        position += len(value)
        position = body.index(b",", position) + 1
    return None


def _after_key(body: bytes, position: int) -> int:
    """Where the value begins of the member whose key is the next string."""
    position = body.index(b'"', position) + 1
    while body[position : position + 1] != b'"':
        position += 2 if body[position : position + 1] == b"\\" else 1
    position = body.index(b":", position) + 1
    while body[position : position + 1] in (b" ", b"\t", b"\r", b"\n"):
        position += 1
    return position
