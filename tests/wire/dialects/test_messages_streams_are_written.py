"""Streams that clients of the messages dialect get, whatever dialect the events came in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.assembling import events_of
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    Reply,
    ReplyPart,
)
from reflexarc.wire.sealed import Sealed, seal, unseal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.messages_streamed import parsed, read, reply_of, streamed

BEGAN = Began("id-1", "m", usage=Usage(10, 0))


def frames_of(*events: Event) -> list[dict[str, Any]]:
    return parsed(streamed(events)[0])


def test_the_frames_of_text_and_a_call_stand_in_their_order() -> None:
    given_frames = frames_of(
        BEGAN,
        PartBegan(0, Text("")),
        PartGrew(0, "I look"),
        PartGrew(0, ' it "up"\u2028'),
        PartEnded(0),
        PartBegan(1, Call("c", "f", "")),
        PartGrew(1, '{"a":'),
        PartGrew(1, "1}"),
        Ended("end", usage=Usage(10, 7, cache_read=4)),
    )
    usage = {
        "input_tokens": 6,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "output_tokens": 7,
    }
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    assert given_frames == [
        {
            "type": "message_start",
            "message": {
                "id": "id-1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 10,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": 0,
                },
            },
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "I look"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": ' it "up"\u2028'},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"a":'},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "1}"},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def deltas(frames: list[dict[str, Any]], at: int) -> list[dict[str, Any]]:
    return [
        frame["delta"]
        for frame in frames
        if frame["type"] == "content_block_delta" and frame["index"] == at
    ]


def test_a_call_without_arguments_has_one_delta() -> None:
    frames = frames_of(BEGAN, PartBegan(0, Call("c", "f", "")), PartEnded(0), Ended("calls"))
    assert deltas(frames, 0) == [{"type": "input_json_delta", "partial_json": "{}"}]


def test_calls_beside_one_another_become_blocks_after_one_another() -> None:
    frames = frames_of(
        BEGAN,
        PartBegan(0, Call("c", "f", "")),
        PartBegan(1, Call("d", "g", "")),
        PartGrew(1, '{"y":'),
        PartGrew(0, '{"x":'),
        PartGrew(1, "2}"),
        PartGrew(0, "1}"),
        Ended("end"),
    )
    order = [(f["type"], f["index"]) for f in frames if "index" in f]
    assert order == sorted(order, key=lambda one: one[1])
    texts = ["".join(one["partial_json"] for one in deltas(frames, at)) for at in (0, 1)]
    assert texts == ['{"x":1}', '{"y":2}']


def test_text_without_any_is_no_block() -> None:
    frames = frames_of(BEGAN, PartBegan(0, Text("")), PartEnded(0), Ended("end"))
    assert [frame["type"] for frame in frames] == ["message_start", "message_delta", "message_stop"]


def test_signatures_are_told_as_they_are_or_sealed() -> None:
    frames = frames_of(
        BEGAN,
        PartBegan(0, Thinking("")),
        PartGrew(0, "a"),
        PartSigned(0, "s1", "messages"),
        PartEnded(0),
        PartBegan(1, Thinking("", id="i")),
        PartGrew(1, "b"),
        PartSigned(1, "s2", "gemini"),
        PartEnded(1),
        PartBegan(2, Thinking("")),
        PartGrew(2, "c"),
        PartEnded(2),
        PartBegan(3, Thinking("", "s3", "responses", redacted=True)),
        PartEnded(3),
        Ended("end"),
    )
    thinking, own = deltas(frames, 0)
    assert thinking == {"type": "thinking_delta", "thinking": "a"}
    assert own == {"type": "signature_delta", "signature": "s1"}
    assert unseal(deltas(frames, 1)[1]["signature"]) == Sealed("gemini", "s2", id="i")
    assert unseal(deltas(frames, 2)[1]["signature"]) == Sealed("")
    (hidden,) = [
        f["content_block"] for f in frames if f["type"] == "content_block_start" and f["index"] == 3
    ]
    assert unseal(hidden["data"]) == Sealed("responses", "s3", redacted=True)


@pytest.mark.parametrize("early", [True, False])
def test_signatures_of_calls_travel_in_a_block_of_their_own(early: bool) -> None:
    signed = seal(Sealed("gemini", calls={"c": "s"}))
    part = Call("c", "f", "", signature="s" if early else None, origin="gemini" if early else "")
    late = () if early else (PartSigned(0, "s", "gemini"),)
    frames = frames_of(BEGAN, PartBegan(0, part), PartGrew(0, "{}"), *late, Ended("calls"))
    kinds = [f["content_block"]["type"] for f in frames if f["type"] == "content_block_start"]
    assert kinds == (["thinking", "tool_use"] if early else ["tool_use", "thinking"])
    assert deltas(frames, 0 if early else 1) == [{"type": "signature_delta", "signature": signed}]


def test_a_freeform_calls_text_goes_whole_under_one_member() -> None:
    stream, lost = streamed(
        [
            BEGAN,
            PartBegan(0, Call("c", "f", "", kind="custom")),
            PartGrew(0, "ls"),
            PartGrew(0, " -l"),
            PartEnded(0),
            Ended("calls"),
        ]
    )
    assert deltas(parsed(stream), 0) == [
        {"type": "input_json_delta", "partial_json": '{"arguments_text":"ls -l"}'}
    ]
    assert lost == ("tool_calls.custom",)


def test_what_was_lost_is_said_in_a_comment_before_the_last_frame() -> None:
    stream, lost = streamed(
        [
            BEGAN,
            PartBegan(0, Media("image", data="aGk=")),
            PartEnded(0),
            PartBegan(1, Foreign("web_search_call", {})),
            PartEnded(1),
            PartBegan(2, Text("")),
            PartGrew(2, "x"),
            PartNoted(2, "annotations", {}),
            PartEnded(2),
            Ended("end"),
        ]
    )
    assert lost == ("content.image", "content.web_search_call", "content.annotations")
    assert stream.endswith(
        b": x-reflexarc-warning: messages cannot express: content.image, content.web_search_call, "
        b'content.annotations\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
    )


def test_nothing_follows_a_failure() -> None:
    fault = Fault("overloaded", "busy", 503)
    events = [BEGAN, PartBegan(0, Text("")), PartGrew(0, "x"), Failed(fault), Ended("end")]
    assert frames_of(*events)[-1] == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "busy"},
    }


def test_usage_that_nobody_told_is_not_made_up() -> None:
    frames = frames_of(Began("i", "m"), Ended("truncated"))
    assert frames[0]["message"]["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert frames[1]["usage"] == {"output_tokens": 0}
    assert frames[1]["delta"]["stop_reason"] == "max_tokens"


def test_a_refusal_is_text_and_a_reason_to_stop() -> None:
    frames = frames_of(BEGAN, PartBegan(0, Refusal("")), PartGrew(0, "No."), Ended("end"))
    assert deltas(frames, 0) == [{"type": "text_delta", "text": "No."}]
    assert frames[-2]["delta"]["stop_reason"] == "refusal"


words = st.text(min_size=1, max_size=12)
objects = st.dictionaries(words, st.one_of(st.integers(), words, st.none()), max_size=3)
citations = st.lists(st.fixed_dictionaries({"cited_text": words}), min_size=1, max_size=2)
parts: st.SearchStrategy[ReplyPart] = st.one_of(
    words.map(Text),
    st.builds(lambda text, cited: Text(text, more={"citations": cited}), words, citations),
    st.builds(lambda text, signed: Thinking(text, signed, "messages"), words, words),
    words.map(lambda data: Thinking("", data, "messages", redacted=True)),
    words.map(lambda name: Foreign("container_upload", {"type": "container_upload", "f": name})),
)
said = st.lists(parts, max_size=5)


@given(said, st.booleans(), st.sampled_from([None, Usage(9, 4, 2, 3, 1, 2)]))
def test_an_answer_written_as_a_stream_is_read_back_the_same(
    given_parts: list[ReplyPart], calls: bool, usage: Usage | None
) -> None:
    made = (Call("t1", "f", '{"a":1}'), Call("t2", "g", "{}")) if calls else ()
    reply = Reply(
        "msg_1",
        "m",
        (*given_parts, *made),
        "calls" if calls else "end",
        usage=usage,
        service_tier="default",
        origin="messages",
    )
    stream, lost = streamed(events_of(reply))
    back = reply_of(read(stream))
    assert lost == ()
    # Numbers are demanded of a stream; zeros are all that can be said of usage nobody told.
    expected = usage or Usage(0, 0)
    assert back == Reply(
        reply.id,
        reply.model,
        reply.parts,
        reply.stop,
        usage=expected,
        service_tier="default",
        origin="messages",
    )
