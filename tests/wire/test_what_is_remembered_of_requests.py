"""Readings of messages are remembered by their bytes: nothing else of a request is."""

import json
from typing import Any

import pytest

from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]


def _body(**more: Any) -> bytes:
    messages = [{"role": "user", "content": "Hello"}]
    return json.dumps({"model": "m", "messages": messages, "tools": TOOLS, **more}).encode()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"tool_choice": "none"}, {"tool_choice": "required"}),
        ({}, {"tool_choice": {"type": "function", "function": {"name": "g"}}}),
        ({"parallel_tool_calls": False}, {}),
        ({"model": "m"}, {"model": "other"}),
        ({"tools": TOOLS[:1]}, {"tools": TOOLS}),
    ],
)
def test_the_same_conversation_with_another_choice_is_another_request(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    memory, chat = TurnMemory(), dialect("chat")
    one = read_ask(chat, _body(**first), Where(), memory)
    other = read_ask(chat, _body(**second), Where(), memory)
    assert one.turns == other.turns
    assert (one.settings, one.tools) != (other.settings, other.tools)
    assert other == read_ask(chat, _body(**second), Where(), TurnMemory())


def test_what_one_dialect_remembers_is_not_anothers() -> None:
    memory = TurnMemory()
    raw = b'{"role": "user", "content": [{"type": "text", "text": "Hello"}]}'
    for name in ("chat", "messages"):
        read = memory.read(dialect(name), raw, "messages[0]", 128)
        assert read == dialect(name).read_message(json.loads(raw), "messages[0]")
