"""A returns desk for two frameworks: its tools, its System 2 on a real port, a reflex learned."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from reflexarc.reflex import Reflex, learn
from reflexarc.steps import Session
from reflexarc.wire.chat import message_from_chat, tool_from_chat
from tests.gateway.upstream import MODEL, Received, Upstream, completion_bytes, http_answer
from tests.reflex import parcels

PROMPT = "You help with orders."
DONE = "Done: the order is refunded."


def ask_for(task: int) -> str:
    return f"Please refund the order of customer C-{task}"


def order_of(customer: str) -> str:
    return f"W{random.Random(customer).randrange(10**7):07d}"


def find_customer(customer: str) -> str:
    """Find a customer by number."""
    return json.dumps({"customer": customer, "order_id": order_of(customer)})


def get_order(order_id: str) -> str:
    """Read an order."""
    return json.dumps({"order_id": order_id, "status": "delivered"})


def refund_order(order_id: str) -> str:
    """Refund an order."""
    return json.dumps({"refunded": order_id})


TOOLS: tuple[Callable[[str], str], ...] = (find_customer, get_order, refund_order)


def next_call(user: str, calls: int) -> tuple[str, dict[str, str]] | None:
    """System 2's policy, given what the user said last and how many calls were answered since."""
    found = re.search(r"C-\d+", user)
    if found is None or calls >= len(TOOLS):
        return None
    name = TOOLS[calls].__name__
    customer = found.group()
    return name, {"customer": customer} if calls == 0 else {"order_id": order_of(customer)}


class Desk:
    """System 2: keeps the requests it had, answers whole or streamed."""

    def __init__(self, upstream: Upstream) -> None:
        upstream.answer = self._answer
        self.url = upstream.url
        self.requests: list[dict[str, Any]] = []

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        request = json.loads(received.body)
        self.requests.append(request)
        talk = request["messages"]
        last = max(i for i, message in enumerate(talk) if message["role"] == "user")
        answered = sum(message["role"] == "tool" for message in talk[last:])
        call = next_call(talk[last]["content"], answered)
        if request.get("stream"):
            writer.write(_stream(call, len(talk)))
        else:
            whole = completion_bytes(DONE) if call is None else completion_bytes(None, call)
            body = whole.partition(b"\r\n\r\n")[2].replace(b"call_up0", b"call_up%d" % len(talk))
            writer.write(http_answer(body, ("connection", "close")))
        await writer.drain()


def _stream(call: tuple[str, dict[str, str]] | None, length: int) -> bytes:
    if call is None:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": DONE}]
    else:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        listed = {"index": 0, "id": f"call_up{length}", "type": "function", "function": function}
        deltas = [{"role": "assistant", "content": None, "tool_calls": [listed]}]
    chunks = [_chunk(delta, None) for delta in deltas]
    chunks.append(_chunk({}, "stop" if call is None else "tool_calls"))
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return head.encode() + body + b"data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
        "choices": [choice],
    }  # fmt: skip


@pytest.fixture(scope="session")
def parcel_reflex() -> Reflex:
    return learn(parcels.sessions(0, 90, noise=0.02), max_error=0.1)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    upstream = Upstream()
    await upstream.start()
    yield Desk(upstream)
    await upstream.stop()


def learned_through(run: Callable[[str, str], Awaitable[str]]) -> Reflex:
    """A reflex of the agent that `run(url, prompt)` runs: its prompt and tools are those that
    System 2 was sent, over as many tasks as a certificate takes."""

    async def sent() -> dict[str, Any]:
        upstream = Upstream()
        await upstream.start()
        desk = Desk(upstream)
        assert await run(desk.url, ask_for(1)) == DONE
        await upstream.stop()
        assert len(desk.requests) == 4
        return desk.requests[0]

    request = asyncio.run(sent())
    sessions = [_session(request, task) for task in range(10_000, 10_120)]
    return learn(sessions, effects={"find_customer": "read", "get_order": "read"})


def _session(request: dict[str, Any], task: int) -> Session:
    system = [message for message in request["messages"] if message["role"] == "system"]
    user = {"role": "user", "content": ask_for(task)}
    messages: list[dict[str, Any]] = [*system, user]
    for tool in TOOLS:
        call = next_call(user["content"], TOOLS.index(tool))
        assert call is not None
        identity = f"call_{len(messages)}"
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        messages.append(
            {
                "role": "assistant",
                "tool_calls": [{"id": identity, "type": "function", "function": function}],
            }
        )
        result = tool(*call[1].values())
        messages.append({"role": "tool", "tool_call_id": identity, "content": result})
    messages.append({"role": "assistant", "content": DONE})
    return Session(
        f"s{task}",
        f"t{task}",
        tuple(tool_from_chat(tool) for tool in request["tools"]),
        tuple(message_from_chat(message) for message in messages),
        model=MODEL,
    )


def check_history(request: dict[str, Any]) -> list[str]:
    """The ids of the calls in a request to System 2, each with its result right behind it."""
    ids: list[str] = []
    talk = request["messages"]
    for place, message in enumerate(talk):
        for call in message.get("tool_calls") or []:
            ids.append(call["id"])
            assert json.loads(call["function"]["arguments"])
            assert talk[place + 1]["role"] == "tool"
            assert talk[place + 1]["tool_call_id"] == call["id"]
    assert len(set(ids)) == len(ids) == sum(message["role"] == "tool" for message in talk)
    return ids
