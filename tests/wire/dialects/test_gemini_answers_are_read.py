"""Answers of `generateContent`, whole and streamed: what is read of them, and of broken ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.dialects.gemini import DIALECT, KEEP_ALIVE
from reflexarc.wire.replies import Began, Ended, Failed, PartBegan, PartEnded, PartGrew, PartSigned
from reflexarc.wire.turns import Call, Foreign, Media, Text, Thinking
from reflexarc.wire.usage import Usage
from tests.wire.dialects.gemini_answers import (
    USAGE,
    assembled,
    chunk,
    event_of,
    events,
    sse,
)

STREAM = sse(
    chunk({"text": "Let me", "thought": True}, usageMetadata={"promptTokenCount": 10}),
    chunk({"text": " see", "thought": True, "thoughtSignature": "dGg="}),
    chunk({"text": "Hel"}),
    chunk({"text": "lo \u2028ü"}, {"functionCall": {"name": "f", "args": {"b": 1, "a": {}}}}),
    chunk(
        {"functionCall": {"id": "c9", "name": "f", "args": {}}, "thoughtSignature": "Y2E="},
        {"functionCall": {"name": "f"}},
    ),
    chunk({"text": "", "thoughtSignature": "ZW5k"}),
    chunk(reason="STOP", usageMetadata={**USAGE, "thoughtsTokenCount": 2}),
    {"candidates": [{"index": 0, "groundingMetadata": {"q": ["a"]}}]},
)


def test_a_stream_is_read_part_by_part() -> None:
    reply = assembled(events(STREAM))
    assert (reply.id, reply.model, reply.stop) == ("r1", "gemini-3-pro", "calls")
    assert reply.usage == Usage(input=10, output=7, reasoning=2)
    thinking, text, first, second, third, signing, grounding = reply.parts
    assert thinking == Thinking("Let me see", "dGg=", "gemini")
    assert text == Text("Hello \u2028ü")
    assert isinstance(first, Call)
    assert isinstance(third, Call)
    assert (first.name, first.arguments) == ("f", '{"b":1,"a":{}}')
    assert second == Call("c9", "f", "{}", signature="Y2E=", origin="gemini")
    assert third.arguments == "{}"
    assert len({first.id, "c9", third.id}) == 3
    assert signing == Thinking("", "ZW5k", "gemini", redacted=True, more={"signs": "text"})
    assert grounding == Foreign("groundingMetadata", {"groundingMetadata": {"q": ["a"]}})


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    assert events(STREAM, cuts) == events(STREAM)


def test_every_part_but_calls_ends_before_another_begins() -> None:
    open_parts: set[int] = set()
    for event in events(STREAM):
        if isinstance(event, PartBegan):
            assert not open_parts
            open_parts.add(event.at)
        elif isinstance(event, PartGrew | PartSigned):
            assert event.at in open_parts
        elif isinstance(event, PartEnded):
            open_parts.remove(event.at)
    assert not open_parts


def test_a_stream_and_a_whole_body_of_one_answer_are_the_same_reply() -> None:
    parts: list[dict[str, Any]] = [
        {"text": "hm", "thought": True},
        {"text": "Hello"},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "Y2E="},
        {"inlineData": {"mimeType": "image/png", "data": "AA"}},
        {"executableCode": {"code": "1"}},
    ]
    end: dict[str, Any] = {"reason": "MAX_TOKENS", "usageMetadata": USAGE}
    whole = DIALECT.read_reply(chunk(*parts, **end))
    halves = chunk({"text": "Hel"}), chunk({"text": "lo"})
    streamed = sse(chunk(parts[0]), *halves, *(chunk(part) for part in parts[2:]), chunk(**end))
    assert assembled(events(streamed)) == whole
    assert whole.stop == "length"
    assert whole.origin == "gemini"


def test_the_same_call_in_two_answers_has_two_ids() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    ids = [
        DIALECT.read_reply(chunk(call, reason="STOP", responseId=r)).calls[0].id
        for r in ("r1", "r2", "r1")
    ]
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filter"),
        ("RECITATION", "filter"),
        ("BLOCKLIST", "filter"),
        ("PROHIBITED_CONTENT", "filter"),
        ("SPII", "filter"),
        ("MALFORMED_FUNCTION_CALL", "truncated"),
        ("OTHER", "truncated"),
        ("A_NEW_ONE", "truncated"),
        ("CONTINUATION", "pause"),
        (None, "truncated"),
    ],
)
def test_every_reason_to_stop_is_understood(reason: str | None, stop: str) -> None:
    assert DIALECT.read_reply(chunk({"text": "a"}, reason=reason)).stop == stop


def test_stop_after_calls_is_a_stop_for_calls() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    assert DIALECT.read_reply(chunk(call, reason="STOP")).stop == "calls"
    assert DIALECT.read_reply(chunk(call, reason="MAX_TOKENS")).stop == "length"


def test_a_turn_that_came_to_nothing_is_an_error_and_no_empty_answer() -> None:
    body = chunk(reason="MALFORMED_FUNCTION_CALL")
    body["candidates"][0]["finishMessage"] = "call:f{"
    with pytest.raises(BrokenOffError, match=r"MALFORMED_FUNCTION_CALL.*call:f") as caught:
        DIALECT.read_reply(body)
    assert caught.value.fault.code == "malformed_function_call"


def test_a_blocked_prompt_is_an_answer_that_was_filtered() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}
    whole = DIALECT.read_reply(body)
    assert (whole.stop, whole.calls) == ("filter", ())
    assert assembled(events(sse(body))).stop == "filter"


def test_bytes_that_end_without_a_reason_are_a_failure() -> None:
    found = events(sse(chunk({"text": "a"})))
    assert isinstance(found[-1], Failed)
    assert found[-1].fault.code == "upstream_truncated"
    assert not any(isinstance(event, Ended) for event in found)


def test_no_bytes_at_all_are_a_failure() -> None:
    assert [type(event) for event in events(b"")] == [Failed]


def test_usage_is_the_last_that_was_told_and_counted_once() -> None:
    stream = sse(
        chunk({"text": "a"}, usageMetadata={**USAGE, "candidatesTokenCount": 1}),
        chunk({"text": "b"}, usageMetadata={**USAGE, "candidatesTokenCount": 2}),
        chunk(reason="STOP"),
        {"usageMetadata": {**USAGE, "cachedContentTokenCount": 4}},
    )
    assert assembled(events(stream)).usage == Usage(input=10, output=5, cache_read=4)


def test_usage_that_nobody_told_is_not_made_up() -> None:
    assert DIALECT.read_reply(chunk({"text": "a"}, reason="STOP")).usage is None


ERROR = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize("told", [ERROR, [ERROR]])
def test_an_error_in_a_stream_is_a_failure_and_nothing_follows(told: Any) -> None:
    found = events(sse(chunk({"text": "a"}), told, chunk({"text": "b"}, reason="STOP")))
    assert isinstance(found[-1], Failed)
    assert (found[-1].fault.kind, found[-1].fault.status) == ("overloaded", 503)
    assert [event.text for event in found if isinstance(event, PartGrew)] == ["a"]


def test_an_error_in_a_whole_body_is_raised() -> None:
    with pytest.raises(BrokenOffError, match="busy"):
        DIALECT.read_reply(ERROR)


def test_a_body_that_is_no_answer_is_raised() -> None:
    with pytest.raises(BrokenOffError):
        DIALECT.read_reply({"id": "chatcmpl-1", "choices": []})


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"1",
        b"null",
        b'"x"',
        b'{"candidates":[1]}',
        b'{"candidates":[{"content":[]}]}',
        b'{"candidates":[{"content":{"parts":7}}]}',
        b'{"candidates":[{"content":{"parts":[7]}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":7}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionResponse":{"name":"f"}}]}}]}',
    ],
)
def test_what_is_no_chunk_is_a_failure_and_raises_nothing(data: bytes) -> None:
    reader = DIALECT.stream_reader()
    found = [*reader.read(event_of(data)), *reader.close()]
    assert isinstance(found[-1], Failed)
    assert found[-1].fault.code == "upstream_malformed"
    assert found[-1].fault.status == 502


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"candidates": []},
        {"candidates": None},
        {"candidates": [{}]},
        {"candidates": [{"content": None}]},
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": []}}]},
        {"candidates": [{"content": {"parts": [{}]}}]},
        {"candidates": [{"content": {"parts": [{"text": ""}]}}]},
        {"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}]},
        {"usageMetadata": None},
        {"something": "new"},
    ],
)
def test_chunks_without_content_change_nothing(odd: dict[str, Any]) -> None:
    around = (chunk({"text": "a"}), chunk({"text": "b"}, reason="STOP"))
    assert assembled(events(sse(around[0], odd, around[1]))).parts == (Text("ab"),)
    assert assembled(events(sse(odd, *around))).parts == (Text("ab"),)


def test_what_keeps_the_line_open_changes_nothing() -> None:
    stream = sse(chunk({"text": "a"}, reason="STOP"))
    assert events(KEEP_ALIVE + stream + KEEP_ALIVE) == events(stream)
    assert events(sse({}) + stream) == events(stream)


def test_a_done_mark_that_some_proxies_add_is_passed_over() -> None:
    found = events(sse(chunk({"text": "a"}, reason="STOP")) + b"data: [DONE]\n\n")
    assert isinstance(found[-1], Ended)


def test_snake_case_is_read_as_well() -> None:
    body = {
        "candidates": [
            {
                "content": {"parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}}]},
                "finish_reason": "STOP",
            }
        ],
        "response_id": "r",
        "model_version": "m",
    }
    reply = DIALECT.read_reply(body)
    assert (reply.id, reply.model, reply.calls[0].arguments) == ("r", "m", '{"a_b":1}')


def _partly(goes_on: bool, *bits: dict[str, Any], **more: Any) -> dict[str, Any]:
    call: dict[str, Any] = {**more, "partialArgs": list(bits)}
    if goes_on:
        call["willContinue"] = True
    return chunk({"functionCall": call})


def test_arguments_that_come_bit_by_bit_are_put_together() -> None:
    stream = sse(
        _partly(True, name="f", id="c1"),
        _partly(True, {"jsonPath": "$.to.city", "stringValue": "New ", "willContinue": True}),
        _partly(True, {"jsonPath": "$.to.city", "stringValue": "York"}),
        _partly(
            True,
            {"jsonPath": "$.days[0]", "numberValue": 3},
            {"jsonPath": "$.days[1]", "numberValue": 4.5},
            {"jsonPath": "$['odd name']", "boolValue": False},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
        ),
        chunk({"functionCall": {}}),
        chunk({"functionCall": {"name": "g", "args": {}}}, reason="STOP"),
    )
    first, second = assembled(events(stream)).calls
    assert first.id == "c1"
    assert first.arguments == (
        '{"to":{"city":"New York"},"days":[3,4.5],"odd name":false,"none":null}'
    )
    assert (second.name, second.arguments) == ("g", "{}")


@pytest.mark.parametrize(
    "bit",
    [
        7,
        {},
        {"jsonPath": "no way", "stringValue": "a"},
        {"jsonPath": "$.a[999999]", "stringValue": "a"},
        {"jsonPath": "$.a.b", "stringValue": "a"},
    ],
)
def test_bits_that_fit_nowhere_are_a_failure(bit: Any) -> None:
    start = _partly(True, {"jsonPath": "$.a", "stringValue": "x"}, name="f")
    found = events(sse(start, chunk({"functionCall": {"partialArgs": [bit]}})))
    assert isinstance(found[-1], Failed)


def test_the_first_event_says_who_answers() -> None:
    began = events(sse(chunk(reason="STOP", createTime="2026-01-02T03:04:05.678Z")))[0]
    assert began == Began("r1", "gemini-3-pro", 1767323045, origin="gemini")


def test_images_are_parts_of_an_answer() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "AA"}, "thoughtSignature": "c2ln"}
    assert DIALECT.read_reply(chunk(part, reason="STOP")).parts == (
        Media("image", "image/png", data="AA"),
        Thinking("", "c2ln", "gemini", redacted=True, more={"signs": "part"}),
    )
