"""Chat answers through the hub and back, whole and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.assembling import BrokenOffError, events_of
from reflexarc.wire.dialects.chat import DIALECT
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Began, PartBegan, PartGrew, Reply
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask, Call, Settings, Text, Thinking
from tests.wire.dialects.chat_streams import assembled
from tests.wire.dialects.chat_values import full, objects

ASK = Ask("chat", Settings("m", include_usage=True), ())


@st.composite
def replies(draw: Any) -> Reply:
    parts: list[Any] = []
    if draw(st.booleans()):
        parts.append(Thinking(draw(full), origin="chat"))
    if draw(st.booleans()):
        parts.append(Text(draw(full)))
    made = draw(st.lists(st.tuples(full, objects), max_size=3))
    parts.extend(
        Call(f"call_{at}", name, json.dumps(value)) for at, (name, value) in enumerate(made)
    )
    stop = "calls" if made else draw(st.sampled_from(["end", "length", "filter"]))
    return Reply("c-1", "m", tuple(parts), stop, created_s=7, origin="chat")


@given(replies())
def test_any_answer_comes_back_whole_and_streamed(reply: Reply) -> None:
    losses = Losses("chat")
    written = json.loads(json.dumps(DIALECT.write_reply(reply, ASK, losses)))
    assert DIALECT.read_reply(written) == reply
    writer = DIALECT.stream_writer(ASK, losses)
    data = b"".join(writer.write(event) for event in events_of(reply))
    assert data.endswith(b"data: [DONE]\n\n")
    assert assembled(data) == reply
    assert losses.names == ()


def test_calls_beside_one_another_keep_their_own_index() -> None:
    writer = DIALECT.stream_writer(ASK, Losses("chat"))
    events = [Began("c", "m", 7)]
    events += [PartBegan(at, Call(f"c{at}", f"f{at}", "")) for at in (0, 1)]
    events += [PartGrew(1, '{"b":'), PartGrew(0, '{"a":'), PartGrew(1, "2}"), PartGrew(0, "1}")]
    data = b"".join(writer.write(event) for event in events)
    seen: dict[int, str] = {}
    for event in SseParser().feed(data):
        for entry in json.loads(event.data)["choices"][0]["delta"].get("tool_calls", ()):
            index = entry["index"]
            seen[index] = seen.get(index, "") + entry["function"]["arguments"]
    assert seen == {0: '{"a":1}', 1: '{"b":2}'}


def test_errors_of_whole_bodies_and_bodies_without_choices_are_told() -> None:
    with pytest.raises(BrokenOffError) as told:
        DIALECT.read_reply({"error": {"message": "no", "code": 429}})
    assert told.value.fault.kind == "rate_limit"
    for body in ({}, {"choices": []}, {"choices": [{"index": 0}]}):
        with pytest.raises(MalformedError):
            DIALECT.read_reply(body)


def test_arguments_as_an_object_are_read_as_their_text() -> None:
    message = {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}
    reply = DIALECT.read_reply({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert reply.calls[0].arguments == '{"a":1}'
    assert reply.stop == "calls"
