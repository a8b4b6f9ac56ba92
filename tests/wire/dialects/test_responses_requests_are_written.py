"""Requests of any dialect, said as Responses; what cannot be said is named."""

import base64
from typing import Any

import pytest

from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.ids import RESPONSES_IDS, IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    OutputFormat,
    Reasoning,
    Refusal,
    Result,
    Settings,
    Text,
    Thinking,
    ToolChoice,
    ToolOffer,
    Turn,
)
from tests.wire.dialects.responses_asked import foreign, message, said, written

HI = Turn("user", (Text("hi"),))


def _items(*turns: Turn, dialect: str = "messages") -> tuple[list[Any], tuple[str, ...]]:
    body, lost = written(foreign(*turns, dialect=dialect))
    return body["input"], lost


def test_nothing_of_another_dialects_conversation_is_kept_at_the_provider() -> None:
    settings = Settings("m", stream=True, store=True, previous="msg_1")
    body, lost = written(foreign(HI, settings=settings))
    assert body == {
        "model": "m",
        "input": [message("user", "hi")],
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    assert lost == ("store",)


def test_the_only_leading_system_turn_is_instructions() -> None:
    system = Turn("system", (Text("be kind"),))
    body, _ = written(foreign(system, HI))
    assert body["instructions"] == "be kind"
    assert body["input"] == [message("user", "hi")]


@pytest.mark.parametrize(
    "turns",
    [
        (Turn("system", (Text("a"),)), Turn("developer", (Text("b"),)), HI),
        (Turn("developer", (Text("a"),)), HI),
        (HI, Turn("system", (Text("a"),))),
    ],
)
def test_other_system_turns_are_messages(turns: tuple[Turn, ...]) -> None:
    body, _ = written(foreign(*turns))
    assert "instructions" not in body
    assert [item["role"] for item in body["input"]] == [turn.role for turn in turns]


def test_a_system_turn_of_several_texts_keeps_them_apart() -> None:
    items, lost = _items(Turn("system", (Text("a", cache={"type": "ephemeral"}), Text("b"))), HI)
    assert items[0]["content"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"},
    ]
    assert lost == ("cache_control",)


def test_a_model_turn_becomes_items_in_its_order() -> None:
    items, lost = _items(
        HI,
        Turn(
            "assistant",
            (
                Text("first"),
                Text(""),
                Refusal("not that"),
                Call("c1", "f", '{"b": 1, "a": 2}'),
                Text("between"),
                Call("c2", "g", "{}"),
                Call("c3", "h", "raw", kind="custom"),
            ),
        ),
        Turn(
            "tool",
            (
                Result("c2", (Text("two"),)),
                Result("c1", ()),
                Result("c3", (Text("three"),)),
            ),
        ),
    )
    opening = said("first")
    opening["content"].append({"type": "refusal", "refusal": "not that"})
    assert items[1:] == [
        opening,
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"b": 1, "a": 2}'},
        said("between"),
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c3", "name": "h", "input": "raw"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "three"},
    ]
    assert lost == ()


def test_an_over_long_id_is_the_same_short_one_at_call_and_result() -> None:
    long = "toolu_" + "x" * 80
    ids = IdMap(RESPONSES_IDS)
    ask = foreign(
        HI,
        Turn("assistant", (Call(long, "f", "{}"),)),
        Turn("tool", (Result(long, (Text("x"),)),)),
    )
    body = DIALECT.write_ask(ask, Losses("responses"), ids)
    call, result = body["input"][1:]
    assert call["call_id"] == result["call_id"]
    assert len(call["call_id"]) <= 64
    assert ids.back(call["call_id"]) == long


@pytest.mark.parametrize(
    ("media", "item"),
    [
        (
            Media("image", media_type="image/png", data="AAA="),
            {"type": "input_image", "image_url": "data:image/png;base64,AAA=", "detail": "auto"},
        ),
        (
            Media("image", url="https://x", detail="high"),
            {"type": "input_image", "image_url": "https://x", "detail": "high"},
        ),
        (
            Media("document", media_type="application/pdf", data="AAA="),
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,AAA=",
                "filename": "document.pdf",
            },
        ),
        (
            Media("document", text="plain", name="notes.txt"),
            {
                "type": "input_file",
                "file_data": "data:text/plain;base64," + base64.b64encode(b"plain").decode(),
                "filename": "notes.txt",
            },
        ),
        (Media("document", url="https://x"), {"type": "input_file", "file_url": "https://x"}),
    ],
)
def test_pictures_and_documents_are_said_in_messages_and_results(
    media: Media, item: dict[str, Any]
) -> None:
    items, lost = _items(
        Turn("user", (Text("see"), media)),
        Turn("assistant", (Call("c", "f", "{}"),)),
        Turn("tool", (Result("c", (media,)),)),
    )
    assert items[0]["content"] == [{"type": "input_text", "text": "see"}, item]
    assert items[2]["output"] == [item]
    assert lost == ()


@pytest.mark.parametrize(
    ("turn", "dialect", "lost"),
    [
        (Turn("user", (Media("audio", data="A"),)), "chat", "content.input_audio"),
        (Turn("user", (Media("video", url="u"),)), "gemini", "content.video"),
        (Turn("user", (Media("image", file="f"),)), "messages", "content.image (file)"),
        (Turn("user", (Foreign("search_result", {}),)), "messages", "content.search_result"),
        (Turn("user", (Text("x", more={"citations": 1}),)), "messages", "content.citations"),
        (Turn("user", (Text("x"),), name="bob"), "chat", "messages.name"),
        (Turn("user", (Text("x"),), more={"odd": 1}), "chat", "messages.odd"),
        (Turn("assistant", (Media("image", data="A"),)), "gemini", "content.image"),
        (Turn("assistant", (Foreign("mcp_tool_use", {}),)), "messages", "content.mcp_tool_use"),
        (
            Turn("assistant", (Thinking("t", "s", "messages"),)),
            "messages",
            "content.thinking (signed by messages)",
        ),
        (
            Turn("assistant", (Thinking("", "s", "messages", redacted=True),)),
            "messages",
            "content.thinking (signed by messages)",
        ),
        (
            Turn("assistant", (Call("c", "f", "{}", signature="s", origin="gemini"),)),
            "gemini",
            "tool_calls.signature (signed by gemini)",
        ),
        (Turn("tool", (Result("c", (), is_error=True),)), "messages", "tool_result.is_error"),
        (Turn("tool", (Result("c", (), cache={}),)), "messages", "cache_control"),
    ],
)
def test_what_cannot_be_said_is_named(turn: Turn, dialect: str, lost: str) -> None:
    assert _items(turn, dialect=dialect)[1] == (lost,)


def test_thinking_signed_here_goes_back_byte_for_byte() -> None:
    thinking = Thinking("because", "exactly==", "responses", id="rs_1")
    items, lost = _items(HI, Turn("assistant", (thinking, Text("so"))), dialect="chat")
    assert items[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "because"}],
        "encrypted_content": "exactly==",
    }
    assert lost == ()


def test_unsigned_thinking_which_the_api_refuses_is_named() -> None:
    items, lost = _items(HI, Turn("assistant", (Thinking("hm"), Text("so"))), dialect="chat")
    assert [item["type"] for item in items] == ["message", "message"]
    assert lost == ("content.thinking (unsigned)",)


def test_a_tool_of_another_dialect_says_whether_it_is_strict() -> None:
    schema = {"type": "object", "properties": {"z": {"nullable": True}, "a": {"$ref": "#/x"}}}
    tools = (ToolOffer("f", "d", schema), ToolOffer("g", parameters=schema, strict=True))
    body, lost = written(foreign(HI, tools=(*tools, ToolOffer("none"))))
    assert body["tools"] == [
        {
            "type": "function",
            "name": "f",
            "description": "d",
            "parameters": schema,
            "strict": False,
        },
        {"type": "function", "name": "g", "parameters": schema, "strict": True},
        {
            "type": "function",
            "name": "none",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
    ]
    assert list(body["tools"][0]["parameters"]["properties"]) == ["z", "a"]
    assert lost == ()


def test_custom_tools_of_chat_are_said_and_hosted_ones_named() -> None:
    custom = {"type": "custom", "custom": {"name": "c", "description": "d"}}
    tools = (
        ToolOffer("c", kind="custom", value=custom),
        ToolOffer("web_search", kind="hosted", value={"type": "web_search"}),
    )
    settings = Settings("m", choice=ToolChoice("tool", ("c",)))
    body, lost = written(foreign(HI, dialect="chat", tools=tools, settings=settings))
    assert body["tools"] == [{"type": "custom", "name": "c", "description": "d"}]
    assert body["tool_choice"] == {"type": "custom", "name": "c"}
    assert lost == ("tools.web_search",)


@pytest.mark.parametrize(
    ("choice", "said_as", "lost"),
    [
        (ToolChoice("auto"), "auto", ()),
        (ToolChoice("none"), "none", ()),
        (ToolChoice("required"), "required", ()),
        (ToolChoice("tool", ("f",)), {"type": "function", "name": "f"}, ()),
        (
            ToolChoice("allowed", ("f",), required=True),
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}],
            },
            (),
        ),
        (ToolChoice("other", value={"type": "odd"}), None, ("tool_choice",)),
    ],
)
def test_a_choice_of_tools_is_said(choice: ToolChoice, said_as: Any, lost: tuple[str, ...]) -> None:
    ask = foreign(HI, tools=(ToolOffer("f"),), settings=Settings("m", choice=choice))
    body, named = written(ask)
    assert body.get("tool_choice") == said_as
    assert named == lost


@pytest.mark.parametrize(
    ("reasoning", "said_as", "lost"),
    [
        (Reasoning(effort="xhigh"), {"effort": "xhigh"}, ()),
        (Reasoning(enabled=False), {"effort": "none"}, ()),
        (Reasoning(enabled=True), {"summary": "auto"}, ()),
        (Reasoning(enabled=True, shown=False), None, ()),
        (Reasoning(effort="low", shown=True), {"effort": "low", "summary": "auto"}, ()),
        (Reasoning(budget=1024), {"effort": "low"}, ("thinking.budget_tokens",)),
        (Reasoning(budget=8000), {"effort": "medium"}, ("thinking.budget_tokens",)),
        (
            Reasoning(enabled=True, budget=30_000),
            {"effort": "high", "summary": "auto"},
            ("thinking.budget_tokens",),
        ),
        (Reasoning(budget=0), {"effort": "none"}, ()),
        (Reasoning(more={"odd": 1}), None, ("reasoning.odd",)),
    ],
)
def test_how_much_to_think_is_said(reasoning: Reasoning, said_as: Any, lost: Any) -> None:
    body, named = written(foreign(HI, settings=Settings("m", reasoning=reasoning)))
    assert body.get("reasoning") == said_as
    assert named == lost


def test_a_chat_client_that_asks_for_effort_asks_for_no_summary() -> None:
    settings = Settings("m", reasoning=Reasoning(enabled=True, effort="low"))
    assert written(foreign(HI, dialect="chat", settings=settings))[0]["reasoning"] == {
        "effort": "low"
    }


def test_settings_both_know_are_said() -> None:
    settings = Settings(
        "m",
        max_tokens=100,
        temperature=1.5,
        top_p=0.5,
        parallel=False,
        output=OutputFormat("json_schema", {"type": "object"}),
        verbosity="high",
        user="u",
        metadata={"k": "v"},
        service_tier="flex",
        cache_key="key",
        more={"safety_identifier": "s", "absent": None},
    )
    body, lost = written(foreign(HI, dialect="chat", settings=settings, tools=(ToolOffer("f"),)))
    assert {k: v for k, v in body.items() if k not in ("input", "tools", "store", "include")} == {
        "model": "m",
        "max_output_tokens": 100,
        "temperature": 1.5,
        "top_p": 0.5,
        "parallel_tool_calls": False,
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}},
            "verbosity": "high",
        },
        "user": "u",
        "metadata": {"k": "v"},
        "service_tier": "flex",
        "prompt_cache_key": "key",
        "safety_identifier": "s",
    }
    assert lost == ()


@pytest.mark.parametrize(
    ("settings", "dialect", "lost"),
    [
        (Settings("m", stop=("x",)), "chat", ("stop",)),
        (Settings("m", stop=("x",), top_k=3), "messages", ("stop_sequences", "top_k")),
        (Settings("m", top_k=3), "gemini", ("generationConfig.topK",)),
        (Settings("m", seed=1, presence_penalty=0.5), "chat", ("seed", "presence_penalty")),
        (Settings("m", count=2), "chat", ("n",)),
        (Settings("m", count=1), "chat", ()),
        (Settings("m", more={"logit_bias": {}, "absent": None}), "chat", ("logit_bias",)),
        (Settings("m", more={"safety_identifier": "s"}), "messages", ("safety_identifier",)),
        (Settings("m", service_tier="on_demand"), "chat", ("service_tier",)),
        (Settings("m", service_tier="standard_only"), "messages", ()),
        (Settings("m", metadata={"k": 1}), "gemini", ("labels",)),
        (Settings("m", max_tokens=1), "messages", ("max_tokens",)),
        (Settings("m", user="x" * 150), "messages", ("metadata.user_id (shortened)",)),
    ],
)
def test_settings_that_cannot_be_said_are_named(
    settings: Settings, dialect: str, lost: tuple[str, ...]
) -> None:
    assert written(foreign(HI, dialect=dialect, settings=settings))[1] == lost


def test_too_few_tokens_are_as_few_as_may_be_asked() -> None:
    assert written(foreign(HI, settings=Settings("m", max_tokens=1)))[0]["max_output_tokens"] == 16


def test_an_over_long_user_still_tells_users_apart() -> None:
    one, other = (
        written(foreign(HI, settings=Settings("m", user=name * 100)))[0]["user"] for name in "ab"
    )
    assert one != other
    assert len(one) <= 64
