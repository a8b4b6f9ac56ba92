"""Whole answers of the messages dialect: those of its upstreams, and those its clients get."""

from typing import Any

import pytest

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Reply, ReplyPart, Stop
from reflexarc.wire.sealed import Sealed, seal, unseal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.messages_asked import from_chat


def body(*content: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
        **members,
    }


def written(
    *parts: ReplyPart, stop: Stop = "end", **fields: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    losses = Losses("messages")
    reply = Reply("id-1", "m", parts, stop, **fields)
    return DIALECT.write_reply(reply, from_chat(), losses), losses.names


def content(*parts: ReplyPart, **fields: Any) -> list[dict[str, Any]]:
    return written(*parts, **fields)[0]["content"]


def test_an_answer_is_read_with_what_only_this_dialect_knows() -> None:
    given = body(
        {"type": "text", "text": "hi", "citations": [{"type": "page_location"}]},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        stop_reason="model_context_window_exceeded",
        container={"id": "c"},
        usage={
            "input_tokens": 3,
            "output_tokens": 5,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 11,
            "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 6},
            "service_tier": "standard",
            "server_tool_use": {"web_search_requests": 2},
        },
    )
    reply = DIALECT.read_reply(given)
    assert reply == Reply(
        "msg_1",
        "m",
        (
            Text("hi", more={"citations": [{"type": "page_location"}]}),
            Foreign(
                "web_search_tool_result",
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            ),
        ),
        "length",
        usage=Usage(21, 5, cache_read=11, cache_write=7, cache_write_1h=6),
        service_tier="default",
        more={
            "container": {"id": "c"},
            "stop_reason": "model_context_window_exceeded",
            "usage": {"server_tool_use": {"web_search_requests": 2}},
        },
        origin="messages",
    )
    losses = Losses("messages")
    assert DIALECT.write_reply(reply, from_chat(), losses) == given
    assert losses.names == ()


def test_a_missing_reason_to_stop_is_never_a_clean_end() -> None:
    assert DIALECT.read_reply(body({"type": "text", "text": "x"}, stop_reason=None)).stop == (
        "truncated"
    )
    assert written(Text("x"), stop="truncated")[0]["stop_reason"] == "max_tokens"


def test_an_error_in_a_body_is_told_as_such() -> None:
    error = {"type": "rate_limit_error", "message": "slow down"}
    with pytest.raises(BrokenOffError) as caught:
        DIALECT.read_reply({"type": "error", "error": error})
    assert (caught.value.fault.kind, caught.value.fault.status) == ("rate_limit", 429)


@pytest.mark.parametrize(
    "given",
    [
        body(content="text"),
        body({"type": "tool_use", "name": "f"}),
        body({"no": "type"}),
        body(stop_reason=5),
    ],
)
def test_a_body_that_does_not_fit_is_malformed(given: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        DIALECT.read_reply(given)


def test_an_answer_of_another_dialect_is_written() -> None:
    given, lost = written(
        Text("let me see"),
        Text(""),
        Call("c", "f", '{"b":1,"a":2}'),
        Call("d", "g", ""),
        usage=Usage(100, 20, cache_read=60, reasoning=8),
        service_tier="priority",
        created_s=5,
    )
    assert given == {
        "id": "id-1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": "c", "name": "f", "input": {"b": 1, "a": 2}},
            {"type": "tool_use", "id": "d", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 40,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 60,
            "output_tokens": 20,
            "output_tokens_details": {"thinking_tokens": 8},
            "service_tier": "priority",
        },
    }
    assert lost == ()


def test_usage_that_nobody_told_is_zeros() -> None:
    assert written(Text("x"))[0]["usage"] == {"input_tokens": 0, "output_tokens": 0}


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        ("end", "end_turn"),
        ("length", "max_tokens"),
        ("filter", "refusal"),
        ("refusal", "refusal"),
        ("pause", "pause_turn"),
        ("stop_sequence", "stop_sequence"),
    ],
)
def test_reasons_to_stop_are_written(stop: Stop, word: str) -> None:
    given, _ = written(Text("x"), stop=stop, stop_sequence="Z" if word == "stop_sequence" else None)
    assert given["stop_reason"] == word
    assert given["stop_sequence"] == ("Z" if word == "stop_sequence" else None)


def test_a_refusal_is_text_and_a_reason_to_stop() -> None:
    given, lost = written(Refusal("I cannot."))
    assert given["content"] == [{"type": "text", "text": "I cannot."}]
    assert given["stop_reason"] == "refusal"
    assert lost == ()


def test_thinking_of_this_dialect_keeps_its_signature_and_others_are_sealed() -> None:
    own, other, unsigned, hidden = content(
        Thinking("a", "s1", "messages"),
        Thinking("b", "s2", "gemini", id="i", more={"x": 1}),
        Thinking("c", origin="chat"),
        Thinking("", "s3", "responses", redacted=True),
    )
    assert own == {"type": "thinking", "thinking": "a", "signature": "s1"}
    assert other["thinking"] == "b"
    assert unseal(other["signature"]) == Sealed("gemini", "s2", id="i", more={"x": 1})
    assert unseal(unsigned["signature"]) == Sealed("chat")
    assert hidden["type"] == "redacted_thinking"
    assert unseal(hidden["data"]) == Sealed("responses", "s3", redacted=True)


def test_signatures_of_calls_stand_before_the_first_of_them_and_come_back() -> None:
    parts = (
        Text("x"),
        Call("a", "f", "{}"),
        Call("b", "f", "{}", signature="s1", origin="gemini"),
        Call("c", "f", "{}", signature="s2", origin="gemini"),
    )
    blocks = content(*parts)
    assert [block["type"] for block in blocks] == [
        "text",
        "tool_use",
        "thinking",
        "tool_use",
        "tool_use",
    ]
    assert blocks[2] == {
        "type": "thinking",
        "thinking": "",
        "signature": seal(Sealed("gemini", calls={"b": "s1", "c": "s2"})),
    }
    (turn,) = DIALECT.read_message({"role": "assistant", "content": blocks}, "messages[1]")
    assert turn.parts == parts


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        (Foreign("web_search_call", {"type": "web_search_call"}), "content.web_search_call"),
        (Media("image", data="aGk="), "content.image"),
        (Text("x", more={"annotations": [{"type": "url"}]}), "content.annotations"),
        (Call("c", "f", "[]"), "tool_calls.arguments"),
    ],
)
def test_what_an_answer_cannot_say_here_is_named(part: ReplyPart, lost: str) -> None:
    assert written(part, origin="responses")[1] == (lost,)
