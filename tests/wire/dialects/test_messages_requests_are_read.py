"""What clients of the messages dialect send, as the hub holds it."""

from typing import Any

import pytest

from reflexarc.steps.errors import RequestError
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.sealed import Sealed, seal
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    OutputFormat,
    Reasoning,
    Result,
    Settings,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)

EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}


def head(**members: Any) -> Settings:
    return DIALECT.read_head({"model": "m", **members}, Where()).settings


def message(role: str, content: Any) -> tuple[Turn, ...]:
    return DIALECT.read_message({"role": role, "content": content}, "messages[0]")


def only(block: dict[str, Any], role: str = "user") -> Any:
    (turn,) = message(role, [block])
    (part,) = turn.parts
    return part


def test_settings_go_to_their_places_and_the_rest_is_kept() -> None:
    settings = head(
        max_tokens=100,
        stream=True,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop_sequences=["A", "B"],
        metadata={"user_id": "u-1", "team": "blue"},
        service_tier="standard_only",
        container="c-1",
        context_management={"edits": []},
        mcp_servers=None,
    )
    assert settings == Settings(
        model="m",
        stream=True,
        include_usage=True,
        max_tokens=100,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop=("A", "B"),
        user="u-1",
        service_tier="default",
        more={
            "container": "c-1",
            "context_management": {"edits": []},
            "metadata": {"team": "blue"},
        },
    )


@pytest.mark.parametrize(
    ("members", "reasoning"),
    [
        ({"thinking": {"type": "disabled"}}, Reasoning(enabled=False)),
        ({"thinking": {"type": "adaptive"}}, Reasoning(enabled=True)),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}},
            Reasoning(enabled=True, budget=2048, shown=False),
        ),
        (
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            Reasoning(enabled=True, shown=True),
        ),
        ({"output_config": {"effort": "max"}}, Reasoning(effort="max")),
        (
            {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
            Reasoning(effort="low", more={"thinking": {"type": "between_tools"}}),
        ),
    ],
)
def test_thinking_is_read(members: dict[str, Any], reasoning: Reasoning) -> None:
    assert head(**members).reasoning == reasoning


@pytest.mark.parametrize(
    ("given", "choice", "parallel"),
    [
        ({"type": "auto"}, ToolChoice("auto"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        (
            {"type": "tool", "name": "f", "disable_parallel_tool_use": False},
            ToolChoice("tool", ("f",)),
            True,
        ),
        ({"type": "none"}, ToolChoice("none"), None),
        ({"type": "some"}, ToolChoice("other", value={"type": "some"}), None),
    ],
)
def test_the_choice_of_tools_is_read(
    given: dict[str, Any], choice: ToolChoice, parallel: bool | None
) -> None:
    settings = head(tool_choice=given)
    assert (settings.choice, settings.parallel) == (choice, parallel)


def test_the_form_of_an_answer_is_read_from_both_of_its_places() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    given = {"type": "json_schema", "schema": schema}
    expected = OutputFormat("json_schema", schema)
    settings = head(output_config={"format": given, "task_budget": {"total": 5}})
    assert settings.output == expected
    assert settings.more == {"output_config": {"task_budget": {"total": 5}}}
    assert head(output_format=given).output == expected
    strange = {"type": "grammar", "syntax": "x"}
    assert head(output_format=strange).more == {"output_format": strange}


def test_tools_of_one_s_own_and_hosted_tools_are_told_apart() -> None:
    schema = {"type": "object", "additionalProperties": False}
    web = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    tools = DIALECT.read_head(
        {
            "model": "m",
            "tools": [
                {
                    "name": "f",
                    "type": "custom",
                    "description": "d",
                    "input_schema": schema,
                    "strict": True,
                    "cache_control": EPHEMERAL,
                    "defer_loading": True,
                },
                web,
                {"type": "mcp_toolset", "mcp_server_name": "s"},
            ],
        },
        Where(),
    ).tools
    assert tools == (
        ToolOffer("f", "d", schema, True, cache=EPHEMERAL, more={"defer_loading": True}),
        ToolOffer("web_search", kind="hosted", value=web),
        ToolOffer(
            "mcp_toolset", kind="hosted", value={"type": "mcp_toolset", "mcp_server_name": "s"}
        ),
    )


def test_instructions_stand_first_as_text_or_as_blocks() -> None:
    plain = DIALECT.read_head({"model": "m", "system": "Be brief."}, Where())
    assert plain.turns == (Turn("system", (Text("Be brief."),)),)
    blocks = [{"type": "text", "text": "A", "cache_control": EPHEMERAL}]
    marked = DIALECT.read_head({"model": "m", "system": blocks}, Where())
    assert marked.turns == (Turn("system", (Text("A", EPHEMERAL),)),)
    assert message("system", "Now in French.") == (Turn("system", (Text("Now in French."),)),)


def test_a_users_results_are_one_turn_and_what_else_is_said_another() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    turns = message(
        "user",
        [
            {"type": "tool_result", "tool_use_id": "a", "content": "1", "is_error": True},
            {"type": "tool_result", "tool_use_id": "b", "content": [image]},
            {"type": "tool_result", "tool_use_id": "c", "cache_control": EPHEMERAL},
            {"type": "text", "text": "go on"},
        ],
    )
    assert turns == (
        Turn(
            "tool",
            (
                Result("a", (Text("1"),), is_error=True),
                Result("b", (Media("image", url="https://x/y.png"),)),
                Result("c", (), cache=EPHEMERAL),
            ),
        ),
        Turn("user", (Text("go on"),)),
    )


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
            Media("image", "image/png", data="aGk="),
        ),
        (
            {"type": "image", "source": {"type": "file", "file_id": "f-1"}},
            Media("image", file="f-1"),
        ),
        (
            {
                "type": "document",
                "title": "T",
                "context": "c",
                "citations": {"enabled": True},
                "source": {"type": "text", "media_type": "text/plain", "data": "words"},
            },
            Media(
                "document",
                "text/plain",
                text="words",
                name="T",
                more={"context": "c", "citations": {"enabled": True}},
            ),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": "words"}},
            Foreign(
                "document",
                {"type": "document", "source": {"type": "content", "content": "words"}},
            ),
        ),
        (
            {"type": "search_result", "source": "s", "title": "t", "content": []},
            Foreign(
                "search_result",
                {"type": "search_result", "source": "s", "title": "t", "content": []},
            ),
        ),
    ],
)
def test_media_and_blocks_of_this_dialect_alone_are_read(block: dict[str, Any], part: Any) -> None:
    assert only(block) == part


def test_a_calls_input_becomes_text_in_the_order_of_its_keys() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1.5, "a": {"é": 2**70}}}
    assert only(call, "assistant") == Call("t", "f", '{"b":1.5,"a":{"é":1180591620717411303424}}')
    assert only({**call, "input": {}}, "assistant").arguments == "{}"


def test_thinking_keeps_its_signature() -> None:
    (turn,) = message(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": "sig=="},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        ],
    )
    assert turn.parts[:2] == (
        Thinking("hm", "sig==", "messages"),
        Thinking("", "enc", "messages", redacted=True),
    )
    assert isinstance(turn.parts[2], Foreign)


def test_what_another_dialect_sealed_in_a_signature_is_opened() -> None:
    sealed = Sealed("responses", "enc", redacted=True, id="rs_1", more={"summary": []})
    calls = Sealed("gemini", calls={"t2": "sig2"})
    (turn,) = message(
        "assistant",
        [
            {"type": "redacted_thinking", "data": seal(sealed)},
            {"type": "thinking", "thinking": "said", "signature": seal(Sealed("chat"))},
            {"type": "thinking", "thinking": "", "signature": seal(calls)},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
        ],
    )
    assert turn.parts == (
        Thinking("", "enc", "responses", redacted=True, id="rs_1", more={"summary": []}),
        Thinking("said", None, "chat"),
        Call("t1", "f", "{}"),
        Call("t2", "f", "{}", signature="sig2", origin="gemini"),
    )


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("text", "messages[0]"),
        ({"content": "x"}, "messages[0].role"),
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
            "messages[0].content[0].id",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
            "messages[0].content",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(RequestError) as caught:
        DIALECT.read_message(value, "messages[0]")
    assert caught.value.param == path
