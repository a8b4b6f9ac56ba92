"""What the parts of `make accept-gateway` have in common: the returns desk and a reflex learned
from it, configurations, a client that counts."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from reflexarc.bench.desk.record import record, session_of
from reflexarc.reflex import Reflex, learn
from reflexarc.steps import Message, Session

LEARN_TASKS = 60
MAX_ERROR = 0.10


def gateway_config(
    folder: Path, name: str, upstream: str, reflex: Path | None, **route: Any
) -> Path:
    """A configuration file with one route and a state directory of its own."""
    lines = [f'state = "{folder / (name + "-state")}"', "[[route]]", f'upstream = "{upstream}/v1"']
    if reflex is not None:
        lines.append(f'reflex = "{reflex}"')
    for key, value in route.items():
        shown = f'"{value}"' if isinstance(value, str) else str(value)
        lines.append(f"{key} = {shown}")
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def state_of(folder: Path, name: str) -> Path:
    return folder / f"{name}-state"


def desk_sessions(tasks: int = LEARN_TASKS) -> list[Session]:
    recorded = asyncio.run(record([f"accept-{n}" for n in range(tasks)]))
    return [session_of(run) for run in recorded]


def desk_reflex(sessions: Sequence[Session], path: Path) -> Reflex:
    learned = learn(sessions, max_error=MAX_ERROR)
    learned.save(path)
    return learned


class Answered(msgspec.Struct):
    """One answer: when it was complete, its status, decision, body, and what it cost."""

    at_s: float
    status: int
    decision: str
    body: bytes
    cost: str = ""

    @property
    def acted(self) -> bool:
        return self.decision.startswith("live; act")


async def ask(
    client: aiohttp.ClientSession, base: str, body: bytes, headers: Mapping[str, str] | None = None
) -> Answered:
    given = {"content-type": "application/json", **(headers or {})}
    try:
        async with client.post(f"{base}/v1/chat/completions", data=body, headers=given) as answer:
            read = await answer.read()
            decision = answer.headers.get("x-reflexarc-decision", "")
            cost = answer.headers.get("x-reflexarc-cost", "")
            return Answered(time.monotonic(), answer.status, decision, read, cost)
    except (aiohttp.ClientError, OSError) as error:
        return Answered(time.monotonic(), 0, type(error).__name__, b"")


async def load(
    base: str, bodies: Sequence[bytes], rate_per_s: float, for_s: float
) -> list[Answered]:
    """Requests at a steady rate, whatever becomes of those before; every answer."""
    connector = aiohttp.TCPConnector(limit=0)
    tasks: list[asyncio.Task[Answered]] = []
    async with aiohttp.ClientSession(connector=connector) as client:
        began_s = time.monotonic()
        number = 0
        while (now_s := time.monotonic()) < began_s + for_s:
            while number < (now_s - began_s) * rate_per_s:
                tasks.append(asyncio.create_task(ask(client, base, bodies[number % len(bodies)])))
                number += 1
            await asyncio.sleep(0.002)
        return list(await asyncio.gather(*tasks))


def read_requests(
    sessions: Sequence[Session], tools: Sequence[dict[str, Any]], reads: frozenset[str]
) -> list[bytes]:
    """The requests of recorded sessions that were answered by one call of a read."""
    bodies: list[bytes] = []
    for session in sessions:
        for at, message in enumerate(session.messages):
            calls = message.tool_calls
            if message.role == "assistant" and len(calls) == 1 and calls[0].name in reads:
                bodies.append(request_of(session, at, tools))
    return bodies


def request_of(
    session: Session, before: int, tools: Sequence[dict[str, Any]], **more: Any
) -> bytes:
    body = {
        "model": session.model,
        "messages": [chat_of(message) for message in session.messages[:before]],
        "tools": list(tools),
        **more,
    }
    return msgspec.json.encode(body)


def chat_of(message: Message) -> dict[str, Any]:
    """A message as chat JSON."""
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["content"] = message.content or None
        shown["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.raw or msgspec.json.encode(call.arguments).decode(),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    return shown


class _Function(msgspec.Struct):
    name: str


class _Call(msgspec.Struct):
    function: _Function


class _Turn(msgspec.Struct):
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Turn


class _Completion(msgspec.Struct):
    choices: list[_Choice]


def called(answer: bytes) -> list[str]:
    """The tools a completion calls."""
    turns = msgspec.json.decode(answer, type=_Completion).choices
    return [call.function.name for choice in turns for call in choice.message.tool_calls or ()]
