"""Calls of tools that a provider refused to pass on, read from the text that the model wrote.

Groq answers 400 `tool_use_failed` where its own parser does not know the shape in which a model
wrote a call, and gives the text as `failed_generation`. Where that text says for certain which
tools are to be called with what, here are those calls. Nothing is guessed and no value is edited:
each call names an offered tool, its arguments fit that tool's schema, and all of the text is read.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from reflexarc.steps import ToolCall, ToolSpec
from reflexarc.steps.errors import MalformedError
from reflexarc.wire.ids import made_id
from reflexarc.wire.json import decode_strict
from reflexarc.wire.offered import Tools, tools_given

MAX_TEXT = 256 * 1024
"""Characters of a text that is read."""
MAX_CALLS = 64
_MAX_DEPTH = 64


class _Read(NamedTuple):
    """A call as it stands in the text. `arguments` is their JSON text."""

    name: str
    arguments: str


class _UnsureError(Exception):
    """The text cannot be read in one way only."""


def repaired(body: bytes, tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...] | None:
    """The calls that an error's body holds, None where nothing certain can be read.

    `tools` are those that may be called: none of them where the client chose `none`. Whether
    several calls are wanted is the caller's to see.
    """
    text = _failed_generation(body)
    if text is None or len(text) > MAX_TEXT or not tools:
        return None
    offered = tools_given(tools)
    if offered.refusal is not None:
        return None
    try:
        read = _calls(text)
    except _UnsureError:
        return None
    if not 0 < len(read) <= MAX_CALLS:
        return None
    calls: list[ToolCall] = []
    for place, one in enumerate(read):
        call = _fitting(one, str(place), offered)
        if call is None:
            return None
        calls.append(call)
    return tuple(calls)


def _failed_generation(body: bytes) -> str | None:
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    error = _fields(_fields(value).get("error"))
    text = error.get("failed_generation")
    if error.get("code") != "tool_use_failed" or not isinstance(text, str):
        return None
    return text


def _fitting(read: _Read, place: str, offered: Tools) -> ToolCall | None:
    """The call, where such a tool is offered and takes such arguments."""
    if offered.get(read.name) is None:
        return None
    try:
        arguments = decode_strict(read.arguments.encode(), "arguments", _MAX_DEPTH)
    except (MalformedError, UnicodeEncodeError):
        return None
    if not isinstance(arguments, dict):
        return None
    fields = cast("dict[str, Any]", arguments)
    if offered.fault(read.name, fields) is not None:
        return None
    return ToolCall(
        id=made_id(place, read.name, read.arguments),
        name=read.name,
        arguments=fields,
        raw=read.arguments,
    )


# Shapes in which models write calls.

_NAME = r"[A-Za-z_][\w.\-]{0,127}"
_space = re.compile(r"[\s;,]*")
_ends = re.compile(r"\s*(?:<\|[a-z_]+\|>|</s>)\s*$")
_starts = re.compile(
    r"\s*(?:<\|(?:python_tag|assistant|tool_calls?(?:_begin|_section_begin)?)\|>\s*)"
)
_fence = re.compile(r"\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_outer = re.compile(r"\s*<(tool-use|tool_use|tool_calls|function_calls)>(.*)</\1>\s*", re.DOTALL)
_function = re.compile(
    rf"<function(?:=|\()\s*(?P<q>[\"']?)(?P<name>{_NAME})(?P=q)\)?\s*(?:[>=]\s*)?"
)
_function_end = re.compile(r"\s*>?\s*(?:</function>|<function>|<function/>)?")
_tool_call = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_mistral = re.compile(r"\[TOOL_CALLS\]\s*")
_mistral_named = re.compile(
    rf"(?P<name>{_NAME})(?:\[CALL_ID\][A-Za-z0-9]+)?(?:\[ARGS\])?\s*(?=\{{)"
)
_named = re.compile(rf"(?P<name>{_NAME})\s*(?P<open>\(?)\s*(?=\{{)")
_bracket_end = re.compile(r"\s*\)")
_named_end = re.compile(r"\s*</function>")
_marks = ("<function", "<tool_call>", "[TOOL_CALLS]")


def _calls(text: str) -> list[_Read]:
    text = _bare(text)
    if text.startswith(("{", "[")) and not text.startswith(_marks):
        return _objects(text)
    begins = [at for at in (text.find(mark) for mark in _marks) if at >= 0]
    if begins:
        # What stands before the first mark is said, not called.
        text = text[min(begins) :]
        for mark, read in (
            ("<function", _functions),
            ("<tool_call>", _tool_calls),
            ("[TOOL_CALLS]", _after_mark),
        ):
            if text.startswith(mark):
                return read(text)
    return _by_name(text)


def _bare(text: str) -> str:
    """Without the tokens that begin and end a turn, a code fence or a tag around all of it."""
    while True:
        before = text
        text = _ends.sub("", text)
        found = _starts.match(text)
        text = text[found.end() :] if found else text
        fenced = _fence.fullmatch(text)
        if fenced and "```" not in fenced[1]:
            text = fenced[1]
        tagged = _outer.fullmatch(text)
        text = tagged[2] if tagged else text
        if text == before:
            return text.strip()


def _functions(text: str) -> list[_Read]:
    """`<function=NAME>{...}</function>`, the second bracket or the end left out at times."""
    read: list[_Read] = []

    def one(at: int) -> int:
        found = _function.match(text, at)
        if found is None:
            raise _UnsureError
        at = found.end()
        if text.startswith("{", at):
            arguments, at = _json_at(text, at)
        elif text.startswith("</function>", at):
            arguments = "{}"  # it is called without any
        else:
            raise _UnsureError
        read.append(_Read(found["name"], arguments))
        end = _function_end.match(text, at)
        return end.end() if end else at

    _sequence(text, one)
    return read


def _tool_calls(text: str) -> list[_Read]:
    """`<tool_call>{...}</tool_call>`, one or several."""
    read: list[_Read] = []

    def one(at: int) -> int:
        tagged = _tool_call.match(text, at)
        if tagged is None:
            raise _UnsureError
        read.extend(_objects(tagged[1].strip()))
        return tagged.end()

    _sequence(text, one)
    return read


def _after_mark(text: str) -> list[_Read]:
    """`[TOOL_CALLS][{...}]`, `[TOOL_CALLS]NAME[ARGS]{...}`, and those one after another."""
    read: list[_Read] = []

    def one(at: int) -> int:
        mark = _mistral.match(text, at)
        at = mark.end() if mark else at
        named = _mistral_named.match(text, at)
        if named is not None:
            arguments, at = _json_at(text, named.end())
            read.append(_Read(named["name"], arguments))
        elif mark is not None:
            part, at = _json_at(text, at)
            read.extend(_objects(part))
        else:
            raise _UnsureError
        return at

    _sequence(text, one)
    return read


def _by_name(text: str) -> list[_Read]:
    """`NAME({...})`, and `NAME{...}</function>`, of which the first part was lost."""
    read: list[_Read] = []

    def one(at: int) -> int:
        found = _named.match(text, at)
        if found is None:
            raise _UnsureError
        arguments, at = _json_at(text, found.end())
        closed = (_bracket_end if found["open"] else _named_end).match(text, at)
        if closed is None:
            raise _UnsureError
        read.append(_Read(found["name"], arguments))
        return closed.end()

    _sequence(text, one)
    return read


def _objects(text: str) -> list[_Read]:
    """Calls as JSON objects: one, a list, `{"tool_calls": [...]}`, or several in a row."""
    read: list[_Read] = []

    def one(at: int) -> int:
        part, at = _json_at(text, at)
        try:
            value = decode_strict(part.encode(), "calls", _MAX_DEPTH)
        except (MalformedError, UnicodeEncodeError) as error:
            raise _UnsureError from error
        read.extend(_called(value))
        return at

    _sequence(text, one)
    return read


def _called(value: Any) -> list[_Read]:
    if isinstance(value, list):
        return [read for one in cast("list[Any]", value) for read in _called_once(one)]
    listed = _fields(value).get("tool_calls")
    if isinstance(listed, list) and len(_fields(value)) == 1:
        return [read for one in cast("list[Any]", listed) for read in _called_once(one)]
    return _called_once(value)


_BESIDE = frozenset({"id", "type", "index", "name", "function", "arguments", "parameters"})


def _called_once(value: Any) -> list[_Read]:
    """`{"name", "arguments"}`, with `parameters` in place of `arguments`, and with either inside of
    `function` or beside it. What has other members may be anything."""
    fields = _fields(value)
    if not fields or not fields.keys() <= _BESIDE or fields.get("type", "function") != "function":
        raise _UnsureError
    inner = fields.get("function")
    parts = [fields]
    names = [fields["name"]] if "name" in fields else []
    if isinstance(inner, str):
        names.append(inner)
    elif inner is not None:
        parts.append(_fields(inner))
        if not parts[1].keys() <= {"name", "arguments", "parameters", "description"}:
            raise _UnsureError
        names.extend([parts[1]["name"]] if "name" in parts[1] else [])
    given = [part[word] for part in parts for word in ("arguments", "parameters") if word in part]
    if len(names) != 1 or len(given) != 1 or not isinstance(names[0], str):
        raise _UnsureError
    arguments = given[0]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return [_Read(names[0], arguments)]


_decoder = json.JSONDecoder()


def _json_at(text: str, at: int) -> tuple[str, int]:
    """The JSON value that begins here, as its text, and where it ends."""
    try:
        _, end = _decoder.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise _UnsureError from error
    return text[at:end], end


def _sequence(text: str, one: Callable[[int], int]) -> None:
    """Parts until the end of the text, with nothing but space and separators between them. `one`
    reads the part that begins at a place and tells where it ends."""
    at = parts = 0
    while at < len(text):
        parts += 1
        if parts > MAX_CALLS:
            raise _UnsureError
        at = one(at)
        gap = _space.match(text, at)
        at = gap.end() if gap else at


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
