"""Requests of the Responses dialect are understood, each part in its place."""

from typing import Any

import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialects.responses.reading import fits_strict
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    OutputFormat,
    Reasoning,
    Refusal,
    Result,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)
from tests.wire.dialects.responses_asked import message, read, said

STRICT = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_a_string_is_a_users_turn() -> None:
    assert read(input="hello").turns == (Turn("user", (Text("hello"),)),)


def test_instructions_stand_first() -> None:
    turns = read(instructions="be kind", input=[message("user", "hi")]).turns
    assert turns[0].role == "system"
    assert turns[0].parts == (Text("be kind"),)


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_messages_need_no_type(role: str) -> None:
    assert read(input=[{"role": role, "content": "x"}]).turns == (Turn(role, (Text("x"),)),)  # pyright: ignore[reportArgumentType] - one of the roles


def test_items_of_one_model_turn_are_one_turn() -> None:
    turns = read(
        input=[
            message("user", "go"),
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "because"}],
                "encrypted_content": "sealed by OpenAI",
            },
            said("one moment", id="msg_1"),
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"b":1,"a":2}'},
            {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "g", "arguments": ""},
            {"type": "custom_tool_call", "call_id": "c3", "name": "h", "input": "raw text"},
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            {"type": "custom_tool_call_output", "call_id": "c3", "output": "three"},
        ]
    ).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    assert turns[1].parts == (
        Thinking("because", "sealed by OpenAI", "responses", id="rs_1"),
        Text("one moment", item={"id": "msg_1"}),
        Call("c1", "f", '{"b":1,"a":2}'),
        Call("c2", "g", "{}", item="fc_2"),
        Call("c3", "h", "raw text", kind="custom"),
    )
    assert turns[2].parts == (
        Result("c2", (Text("two"),), name="g"),
        Result("c1", (Text("one"),), name="f"),
        Result("c3", (Text("three"),), name="h", kind="custom"),
    )


@pytest.mark.parametrize(
    ("part", "read_as"),
    [
        ({"type": "input_text", "text": "x"}, Text("x")),
        ({"type": "output_text", "text": "x", "annotations": [], "logprobs": []}, Text("x")),
        ({"type": "refusal", "refusal": "no"}, Refusal("no")),
        (
            {"type": "input_image", "image_url": "data:image/png;base64,AAA=", "detail": "low"},
            Media("image", media_type="image/png", data="AAA=", detail="low"),
        ),
        (
            {"type": "input_image", "image_url": "https://x/y.png", "detail": None},
            Media("image", url="https://x/y.png"),
        ),
        (
            {"type": "input_image", "image_url": "data:text/plain,a%20b"},
            Media("image", url="data:text/plain,a%20b"),
        ),
        ({"type": "input_image", "file_id": "file-1"}, Media("image", file="file-1")),
        (
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,AAA=",
                "filename": "a.pdf",
            },
            Media("document", media_type="application/pdf", data="AAA=", name="a.pdf"),
        ),
        ({"type": "input_file", "file_url": "https://x"}, Media("document", url="https://x")),
        ({"type": "input_file", "file_id": "file-1"}, Media("document", file="file-1")),
        (
            {"type": "input_audio", "input_audio": {"data": "AAA=", "format": "wav"}},
            Media("audio", media_type="audio/wav", data="AAA="),
        ),
        ({"type": "hologram", "x": 1}, Foreign("hologram", {"type": "hologram", "x": 1})),
        (
            {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
            Text("x", more={"prompt_cache_breakpoint": {"mode": "explicit"}}),
        ),
    ],
)
def test_content_is_read_by_its_type(part: dict[str, Any], read_as: Any) -> None:
    assert read(input=[message("user", [part])]).turns[0].parts == (read_as,)


def test_a_result_may_hold_text_and_pictures() -> None:
    output = [
        {"type": "input_text", "text": '{"$ref": "#/not/a/schema"}'},
        {"type": "input_image", "image_url": "https://x"},
    ]
    turn = read(input=[{"type": "function_call_output", "call_id": "c", "output": output}]).turns[0]
    assert turn.parts == (
        Result("c", (Text('{"$ref": "#/not/a/schema"}'), Media("image", url="https://x"))),
    )


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, "assistant"),
        ({"type": "mcp_call", "id": "m", "name": "n", "arguments": "{}"}, "assistant"),
        ({"type": "compaction", "encrypted_content": "x"}, "assistant"),
        ({"type": "item_reference", "id": "msg_1"}, "assistant"),
        ({"id": "msg_1"}, "assistant"),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, "user"),
        ({"type": "mcp_approval_response", "approve": True}, "user"),
        ({"type": "function_call_output", "name": "n", "output": "no call"}, "user"),
        ({"type": "from_the_future", "x": [1]}, "assistant"),
    ],
)
def test_items_of_this_dialect_alone_are_kept_whole(item: dict[str, Any], role: str) -> None:
    (turn,) = read(input=[item]).turns
    (part,) = turn.parts
    assert turn.role == role
    assert isinstance(part, Foreign)
    assert part.value == item


def test_raw_reasoning_is_thinking() -> None:
    item = {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "aloud"}],
        "encrypted_content": "",
    }
    (part,) = read(input=[item]).turns[0].parts
    assert isinstance(part, Thinking)
    assert (part.text, part.signature) == ("aloud", None)


def test_anothers_signature_comes_out_of_its_envelope() -> None:
    sealed = seal(Sealed("messages", "byte-exact==", id="t1"))
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "thought"}],
        "encrypted_content": sealed,
    }
    (part,) = read(input=[item]).turns[0].parts
    assert part == Thinking("thought", "byte-exact==", "messages", id="t1")


def test_signatures_of_calls_come_back_to_them() -> None:
    envelope = {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": seal(Sealed("gemini", calls={"c1": "s1", "c2": "s2"})),
    }
    calls = [
        {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        for n in (1, 2)
    ]
    (turn,) = read(input=[envelope, *calls]).turns
    assert turn.parts == (
        Call("c1", "f", "{}", signature="s1", origin="gemini"),
        Call("c2", "f", "{}", signature="s2", origin="gemini"),
    )


def test_functions_custom_and_hosted_tools_are_told_apart() -> None:
    custom = {"type": "custom", "name": "c", "format": {"type": "text"}}
    hosted = {"type": "web_search", "filters": {"allowed_domains": ["x"]}}
    mcp = {"type": "mcp", "server_label": "docs"}
    function = {"type": "function", "name": "f", "description": "d", "strict": False}
    parameters = {"type": "object", "properties": {"z": {}, "a": {}}, "additionalProperties": True}
    tools = read(tools=[{**function, "parameters": parameters}, custom, hosted, mcp]).tools
    assert tools[0] == ToolOffer("f", "d", parameters, strict=False)
    assert tools[0].parameters is not None
    assert list(tools[0].parameters["properties"]) == ["z", "a"]
    assert [(tool.name, tool.kind, tool.value) for tool in tools[1:]] == [
        ("c", "custom", custom),
        ("web_search", "hosted", hosted),
        ("docs", "hosted", mcp),
    ]


def test_a_tool_is_strict_unless_it_says_otherwise_or_cannot_be() -> None:
    def strict(**members: Any) -> bool | None:
        return read(tools=[{"type": "function", "name": "f", **members}]).tools[0].strict

    assert strict(parameters=STRICT) is True
    assert strict(parameters=STRICT, strict=False) is False
    assert strict(parameters=STRICT, strict=None) is True
    assert strict(parameters={"type": "object", "properties": {}}) is None
    assert strict() is None


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"additionalProperties": True}, False),
        ({"required": []}, False),
        ({"required": ["a", "b"]}, False),
        ({"required": [{}]}, False),
        ({"properties": {"a": {"type": "object"}}}, False),
        ({"properties": {"a": {"items": {"type": "object"}}}}, False),
        ({"properties": {"a": {"anyOf": [STRICT, {"type": "null"}]}}}, True),
        ({"properties": {"a": {"anyOf": [{"type": "object"}]}}}, False),
        ({"properties": {"a": {"allOf": [STRICT]}}}, False),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": STRICT}}, True),
        ({"$defs": {"x": {"type": ["object", "null"]}}}, False),
        ({"properties": {"a": True}}, False),
    ],
)
def test_a_schema_fits_strict_where_every_object_in_it_does(
    change: dict[str, Any], fits: bool
) -> None:
    assert fits_strict({**STRICT, **change}) is fits


@pytest.mark.parametrize(
    ("value", "mode", "names", "required"),
    [
        ("auto", "auto", (), False),
        ("none", "none", (), False),
        ("required", "required", (), False),
        ({"type": "function", "name": "f"}, "tool", ("f",), True),
        ({"type": "custom", "name": "c"}, "tool", ("c",), True),
        ({"type": "web_search_preview"}, "other", (), False),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
            },
            "allowed",
            ("f",),
            True,
        ),
    ],
)
def test_every_choice_of_tools_is_understood(
    value: Any, mode: str, names: tuple[str, ...], required: bool
) -> None:
    choice = read(tool_choice=value).settings.choice
    assert isinstance(choice, ToolChoice)
    assert (choice.mode, choice.names, choice.required) == (mode, names, required)


def test_settings_are_read_and_the_rest_is_kept() -> None:
    settings = read(
        stream=True,
        max_output_tokens=100,
        temperature=0.5,
        top_p=0.9,
        parallel_tool_calls=False,
        text={
            "format": {"type": "json_schema", "name": "n", "schema": {"b": 1}, "strict": True},
            "verbosity": "low",
        },
        reasoning={"effort": "high", "summary": "auto"},
        user="u",
        metadata={"k": "v"},
        service_tier="flex",
        store=False,
        previous_response_id="resp_1",
        prompt_cache_key="key",
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
        truncation="disabled",
        background=False,
        safety_identifier="s",
        from_the_future={"x": 1},
        top_logprobs=None,
    ).settings
    assert settings.stream
    assert settings.max_tokens == 100
    assert (settings.temperature, settings.top_p, settings.parallel) == (0.5, 0.9, False)
    assert settings.output == OutputFormat("json_schema", {"b": 1}, "n", strict=True)
    assert settings.verbosity == "low"
    assert settings.reasoning == Reasoning(effort="high", shown=True)
    assert (settings.user, settings.metadata) == ("u", {"k": "v"})
    assert (settings.service_tier, settings.store) == ("flex", False)
    assert (settings.previous, settings.cache_key) == ("resp_1", "key")
    assert settings.signatures
    assert settings.more == {
        "safety_identifier": "s",
        "from_the_future": {"x": 1},
        "include": ["message.output_text.logprobs"],
    }


def test_no_effort_forbids_thinking() -> None:
    assert read(reasoning={"effort": "none"}).settings.reasoning == Reasoning(False, "none")


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": 3}, "model"),
        ({"instructions": ["x"]}, "instructions"),
        ({"max_output_tokens": "10"}, "max_output_tokens"),
        ({"temperature": True}, "temperature"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": 1}]}, "tools[0].parameters"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"text": {"format": 1}}, "text.format"),
        ({"input": [3]}, "input[0]"),
        ({"input": [{}]}, "input[0]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [message("user", [{"type": "input_text"}])]}, "input[0].content[0].text"),
        ({"input": [message("user", [{"text": "x"}])]}, "input[0].content[0].type"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
        ({"input": [{"type": "reasoning", "summary": [{}]}]}, "input[0].summary[0].text"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(members: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(**members)
    assert refused.value.param == param
