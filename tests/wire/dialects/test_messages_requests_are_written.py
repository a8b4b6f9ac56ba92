"""What other dialects' clients ask, as an upstream of the messages dialect is asked it."""

from typing import Any

import pytest

from reflexarc.wire.dialects.messages import (
    DEFAULT_MAX_TOKENS,
    count_request,
    read_count,
    write_count,
)
from reflexarc.wire.ids import MESSAGES_IDS, IdMap
from reflexarc.wire.losses import Losses
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
from tests.wire.dialects.messages_asked import asked, from_chat, written

USER = Turn("user", (Text("hi"),))
TOOL = ToolOffer("f", "d", {"type": "object", "properties": {"b": {}, "a": {}}})


def told(*turns: Turn) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    body, lost = written(from_chat(*turns))
    return body["messages"], lost


def test_a_limit_is_set_where_the_client_set_none() -> None:
    body, lost = written(from_chat(USER))
    assert body == {
        "model": "model",
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": "hi"}],
    }
    assert lost == ()
    body, lost = written(from_chat(USER, max_tokens=7, more={"max_tokens": 7}))
    assert (body["max_tokens"], lost) == (7, ())


def test_results_of_one_turn_are_one_users_message_and_stand_first() -> None:
    call = Call("c1", "f", '{"b":1,"a":2}')
    messages, lost = told(
        USER,
        Turn("assistant", (Text("let me see"), call, Call("c 2", "f", " "))),
        Turn("tool", (Result("c1", (Text("one"),)),)),
        Turn("tool", (Result("c 2", (Text(""),), is_error=True),)),
        Turn("user", (Text("and then?"),)),
    )
    made = messages[1]["content"][2]["id"]
    assert made.startswith("toolu_")
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"b": 1, "a": 2}},
                {"type": "tool_use", "id": made, "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": made, "is_error": True},
                {"type": "text", "text": "and then?"},
            ],
        },
    ]
    assert list(messages[1]["content"][1]["input"]) == ["b", "a"]
    assert lost == ()


def test_results_come_first_though_the_user_spoke_before_them() -> None:
    messages, _ = told(
        USER,
        Turn("assistant", (Call("c", "f", "{}"),)),
        Turn("user", (Text("wait"),)),
        Turn("tool", (Result("c", (Text("1"),)),)),
    )
    assert [block["type"] for block in messages[-1]["content"]] == ["tool_result", "text"]


def test_text_after_calls_is_said_before_them() -> None:
    messages, _ = told(
        USER, Turn("assistant", (Call("c", "f", "{}"), Text("a"), Call("d", "f", "{}"), Text("b")))
    )
    assert [block.get("text") or block["id"] for block in messages[1]["content"]] == [
        "a",
        "b",
        "c",
        "d",
    ]


@pytest.mark.parametrize("text", ["[1]", '{"a":', '{"a":1,"a":2}', "words"])
def test_arguments_that_are_no_object_go_whole_and_are_named(text: str) -> None:
    messages, lost = told(USER, Turn("assistant", (Call("c", "f", text),)))
    assert messages[1]["content"][0]["input"] == {"arguments_text": text}
    assert lost == ("tool_calls.arguments",)


def test_instructions_first_are_the_system_and_amid_stand_where_they_may() -> None:
    body, lost = written(
        from_chat(
            Turn("system", (Text("A"),)),
            Turn("developer", (Text("B"),)),
            USER,
            Turn("system", (Text("now in French"),)),
            Turn("assistant", (Text("bonjour"),)),
            Turn("user", (Text("and"),)),
            Turn("developer", (Text("in Dutch"),)),
        )
    )
    assert body["system"] == [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    assert body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "now in French"},
        {"role": "assistant", "content": "bonjour"},
        {"role": "user", "content": "and"},
        {"role": "system", "content": "in Dutch"},
    ]
    assert lost == ()


def test_instructions_where_they_are_refused_are_said_as_the_users() -> None:
    messages, lost = told(
        USER,
        Turn("assistant", (Call("c", "f", "{}"),)),
        Turn("system", (Text("be brief"),)),
        Turn("tool", (Result("c", (Text("1"),)),)),
        Turn("developer", (Text("briefer"),)),
        Turn("user", (Text("go on"),)),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block.get("text") or block["content"] for block in messages[2]["content"]] == [
        "1",
        "be brief",
        "briefer",
        "go on",
    ]
    assert lost == ("messages.system (moved)", "messages.developer (moved)")


def test_instructions_alone_are_asked_as_a_question() -> None:
    body, lost = written(from_chat(Turn("system", (Text("Say hi."),))))
    assert body["messages"] == [{"role": "user", "content": "Say hi."}]
    assert "system" not in body
    assert lost == ("messages.system (moved)",)


def test_neighbours_of_one_role_are_one_message_and_empty_turns_are_none() -> None:
    messages, _ = told(
        USER,
        Turn("assistant", (Text("\n"),)),
        Turn("user", (Text("there"), Text(" "))),
        Turn("assistant", (Text("a"),)),
        Turn("assistant", (Text("b"),)),
    )
    assert messages == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
    ]


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (
            Media("image", data="iVBORw0="),
            {"type": "base64", "media_type": "image/png", "data": "iVBORw0="},
        ),
        (
            Media("image", "image/webp", data="xx"),
            {"type": "base64", "media_type": "image/webp", "data": "xx"},
        ),
        (Media("image", url="https://x/y"), {"type": "url", "url": "https://x/y"}),
        (
            Media("document", data="JVBERi0="),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        ),
        (
            Media("document", "text/csv", data="YSxi"),
            {"type": "text", "media_type": "text/plain", "data": "a,b"},
        ),
    ],
)
def test_media_are_written(part: Media, source: dict[str, Any]) -> None:
    messages, lost = told(Turn("user", (part,)))
    assert messages[0]["content"][0]["source"] == source
    assert lost == ()


@pytest.mark.parametrize(
    ("turn", "lost"),
    [
        (Turn("user", (Text("x"), Media("audio", data="aa"))), "content.input_audio"),
        (Turn("user", (Text("x"), Media("image", file="f-1"))), "content.image_url (file)"),
        (
            Turn("user", (Text("x"), Media("document", "application/zip", data="aGk="))),
            "content.file (application/zip)",
        ),
        (
            Turn("user", (Text("x"), Media("image", url="https://x", detail="high"))),
            "content.image_url.detail",
        ),
        (Turn("user", (Text("x"),), name="Ann"), "messages.name"),
        (Turn("assistant", (Text("x"),), more={"audio": {"id": "a"}}), "messages.audio"),
        (Turn("user", (Text("x", more={"logprobs": [1]}),)), "content.logprobs"),
        (Turn("assistant", (Text("x"), Foreign("web_search_call", {}))), "content.web_search_call"),
        (Turn("assistant", (Text("x"), Thinking("hm"))), "content.thinking (unsigned)"),
        (
            Turn("assistant", (Text("x"), Thinking("hm", "s", "gemini"))),
            "content.thinking (signed by gemini)",
        ),
        (
            Turn("assistant", (Call("c", "f", "{}", signature="s", origin="gemini"),)),
            "tool_calls.signature (signed by gemini)",
        ),
        (Turn("assistant", (Refusal("no"),)), "content.refusal (as text)"),
        (Turn("assistant", (Call("c", "f", "ls", kind="custom"),)), "tool_calls.custom"),
        (Turn("tool", (Result("c", (Media("audio", data="a"),)),)), "tool_result.input_audio"),
    ],
)
def test_what_cannot_be_said_of_a_turn_is_named(turn: Turn, lost: str) -> None:
    assert told(USER, turn)[1] == (lost,)


def test_thinking_that_this_dialect_signed_goes_back_byte_for_byte() -> None:
    messages, lost = told(
        USER,
        Turn(
            "assistant",
            (
                Thinking("hm", "sig==", "messages"),
                Thinking("", "enc", "messages", redacted=True),
                Call("c", "f", "{}"),
            ),
        ),
    )
    assert messages[1]["content"][:2] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "enc"},
    ]
    assert lost == ()


def test_tools_keep_their_schemas_and_others_are_named() -> None:
    body, lost = written(
        from_chat(
            USER,
            tools=(
                TOOL,
                ToolOffer("g", strict=True),
                ToolOffer("h", parameters={}, strict=False),
                ToolOffer("web", kind="hosted", value={"type": "web_search"}),
                ToolOffer("p", kind="custom", value={"type": "custom"}),
            ),
        )
    )
    empty = {"type": "object", "properties": {}}
    assert body["tools"] == [
        {"name": "f", "description": "d", "input_schema": TOOL.parameters},
        {"name": "g", "input_schema": empty, "strict": True},
        {"name": "h", "input_schema": empty},
    ]
    assert lost == ("tools.web_search", "tools.custom")


@pytest.mark.parametrize(
    ("choice", "parallel", "body"),
    [
        (None, None, None),
        (None, True, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("auto"), True, {"type": "auto", "disable_parallel_tool_use": False}),
        (ToolChoice("required"), False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolChoice("tool", ("f",)), None, {"type": "tool", "name": "f"}),
        (ToolChoice("none"), False, {"type": "none"}),
    ],
)
def test_the_choice_of_tools_is_written(
    choice: ToolChoice | None, parallel: bool | None, body: dict[str, Any] | None
) -> None:
    asks = from_chat(USER, tools=(TOOL,), choice=choice, parallel=parallel)
    got, lost = written(asks)
    assert got.get("tool_choice") == body
    assert lost == ()


def test_allowed_tools_are_the_only_ones_offered() -> None:
    other = ToolOffer("g")
    body, lost = written(
        from_chat(USER, tools=(TOOL, other), choice=ToolChoice("allowed", ("g",), required=True))
    )
    assert [tool["name"] for tool in body["tools"]] == ["g"]
    assert body["tool_choice"] == {"type": "any"}
    assert lost == ()


def test_a_choice_without_tools_is_left_out() -> None:
    assert "tool_choice" not in written(from_chat(USER, choice=ToolChoice("auto")))[0]
    body, lost = written(from_chat(USER, choice=ToolChoice("required")))
    assert "tool_choice" not in body
    assert lost == ("tool_choice",)


def test_a_choice_of_a_tool_that_could_not_be_offered_is_named() -> None:
    hosted = ToolOffer("web", kind="hosted", value={"type": "web_search"})
    body, lost = written(
        from_chat(USER, tools=(TOOL, hosted), choice=ToolChoice("tool", ("web",)), parallel=False)
    )
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert lost == ("tools.web_search", "tool_choice")


@pytest.mark.parametrize(
    ("reasoning", "members"),
    [
        (Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
        (Reasoning(enabled=False), {"thinking": {"type": "disabled"}}),
        (Reasoning(effort="minimal"), {"output_config": {"effort": "low"}}),
        (Reasoning(enabled=True, effort="low"), {"output_config": {"effort": "low"}}),
        (Reasoning(enabled=True), {"thinking": {"type": "adaptive"}}),
        (Reasoning(effort="xhigh"), {"output_config": {"effort": "xhigh"}}),
        (
            Reasoning(effort="high", shown=True),
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
        (
            Reasoning(enabled=True, budget=4096),
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        ),
        (
            Reasoning(budget=40_000),
            {
                "thinking": {"type": "enabled", "budget_tokens": 40_000},
                "max_tokens": 40_000 + DEFAULT_MAX_TOKENS,
            },
        ),
    ],
)
def test_how_much_to_think_is_written(reasoning: Reasoning, members: dict[str, Any]) -> None:
    body, lost = written(from_chat(USER, reasoning=reasoning))
    assert {"max_tokens": DEFAULT_MAX_TOKENS, **members} == {
        name: value for name, value in body.items() if name not in ("model", "messages")
    }
    assert lost == ()


def test_a_budget_stays_under_the_limit_and_above_the_least() -> None:
    body, lost = written(from_chat(USER, max_tokens=2000, reasoning=Reasoning(budget=9000)))
    assert body["thinking"]["budget_tokens"] == 1999
    assert lost == ("reasoning_effort",)
    body, lost = written(from_chat(USER, max_tokens=500, reasoning=Reasoning(budget=9000)))
    assert "thinking" not in body
    assert lost == ("reasoning_effort",)


def test_thinking_gives_way_to_a_call_that_must_be_made() -> None:
    body, lost = written(
        from_chat(
            USER,
            tools=(TOOL,),
            choice=ToolChoice("required"),
            reasoning=Reasoning(budget=4096),
            dialect="gemini",
        )
    )
    assert "thinking" not in body
    assert lost == ("generationConfig.thinkingConfig",)


@pytest.mark.parametrize(
    ("given", "members", "lost"),
    [
        ({"temperature": 1.7}, {"temperature": 1}, ("temperature",)),
        ({"temperature": 0.3, "top_p": 1.0}, {"temperature": 0.3}, ()),
        ({"temperature": 1.0, "top_p": 0.5}, {"top_p": 0.5}, ()),
        ({"temperature": 0.3, "top_p": 0.5}, {"temperature": 0.3}, ("top_p",)),
        ({"stop": ("\n", "END")}, {"stop_sequences": ["END"]}, ("stop",)),
        ({"user": "u"}, {"metadata": {"user_id": "u"}}, ()),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}, ()),
        ({"service_tier": "flex"}, {}, ("service_tier",)),
        ({"stream": True, "include_usage": True}, {"stream": True}, ()),
        ({"store": False, "count": 1, "presence_penalty": 0}, {}, ()),
        ({"more": {"logit_bias": {}, "modalities": ["text"]}}, {}, ("modalities",)),
        (
            {"temperature": 0.3, "top_k": 5, "top_p": 0.5, "reasoning": Reasoning(budget=2048)},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            ("top_p", "temperature", "top_k"),
        ),
    ],
)
def test_settings_are_written_as_far_as_they_are_taken(
    given: dict[str, Any], members: dict[str, Any], lost: tuple[str, ...]
) -> None:
    body, named = written(from_chat(USER, **given))
    for known in ("model", "max_tokens", "messages"):
        del body[known]
    assert body == members
    assert named == lost


def test_every_setting_without_a_word_here_is_named_in_the_clients_words() -> None:
    _, lost = written(
        from_chat(
            USER,
            seed=0,
            presence_penalty=0.5,
            frequency_penalty=-1,
            count=2,
            verbosity="low",
            metadata={"a": "b"},
            store=True,
            previous="resp_1",
            cache_key="k",
            output=OutputFormat("json_object"),
            more={"logit_bias": {"1": 2}, "logprobs": None},
            choice=ToolChoice("other", value={"type": "web_search"}),
        )
    )
    assert lost == (
        "tool_choice",
        "response_format",
        "logit_bias",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "n",
        "verbosity",
        "metadata",
        "store",
        "previous_response_id",
        "prompt_cache_key",
    )


def test_the_form_of_an_answer_is_written_with_its_schema_untouched() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}}, "additionalProperties": False}
    output = OutputFormat("json_schema", schema, "name", strict=True)
    body, lost = written(from_chat(USER, output=output))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert list(body["output_config"]["format"]["schema"]["properties"]) == ["z", "a"]
    assert lost == ()


def test_cache_marks_are_written_wherever_they_stood() -> None:
    mark = {"type": "ephemeral"}
    body, lost = written(
        from_chat(
            Turn("system", (Text("s", mark),)),
            Turn("user", (Text("u", mark),)),
            Turn("assistant", (Call("c", "f", "{}", cache=mark),)),
            Turn("tool", (Result("c", (Text("r"),), cache=mark),)),
            tools=(ToolOffer("f", cache=mark),),
        )
    )
    marked = [
        body["system"][0],
        body["tools"][0],
        *(block for message in body["messages"] for block in message["content"]),
    ]
    assert [block["cache_control"] for block in marked] == [mark] * 5
    assert lost == ()


def test_counting_asks_the_same_without_what_says_how_to_answer() -> None:
    ask = asked(
        {
            "model": "m",
            "max_tokens": 5,
            "stream": True,
            "temperature": 0.5,
            "system": "s",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "thinking": {"type": "adaptive"},
        }
    )
    losses = Losses("messages")
    assert count_request(ask, losses, IdMap(MESSAGES_IDS)) == {
        "model": "m",
        "system": "s",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "thinking": {"type": "adaptive"},
    }
    assert read_count(write_count(12)) == 12
