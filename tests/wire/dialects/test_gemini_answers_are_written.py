"""Answers as clients of `generateContent` get them, whole and streamed."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.assembling import events_of
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.faults import Fault
from reflexarc.wire.losses import Losses
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
    Stop,
)
from reflexarc.wire.sealed import unseal
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.gemini_answers import (
    ASK,
    USAGE,
    assembled,
    chunk,
    events,
    parts_of,
    sse,
    written,
)
from tests.wire.dialects.gemini_asks import read

BEGAN = Began("r1", "m")
END = Ended("end", usage=Usage(10, 5))


def _whole(*parts: ReplyPart, stop: Stop = "end", **more: Any) -> tuple[Any, tuple[str, ...]]:
    losses = Losses("gemini")
    body = DIALECT.write_reply(Reply("r1", "m", parts, stop, **more), ASK, losses)
    return body, losses.names


def test_an_answer_is_one_candidate_with_its_usage() -> None:
    call = Call("c1", "f", '{"b": 1, "a": 2}')
    body, lost = _whole(Text("hi"), call, stop="calls", usage=Usage(10, 7, 4, reasoning=2))
    assert body == {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "hi"},
                        {"functionCall": {"id": "c1", "name": "f", "args": {"b": 1, "a": 2}}},
                    ],
                    "role": "model",
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "modelVersion": "m",
        "responseId": "r1",
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "totalTokenCount": 17,
            "thoughtsTokenCount": 2,
            "cachedContentTokenCount": 4,
        },
    }
    assert lost == ()


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end", "STOP"),
        ("calls", "STOP"),
        ("stop_sequence", "STOP"),
        ("length", "MAX_TOKENS"),
        ("truncated", "MAX_TOKENS"),
        ("filter", "SAFETY"),
        ("refusal", "SAFETY"),
        ("pause", "CONTINUATION"),
    ],
)
def test_every_stop_has_its_reason(stop: Stop, reason: str) -> None:
    assert _whole(Text("a"), stop=stop)[0]["candidates"][0]["finishReason"] == reason
    assert written([BEGAN, Ended(stop)])[-1]["candidates"][0]["finishReason"] == reason


def test_usage_that_nobody_told_is_not_written() -> None:
    assert "usageMetadata" not in _whole(Text("a"))[0]
    assert "usageMetadata" not in written([BEGAN, Ended("end")])[-1]


def test_text_and_thinking_go_on_as_they_come_and_calls_when_they_are_whole() -> None:
    told = [
        BEGAN,
        PartBegan(0, Thinking("")),
        PartGrew(0, "hm"),
        PartEnded(0),
        PartBegan(1, Text("")),
        PartGrew(1, "Hel"),
        PartGrew(1, "lo"),
        PartEnded(1),
        PartBegan(2, Call("c1", "f", "")),
        PartGrew(2, '{"a"'),
        PartGrew(2, ": 1}"),
        PartEnded(2),
        END,
    ]
    chunks = written(told)
    assert [parts_of([one]) for one in chunks] == [
        [{"text": "hm", "thought": True}],
        [{"text": "Hel"}],
        [{"text": "lo"}],
        [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}],
        [{"text": ""}],
    ]
    assert all(one["responseId"] == "r1" and one["modelVersion"] == "m" for one in chunks)
    assert ["finishReason" in one["candidates"][0] for one in chunks] == [False] * 4 + [True]
    assert chunks[-1]["usageMetadata"] == USAGE


def test_calls_beside_one_another_are_not_mixed() -> None:
    told = [
        BEGAN,
        PartBegan(0, Call("a", "f", "")),
        PartBegan(1, Call("b", "g", "")),
        PartGrew(1, '{"y":'),
        PartGrew(0, '{"x":'),
        PartGrew(1, "2}"),
        PartGrew(0, "1}"),
        END,
    ]
    calls = [part["functionCall"] for part in parts_of(written(told)) if "functionCall" in part]
    assert calls == [
        {"id": "a", "name": "f", "args": {"x": 1}},
        {"id": "b", "name": "g", "args": {"y": 2}},
    ]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    parts = parts_of(written([BEGAN, PartBegan(0, Call("a", "f", "")), END]))
    assert parts[0] == {"functionCall": {"id": "a", "name": "f", "args": {}}}


def test_arguments_that_are_no_object_are_kept_and_named() -> None:
    body, lost = _whole(Call("a", "f", '{"x": '), Call("b", "sh", "ls", kind="custom"))
    assert [part["functionCall"]["args"] for part in parts_of([body])] == [
        {"arguments_text": '{"x": '},
        {"arguments_text": "ls"},
    ]
    assert lost == ("tool_calls.arguments",)


def test_after_a_failure_nothing_follows() -> None:
    fault = Fault("overloaded", "busy", 529, retry_after_s=2)
    told = [BEGAN, PartBegan(0, Text("")), PartGrew(0, "a"), Failed(fault), PartGrew(0, "b"), END]
    chunks = written(told)
    assert len(chunks) == 2
    assert next(iter(chunks[1])) == "error"  # clients look at the first member
    assert chunks[1]["error"]["code"] == 503
    assert chunks[1]["error"]["status"] == "UNAVAILABLE"


def test_what_is_lost_is_named_in_the_last_chunk() -> None:
    told = [
        Began("r1", "m", origin="messages"),
        PartBegan(0, Foreign("server_tool_use", {})),
        PartEnded(0),
        PartBegan(1, Text("")),
        PartNoted(1, "citations", {}),
        PartEnded(1),
        Ended("stop_sequence", "END"),
    ]
    losses = Losses("gemini")
    losses.lose("before")
    chunks = written(told, losses)
    assert losses.names == (
        "before",
        "content.server_tool_use",
        "content.citations",
        "stop_sequence",
    )
    assert chunks[-1]["x-reflexarc-warning"] == losses.text()
    assert "x-reflexarc-warning" not in written([BEGAN, END])[-1]


THOUGHTS = (
    Thinking("hm", "sig/+~", "messages", more={"a": 1}),
    Thinking("", "data", "messages", redacted=True),
    Thinking("", "enc", "responses", redacted=True, id="rs_1"),
)


def _replayed(parts: list[dict[str, Any]]) -> list[Any]:
    """As a client brings its history back that holds signatures as bytes."""
    for part in parts:
        if "thoughtSignature" in part:
            raw = base64.b64decode(part["thoughtSignature"], validate=True)
            part["thoughtSignature"] = base64.urlsafe_b64encode(raw).decode()
    turns = DIALECT.read_message({"role": "model", "parts": parts}, "contents[0]")
    return [part for turn in turns for part in turn.parts]


@pytest.mark.parametrize("thought", THOUGHTS)
def test_others_signatures_travel_sealed_and_come_back(thought: Thinking) -> None:
    assert _replayed(parts_of([_whole(thought)[0]])) == [thought]


@pytest.mark.parametrize("thought", THOUGHTS)
@pytest.mark.parametrize("bits", [1, 2])
def test_they_do_in_pieces_too(thought: Thinking, bits: int) -> None:
    """Clients keep each chunk of a stream as a content of its own."""
    told: list[Event] = [BEGAN]
    for event in events_of(Reply("r1", "m", (Thinking("first"), thought, Text("so")), "end")):
        if isinstance(event, PartGrew) and bits == 2:
            told += [PartGrew(event.at, event.text[:1]), PartGrew(event.at, event.text[1:])]
        else:
            told.append(event)
    contents = [one["candidates"][0]["content"] for one in written(told)]
    ask = read({"contents": contents})
    unsigned = [part for part in ask.turns[0].parts if part != thought]
    assert thought in ask.turns[0].parts
    said = "".join(part.text for part in unsigned if isinstance(part, Thinking))
    assert said == "first"
    assert unsigned[-1] == Text("so")


def test_geminis_own_signatures_are_not_sealed() -> None:
    body, _ = _whole(
        Thinking("hm", "dGg=", "gemini"), Call("a", "f", "{}", signature="Y2E=", origin="gemini")
    )
    signatures = [part["thoughtSignature"] for part in parts_of([body])]
    assert signatures == ["dGg=", "Y2E="]
    assert all(unseal(signature) is None for signature in signatures)


def test_a_signed_call_in_a_stream_keeps_its_signature() -> None:
    told = [
        BEGAN,
        PartBegan(0, Call("a", "f", "")),
        PartGrew(0, "{}"),
        PartSigned(0, "Y2E=", "gemini"),
        END,
    ]
    assert parts_of(written(told))[0]["thoughtSignature"] == "Y2E="


def test_a_refusal_is_told_as_text_and_named() -> None:
    body, lost = _whole(Refusal("no"), stop="refusal")
    assert parts_of([body]) == [{"text": "no"}]
    assert lost == ("content.refusal",)
    losses = Losses("gemini")
    told = [BEGAN, PartBegan(0, Refusal("")), PartGrew(0, "no"), PartEnded(0), Ended("refusal")]
    assert parts_of(written(told, losses))[0] == {"text": "no"}
    assert losses.names == ("content.refusal",)


def test_media_of_an_answer_is_written_in_both_ways() -> None:
    picture = Media("image", "image/png", data="AA")
    inline = {"inlineData": {"mimeType": "image/png", "data": "AA"}}
    assert parts_of([_whole(picture)[0]]) == [inline]
    assert parts_of(written(events_of(Reply("r", "m", (picture,), "end"))))[0] == inline


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
_args = st.dictionaries(_text, st.integers() | _text | st.none(), max_size=2)
_signed = st.fixed_dictionaries({}, optional={"thoughtSignature": st.just("c2ln")})
_aside = st.fixed_dictionaries(
    {},
    optional={
        "groundingMetadata": st.just({"webSearchQueries": ["a"]}),
        "safetyRatings": st.just([{"category": "C"}]),
        "finishMessage": _text,
    },
)


@st.composite
def _answers(draw: st.DrawFn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for kind in draw(st.lists(st.sampled_from("twcif"), max_size=5)):
        signed: dict[str, Any] = draw(_signed)
        if kind == "t" and not (parts and "text" in parts[-1] and "thought" not in parts[-1]):
            parts.append({"text": draw(_text)})
        elif kind == "w" and not (parts and "thought" in parts[-1]):
            parts.append({"text": draw(_text), "thought": True, **signed})
        elif kind == "c":
            call = {"id": draw(st.uuids()).hex, "name": "f", "args": draw(_args)}
            parts.append({"functionCall": call, **signed})
        elif kind == "i":
            parts.append({"inlineData": {"mimeType": "image/png", "data": "AA"}, **signed})
        elif kind == "f":
            parts.append({"executableCode": {"code": draw(_text)}})
    reason = draw(st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "RECITATION"]))
    body = chunk(*parts, reason=reason)
    body["candidates"][0].update(draw(_aside))
    if draw(st.booleans()):
        body["usageMetadata"] = USAGE
    return body


@given(_answers())
def test_any_answer_goes_there_and_back_unchanged(body: dict[str, Any]) -> None:
    losses = Losses("gemini")
    assert DIALECT.write_reply(DIALECT.read_reply(body), ASK, losses) == body
    assert losses.names == ()


@given(_answers())
def test_any_stream_goes_there_and_back_and_is_the_same_answer(body: dict[str, Any]) -> None:
    reply = assembled(events(sse(body)))
    again = assembled(events(sse(*written(events(sse(body))))))
    assert _without_signs(again) == _without_signs(reply)
    assert again.stop == reply.stop
    assert again.usage == reply.usage


def _without_signs(reply: Reply) -> str:
    """In a stream a signature comes after its part, on an empty text."""
    shown = json.dumps([repr(part) for part in reply.parts])
    return shown.replace("'signs': 'text'", "'signs': 'part'")
