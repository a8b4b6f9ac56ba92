"""Streams of an upstream of the messages dialect: well-formed ones, and all others."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.dialects.messages import DIALECT
from reflexarc.wire.replies import (
    Began,
    Ended,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    Reply,
)
from reflexarc.wire.turns import Call, Foreign, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.messages_streamed import (
    END,
    begun,
    block,
    delta,
    frames,
    parsed,
    read,
    reply_of,
    stopped,
    streamed,
    told,
)

CITATION = {"type": "char_location", "cited_text": "é\u2028"}
RICH = frames(
    begun(),
    {"type": "ping"},
    block(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, "thinking_delta", thinking="hm "),
    delta(0, "thinking_delta", thinking="…"),
    delta(0, "signature_delta", signature="sig=="),
    stopped(0),
    block(1, {"type": "redacted_thinking", "data": "enc"}),
    stopped(1),
    block(2, {"type": "text", "text": ""}),
    delta(2, "text_delta", text="I look\u2028"),
    delta(2, "citations_delta", citation=CITATION),
    delta(2, "text_delta", text=" it up 🙂"),
    stopped(2),
    block(3, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    delta(3, "input_json_delta", partial_json=""),
    delta(3, "input_json_delta", partial_json='{"query":'),
    delta(3, "input_json_delta", partial_json='"x"}'),
    stopped(3),
    block(4, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
    delta(4, "input_json_delta", partial_json=""),
    delta(4, "input_json_delta", partial_json='{"b":1,'),
    delta(4, "input_json_delta", partial_json='"a":2}'),
    stopped(4),
    block(5, {"type": "tool_use", "id": "t2", "name": "g", "input": {}}),
    stopped(5),
    told("tool_use", {"input_tokens": 3, "output_tokens": 42}),
    END,
)
WHOLE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "hm …", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "enc"},
        {"type": "text", "text": "I look\u2028 it up 🙂", "citations": [CITATION]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 2}},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 42},
}


def test_a_stream_and_the_whole_body_are_the_same_answer() -> None:
    reply = reply_of(read(RICH))
    assert reply == DIALECT.read_reply(WHOLE)
    assert reply.parts[-2:] == (Call("t1", "f", '{"b":1,"a":2}'), Call("t2", "g", "{}"))
    assert reply.usage == Usage(input=13, output=42, cache_read=10)
    assert reply.stop == "calls"


def test_the_events_come_in_their_order() -> None:
    events = read(RICH)
    assert events[:6] == [
        Began("msg_1", "m", usage=Usage(13, 1, 10), origin="messages"),
        PartBegan(0, Thinking("", origin="messages")),
        PartGrew(0, "hm "),
        PartGrew(0, "…"),
        PartSigned(0, "sig==", "messages"),
        PartEnded(0),
    ]
    assert PartNoted(2, "citations", CITATION) in events
    assert [event for event in events if getattr(event, "at", -1) == 3] == [
        PartBegan(
            3,
            Foreign(
                "server_tool_use",
                {
                    "type": "server_tool_use",
                    "id": "s",
                    "name": "web_search",
                    "input": {"query": "x"},
                },
            ),
        ),
        PartEnded(3),
    ]
    assert events[-1] == Ended("calls", usage=Usage(13, 42, 10))


@given(st.lists(st.integers(0, len(RICH)), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(RICH)]
    chunks = [RICH[a:b] for a, b in pairwise(places)]
    assert read(*chunks) == read(RICH)


@given(st.integers(0, len(RICH) - 1))
def test_bytes_that_end_early_are_never_a_clean_end(length: int) -> None:
    failed = read(RICH[:length])[-1]
    assert isinstance(failed, Failed)
    assert (failed.fault.code, failed.fault.status) == ("upstream_truncated", 502)


def text_reply(*events: dict[str, Any]) -> Reply:
    return reply_of(read(frames(begun(), *events)))


def test_a_whole_input_in_a_blocks_start_is_kept_where_no_delta_comes() -> None:
    whole = block(0, {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": [2]}})
    ended = (stopped(0), told("tool_use"), END)
    assert text_reply(whole, *ended).calls == (Call("t", "f", '{"b":1,"a":[2]}'),)
    grown = delta(0, "input_json_delta", partial_json='{"c":3}')
    assert text_reply(whole, grown, *ended).calls == (Call("t", "f", '{"c":3}'),)
    assert text_reply(whole, told("tool_use"), END).calls == (Call("t", "f", '{"b":1,"a":[2]}'),)


def test_a_call_ends_a_turn_whatever_the_word() -> None:
    call = block(0, {"type": "tool_use", "id": "t", "name": "f", "input": {}})
    assert text_reply(call, stopped(0), told("end_turn"), END).stop == "calls"


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("end_turn", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop_sequence"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("compaction", "pause"),
        ("a_new_word", "end"),
        (None, "truncated"),
    ],
)
def test_reasons_to_stop_are_read(word: str | None, stop: str) -> None:
    assert text_reply(told(word), END).stop == stop


def test_the_sequence_that_stopped_it_is_told() -> None:
    reply = text_reply(told("stop_sequence", stop_sequence="END"), END)
    assert (reply.stop, reply.stop_sequence) == ("stop_sequence", "END")


def test_usage_that_is_not_told_is_none() -> None:
    assert text_reply(told("end_turn", {}), END).usage is None
    assert text_reply({**told("end_turn"), "usage": None}, END).usage is None


def test_usage_told_twice_is_counted_once() -> None:
    first = told(None, {"output_tokens": 5})
    assert text_reply(first, told("end_turn"), END).usage == Usage(13, 42, 10)


def test_an_error_in_the_stream_fails_it_and_nothing_follows() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    text = (block(0, {"type": "text", "text": ""}), delta(0, "text_delta", text="x"))
    events = read(frames(begun(), *text, error, stopped(0), told("end_turn"), END))
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.fault.kind, failed.fault.status) == ("overloaded", 529)
    assert failed.fault.message == "Overloaded"


@pytest.mark.parametrize("data", [b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 5000])
def test_data_that_is_no_object_fails_the_stream(data: bytes) -> None:
    events = read(frames(begun()), b"data: " + data + b"\n\n", frames(told("end_turn"), END))
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.fault.code == "upstream_malformed"
    assert len(events) == 2


def test_what_is_not_known_is_passed_over() -> None:
    reply = text_reply(
        {"type": "vendor_event", "x": 1},
        block(0, {"type": "text", "text": None}),
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": None},
        delta(0, "vendor_delta", x=1),
        delta(0, "text_delta", text=None),
        delta(0, "text_delta", text="x"),
        delta(7, "signature_delta", signature="s"),
        stopped(9),
        begun(id="again"),
        told("end_turn"),
        END,
        delta(0, "text_delta", text="late"),
    )
    assert (reply.id, reply.parts, reply.stop) == ("msg_1", (Text("x"),), "end")


def test_indices_may_be_missing_and_blocks_unannounced() -> None:
    reply = reply_of(
        read(
            frames(
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}},
                {
                    "type": "content_block_start",
                    "content_block": {"type": "tool_use", "id": "t", "name": "f"},
                },
                {
                    "type": "content_block_delta",
                    "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'},
                },
                {"type": "content_block_stop"},
                told("end_turn"),
                END,
            )
        )
    )
    assert reply.parts == (Text("ab"), Call("t", "f", '{"a":1}'))


def test_blocks_beside_one_another_are_kept_apart() -> None:
    call = {"type": "tool_use", "name": "f", "input": {}}
    events = read(
        frames(
            begun(),
            block(0, {"type": "text", "text": ""}),
            delta(0, "text_delta", text="a"),
            block(1, {**call, "id": "t1"}),
            block(2, {**call, "id": "t2"}),
            delta(2, "input_json_delta", partial_json='{"n":'),
            delta(1, "input_json_delta", partial_json='{"m":'),
            delta(2, "input_json_delta", partial_json="2}"),
            delta(0, "text_delta", text="b"),
            delta(1, "input_json_delta", partial_json="1}"),
            stopped(2),
            stopped(1),
            told("tool_use"),
            END,
        )
    )
    assert reply_of(events).parts == (
        Text("a"),
        Call("t1", "f", '{"m":1}'),
        Call("t2", "f", '{"n":2}'),
        Text("b"),
    )
    began = [event.at for event in events if isinstance(event, PartBegan)]
    ended = [event.at for event in events if isinstance(event, PartEnded)]
    assert began == sorted(ended) == list(range(len(began)))


def test_arguments_of_a_call_that_never_began_fail_the_stream() -> None:
    events = read(frames(begun(), delta(0, "input_json_delta", partial_json="{}"), END))
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.fault.code == "upstream_malformed"


scalar = st.sampled_from([None, True, 0, 1, -1, 2.5, "", "x", "t1", '{"a":', "1}"])
loose = st.sampled_from(
    [
        None,
        "x",
        3,
        [],
        {},
        {"a": [1]},
        {"type": 5},
        {"type": "text"},
        {"id": 3, "model": None, "usage": {"input_tokens": "many"}},
        {"stop_reason": 7, "stop_sequence": {}},
        {"stop_reason": "end_turn"},
        {"output_tokens": 3, "service_tier": []},
        {"type": "tool_result", "tool_use_id": "t"},
        {"type": "image", "source": {"type": "url"}},
    ]
)
kinds = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ]
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "redacted_thinking", "odd"])},
    optional={"id": scalar, "name": scalar, "text": scalar, "thinking": scalar, "input": loose},
)
deltas = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "odd_delta"]
        )
    },
    optional={"text": scalar, "thinking": scalar, "partial_json": scalar, "signature": scalar},
)
events_given = st.fixed_dictionaries(
    {"type": kinds},
    optional={
        "index": st.one_of(st.integers(0, 3), scalar),
        "delta": st.one_of(deltas, loose),
        "content_block": st.one_of(blocks, loose),
        "usage": loose,
        "message": loose,
        "error": loose,
    },
)


@given(st.lists(events_given, max_size=12))
def test_nothing_a_provider_sends_makes_it_raise_or_break_the_order(
    values: list[dict[str, Any]],
) -> None:
    events = read(frames(*values))
    assert [isinstance(event, Ended | Failed) for event in events].index(True) == len(events) - 1
    state: dict[int, str] = {}
    for event in events:
        if isinstance(event, PartBegan):
            assert event.at == len(state)
            state[event.at] = "open"
        elif isinstance(event, PartGrew | PartSigned | PartNoted | PartEnded):
            assert state[event.at] == "open"
            if isinstance(event, PartEnded):
                state[event.at] = "ended"
    if isinstance(events[-1], Ended):
        assert set(state.values()) <= {"ended"}


@given(st.lists(events_given, max_size=12))
def test_whatever_was_read_is_written_with_one_block_after_the_other(
    values: list[dict[str, Any]],
) -> None:
    written = parsed(streamed(read(frames(*values)))[0])
    begun_blocks, under_way = 0, False
    for frame in written:
        if frame["type"] == "content_block_start":
            assert not under_way
            assert frame["index"] == begun_blocks
            begun_blocks, under_way = begun_blocks + 1, True
        elif frame["type"].startswith("content_block_"):
            assert under_way
            assert frame["index"] == begun_blocks - 1
            under_way = frame["type"] != "content_block_stop"
    assert [frame["type"] in ("message_stop", "error") for frame in written].count(True) == 1
    assert written[-1]["type"] in ("message_stop", "error")
