"""Streams of the Responses dialect come to one end, whatever a server sends."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.replies import (
    Ended,
    Failed,
)
from tests.wire.dialects.responses_streamed import (
    MESSAGE,
    RECORDED,
    about,
    assembled,
    call,
    completed,
    created,
    events,
    fault,
    frames,
    item,
    recorded,
    response,
)


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
kinds = st.sampled_from([event["type"] for event in recorded()])
names = ["item", "item_id", "output_index", "content_index", "delta", "part", "text", "arguments"]
junk_events = st.fixed_dictionaries(
    {"type": kinds},
    optional=dict.fromkeys([*names, "annotation", "response", "error"], shaped),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(junk_events, max_size=5), st.integers(0, 28))
def test_nothing_a_server_sends_makes_a_reader_raise(odd: list[dict[str, Any]], at: int) -> None:
    whole = recorded()
    told = events(frames(*whole[:at], *odd, *whole[at:]))
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
