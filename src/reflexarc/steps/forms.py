"""The forms in which two pieces of a prompt are compared: what a model can read of them.

A piece is JSON as its client sent it. Marks for caches and null members say nothing to a model; a
text is the same as a list of one block of text; what a tool takes and gives is never looked into.
"""

import json
import math
from typing import Any, cast

from reflexarc.steps.canonical import nests_deeper

MAX_DEPTH = 128
Order = dict[str, int]
"""Ids of calls, each with its place among those seen before it in its conversation."""

MARKS = frozenset({"cache_control", "cachePoint"})
DATA = frozenset(
    {
        "args",
        "arguments",
        "inputSchema",
        "input",
        "input_schema",
        "json",
        "json_schema",
        "metadata",
        "parameters",
        "parametersJsonSchema",
        "response",
        "schema",
    }
)
"""Members whose content is a tool's or a user's own: a mark or an id within is data."""

_REFERENCES = frozenset(
    {
        "approval_request_id",
        "call_id",
        "parent_tool_use_id",
        "toolCallId",
        "toolUseId",
        "tool_call_id",
        "tool_use_id",
    }
)
_HAVE_IDS = frozenset({"type", "role", "function", "name", "toolUseId"})


def parsed(raw: bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` for what can be read in several ways or not at
    all: bad UTF-8, a key given twice, numbers that no double holds, nesting too deep."""
    text = raw.decode()
    if nests_deeper(text, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return json.loads(
        text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
    )


def unmarked(value: Any) -> Any:
    """Without marks for caches and without members that are null; all else in its order."""
    if isinstance(value, list):
        return [unmarked(one) for one in cast("list[Any]", value) if not is_mark(one)]
    if not isinstance(value, dict):
        return value
    return {
        name: one if name in DATA else unmarked(one)
        for name, one in cast("dict[str, Any]", value).items()
        if one is not None and name not in MARKS
    }


def is_mark(value: Any) -> bool:
    """Whether it is a mark for a cache and nothing else, as Bedrock has them."""
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    return bool(members) and MARKS.issuperset(members)


def blocks(value: Any) -> Any:
    """With every text that may also be written as a list of blocks written so. `value` is a piece:
    a text alone is a system prompt."""
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = dict(cast("dict[str, Any]", value))
    content = made.get("content")
    if isinstance(content, str):
        made["content"] = [_text(content)]
    elif isinstance(content, list):
        made["content"] = [
            blocks(one) if isinstance(one, dict) else one for one in cast("list[Any]", content)
        ]
    return made


def without_ids(value: Any, order: Order | None = None) -> Any:
    """With ids of calls and items left out, or replaced by their place in `order`, which grows."""
    if isinstance(value, list):
        return [without_ids(one, order) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    made: dict[str, Any] = {}
    for name, one in members.items():
        if isinstance(one, str) and _is_id(name, members):
            if order is not None:
                made[name] = order.setdefault(one, len(order))
        else:
            made[name] = one if name in DATA else without_ids(one, order)
    return made


def read_arguments(value: Any) -> Any:
    """With arguments of calls that are written as a text of JSON read, where that is an object."""
    if isinstance(value, list):
        return [read_arguments(one) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", value).items():
        if name == "arguments" and isinstance(one, str):
            made[name] = _arguments(one)
        else:
            made[name] = one if name in DATA else read_arguments(one)
    return made


def _arguments(text: str) -> Any:
    try:
        read = parsed(text.encode())
    except ValueError:
        return text
    return cast("Any", read) if isinstance(read, dict) else text


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_id(name: str, members: dict[str, Any]) -> bool:
    if name in _REFERENCES:
        return True
    # The id of a reference to what was said elsewhere is all that it says.
    is_reference = members.get("type") == "item_reference"
    return name == "id" and not is_reference and not _HAVE_IDS.isdisjoint(members)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return value
