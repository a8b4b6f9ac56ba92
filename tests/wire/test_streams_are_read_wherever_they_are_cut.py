"""Server-sent events: the same however they are cut; odd providers are understood."""

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.answers import answer_from_body
from reflexarc.wire.chat_answer import (
    ActedTurn,
    completion,
    completion_stream,
    is_own_call,
)
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.sse import DONE, SseEvent, SseParser, data_event


def _read(chunks: list[bytes]) -> list[bytes]:
    parser = SseParser()
    return [event.data for chunk in chunks for event in parser.feed(chunk)]


def _cut(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(c, len(text)) for c in cuts})
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(
    events=st.lists(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=5
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    space=st.sampled_from(["", " "]),
    cuts=st.lists(st.integers(0, 120), max_size=8),
    mark=st.booleans(),
)
def test_any_cut_gives_the_same_events(
    events: list[str], end: str, space: str, cuts: list[int], mark: bool
) -> None:
    # A value that begins with a space needs the optional one before it.
    lines = [f": ping{end}data:{' ' if e.startswith(' ') else space}{e}{end}{end}" for e in events]
    text = ("\ufeff" * mark + "".join(lines)).encode()
    assert _read(_cut(text, cuts)) == [event.encode() for event in events]


_lines = st.sampled_from(
    ["", "data: a", "data:b", "data", "data: ", "data:  c: d", "event: x", "event:y", ": ping", "z"]
)


@given(lines=st.lists(_lines, max_size=12), end=st.sampled_from(["\n", "\r\n"]))
def test_a_chunk_of_whole_events_is_read_as_its_bytes_are_one_by_one(
    lines: list[str], end: str
) -> None:
    text = "".join(line + end for line in ["data: begin", "", *lines, "", "data: end", "", ""])
    whole, bytewise = SseParser(), SseParser()
    by_bytes = [event for byte in text.encode() for event in bytewise.feed(bytes([byte]))]
    assert whole.feed(text.encode()) == by_bytes
    assert by_bytes[-1] == SseEvent(b"", b"end")


def test_lines_of_one_event_are_joined_and_other_fields_ignored() -> None:
    assert _read([b"event: x\ndata: a\nid: 3\ndata: b\ndata\n\n"]) == [b"a\nb\n"]


def test_separators_of_unicode_are_content() -> None:
    assert _read(["data: a\u2028b\u0085c\n\n".encode()]) == ["a\u2028b\u0085c".encode()]


def test_an_event_cut_short_is_dropped() -> None:
    assert _read([b"data: a\n\ndata: b\n"]) == [b"a"]


def test_an_endless_event_ends_the_observation() -> None:
    parser = SseParser(max_event_bytes=100)
    assert parser.feed(b"data: " + b"x" * 200) == []
    assert parser.overflown
    assert parser.feed(b"\n\ndata: b\n\n") == []


def _delta(*calls: dict[str, Any], content: str | None = None, finish: str | None = None) -> Any:
    delta: dict[str, Any] = {"content": content}
    if calls:
        delta["tool_calls"] = list(calls)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _part(index: Any, arguments: str | None = None, name: str | None = None, **more: Any) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return {"index": index, "function": function, **more}


ODD_STREAMS = {
    "in pieces": [
        _delta(_part(0, "", "f", id="c0")),
        _delta(_part(0, '{"a"')),
        _delta(_part(0, ":1}")),
        _delta(_part(1, '{"b":2}', "g", id="c1")),
        _delta(finish="tool_calls"),
    ],
    "two calls in one chunk": [
        _delta(_part(0, '{"a":1}', "f"), _part(1, '{"b":2}', "g"), finish="tool_calls")
    ],
    "interleaved": [
        _delta(_part(0, '{"a"', "f"), _part(1, '{"b"', "g")),
        _delta(_part(1, ":2}"), _part(0, ":1}")),
        _delta(finish="tool_calls"),
    ],
    "finished by stop, frames without choices between": [
        {"choices": []},
        _delta(_part(0, '{"a":1}', "f")),
        {"usage": {}},
        _delta(_part(1, '{"b":2}', "g")),
        _delta(finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 1}},
    ],
    "name and id repeated at the end": [
        _delta(_part(0, '{"a":1}', "f", id="c0"), _part(1, '{"b":2}', "g", id="c1")),
        _delta(_part(0, "", "f", id="c0"), _part(1, "", "g", id="c1"), finish="tool_calls"),
    ],
    "every call at index 0": [
        _delta(_part(0, '{"a"', "f", id="c0")),
        _delta(_part(0, ":1}")),
        _delta(_part(0, '{"b"', "g", id="c1")),
        _delta(_part(0, ":2}", id="c1"), finish="tool_calls"),
    ],
    "no index, call after call": [
        _delta(_part(None, '{"a"', "f", id="c0")),
        _delta(_part(None, ":1}")),
        _delta(_part(None, '{"b":2}', "g", id="c1"), finish="tool_calls"),
    ],
    "one index for both, interleaved": [
        _delta(_part(0, '{"a"', "f", id="c0"), _part(0, '{"b"', "g", id="c1")),
        _delta(_part(0, ":1}", id="c0"), _part(0, ":2}", id="c1"), finish="tool_calls"),
    ],
    "no index": [
        _delta(_part(None, '{"a":1}', "f"), _part(None, '{"b":2}', "g"), finish="tool_calls")
    ],
}


@pytest.mark.parametrize("chunks", ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_odd_providers_streams_are_assembled(chunks: list[Any]) -> None:
    text = b"".join(data_event(json.dumps(chunk).encode()) for chunk in chunks) + DONE
    answer = answer_from_body(text, "text/event-stream")
    assert [(c.name, c.arguments) for c in answer.calls] == [("f", {"a": 1}), ("g", {"b": 2})]
    assert answer.complete


@pytest.mark.parametrize(
    "chunks",
    [
        [_delta(content="half")],
        [_delta(content="cut"), _delta(finish="length")],
        [_delta(content="x"), {"error": {"message": "boom"}}],
        [_delta(content="x", finish="stop"), {"error": {"message": "late"}}],
    ],
)
def test_a_stream_that_broke_off_is_not_complete(chunks: list[Any]) -> None:
    text = b"".join(data_event(json.dumps(chunk).encode()) for chunk in chunks)
    assert not answer_from_body(text, "text/event-stream").complete


@pytest.mark.parametrize(
    ("left", "whole"),
    [
        (b'data: {"a":1}\n', b'{"a":1}'),
        (b'data: {"a":1}', b'{"a":1}'),
        (b"data: [DONE]", b"[DONE]"),
        (b'data: {"a":\ndata: 1}', b'{"a":\n1}'),
        (b'data: {"a":', None),
        (b'data: {"a":1}\ndata: {"b', None),
        (b"data: 12", None),
        (b"data: word\n", None),
        (b"da", None),
        (b"", None),
    ],
)
def test_a_last_event_without_its_blank_line_counts_if_it_is_whole(
    left: bytes, whole: bytes | None
) -> None:
    parser = SseParser()
    assert parser.feed(b"data: {}\n\n" + left) == [(b"", b"{}")]
    assert [event.data for event in parser.close()] == ([] if whole is None else [whole])


TURN = ActedTurn("0123456789abcdef" * 2, 7, "m", (("f", {"a": "é\u2028"}), ("g", {})), 12)


@pytest.mark.parametrize("usage", [False, True])
def test_our_own_turns_read_back_the_same_streamed_or_not(usage: bool) -> None:
    whole = answer_from_body(completion(TURN), "application/json")
    streamed = answer_from_body(completion_stream(TURN, usage), "text/event-stream; charset=utf-8")
    assert whole.calls == streamed.calls
    assert tuple((call.name, call.arguments) for call in whole.calls) == TURN.calls
    ids = [call.id for call in whole.calls]
    assert len(set(ids)) == len(ids)
    assert all(is_own_call(identity) for identity in ids)
    assert whole.complete
    assert streamed.complete


def test_encodings_are_undone_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"x" * 1000
    assert plain_bytes(text, "") == plain_bytes(text, "identity") == text
    assert plain_bytes(gzip.compress(text), "GZIP") == text
    assert plain_bytes(zlib.compress(text), "deflate") == text
    assert plain_bytes(gzip.compress(text) + gzip.compress(b"y"), "gzip") == text + b"y"
    for data, encoding in ((text, "br"), (text, "gzip")):
        with pytest.raises(MalformedError):
            plain_bytes(data, encoding)
    monkeypatch.setattr("reflexarc.wire.encodings.MAX_DECODED_BYTES", 999)
    with pytest.raises(MalformedError, match="longer than"):
        plain_bytes(gzip.compress(text), "gzip")
