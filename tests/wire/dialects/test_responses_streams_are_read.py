"""Streams of the Responses dialect are understood, whatever a server leaves out of them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.replies import (
    Began,
    Ended,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    Reply,
)
from reflexarc.wire.turns import Call, Foreign, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.responses_asked import said
from tests.wire.dialects.responses_streamed import (
    CITATION,
    OUTPUT,
    REASONING,
    RECORDED,
    SEARCH,
    USAGE,
    about,
    assembled,
    call,
    completed,
    created,
    events,
    frames,
    item,
    recorded,
    response,
)


def test_a_stream_is_told_as_it_comes() -> None:
    told = events(RECORDED)
    assert told[0] == Began("resp_1", "m", 7, origin="responses")
    assert told[1:7] == [
        PartBegan(0, Thinking("", origin="responses", id="rs_1")),
        PartGrew(0, "first "),
        PartGrew(0, "\u2028 "),
        PartGrew(0, "\n\nsecond"),
        PartSigned(0, "sealed==", "responses"),
        PartEnded(0),
    ]
    assert told[7:14] == [
        PartBegan(1, Foreign("web_search_call", SEARCH)),
        PartEnded(1),
        PartBegan(2, Text("", item={"id": "msg_1"})),
        PartGrew(2, "hello "),
        PartGrew(2, "world"),
        PartNoted(2, "annotations", CITATION),
        PartEnded(2),
    ]
    assert told[14:] == [
        PartBegan(3, Call("c1", "f1", "", item="fc_1")),
        PartBegan(4, Call("c2", "f2", "", item="fc_2")),
        PartGrew(3, '{"b":1,'),
        PartGrew(4, "{}"),
        PartGrew(3, '"a":2}'),
        PartEnded(3),
        PartEnded(4),
        Ended("calls", usage=Usage(10, 5, cache_read=4, reasoning=2), service_tier="default"),
    ]


def test_a_stream_and_the_whole_of_an_answer_are_one_reply() -> None:
    whole = completed(*OUTPUT, usage=USAGE, service_tier="default")["response"]
    assert assembled(RECORDED) == DIALECT.read_reply(whole)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, len(RECORDED)), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_cut_of_the_bytes_tells_the_same(cuts: list[int], end: str) -> None:
    data = RECORDED.replace(b"\n", end.encode())
    places = sorted({min(cut, len(data)) for cut in cuts})
    chunks = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert events(*chunks) == events(RECORDED)


@pytest.mark.parametrize(
    "kept",
    [
        # The last event alone.
        lambda kind: kind == "response.completed",
        # Items whole, one after the other.
        lambda kind: kind in ("response.output_item.done", "response.completed"),
        # No lifecycle but the end.
        lambda kind: kind not in ("response.created", "response.in_progress"),
        # Items nobody said the beginning of.
        lambda kind: kind != "response.output_item.added",
        # Nothing said to be done but the answer.
        lambda kind: not kind.endswith(".done"),
        # No deltas.
        lambda kind: not kind.endswith(".delta"),
        lambda kind: "content_part" not in kind and "annotation" not in kind,
    ],
)
def test_what_is_left_out_is_filled_in(kept: Any) -> None:
    reply = assembled(frames(*[event for event in recorded() if kept(event["type"])]))
    whole = assembled(RECORDED)
    assert reply.stop == "calls"
    assert reply.usage == whole.usage
    assert _told(reply) == _told(whole)


def _told(reply: Reply) -> set[tuple[str, str]]:
    """All that an answer says, wherever it says it."""
    told: set[tuple[str, str]] = set()
    for part in reply.parts:
        if isinstance(part, Foreign):
            told.add(("value", json.dumps(part.value)))
        for name in ("text", "arguments", "signature"):
            said = getattr(part, name, None)
            if said:
                told.add((name, said))
    return told


@pytest.mark.parametrize("place", ["output_index", "item_id"])
def test_an_item_is_found_by_either_name(place: str) -> None:
    named = [{k: v for k, v in event.items() if k != place} for event in recorded()]
    assert assembled(frames(*named)) == assembled(RECORDED)


def test_ids_that_change_with_every_event_do_not_matter() -> None:
    changing = [
        {**event, "item_id": f"x{at}"} if "item_id" in event else event
        for at, event in enumerate(recorded())
    ]
    assert assembled(frames(*changing)) == assembled(RECORDED)


def test_every_item_at_one_place_is_told_apart_by_its_id() -> None:
    same = [
        {**event, "output_index": 0} if "output_index" in event else event for event in recorded()
    ]
    assert assembled(frames(*same)) == assembled(RECORDED)


def test_the_name_of_an_event_stands_in_for_its_type() -> None:
    data = b"".join(
        b"event: " + event.pop("type").encode() + b"\ndata: " + json.dumps(event).encode() + b"\n\n"
        for event in recorded()
    )
    assert assembled(data) == assembled(RECORDED)


def test_a_call_may_come_whole_in_its_first_event() -> None:
    reply = assembled(
        frames(created(), item("added", 0, call(1, '{"a":1}')), completed(call(1, '{"a":1}')))
    )
    assert reply.calls == (Call("c1", "f1", '{"a":1}', item="fc_1"),)


def test_arguments_that_come_before_their_name_wait_for_it() -> None:
    reply = assembled(
        frames(
            created(),
            about("function_call_arguments.delta", 0, "fc_1", delta='{"a"'),
            about("function_call_arguments.delta", 0, "fc_1", delta=":1}"),
            item("done", 0, call(1, '{"a":1}')),
            completed(),
        )
    )
    assert reply.calls == (Call("c1", "f1", '{"a":1}', item="fc_1"),)


def test_arguments_may_come_at_the_end_alone_and_again() -> None:
    done = about("function_call_arguments.done", 0, "fc_1", arguments='{"a":1}')
    reply = assembled(
        frames(
            created(),
            item("added", 0, call(1)),
            item("added", 0, call(1)),
            done,
            done,
            item("done", 0, call(1, '{"a":1}')),
            item("done", 0, call(1, '{"a":1}')),
            completed(call(1, '{"a":1}')),
        )
    )
    assert reply.calls == (Call("c1", "f1", '{"a":1}', item="fc_1"),)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    reply = assembled(frames(created(), item("added", 0, call(1)), completed(call(1))))
    assert reply.calls[0].arguments == "{}"


def test_a_custom_call_is_any_text() -> None:
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "n", "input": ""}
    reply = assembled(
        frames(
            created(),
            item("added", 0, custom),
            about("custom_tool_call_input.delta", 0, "ctc_1", delta="raw "),
            about("custom_tool_call_input.delta", 0, "ctc_1", delta="text"),
            about("custom_tool_call_input.done", 0, "ctc_1", input="raw text"),
            item("done", 0, {**custom, "input": "raw text"}),
            completed({**custom, "input": "raw text"}),
        )
    )
    assert reply.parts == (Call("c", "n", "raw text", kind="custom", item="ctc_1"),)


def test_raw_reasoning_is_thinking() -> None:
    whole = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm so"}],
    }
    stream = frames(
        created(),
        item("added", 0, {**whole, "content": []}),
        about("content_part.added", 0, "rs_1", content_index=0, part={"type": "reasoning_text"}),
        about("reasoning_text.delta", 0, "rs_1", content_index=0, delta="hm "),
        about("reasoning_text.delta", 0, "rs_1", content_index=0, delta="so"),
        item("done", 0, whole),
        completed(whole),
    )
    assert assembled(stream) == DIALECT.read_reply(response(output=[whole]))
    assert assembled(stream).parts[0].text == "hm so"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - thinking


def test_a_signature_that_comes_late_is_not_lost() -> None:
    reply = assembled(
        frames(
            created(),
            about("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="first"),
            about("output_text.delta", 1, "msg_1", content_index=0, delta="text"),
            item("done", 0, {**REASONING, "summary": REASONING["summary"][:0]}),
            completed(),
        )
    )
    told = [getattr(part, "text", "") for part in reply.parts]
    assert told == ["first", "text", ""]
    assert isinstance(reply.parts[2], Thinking)
    assert reply.parts[2].signature == "sealed=="


def test_a_refusal_is_one() -> None:
    whole = said(id="msg_1")
    whole["content"] = [{"type": "refusal", "refusal": "not that"}]
    stream = frames(
        created(),
        item("added", 0, {**whole, "content": []}),
        about("refusal.delta", 0, "msg_1", content_index=0, delta="not "),
        about("refusal.delta", 0, "msg_1", content_index=0, delta="that"),
        about("refusal.done", 0, "msg_1", content_index=0, refusal="not that"),
        completed(whole),
    )
    reply = assembled(stream)
    assert reply.parts == (Refusal("not that", item={"id": "msg_1"}),)
    assert reply.stop == "refusal"


def test_a_text_goes_on_after_another_part_as_one_of_its_own() -> None:
    reply = assembled(
        frames(
            about("output_text.delta", 0, "msg_1", content_index=0, delta="one "),
            item("added", 1, call(1, "{}")),
            about("output_text.delta", 0, "msg_1", content_index=0, delta="two"),
            completed(),
        )
    )
    assert [getattr(part, "text", None) for part in reply.parts] == ["one ", None, "two"]
