"""The fault upstream refuses what the APIs refuse: a conversion they refuse fails a test."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from reflexarc.sim.faulty import chat_checks, gemini_checks, messages_checks, responses_checks
from reflexarc.sim.faulty.script import sign, signed
from reflexarc.steps.errors import RequestError

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Hello"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": "y"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "input": [
        {"role": "user", "content": "Hello"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sign("x")},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}],
}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": "Hello"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": sign("x")},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
                {"type": "tool_result", "tool_use_id": "t2"},
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    "tools": [{"name": "f", "input_schema": SCHEMA}],
}
GEMINI: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "Hello"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": sign("x")}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}],
}
GOOD: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], None]]] = {
    "chat": (CHAT, chat_checks.check),
    "responses": (RESPONSES, lambda body: responses_checks.check(body, signed)),
    "messages": (MESSAGES, lambda body: messages_checks.check(body, signed)),
    "gemini": (GEMINI, lambda body: gemini_checks.check(body, signed)),
}
REMOVED = object()
LONG = "x" * 41
BAD: list[tuple[str, str, Any]] = [
    ("chat", "odd", 1),
    ("chat", "messages", []),
    ("chat", "messages.0.content", None),
    ("chat", "messages.1.tool_calls.0.id", LONG),
    ("chat", "messages.1.tool_calls.1.id", "c1"),
    ("chat", "messages.1.tool_calls", []),
    ("chat", "messages.1.tool_calls.0.function.arguments", {}),
    ("chat", "messages.3", REMOVED),
    ("chat", "messages.3.tool_call_id", "c3"),
    ("chat", "messages.2", {"role": "user", "content": "x"}),
    ("chat", "tools.0.function.parameters", None),
    ("chat", "tools.0.function.strict", True),
    ("chat", "stop", ["1", "2", "3", "4", "5"]),
    ("chat", "metadata", {"a": "b"}),
    ("responses", "stop", ["1"]),
    ("responses", "input.1.content", [{"type": "reasoning_text", "text": "hm"}]),
    ("responses", "input.1.encrypted_content", "bm9uZQ=="),
    ("responses", "input.2.call_id", "x" * 65),
    ("responses", "input.3", REMOVED),
    ("responses", "input.2", REMOVED),
    ("responses", "input.0.content", [{"type": "text", "text": "x"}]),
    ("responses", "max_output_tokens", 15),
    ("messages", "max_tokens", REMOVED),
    ("messages", "messages.0.content", ""),
    ("messages", "messages.0.content", [{"type": "text", "text": ""}]),
    ("messages", "messages.0.role", "system"),
    ("messages", "messages.1.content.0", REMOVED),
    ("messages", "messages.1.content.0.signature", "bm9uZQ=="),
    ("messages", "messages.1.content.1.input", "{}"),
    ("messages", "messages.1.content.1.id", "a.b"),
    ("messages", "messages.1.content", []),
    ("messages", "messages.2.content.1", REMOVED),
    ("messages", "messages.2.content.0", {"type": "text", "text": "first"}),
    ("messages", "temperature", 0.5),
    ("messages", "tool_choice", {"type": "any"}),
    ("messages", "tools.0.input_schema", {}),
    ("gemini", "contents.1.parts.0.thoughtSignature", REMOVED),
    ("gemini", "contents.1.parts.0.thoughtSignature", "bm9uZQ=="),
    ("gemini", "contents.2.parts.0.functionResponse.response", "x"),
    ("gemini", "contents.2.parts.0.functionResponse.name", "g"),
    ("gemini", "contents.2", REMOVED),
    ("gemini", "contents.0.parts", []),
    ("gemini", "contents.0.parts.0", {"text": "x", "inlineData": {}}),
    ("gemini", "generationConfig", {"stop": ["x"]}),
]


@pytest.mark.parametrize("dialect", GOOD)
def test_a_good_request_is_taken(dialect: str) -> None:
    body, check = GOOD[dialect]
    check(body)


@pytest.mark.parametrize(("dialect", "path", "value"), BAD)
def test_what_the_api_refuses_is_refused(dialect: str, path: str, value: Any) -> None:
    good, check = GOOD[dialect]
    body: Any = copy.deepcopy(good)
    *way, last = path.split(".")
    held = body
    for step in way:
        held = held[int(step)] if isinstance(held, list) else held[step]
    key: Any = int(last) if isinstance(held, list) else last
    if value is REMOVED:
        del held[key]
    else:
        held[key] = value
    with pytest.raises(RequestError):
        check(body)


def test_two_results_as_two_user_turns_are_refused() -> None:
    body = copy.deepcopy(MESSAGES)
    first, *others = body["messages"][2]["content"]
    body["messages"][2:] = [
        {"role": "user", "content": [first]},
        {"role": "user", "content": others},
    ]
    with pytest.raises(RequestError):
        messages_checks.check(body, signed)


def test_only_what_was_signed_here_is_known() -> None:
    assert signed(sign("x"))
    assert not signed(sign("x")[:-4] + "AAAA")
    assert not signed("")
    assert not signed("reflexarc-1.abc")


def test_googles_other_spelling_is_taken_and_data_is_left_alone() -> None:
    given: Any = {
        "contents": [{"role": "user", "parts": [{"inline_data": {"mime_type": "image/png"}}]}],
        "tools": [{"function_declarations": [{"parameters_json_schema": {"x_y": {"a_b": 1}}}]}],
    }
    told = gemini_checks.spelt(given)
    assert told["contents"][0]["parts"][0] == {"inlineData": {"mimeType": "image/png"}}
    (declared,) = told["tools"][0]["functionDeclarations"]
    assert declared == {"parametersJsonSchema": {"x_y": {"a_b": 1}}}
    with pytest.raises(RequestError):
        gemini_checks.spelt({"inline_data": {}, "inlineData": {}})
