"""Chat messages and tools as harnesses write them become steps; a fault names its path."""

from typing import Any

import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.chat import message_from_chat, tool_from_chat


def _calling(arguments: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]}


def test_text_parts_are_joined_by_a_line_feed() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    message = message_from_chat({"role": "user", "content": parts})
    assert (message.content, message.opaque) == ("a\nb", False)


@pytest.mark.parametrize(
    "extra",
    [
        {"content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]},
        {"content": [{"type": "refusal", "refusal": "no"}]},
        {"refusal": "no"},
        {"audio": {"id": "a"}},
        {"function_call": {"name": "f", "arguments": "{}"}},
        {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
    ],
)
def test_what_is_not_text_is_opaque(extra: dict[str, Any]) -> None:
    assert message_from_chat({"role": "assistant", "content": "x", **extra}).opaque


_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "extra",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
        {"thinking_blocks": [{"signature": "s"}]},
        {"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"content": [{"type": "redacted_thinking", "data": "x"}]},
        {"tool_calls": [{**_CALL, "thought_signature": "s"}]},
        {"tool_calls": [{**_CALL, "extra_content": {"google": {"thought_signature": "s"}}}]},
        {"extra_content": {"google": {"thought_signature": "s"}}},
    ],
)
def test_what_a_model_thought_is_told_apart(extra: dict[str, Any]) -> None:
    message = message_from_chat({"role": "assistant", "content": "x", **extra})
    assert (message.thinking, message.opaque) == (True, False)


def test_arguments_about_signatures_are_not_thinking() -> None:
    function = {"name": "sign", "arguments": '{"signature": "s", "thinking": "hm"}'}
    message = {"role": "assistant", "tool_calls": [{**_CALL, "function": function}]}
    assert not message_from_chat(message).thinking


def test_empty_extras_and_unknown_keys_are_not() -> None:
    message = {"role": "assistant", "content": "x", "refusal": None, "audio": None, "weight": 1}
    assert not message_from_chat(message).opaque


@pytest.mark.parametrize(
    ("text", "arguments", "well_formed"),
    [
        ('{"a": 1}', {"a": 1}, True),
        ({"a": 1}, {"a": 1}, True),
        ("", {}, True),
        (" ", {}, True),
        (None, {}, True),
        ("[1]", {}, False),
        ("{", {}, False),
        ('{"a":"\\ud800"}', {}, False),
        ("[" * 9000, {}, False),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}, True),
    ],
)
def test_arguments_are_parsed_once(text: Any, arguments: Any, well_formed: bool) -> None:
    call = message_from_chat(_calling(text)).tool_calls[0]
    assert (call.arguments, call.well_formed) == (arguments, well_formed)
    if isinstance(text, str):
        assert call.raw == text


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (3, "m"),
        ({}, "m.role"),
        ({"role": "oracle"}, "m.role"),
        ({"role": ["user"]}, "m.role"),
        ({"role": "user", "content": 3}, "m.content"),
        ({"role": "user", "content": [3]}, "m.content[0]"),
        ({"role": "user", "content": [{"text": "x"}]}, "m.content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "m.content[0].text"),
        ({"role": "user", "tool_calls": [{}]}, "m.tool_calls"),
        ({"role": "assistant", "tool_calls": {}}, None),
        ({"role": "assistant", "tool_calls": "x"}, "m.tool_calls"),
        ({"role": "assistant", "tool_calls": [3]}, "m.tool_calls[0]"),
        ({"role": "assistant", "tool_calls": [{"id": 3}]}, "m.tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "m.tool_calls[0].function"),
        (_calling(3), "m.tool_calls[0].function.arguments"),
        ({"role": "tool", "tool_call_id": 3}, "m.tool_call_id"),
    ],
)
def test_a_fault_names_its_path(message: Any, param: str | None) -> None:
    if param is None:  # falsy lists of calls are no calls
        assert message_from_chat(message, "m").tool_calls == ()
        return
    with pytest.raises(RequestError) as caught:
        message_from_chat(message, "m")
    assert caught.value.param == param
    assert str(caught.value).startswith(param)


@pytest.mark.parametrize(
    ("declared", "effect"),
    [
        ({}, None),
        ({"annotations": {"readOnlyHint": True}}, "read"),
        ({"annotations": {"readOnlyHint": False}}, "write"),
        ({"annotations": {"destructiveHint": True}}, "write"),
        ({"annotations": {"readOnlyHint": True, "destructiveHint": True}}, "write"),
        ({"annotations": {"title": "x"}}, None),
        ({"x-reflexarc-effect": "think"}, "think"),
        ({"x-reflexarc-effect": "read", "annotations": {"readOnlyHint": False}}, "read"),
    ],
)
def test_a_tool_declares_its_effect_on_either_level(declared: Any, effect: Any) -> None:
    outer = {"type": "function", "function": {"name": "f"}, **declared}
    inner = {"type": "function", "function": {"name": "f", **declared}}
    assert tool_from_chat(outer).effect == tool_from_chat(inner).effect == effect


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ([], "t"),
        ({"type": "web_search"}, "t.type"),
        ({"type": "function"}, "t.function"),
        ({"function": {}}, "t.function.name"),
        ({"function": {"name": ""}}, "t.function.name"),
        ({"function": {"name": "f", "parameters": []}}, "t.function.parameters"),
        ({"function": {"name": "f", "description": 3}}, "t.function.description"),
        ({"function": {"name": "f", "strict": "yes"}}, "t.function.strict"),
        ({"function": {"name": "f"}, "x-reflexarc-effect": "rw"}, "t.x-reflexarc-effect"),
    ],
)
def test_a_tool_that_does_not_fit_names_its_path(tool: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        tool_from_chat(tool, "t")
    assert caught.value.param == param
