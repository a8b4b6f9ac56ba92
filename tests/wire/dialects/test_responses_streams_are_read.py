"""Streams of the Responses dialect are understood, whatever a server leaves out of them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.responses import DIALECT
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
from reflexarc.wire.turns import Call, Foreign, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.responses_asked import said
from tests.wire.dialects.responses_streamed import (
    about,
    assembled,
    call,
    completed,
    created,
    events,
    fault,
    frames,
    item,
    response,
)

USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
CITATION = {"type": "url_citation", "url": "https://x", "start_index": 0, "end_index": 2}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [
        {"type": "summary_text", "text": "first \u2028 "},
        {"type": "summary_text", "text": "second"},
    ],
    "encrypted_content": "sealed==",
}
MESSAGE = said("hello world", id="msg_1")
MESSAGE["content"][0]["annotations"] = [CITATION]
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
OUTPUT = [REASONING, SEARCH, MESSAGE, call(1, '{"b":1,"a":2}'), call(2, "{}")]


def _recorded() -> list[dict[str, Any]]:
    """A stream with everything in it, as the API sends it."""
    empty = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "other"}
    text = {"type": "output_text", "text": "", "annotations": []}
    arguments = "function_call_arguments"
    return [
        created(),
        {"type": "response.in_progress", "response": response("in_progress")},
        item("added", 0, empty),
        about("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={}),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="first "),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="\u2028 "),
        about("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="first \u2028 "),
        about("reasoning_summary_text.delta", 0, "rs_1", summary_index=1, delta="second"),
        item("done", 0, REASONING),
        item("added", 1, {**SEARCH, "status": "in_progress"}),
        about("web_search_call.searching", 1, "ws_1"),
        item("done", 1, SEARCH),
        item("added", 2, {**MESSAGE, "status": "in_progress", "content": []}),
        about("content_part.added", 2, "msg_1", content_index=0, part=text),
        about("output_text.delta", 2, "msg_1", content_index=0, delta="hello "),
        about("output_text.delta", 2, "msg_1", content_index=0, delta="world"),
        about("output_text.annotation.added", 2, "msg_1", content_index=0, annotation=CITATION),
        about("output_text.done", 2, "msg_1", content_index=0, text="hello world"),
        about("content_part.done", 2, "msg_1", content_index=0, part=MESSAGE["content"][0]),
        item("done", 2, MESSAGE),
        item("added", 3, call(1)),
        item("added", 4, call(2)),
        about(f"{arguments}.delta", 3, "fc_1", delta='{"b":1,'),
        about(f"{arguments}.delta", 4, "fc_2", delta="{}"),
        about(f"{arguments}.delta", 3, "fc_1", delta='"a":2}'),
        about(f"{arguments}.done", 3, "fc_1", arguments='{"b":1,"a":2}'),
        item("done", 3, call(1, '{"b":1,"a":2}')),
        item("done", 4, call(2, "{}")),
        completed(*OUTPUT, usage=USAGE, service_tier="default"),
    ]


RECORDED = frames(*_recorded())


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
    reply = assembled(frames(*[event for event in _recorded() if kept(event["type"])]))
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
    named = [{k: v for k, v in event.items() if k != place} for event in _recorded()]
    assert assembled(frames(*named)) == assembled(RECORDED)


def test_ids_that_change_with_every_event_do_not_matter() -> None:
    changing = [
        {**event, "item_id": f"x{at}"} if "item_id" in event else event
        for at, event in enumerate(_recorded())
    ]
    assert assembled(frames(*changing)) == assembled(RECORDED)


def test_every_item_at_one_place_is_told_apart_by_its_id() -> None:
    same = [
        {**event, "output_index": 0} if "output_index" in event else event for event in _recorded()
    ]
    assert assembled(frames(*same)) == assembled(RECORDED)


def test_the_name_of_an_event_stands_in_for_its_type() -> None:
    data = b"".join(
        b"event: " + event.pop("type").encode() + b"\ndata: " + json.dumps(event).encode() + b"\n\n"
        for event in _recorded()
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


@pytest.mark.parametrize(
    ("end", "stop"),
    [
        (completed(MESSAGE), "end"),
        (completed(call(1, "{}")), "calls"),
        (
            {
                "type": "response.incomplete",
                "response": response(
                    "incomplete", [MESSAGE], incomplete_details={"reason": "max_output_tokens"}
                ),
            },
            "length",
        ),
        (
            {
                "type": "response.incomplete",
                "response": response(
                    "incomplete", [call(1, "{")], incomplete_details={"reason": "content_filter"}
                ),
            },
            "filter",
        ),
        ({"type": "response.incomplete", "response": {}}, "truncated"),
        ({"type": "response.completed", "response": {"output": [MESSAGE]}}, "end"),
        ({"type": "response.completed"}, "end"),
        ({**response(output=[MESSAGE]), "type": "x"}, "end"),
    ],
)
def test_an_answer_ends_by_its_own_word(end: dict[str, Any], stop: str) -> None:
    reply = assembled(frames(created(), end))
    assert reply.stop == stop
    assert reply.usage is None


def test_an_end_without_a_word_is_a_cut() -> None:
    delta = about("output_text.delta", 0, "msg_1", content_index=0, delta="half")
    reply = assembled(frames(created(), delta) + b"data: [DONE]\n\n")
    assert reply.stop == "truncated"
    broken = events(frames(created(), delta))[-1]
    assert isinstance(broken, Failed)
    assert (broken.fault.code, broken.fault.status) == ("upstream_truncated", 502)


def test_nothing_follows_the_end() -> None:
    told = events(RECORDED + b"data: [DONE]\n\n" + RECORDED)
    assert told == events(RECORDED)


@pytest.mark.parametrize(
    ("event", "kind", "words"),
    [
        (
            {
                "type": "response.failed",
                "response": response(
                    "failed", error={"code": "rate_limit_exceeded", "message": "slow down"}
                ),
            },
            "rate_limit",
            "slow down",
        ),
        ({"type": "response.failed", "response": response("failed")}, "api", "did not say why"),
        ({"type": "response.failed"}, "api", "did not say why"),
        ({"type": "error", "code": "server_error", "message": "flat"}, "api", "flat"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "nested"}},
            "invalid_request",
            "nested",
        ),
        (
            {"type": "x", "error": {"message": "in a 200", "code": 429}},
            "rate_limit",
            "in a 200",
        ),
        (completed(error={"code": "server_error", "message": "late"}), "api", "late"),
    ],
)
def test_an_error_in_a_stream_is_a_fault(event: dict[str, Any], kind: str, words: str) -> None:
    found = fault(frames(created(), event, completed(MESSAGE)))
    assert found.kind == kind
    assert words in found.message
    assert found.status >= 400


@pytest.mark.parametrize(
    "data",
    [
        b"data: {\n\n",
        b"data: [1]\n\n",
        b'data: "x"\n\n',
        b"data: \xff\n\n",
        frames(item("done", 0, {"type": "function_call", "call_id": "c"})),
        frames(item("done", 0, {"type": "reasoning", "summary": [1]})),
    ],
)
def test_what_cannot_be_read_is_a_fault(data: bytes) -> None:
    assert fault(frames(created()) + data).code == "upstream_malformed"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.from_the_future", "x": 1},
        {"type": "keepalive"},
        {"type": None},
        {},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.output_item.done"},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.function_call_arguments.delta", "delta": ""},
        {"type": "response.reasoning_summary_text.delta"},
        {"type": "response.content_part.added", "part": None},
    ],
)
def test_what_says_nothing_is_passed_over(event: dict[str, Any]) -> None:
    odd = b"data: " + json.dumps(event).encode() + b"\n\n"
    assert events(frames(created()) + odd + frames(completed(MESSAGE))) == events(
        frames(created(), completed(MESSAGE))
    )


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "name"]), inner, max_size=3)
    ),
    max_leaves=3,
)
shapes = ["message", "function_call", "custom_tool_call", "reasoning", "output_text", "refusal"]
members = [
    "id",
    "call_id",
    "name",
    "arguments",
    "content",
    "summary",
    "text",
    "phase",
    "annotations",
]
shaped = st.recursive(
    junk,
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(shapes)},
        optional=dict.fromkeys(members, inner | st.lists(inner, max_size=2)),
    ),
    max_leaves=3,
)
kinds = st.sampled_from([event["type"] for event in _recorded()])
names = ["item", "item_id", "output_index", "content_index", "delta", "part", "text", "arguments"]
junk_events = st.fixed_dictionaries(
    {"type": kinds},
    optional=dict.fromkeys([*names, "annotation", "response", "error"], shaped),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(junk_events, max_size=5), st.integers(0, 28))
def test_nothing_a_server_sends_makes_a_reader_raise(odd: list[dict[str, Any]], at: int) -> None:
    recorded = _recorded()
    told = events(frames(*recorded[:at], *odd, *recorded[at:]))
    assert isinstance(told[-1], Ended | Failed)
    assert not any(isinstance(event, Ended | Failed) for event in told[:-1])


@pytest.mark.parametrize(
    "value",
    [{}, {"output": None}, {"output": [1]}, {"output": [{"type": "function_call"}]}],
)
def test_a_body_that_is_no_answer_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        DIALECT.read_reply(value)


def test_an_error_in_place_of_an_answer_is_a_fault() -> None:
    for value in (
        {"error": {"message": "no", "code": "rate_limit_exceeded"}},
        response("failed", error={"message": "no", "code": "rate_limit_exceeded"}),
    ):
        with pytest.raises(BrokenOffError) as raised:
            DIALECT.read_reply(value)
        assert raised.value.fault.kind == "rate_limit"
