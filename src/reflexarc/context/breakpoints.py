"""Anthropic's marks for caches, set where a prompt will be read again: none that its client set is
touched, no more than the API takes, none where a prompt is too short to be kept.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching: at most four marks; the least
that is kept is 1,024 tokens and more on some models; of a mark's past 20 blocks an earlier one is
found.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.steps.forms import parsed
from reflexarc.wire.growing import Grown, take_apart
from reflexarc.wire.json import split_object
from reflexarc.wire.marks import MARK
from reflexarc.wire.members import with_member

MAX_MARKS = 4
MIN_TOKENS = 1_024
_BYTES_PER_TOKEN = 4
_LOOKED_BACK = 20
_KEY = b'"cache_control"'
_VALUE = b'{"type":"ephemeral"}'
_MARKABLE = frozenset({"text", "image", "document", "tool_use", "tool_result"})
_list = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None


_block = msgspec.json.Decoder(_Block)


def with_breakpoints(body: bytes, reused: int = 0, tail: str = "") -> bytes:
    """The request with marks at the end of its last message, of its system prompt or tools, and of
    the `reused` messages that were sent before, where that is too far back to be found. A block
    that begins with `tail` is another one next time: the mark stands before it. The body itself
    where nothing can be set: a mark of an hour must stand before shorter ones, and who asks for
    marks by itself has them."""
    try:
        return marked(take_apart(body, "messages"), reused, tail)
    except MalformedError:
        return body


def marked(grown: Grown, reused: int = 0, tail: str = "") -> bytes:
    """The same of a body that is taken apart already."""
    body, members = grown.body, grown.members
    parts = [bytes(members[name]) for name in ("tools", "system") if name in members]
    items = map(grown.item, range(len(grown))) if _KEY in body else ()
    own = [raw for raw in (*parts, *items) if _KEY in raw]
    if not grown.listed or not len(grown) or MARK in members or any(b'"1h"' in m for m in own):
        return body
    left = MAX_MARKS - sum(map(_marks_in, own))
    head, in_head = sum(map(len, parts)), False
    changed: dict[int, bytes] = {}
    for place in _places(grown, reused):
        if left <= 0:
            break
        size = head if place < 0 else head + grown.ends[place] - grown.begins[0]
        if size < MIN_TOKENS * _BYTES_PER_TOKEN:
            continue
        made = _in_head(body, members) if place < 0 else _in_message(grown.item(place), tail)
        if made is None:
            continue
        left -= 1
        if place < 0:
            in_head = True
        else:
            changed[place] = made
    for place in sorted(changed, reverse=True):  # what stands before stays where it is
        body = body[: grown.begins[place]] + changed[place] + body[grown.ends[place] :]
    if in_head:
        body = _in_head(body, members if not changed else split_object(body)) or body
    return body


def _places(grown: Grown, reused: int) -> list[int]:
    """In order of use: -1 stands for what comes before the messages."""
    last = len(grown) - 1
    places = [last, -1]
    if 0 < reused <= last - _LOOKED_BACK // 2:
        places.append(reused - 1)
    return places


def _in_head(body: bytes, members: Mapping[str, msgspec.Raw]) -> bytes | None:
    """At the end of the system prompt, of the tools without one."""
    raw = members.get("system")
    if raw is not None and bytes(raw) not in (b"null", b'""', b"[]"):
        made = _with_last_marked(bytes(raw))
        return None if made is None else with_member(body, "system", made, members)
    raw = members.get("tools")
    made = None if raw is None else _with_last_marked(bytes(raw), tools=True)
    return None if made is None else with_member(body, "tools", made, members)


def _in_message(message: bytes, tail: str) -> bytes | None:
    try:
        members = _object.decode(message)
    except msgspec.MsgspecError:
        return None
    content = members.get("content")
    made = None if content is None else _with_last_marked(bytes(content), tail)
    return None if made is None else with_member(message, "content", made, members)


def _with_last_marked(raw: bytes, tail: str = "", *, tools: bool = False) -> bytes | None:
    """A text or a list of blocks, the last one that may have a mark with one. None where that has
    one, or there is none."""
    if raw.startswith(b'"'):
        if len(raw) == 2:  # the API takes no mark on an empty text
            return None
        return b'[{"type":"text","text":%s,"cache_control":%s}]' % (raw, _VALUE)
    try:
        blocks = [bytes(one) for one in _list.decode(raw)]
        for at in range(len(blocks) - 1, -1, -1):
            kind = _block.decode(blocks[at])
            is_tail = bool(tail) and isinstance(kind.text, str) and kind.text.startswith(tail)
            if is_tail or not (tools or (kind.type in _MARKABLE and kind.text != "")):
                continue
            if MARK in _object.decode(blocks[at]):
                return None
            made = with_member(blocks[at], MARK, _VALUE)
            if made is None:
                return None
            return b"[" + b",".join((*blocks[:at], made, *blocks[at + 1 :])) + b"]"
    except (msgspec.MsgspecError, RecursionError):
        return None
    return None


def _marks_in(raw: bytes) -> int:
    """Those that stand where the API reads them; one too many counted where that cannot be told."""
    try:
        return _count(parsed(raw))
    except ValueError:
        return MAX_MARKS


def _count(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return 0
    members = cast("dict[str, Any]", value)
    own = int(members.get(MARK) is not None)
    return own + sum(_count(members.get(name)) for name in ("content", "tools", "system"))
