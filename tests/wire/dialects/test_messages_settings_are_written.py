"""Tools, choices, thinking and settings of other dialects' clients, in the messages dialect."""

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
    OutputFormat,
    Reasoning,
    Result,
    Text,
    ToolChoice,
    ToolOffer,
    Turn,
)
from tests.wire.dialects.messages_asked import asked, from_chat, written

USER = Turn("user", (Text("hi"),))
TOOL = ToolOffer("f", "d", {"type": "object", "properties": {"b": {}, "a": {}}})


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
