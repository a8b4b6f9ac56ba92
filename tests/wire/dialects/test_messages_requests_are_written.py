"""What other dialects' clients ask, as an upstream of the messages dialect is asked it."""

from typing import Any

import pytest

from reflexarc.wire.dialects.messages import (
    DEFAULT_MAX_TOKENS,
)
from reflexarc.wire.turns import (
    Call,
    Foreign,
    Media,
    Refusal,
    Result,
    Text,
    Thinking,
    Turn,
)
from tests.wire.dialects.messages_asked import from_chat, written

USER = Turn("user", (Text("hi"),))


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
