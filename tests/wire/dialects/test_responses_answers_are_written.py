"""Answers of any dialect, said as Responses: whole, streamed, and to the unmodified SDK."""

import json
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.wire.assembling import events_of
from reflexarc.wire.dialects.responses import DIALECT
from reflexarc.wire.faults import Fault
from reflexarc.wire.losses import Losses
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
from reflexarc.wire.sealed import Sealed, unseal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.responses_asked import read
from tests.wire.dialects.responses_streamed import streamed

ASK = read(
    instructions="be kind",
    tools=[
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}},
        {"type": "web_search"},
    ],
    tool_choice="required",
    parallel_tool_calls=False,
    temperature=0.5,
    max_output_tokens=100,
    reasoning={"effort": "low"},
    metadata={"k": "v"},
    store=False,
    user="u",
    truncation="auto",
    stream=True,
)
PARTS = (
    Thinking("because", "byte-exact==", "messages"),
    Text("hello "),
    Text("world"),
    Call("c1", "f", ""),
    Call("c2", "f", '{"b":1,"a":2}'),
    Call("c3", "raw", "any text", kind="custom"),
    Refusal("no more"),
)
REPLY = Reply("chatcmpl-1", "served", PARTS, "calls", usage=Usage(10, 5, cache_read=4), created_s=7)


def _whole(reply: Reply) -> tuple[dict[str, Any], tuple[str, ...]]:
    losses = Losses("responses")
    return DIALECT.write_reply(reply, ASK, losses), losses.names


def _reply(*parts: Any, stop: Any = "end", **members: Any) -> Reply:
    return Reply("r1", "m", parts, stop, **members)


def test_a_whole_answer_repeats_the_request_and_holds_every_part() -> None:
    answer, lost = _whole(REPLY)
    assert lost == ()
    assert answer["id"] == "resp_chatcmpl-1"
    assert (answer["object"], answer["created_at"], answer["model"]) == ("response", 7, "served")
    assert (answer["status"], answer["error"], answer["incomplete_details"]) == (
        "completed",
        None,
        None,
    )
    assert answer["instructions"] == "be kind"
    assert [tool["type"] for tool in answer["tools"]] == ["function", "web_search"]
    assert (answer["tool_choice"], answer["parallel_tool_calls"]) == ("required", False)
    assert (answer["temperature"], answer["max_output_tokens"]) == (0.5, 100)
    assert answer["reasoning"] == {"effort": "low", "summary": None}
    assert (answer["metadata"], answer["store"], answer["user"]) == ({"k": "v"}, False, "u")
    assert (answer["truncation"], answer["text"]) == ("auto", {"format": {"type": "text"}})
    assert answer["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    assert [item["type"] for item in answer["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
        "message",
    ]
    assert [part["text"] for part in answer["output"][1]["content"]] == ["hello ", "world"]
    assert answer["output"][3]["arguments"] == '{"b":1,"a":2}'
    assert answer["output"][4]["input"] == "any text"
    assert len({item["id"] for item in answer["output"]}) == 6


def test_anothers_signature_travels_in_an_envelope_and_comes_back() -> None:
    answer, _ = _whole(_reply(Thinking("t", "exact==", "messages", id="x", more={"m": 1})))
    (item,) = answer["output"]
    assert unseal(item["encrypted_content"]) == Sealed("messages", "exact==", id="x", more={"m": 1})
    (part,) = read(input=[item]).turns[0].parts
    assert part == Thinking("t", "exact==", "messages", id="x", more={"m": 1})


@pytest.mark.parametrize("late", [False, True])
def test_signatures_of_calls_travel_and_come_back(late: bool) -> None:
    calls = tuple(Call(f"c{n}", "f", "{}", signature=f"s{n}", origin="gemini") for n in range(2))
    outputs = [_whole(_reply(*calls, stop="calls"))[0]["output"]]
    # As a stream, the signature told with the call's beginning or after its arguments.
    told: list[Any] = [Began("r1", "m")]
    for at, one in enumerate(calls):
        begun = Call(one.id, one.name, "") if late else one
        told.append(PartBegan(at, begun))
        if late:
            told.extend([PartGrew(at, "{}"), PartSigned(at, f"s{at}", "gemini")])
        told.append(PartEnded(at))
    values, _ = streamed(ASK, *told, Ended("calls"))
    outputs.append(values[-1]["response"]["output"])
    for output in outputs:
        (turn,) = read(input=output).turns
        signed = [(p.id, p.signature, p.origin) for p in turn.parts if isinstance(p, Call)]
        assert len(turn.parts) == 2
        assert signed == [("c0", "s0", "gemini"), ("c1", "s1", "gemini")]


@pytest.mark.parametrize(
    ("stop", "parts", "status", "reason"),
    [
        ("end", (Text("x"),), "completed", None),
        ("calls", (Call("c", "f", "{}"),), "completed", None),
        ("stop_sequence", (Text("x"),), "completed", None),
        ("length", (Text("x"),), "incomplete", "max_output_tokens"),
        ("truncated", (Call("c", "f", '{"a'),), "incomplete", "max_output_tokens"),
        ("filter", (), "incomplete", "content_filter"),
        ("refusal", (Text("x"),), "incomplete", "content_filter"),
        ("refusal", (Refusal("x"),), "completed", None),
        ("pause", (Text("x"),), "incomplete", "max_output_tokens"),
    ],
)
def test_why_it_stopped_is_told_and_a_cut_item_is_incomplete(
    stop: Any, parts: tuple[Any, ...], status: str, reason: str | None
) -> None:
    reply = _reply(*parts, stop=stop)
    values, _ = streamed(ASK, *events_of(reply))
    for answer in (_whole(reply)[0], values[-1]["response"]):
        assert answer["status"] == status
        assert answer["incomplete_details"] == (None if reason is None else {"reason": reason})
        assert answer["usage"] is None
        assert [item["status"] for item in answer["output"]] == [status] * len(parts)
    assert values[-1]["type"] == f"response.{status}"


@pytest.mark.parametrize(
    ("reply", "lost"),
    [
        (_reply(Text("x", more={"citations": []}), origin="messages"), ("content.citations",)),
        (_reply(Foreign("server_tool_use", {}), origin="messages"), ("content.server_tool_use",)),
        (_reply(Media("audio", data="A"), origin="chat"), ("content.audio",)),
        (_reply(Text("x"), more={"odd": 1}, origin="chat"), ("odd",)),
        (_reply(Text("x"), stop="pause", origin="messages"), ("stop_reason.pause_turn",)),
    ],
)
def test_what_an_answer_cannot_say_is_named_whole_and_streamed(
    reply: Reply, lost: tuple[str, ...]
) -> None:
    assert _whole(reply)[1] == lost
    if not reply.more:  # of these a stream tells nothing
        _, data = streamed(ASK, *events_of(reply))
        warning, last = data.split(b"\n\n")[-3:-1]
        assert warning == b": x-reflexarc-warning: responses cannot express: " + lost[0].encode()
        ended = b"incomplete" if reply.stop == "pause" else b"completed"
        assert last.startswith(b"event: response." + ended + b"\n")


def test_a_picture_is_one_that_a_tool_made() -> None:
    answer, lost = _whole(_reply(Media("image", media_type="image/png", data="AAA=")))
    assert lost == ()
    (item,) = answer["output"]
    assert (item["type"], item["result"]) == ("image_generation_call", "AAA=")


def test_a_stream_comes_in_the_order_of_the_api() -> None:
    values, data = streamed(ASK, *events_of(REPLY))
    assert [value["sequence_number"] for value in values] == list(range(len(values)))
    assert [value["type"].removeprefix("response.") for value in values[:13]] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
    ]
    assert b"warning" not in data
    assert not data.endswith(b"[DONE]\n\n")
    assert values[0]["response"]["output"] == []
    assert values[-1]["response"]["output"] == _whole(REPLY)[0]["output"]
    done = [value["item"] for value in values if value["type"] == "response.output_item.done"]
    assert done == values[-1]["response"]["output"]


def test_a_call_without_arguments_gets_one_empty_object() -> None:
    values, _ = streamed(
        ASK, Began("r", "m"), PartBegan(0, Call("c", "f", "")), PartGrew(0, " "), Ended("calls")
    )
    kind = "response.function_call_arguments.delta"
    assert [value["delta"] for value in values if value["type"] == kind] == ["{}"]
    assert values[-1]["response"]["output"][0]["arguments"] == "{}"


def test_calls_side_by_side_come_one_after_the_other() -> None:
    values, _ = streamed(
        ASK,
        Began("r", "m"),
        PartBegan(0, Call("a", "f", "")),
        PartBegan(1, Call("b", "g", "")),
        PartGrew(1, '{"b":'),
        PartGrew(0, '{"a":'),
        PartGrew(1, "1}"),
        PartGrew(0, "1}"),
        Ended("calls"),
    )
    output = values[-1]["response"]["output"]
    assert [(item["call_id"], item["arguments"]) for item in output] == [
        ("a", '{"a":1}'),
        ("b", '{"b":1}'),
    ]
    places = [value["output_index"] for value in values if "output_index" in value]
    assert places == sorted(places)


def test_notes_of_this_dialect_are_told_and_those_of_others_named() -> None:
    told = (
        PartBegan(0, Text("")),
        PartGrew(0, "x"),
        PartNoted(0, "annotations", {"type": "url_citation"}),
        PartEnded(0),
        Ended("end"),
    )
    values, data = streamed(ASK, Began("r", "m", origin="responses"), *told)
    kinds = [value["type"] for value in values]
    assert "response.output_text.annotation.added" in kinds
    content = values[-1]["response"]["output"][0]["content"][0]
    assert content["annotations"] == [{"type": "url_citation"}]
    assert b"warning" not in data
    _, data = streamed(ASK, Began("r", "m", origin="messages"), *told)
    assert b": x-reflexarc-warning: responses cannot express: content.annotations\n" in data


def test_after_a_fault_nothing_follows() -> None:
    fault = Fault("rate_limit", "slow down", 429)
    values, _ = streamed(
        ASK,
        Began("r", "m"),
        PartBegan(0, Text("")),
        PartGrew(0, "x"),
        Failed(fault),
        PartGrew(0, "y"),
        Ended("end"),
    )
    assert values[-1]["type"] == "response.failed"
    assert values[-1]["response"]["status"] == "failed"
    assert values[-1]["response"]["error"] == {
        "code": "rate_limit_exceeded",
        "message": "slow down",
    }


def test_an_answer_without_an_id_has_one_that_is_always_the_same() -> None:
    first, again = (_whole(Reply("", "m", (Text("x"),), "end"))[0]["id"] for _ in range(2))
    assert first == again
    assert len(first) > len("resp_")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
parts = st.one_of(
    texts.map(Text),
    texts.map(Refusal),
    st.builds(Thinking, texts, st.none() | texts, st.just("messages")),
    st.builds(Call, texts, texts, st.sampled_from(["{}", '{"a":[1]}'])),
    st.builds(Call, texts, texts, texts, st.just("custom")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(parts, max_size=6), st.data())
def test_events_in_any_legal_order_make_the_whole_answer(held: list[Any], data: Any) -> None:
    told: list[Any] = [Began("r1", "m", 7, origin="chat")]
    waiting: list[list[Any]] = []
    for at, part in enumerate(held):
        begun, *rest = [
            event for event in events_of(_reply(*held)) if getattr(event, "at", -1) == at
        ]
        told.append(begun)
        if isinstance(part, Call) and part.kind == "function":
            # Calls stay open beside what comes after them, and grow letter by letter.
            waiting.append([PartGrew(at, letter) for letter in part.arguments])
        else:
            told.extend(rest)
        for growing in waiting:
            said = data.draw(st.integers(0, len(growing)))
            told.extend(growing[:said])
            del growing[:said]
    told.extend(event for growing in waiting for event in growing)
    values, _ = streamed(ASK, *told, Ended("end"))
    whole = DIALECT.write_reply(_reply(*held, created_s=7, origin="chat"), ASK, Losses("responses"))
    assert values[-1]["response"]["output"] == whole["output"]
    done = [value["item"] for value in values if value["type"] == "response.output_item.done"]
    assert done == whole["output"]
    for kind, member in (("function_call_arguments", "arguments"), ("output_text", "text")):
        grown = "".join(v["delta"] for v in values if v["type"] == f"response.{kind}.delta")
        assert grown == "".join(v[member] for v in values if v["type"] == f"response.{kind}.done")


# The unmodified SDK.


class _Served:
    """An SDK client that is answered with these bytes, whatever it asks."""

    def __init__(self, data: bytes, kind: str = "text/event-stream", status: int = 200) -> None:
        client = openai.DefaultHttpxClient()
        library: Any = __import__(type(client).__mro__[1].__module__.partition(".")[0])

        def answer(_: Any) -> Any:
            return library.Response(status, content=data, headers={"content-type": kind})

        client.close()
        self.client = openai.OpenAI(
            api_key="k",
            base_url="http://gateway/v1",
            max_retries=0,
            http_client=library.Client(transport=library.MockTransport(answer)),
        )


def test_the_sdk_puts_a_stream_together() -> None:
    _, data = streamed(ASK, *events_of(REPLY))
    client = _Served(data).client
    texts: list[str] = []
    with client.responses.stream(model="m", input="hi") as stream:
        texts.extend(event.delta for event in stream if event.type == "response.output_text.delta")
        answer = stream.get_final_response()
    client.close()
    assert "".join(texts) == answer.output_text == "hello world"
    assert answer.usage is not None
    assert answer.usage.input_tokens_details.cached_tokens == 4
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [(call.call_id, call.arguments) for call in calls] == [
        ("c1", "{}"),
        ("c2", '{"b":1,"a":2}'),
    ]


def test_the_sdk_reads_a_stream_event_by_event() -> None:
    values, data = streamed(ASK, *events_of(REPLY))
    client = _Served(data).client
    with client.responses.create(model="m", input="hi", stream=True) as stream:
        events = list(stream)
    client.close()
    assert [event.type for event in events] == [value["type"] for value in values]
    for event, value in zip(events, values, strict=True):
        type(event).model_validate(value)


def test_the_sdk_reads_a_whole_answer_and_its_types_are_kept() -> None:
    answer = _whole(REPLY)[0]
    client = _Served(json.dumps(answer).encode(), "application/json").client
    parsed = client.responses.create(model="m", input="hi")
    client.close()
    type(parsed).model_validate(answer)
    assert parsed.output_text == "hello world"


def test_the_sdk_raises_what_an_error_is() -> None:
    status, body = DIALECT.write_fault(Fault("rate_limit", "slow down", 429), "req_1")
    client = _Served(json.dumps(body).encode(), "application/json", status).client
    with pytest.raises(openai.RateLimitError, match="slow down"):
        client.responses.create(model="m", input="hi")
    client.close()
