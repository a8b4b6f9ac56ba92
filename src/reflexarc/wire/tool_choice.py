"""A chat request's bytes with only its `tool_choice` changed."""

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.json import decode_strict, split_object
from reflexarc.wire.members import with_member


def with_tool_choice(body: bytes, name: str) -> bytes | None:
    """The request with `tool_choice` set to the function `name`: in place of a value that is null
    or "auto", else added before the closing brace.

    None where that cannot be done: the body is not one plain JSON object, or it chooses already.
    """
    try:
        fields = split_object(body)
        given = fields.get("tool_choice")
        if given is not None and decode_strict(bytes(given), "tool_choice") not in (None, "auto"):
            return None
    except MalformedError:
        return None
    choice = msgspec.json.encode({"type": "function", "function": {"name": name}})
    return with_member(body, "tool_choice", choice, fields)
