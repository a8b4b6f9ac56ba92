"""A provider gets its signed thinking again, whether the client brings it back or forgets it."""

import json
from typing import Any

from reflexarc.gateway.thoughts import Thoughts
from reflexarc.wire.replies import Reply
from reflexarc.wire.turns import Ask, Call, Settings, Text, Thinking, Turn

from .conftest import Starter
from .upstream import MODEL, Upstream

BLOCKS: list[Any] = [
    {"type": "thinking", "thinking": "Let me look.", "signature": "sig=="},
    {"type": "redacted_thinking", "data": "hidden=="},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}},
]
ANSWER = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": BLOCKS,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
).encode()
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
USER = {"role": "user", "content": "What is there?"}


def chat(*messages: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [USER, *messages], "tools": TOOLS}


async def second_request(
    start: Starter, upstream: Upstream, http: Any, keep: tuple[str, ...], **headers: str
) -> list[Any]:
    """What the upstream is told of its own turn; the client keeps `keep` of the message."""
    gateway = await start(dialect="messages", mode="off")
    upstream.answer = http.answer(ANSWER)
    first = await gateway.chat(chat())
    message = first.json["choices"][0]["message"]
    kept = {name: message[name] for name in ("role", "content", "tool_calls", *keep)}
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "a cat"}
    assert (await gateway.chat(chat(kept, result), headers)).status == 200
    return json.loads(upstream.received[1].body)["messages"][1]["content"]


async def test_a_client_that_keeps_everything_brings_it_back(
    start: Starter, upstream: Upstream, http: Any
) -> None:
    assert await second_request(start, upstream, http, ("reasoning_details",)) == BLOCKS


async def test_what_a_client_forgets_is_remembered(
    start: Starter, upstream: Upstream, http: Any
) -> None:
    assert await second_request(start, upstream, http, ()) == BLOCKS


async def test_a_client_that_keeps_the_words_alone_brings_back_the_signature_too(
    start: Starter, upstream: Upstream, http: Any
) -> None:
    assert await second_request(start, upstream, http, ("reasoning_content",)) == BLOCKS


async def test_nothing_is_remembered_for_another_tenant(
    start: Starter, upstream: Upstream, http: Any
) -> None:
    told = await second_request(start, upstream, http, (), authorization="Bearer another")
    assert told == BLOCKS[2:]


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    thoughts = Thoughts(max_bytes=20_000)
    for number in range(40):
        parts = (Thinking("x" * 1000, "s", "messages"), Call(f"c{number}", "f", "{}"))
        thoughts.keep(b"t", Reply("r", "m", parts, "calls"))

    def restored(number: int) -> int:
        turn = Turn("assistant", (Call(f"c{number}", "f", "{}"),))
        ask = thoughts.restored(b"t", Ask("chat", Settings("m"), (turn,)))
        return len(ask.turns[0].parts)

    assert restored(0) == 1
    assert restored(39) == 2


def test_signatures_of_calls_are_restored_and_the_rest_is_left_as_it_is() -> None:
    thoughts = Thoughts()
    signed = Call("c1", "f", "{}", signature="sig", origin="gemini")
    thoughts.keep(b"t", Reply("r", "m", (signed, Call("c2", "g", "{}")), "calls"))
    turns = (
        Turn("user", (Text("hi"),)),
        Turn("assistant", (Text("so"), Call("c1", "f", "{}"), Call("c2", "g", "{}"))),
        Turn("assistant", (Call("c9", "f", "{}"),)),
    )
    ask = thoughts.restored(b"t", Ask("chat", Settings("m"), turns))
    assert ask.turns[1].parts == (Text("so"), signed, Call("c2", "g", "{}"))
    assert ask.turns[0] is turns[0]
    assert ask.turns[2] is turns[2]
