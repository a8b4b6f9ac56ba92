"""Chat streams, however odd: the same calls, words and ends come of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.wire.replies import Failed, PartBegan, PartEnded, PartGrew
from reflexarc.wire.turns import Call, Text, Thinking
from tests.wire.dialects.chat_streams import assembled, calls, chunk, part, read, stream

A, B = '{"a": 1}', '{"b": [2, 3]}'
TWO_CALLS = {
    "in pieces": stream(
        chunk({"role": "assistant", "content": None}),
        calls(part(0, "f", "", id="c0")),
        calls(part(0, None, '{"a"')),
        calls(part(0, None, ": 1}")),
        calls(part(1, "g", B, id="c1")),
        chunk(finish="tool_calls"),
    ),
    "both in one chunk": stream(
        calls(part(0, "f", A, id="c0"), part(1, "g", B, id="c1"), finish="tool_calls")
    ),
    "interleaved": stream(
        calls(part(0, "f", '{"a"', id="c0"), part(1, "g", '{"b"', id="c1")),
        calls(part(1, None, ": [2,"), part(0, None, ": 1}")),
        calls(part(1, None, " 3]}")),
        chunk(finish="tool_calls"),
    ),
    "all at one index, ids apart": stream(
        calls(part(0, "f", A, id="c0")), calls(part(0, "g", B, id="c1")), chunk(finish="stop")
    ),
    "no index at all": stream(
        calls(part(None, "f", A, id="c0"), part(None, "g", B, id="c1")), chunk(finish="tool_calls")
    ),
    "id and name again in the last chunk": stream(
        calls(part(0, "f", '{"a"', id="c0"), part(1, "g", B, id="c1")),
        calls(part(0, "f", ": 1}", id="c0")),
        calls(part(0, "f", "", id="c0"), part(1, "g", "", id="c1"), finish="tool_calls"),
    ),
    "whole calls said twice": stream(
        calls(part(0, "f", A, id="c0"), part(1, "g", B, id="c1")),
        calls(part(0, "f", A, id="c0"), part(1, "g", B, id="c1"), finish="tool_calls"),
    ),
    "frames without choices, nulls and odd fields between": stream(
        {"choices": [], "prompt_filter_results": []},
        chunk({"role": "assistant", "content": "", "tool_calls": None, "new": 1}, id="c-1"),
        {"id": "c-1"},
        calls(part(0, "f", A, id="c0")),
        {"choices": None},
        calls(part(1, "g", B, id="c1")),
        {"choices": [{"index": 0, "delta": None, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    ),
    "the id comes late": stream(
        calls(part(0, None, None), part(1, "g", B, id="c1")),
        calls(part(0, "f", A, id="c0")),
        chunk(finish="tool_calls"),
    ),
}


@pytest.mark.parametrize("data", TWO_CALLS.values(), ids=TWO_CALLS.keys())
def test_two_calls_are_read_however_they_come(data: bytes) -> None:
    reply = assembled(data)
    told = {(call.name, call.arguments) for call in reply.calls}
    assert told == {("f", A), ("g", B)}
    assert {call.id for call in reply.calls} == {"c0", "c1"}
    assert reply.stop == "calls"


@pytest.mark.parametrize("data", TWO_CALLS.values(), ids=TWO_CALLS.keys())
@given(cuts=st.lists(st.integers(0, 1200), max_size=12))
def test_any_cut_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    assert read(data, cuts) == read(data)


def test_calls_without_ids_get_one_each_and_keep_it() -> None:
    data = stream(calls(part(0, "f", A)), calls(part(0, "f", B)), chunk(finish="tool_calls"))
    first, second = assembled(data).calls
    assert (first.arguments, second.arguments) == (A, B)
    assert len({first.id, second.id, ""}) == 3
    assert assembled(data).calls == (first, second)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert assembled(stream(calls(part(0, "f", "", id="c")), chunk(finish="tool_calls"))).calls == (
        Call("c", "f", "{}"),
    )


def test_usage_is_counted_once_wherever_it_stands() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 6},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    early = {"prompt_tokens": 10, "completion_tokens": 1}
    for data in (
        stream(chunk({"content": "a"}), chunk(finish="stop"), {"choices": [], "usage": usage}),
        stream(chunk({"content": "a"}, usage=early), chunk(finish="stop", usage=usage)),
        stream(chunk({"content": "a"}), chunk(finish="stop", x_groq={"usage": usage})),
    ):
        found = assembled(data).usage
        assert found is not None
        assert (found.input, found.output, found.cache_read, found.reasoning) == (10, 4, 6, 1)
    assert assembled(stream(chunk({"content": "a"}), chunk(finish="stop"))).usage is None


def test_an_end_without_a_reason_is_told_as_a_cut() -> None:
    assert assembled(stream(chunk({"content": "a"}))).stop == "truncated"


def test_bytes_that_end_too_soon_are_a_fault() -> None:
    for data in (
        stream(chunk({"content": "a"}), done=False),
        stream(chunk({"content": "a"}), chunk({"content": "b"}), done=False)[:-1],
        b"",
    ):
        fault = read(data)[-1]
        assert isinstance(fault, Failed)
        assert fault.fault.code == "upstream_truncated"


def test_a_reason_without_done_is_an_end() -> None:
    data = stream(chunk({"content": "a"}), chunk(finish="length"), done=False)
    assert assembled(data).stop == "length"


def test_an_error_inside_ends_it_and_nothing_follows() -> None:
    data = stream(
        chunk({"content": "a"}),
        {"error": {"message": "full", "type": "overloaded_error", "code": "overloaded"}},
        chunk({"content": "b"}),
    )
    *_, last = read(data)
    assert isinstance(last, Failed)
    assert (last.fault.kind, last.fault.message) == ("overloaded", "full")
    for broken in (b"data: {oops\n\n", b"data: 7\n\n", b'data: ["a"]\n\n'):
        assert isinstance(read(broken)[-1], Failed)


def test_thinking_and_text_are_parts_that_end() -> None:
    data = stream(
        chunk({"reasoning_content": "let "}),
        chunk({"reasoning_content": "me", "content": None}),
        chunk({"content": "Hi"}),
        calls(part(0, "f", A, id="c")),
        chunk({"content": "!"}),
        chunk(finish="stop"),
    )
    assert read(data)[1:8] == [
        PartBegan(0, Thinking("", origin="chat")),
        PartGrew(0, "let "),
        PartGrew(0, "me"),
        PartEnded(0),
        PartBegan(1, Text("")),
        PartGrew(1, "Hi"),
        PartEnded(1),
    ]
    reply = assembled(data)
    assert [type(one) for one in reply.parts] == [Thinking, Text, Call, Text]
    assert reply.stop == "calls"


def test_a_providers_own_details_come_back_to_it_as_they_were() -> None:
    details = [
        {"type": "reasoning.text", "text": "le", "index": 0, "format": "x"},
        {"type": "reasoning.text", "text": "t", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "zzz", "index": 1},
    ]
    data = stream(
        chunk({"reasoning": "le", "reasoning_details": [details[0]]}),
        chunk({"reasoning": "t", "reasoning_details": [details[1]]}),
        chunk({"reasoning_details": [details[2]]}),
        chunk({"content": "x"}),
        chunk(finish="stop"),
    )
    (thought, _) = assembled(data).parts
    assert isinstance(thought, Thinking)
    assert thought.text == "let"
    assert json.loads(thought.signature or "") == [
        {"type": "reasoning.text", "text": "let", "index": 0, "format": "x", "signature": "sig"},
        details[2],
    ]
