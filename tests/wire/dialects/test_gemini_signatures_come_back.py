"""What Gemini signs comes back to it byte for byte from clients of every dialect that replay their
history; what others sign comes back to them through Gemini's clients."""

import json
from typing import Any

import pytest

from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Dialect, Where
from reflexarc.wire.dialects import chat, gemini, messages, responses

CALLS = [
    {"functionCall": {"name": "f", "args": {"b": 1}}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "f", "args": {}}},
]
ANSWER: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "so"},
                    *CALLS,
                    {"text": "", "thoughtSignature": "ZW5k"},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "modelVersion": "gemini-3-pro",
    "responseId": "r1",
}


def _in_chat(body: dict[str, Any]) -> dict[str, Any]:
    said = body["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in said["tool_calls"]
    ]
    return {"messages": [{"role": "user", "content": "hi"}, said, *results]}


def _in_responses(body: dict[str, Any]) -> dict[str, Any]:
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
        for item in body["output"]
        if item["type"] == "function_call"
    ]
    return {"input": [{"role": "user", "content": "hi"}, *body["output"], *results]}


def _in_messages(body: dict[str, Any]) -> dict[str, Any]:
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in body["content"]
        if block["type"] == "tool_use"
    ]
    return {
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": body["content"]},
            {"role": "user", "content": results},
        ],
    }


def _exchange(client: Dialect, upstream: Dialect, body: dict[str, Any], model: str) -> Conversion:
    ask = read_ask(client, json.dumps(body).encode(), Where(model), TurnMemory())
    return Conversion(client, upstream, ask, 1)


@pytest.mark.parametrize(
    ("client", "first", "replay"),
    [
        (chat.DIALECT, {"messages": [{"role": "user", "content": "hi"}]}, _in_chat),
        (
            responses.DIALECT,
            {"input": "hi", "include": ["reasoning.encrypted_content"]},
            _in_responses,
        ),
        (
            messages.DIALECT,
            {"max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]},
            _in_messages,
        ),
    ],
)
def test_geminis_signatures_come_back_from_every_client(
    client: Dialect, first: dict[str, Any], replay: Any
) -> None:
    model = {"model": "gemini-3-pro"}
    exchange = _exchange(client, gemini.DIALECT, {**model, **first}, "")
    told = json.loads(exchange.write(exchange.read(json.dumps(ANSWER).encode())))
    again = _exchange(client, gemini.DIALECT, {**model, **replay(told)}, "")
    contents = json.loads(again.request())["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    calls = [part for part in contents[1]["parts"] if "functionCall" in part]
    ids = [part["functionCall"].pop("id") for part in calls]
    assert calls == CALLS
    assert {"text": "", "thoughtSignature": "ZW5k"} in contents[1]["parts"]
    assert {"text": "so"} in contents[1]["parts"]
    assert [part["functionResponse"]["id"] for part in contents[2]["parts"]] == ids
    assert exchange.answer_losses.names == again.losses.names == ()


def test_signatures_of_messages_come_back_through_geminis_clients() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln/+=="}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [thinking, call],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    user = {"role": "user", "parts": [{"text": "hi"}]}
    first = _exchange(gemini.DIALECT, messages.DIALECT, {"contents": [user]}, "m")
    told = json.loads(first.write(first.read(json.dumps(answer).encode())))
    result = {"functionResponse": {"name": "f", "response": {"result": "ok"}}}
    contents = [user, told["candidates"][0]["content"], {"role": "user", "parts": [result]}]
    again = _exchange(gemini.DIALECT, messages.DIALECT, {"contents": contents}, "m")
    said = json.loads(again.request())["messages"]
    assert said[1]["content"] == [thinking, call]
    assert said[2]["content"][0]["tool_use_id"] == "toolu_1"
    assert again.losses.names == ()
