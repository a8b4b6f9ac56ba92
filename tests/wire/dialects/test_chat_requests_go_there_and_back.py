"""Chat requests through the hub and back: nothing is lost, nothing made up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import MalformedError, RequestError
from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.chat import DIALECT
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from tests.wire.dialects.chat_values import both, full, mark, maybe, objects, values, words


def back(body: dict[str, Any]) -> Any:
    ask = read_ask(DIALECT, json.dumps(body).encode(), Where(), TurnMemory())
    losses = Losses("chat")
    written = DIALECT.write_ask(ask, losses, IdMap(DIALECT.ids))
    assert losses.names == ()
    return written


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
