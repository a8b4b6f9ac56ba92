"""A request's bytes with single members changed; every other byte stays.

What reads a prompt's cache, a signature or a log by bytes then sees the same request, but for the
values that are meant to change.
"""

from collections.abc import Iterable, Mapping

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.json import split_object

ELSEWHERE = ("previous_response_id", "conversation")
"""Members that name a part of the prompt which is not in the request."""
_SPACE = b" \t\r\n"


def gives_any(fields: Mapping[str, msgspec.Raw], names: Iterable[str]) -> bool:
    """Whether one of these members says something: null is what a client writes that has none."""
    return any(name in fields and bytes(fields[name]) != b"null" for name in names)


def with_member(
    body: bytes, name: str, value: bytes, fields: Mapping[str, msgspec.Raw] | None = None
) -> bytes | None:
    """The object with the member `name` set: in place of the value it has, else added before the
    closing brace. `fields`: the body's members, where they are known already. None where that
    cannot be done: the body is not one plain JSON object."""
    if fields is None:
        try:
            fields = split_object(body)
        except MalformedError:
            return None
    given = fields.get(name)
    if given is None:
        end = body.rindex(b"}")
        head = body[:end].rstrip(_SPACE)
        comma = b"," if fields else b""
        return head + comma + msgspec.json.encode(name) + b":" + value + body[len(head) :]
    place = _place(body, fields, name)
    return None if place is None else body[:place] + value + body[place + len(bytes(given)) :]


def _place(body: bytes, fields: Mapping[str, msgspec.Raw], wanted: str) -> int | None:
    """Where the value of a member begins. The members stand in the order of the object, each value
    as its own bytes, so that each is found after the one before."""
    position = body.index(b"{") + 1
    for name, raw in fields.items():
        value = bytes(raw)
        position = _after_key(body, position)
        if name == wanted:
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
