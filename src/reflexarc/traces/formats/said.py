"""What an answer said and called, from a message in the form of any API or framework.

For logs alone: nothing is checked, nothing raises.
"""

import msgspec

from reflexarc.traces.formats.fields import is_list, is_table
from reflexarc.traces.loose import Table, encoded, listed, table, tables, text

_CALLS = frozenset(
    {"tool_use", "tool_call", "function_call", "tool-call", "server_tool_use", "custom_tool_call"}
    | {"mcp_call", "local_shell_call"}
)
_DEPTH = 6


class Called(msgspec.Struct, frozen=True):
    name: str
    id: str = ""
    arguments: str = ""


class Said(msgspec.Struct, frozen=True):
    """The text of an answer and its calls."""

    text: str = ""
    calls: tuple[Called, ...] = ()

    @property
    def written(self) -> list[str]:
        """All that was generated, for counting."""
        return [self.text, *(part for call in self.calls for part in (call.name, call.arguments))]


def said_by(value: object) -> Said:
    """A message, a list of them, items, parts or plain text."""
    words: list[str] = []
    calls: list[Called] = []
    _walk(value, words, calls, _DEPTH)
    seen: dict[str, Called] = {}
    for call in calls:
        # some forms repeat calls beside the parts that made them
        seen.setdefault(call.id or f"#{len(seen)}", call)
    return Said("".join(words), tuple(seen.values()))


def _walk(value: object, words: list[str], calls: list[Called], depth: int) -> None:
    if isinstance(value, str):
        words.append(value)
    elif is_list(value) and depth:
        for one in listed(value):
            _walk(one, words, calls, depth - 1)
    elif is_table(value) and depth:
        _part(table(value), words, calls, depth - 1)


def _part(part: Table, words: list[str], calls: list[Called], depth: int) -> None:
    if is_table(part.get("kwargs")):
        part = table(part["kwargs"])
    kind = text(part.get("type")) or text(part.get("part_kind"))
    inner = table(part.get("functionCall")) or table(part.get("toolUse"))
    if kind in _CALLS or inner:
        made = _call(inner or part)
        if made.name:
            calls.append(made)
        return
    if kind in ("reasoning", "thinking", "redacted_thinking"):
        return
    if isinstance(part.get("text"), str):
        words.append(text(part["text"]))
    elif is_table(part.get("message")):
        _walk(part["message"], words, calls, depth)
    else:
        for key in ("content", "parts", "contents", "output_text"):
            if part.get(key):
                _walk(part[key], words, calls, depth)
                break
    more = table(part.get("additional_kwargs"))
    for call in tables(part.get("tool_calls")) or tables(more.get("tool_calls")):
        made = _call(call)
        if made.name:
            calls.append(made)
    old = _call(table(part.get("function_call")))
    if old.name:
        calls.append(old)


def _call(call: Table) -> Called:
    inner = table(call.get("tool_call")) or call
    function = table(inner.get("function")) or table(inner.get("custom"))
    name = text(function.get("name")) or text(inner.get("name")) or text(inner.get("tool_name"))
    name = name or text(inner.get("toolName"))
    given: object = ""
    for source in (function, inner):
        for key in ("arguments", "args", "input"):
            if not given and source.get(key) is not None:
                given = source[key]
    id = text(inner.get("call_id")) or text(inner.get("id")) or text(inner.get("tool_call_id"))
    id = id or text(inner.get("toolCallId")) or text(inner.get("toolUseId"))
    return Called(name, id, given if isinstance(given, str) else encoded(given).decode())
