"""Chat requests and answers through the hub and back: nothing is lost, nothing made up."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.assembling import Assembler, BrokenOffError, events_of
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.chat import DIALECT
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Began, Failed, PartBegan, PartEnded, PartGrew, Reply
from reflexarc.wire.sse import SseParser, data_event
from reflexarc.wire.turns import Ask, Call, Settings, Text, Thinking

ASK = Ask("chat", Settings("m", include_usage=True), ())


def back(body: dict[str, Any]) -> Any:
    ask = read_ask(DIALECT, json.dumps(body).encode(), Where(), TurnMemory())
    losses = Losses("chat")
    written = DIALECT.write_ask(ask, losses, IdMap(DIALECT.ids))
    assert losses.names == ()
    return written


# --- requests ---------------------------------------------------------------------------------

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
full = words.filter(bool)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(full, values, max_size=3)
mark = st.just({"type": "ephemeral"})


def maybe(**members: Any) -> Any:
    return st.fixed_dictionaries({}, optional=members)


def both(required: dict[str, Any], optional: dict[str, Any]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)


text_part = both({"type": st.just("text"), "text": words}, {"cache_control": mark})
image_part = st.builds(
    lambda url, detail: {"type": "image_url", "image_url": {"url": url, **detail}},
    st.sampled_from(["https://x.example/a.png", "data:image/png;base64,AAAA"]),
    maybe(detail=st.sampled_from(["low", "high"])),
)
file_part = st.sampled_from(
    [
        {"type": "file", "file": {"file_id": "file-1"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
        },
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "video_url", "video_url": {"url": "https://x.example/a.mp4"}},
    ]
)
# A list of one plain text is the text itself.
listed = st.lists(text_part | image_part | file_part, min_size=2, max_size=4)
call = st.builds(
    lambda name, arguments: {
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    },
    full,
    objects,
)


@st.composite
def histories(draw: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append(
            {"role": draw(st.sampled_from(["system", "developer"])), "content": "Help."}
        )
    for turn in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(full | listed)})
        calls = draw(st.lists(call, max_size=3))
        said = {"role": "assistant", "content": draw(full if not calls else st.none() | full)}
        if draw(st.booleans()):
            said["reasoning_content"] = draw(full)
        if calls:
            for place, one in enumerate(calls):
                one["id"] = f"call_{turn}_{place}"
            said["tool_calls"] = calls
        messages.append(said)
        messages.extend(
            {"role": "tool", "tool_call_id": one["id"], "content": draw(words | listed)}
            for one in calls
        )
    return messages


tools = st.lists(
    st.builds(
        lambda name, more: {"type": "function", "function": {"name": name, **more}},
        full,
        maybe(description=words, parameters=objects, strict=st.booleans()),
    ),
    min_size=1,
    max_size=3,
)
settings = maybe(
    temperature=st.sampled_from([0, 0.5, 1.25]),
    top_p=st.just(0.9),
    max_completion_tokens=st.integers(1, 9),
    stop=full | st.lists(full, min_size=2, max_size=4),
    seed=st.integers(0, 9),
    n=st.just(2),
    tool_choice=st.sampled_from(
        [
            "auto",
            "none",
            "required",
            {"type": "function", "function": {"name": "f"}},
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "f"}}],
                },
            },
        ]
    ),
    parallel_tool_calls=st.booleans(),
    response_format=st.sampled_from(
        [
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
        ]
    ),
    reasoning_effort=st.sampled_from(["none", "low", "high"]),
    stream_options=st.just({"include_usage": True}),
    stream=st.just(True),
    metadata=st.just({"a": "b"}),
    store=st.booleans(),
    logit_bias=st.just({"5": 1}),
    top_k=st.integers(1, 9),
    unheard_of=values.filter(lambda value: value is not None),
)


@given(histories(), tools, settings)
def test_any_request_comes_back_as_it_was(
    messages: list[dict[str, Any]], offered: list[Any], chosen: dict[str, Any]
) -> None:
    if not chosen.get("stream"):
        chosen.pop("stream_options", None)
    body = {"model": "m", "messages": messages, "tools": offered, **chosen}
    assert back(body) == body


def test_rarer_shapes_come_back_as_they_were() -> None:
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": "hi", "name": "ann"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "extra_content": {"google": {"thought_signature": "sig"}},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
            {"role": "tool", "tool_call_id": "c2", "content": '{"$ref": "#/a"}'},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "old", "arguments": '{"a":1}'},
            },
            {"role": "function", "name": "old", "content": "done"},
            {
                "role": "assistant",
                "content": "well",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}],
            },
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        ],
        "tools": [
            {"type": "custom", "custom": {"name": "shell", "format": {"type": "text"}}},
            {"type": "web_search", "x": 1},
            {
                "type": "function",
                "function": {"name": "f", "parameters": None, "strict": None, "odd": 1},
                "cache_control": {"type": "ephemeral"},
            },
        ],
        "tool_choice": {"type": "custom", "custom": {"name": "shell"}},
    }
    written = back(body)
    del body["tools"][2]["function"]["parameters"], body["tools"][2]["function"]["strict"]
    assert written == body


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
            "messages[0].tool_calls[0].function",
        ),
        ({"tools": [{"type": "function"}], "messages": []}, "tools[0].function"),
        ({"temperature": "hot", "messages": []}, "temperature"),
        ({"tool_choice": "maybe", "messages": []}, "tool_choice"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_with_its_place(body: Any, path: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_ask(DIALECT, json.dumps(body).encode(), Where(), TurnMemory())
    assert refused.value.param == path


def test_a_key_given_twice_is_refused_wherever_it_stands() -> None:
    for body in (
        b'{"model":"a","model":"b","messages":[]}',
        b'{"messages":[{"role":"user","content":"a","content":"b"}]}',
    ):
        with pytest.raises(MalformedError):
            read_ask(DIALECT, body, Where(), TurnMemory())


# --- streams ----------------------------------------------------------------------------------


def stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    events = [data_event(json.dumps(chunk).encode()) for chunk in chunks]
    return b"".join(events) + (b"data: [DONE]\n\n" if done else b"")


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    return {"id": "c-1", "model": "m", "created": 7, "choices": [choice], **more}


def part(index: Any, name: str | None = None, arguments: str | None = None, **more: Any) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    entry = {"index": index, "function": function, **more}
    return {k: v for k, v in entry.items() if v is not None}


def calls(*entries: Any, **more: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, **more)


def read(data: bytes, cuts: list[int] | None = None) -> list[Any]:
    parser, reader = SseParser(), DIALECT.stream_reader()
    places = sorted({0, len(data), *(min(c, len(data)) for c in cuts or ())})
    events: list[Any] = []
    for a, b in itertools.pairwise(places):
        for event in parser.feed(data[a:b]):
            events.extend(reader.read(event))
    events.extend(reader.close())
    return events


def assembled(data: bytes) -> Reply:
    assembler = Assembler()
    for event in read(data):
        assembler.take(event)
    return assembler.reply()


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


# --- answers ----------------------------------------------------------------------------------


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
