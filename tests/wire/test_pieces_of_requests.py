"""What of a request is cached, in pieces, for every dialect."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects import NAMES
from reflexarc.wire.json import split_object
from reflexarc.wire.pieces import message_pieces, pieces_of


def told(dialect: str, body: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = pieces_of(dialect, split_object(json.dumps(body).encode()))
    return [(one.kind, one.path, one.role) for one in found]


def test_a_chat_request() -> None:
    body = {
        "model": "m",
        "temperature": 0,
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    }
    assert told("chat", body) == [
        ("settings", "model", ""),
        ("tool", "tools[0]", ""),
        ("message", "messages[0]", "system"),
        ("message", "messages[1]", "user"),
    ]


def test_a_messages_request() -> None:
    body = {
        "max_tokens": 9,
        "thinking": {"type": "enabled"},
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "messages": [{"role": "user", "content": "u"}],
    }
    assert told("messages", body) == [
        ("settings", "thinking", ""),
        ("system", "system[0]", ""),
        ("system", "system[1]", ""),
        ("message", "messages[0]", "user"),
    ]
    assert told("messages", {"system": "a", "messages": []}) == [("system", "system", "")]


def test_a_responses_request() -> None:
    body = {
        "instructions": "a",
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [{"role": "user", "content": "u"}, {"type": "function_call_output", "output": ""}],
    }
    assert told("responses", body) == [
        ("settings", "reasoning.effort", ""),
        ("system", "instructions", ""),
        ("message", "input[0]", "user"),
        ("message", "input[1]", ""),
    ]
    assert told("responses", {"input": "u"}) == [("message", "input[0]", "")]


def test_a_gemini_request() -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "a"}]},
        "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}, {"googleSearch": {}}],
        "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingBudget": 0}},
        "contents": [{"role": "model", "parts": []}],
    }
    assert told("gemini", body) == [
        ("settings", "generationConfig.thinkingConfig", ""),
        ("tool", "tools[0].functionDeclarations[0]", ""),
        ("tool", "tools[0].functionDeclarations[1]", ""),
        ("tool", "tools[1]", ""),
        ("system", "systemInstruction", ""),
        ("message", "contents[0]", "model"),
    ]


members = st.sampled_from(["messages", "input", "contents", "tools", "system", "reasoning", "text"])
values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda one: (
        st.lists(one) | st.dictionaries(st.sampled_from(["role", "functionDeclarations"]), one)
    ),
)


@pytest.mark.parametrize("dialect", NAMES)
@given(body=st.dictionaries(members, values))
def test_whatever_a_request_holds_there_are_pieces(dialect: str, body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    try:
        fields = split_object(raw)
    except MalformedError:  # half of a surrogate pair
        return
    for piece in pieces_of(dialect, fields):
        assert piece.raw in raw


@given(st.lists(st.text(max_size=5), max_size=5), st.integers(0, 5))
def test_messages_one_by_one_are_those_of_all(texts: list[str], cut: int) -> None:
    raws = [json.dumps({"role": "user", "content": text}).encode() for text in texts]
    whole = message_pieces("chat", raws)
    begun = min(cut, len(raws))
    assert whole[:begun] + message_pieces("chat", raws[begun:], begun) == whole
