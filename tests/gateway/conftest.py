"""A scripted upstream, a gateway and a learned reflex: real servers, ports and processes."""

import asyncio
import io
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import uvicorn

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config import GatewayConfig, Limits, Route
from reflexarc.gateway.config_reading import checked
from reflexarc.gateway.serving import listen, server_config
from reflexarc.gateway.system1 import System1Limits
from reflexarc.reflex import learn
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.steps import Message, Session, ToolCall, ToolSpec
from reflexarc.upstream import Timeouts

from .upstream import MODEL, Upstream, completion_bytes, http_answer

HERE = Path(__file__).parent

# --- the agent that reflexes of these tests were learned from ---------------------------------


def _tool(name: str, description: str, argument: str, effect: Any) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema, effect=effect)


TOOLS = (
    _tool("find_customer", "Find a customer by email.", "email", "read"),
    _tool("get_order", "Read an order.", "order_id", "read"),
    _tool("refund_order", "Refund an order.", "order_id", "write"),
)


def desk_session(number: int) -> Session:
    """One task, always done the same way; ids and addresses differ."""
    draw = random.Random(number)
    email = f"user{draw.randrange(10**6)}@example.com"
    order = f"W{draw.randrange(10**7):07d}"
    messages = [
        Message("system", "You help with orders."),
        Message("user", f"Please refund the order of {email}"),
    ]

    def call(name: str, arguments: dict[str, str], result: str) -> None:
        identity = f"call_{len(messages)}"
        text = msgspec.json.encode(arguments).decode()
        messages.append(
            Message("assistant", tool_calls=(ToolCall(identity, name, arguments, text),))
        )
        messages.append(Message("tool", result, tool_call_id=identity))

    call("find_customer", {"email": email}, json.dumps({"customer": number, "order_id": order}))
    call("get_order", {"order_id": order}, json.dumps({"order_id": order, "status": "delivered"}))
    call("refund_order", {"order_id": order}, json.dumps({"ok": True}))
    messages.append(Message("assistant", "Done: the order is refunded."))
    return Session(f"s{number}", f"t{number}", TOOLS, tuple(messages), model=MODEL)


def chat_tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def chat_message(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["content"] = None
        shown["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.raw}}
            for c in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    return shown


class Desk:
    """Requests of that agent. `request(3, 4)` is task 3 as it stands after four messages: a read
    call comes next; after six, a write."""

    model = MODEL
    tools = tuple(chat_tool(tool) for tool in TOOLS)

    def request(self, task: int = 5000, messages: int = 4, **more: Any) -> dict[str, Any]:
        session = desk_session(task)
        return {
            "model": MODEL,
            "messages": [chat_message(m) for m in session.messages[:messages]],
            "tools": list(self.tools),
            **more,
        }

    def next_call(self, task: int = 5000, messages: int = 4) -> ToolCall:
        return desk_session(task).messages[messages].tool_calls[0]


@pytest.fixture(scope="session")
def desk() -> Desk:
    return Desk()


@pytest.fixture(scope="session")
def reflex_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reflex really learned, certified at 5% for its reads."""
    path = tmp_path_factory.mktemp("reflex") / "desk.reflex"
    learn([desk_session(number) for number in range(120)]).save(path)
    return path


@pytest.fixture
def http() -> Any:
    """Builders of raw upstream answers."""

    class Http:
        answer = staticmethod(http_answer)
        completion = staticmethod(completion_bytes)

    return Http


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    running = Upstream()
    await running.start()
    yield running
    await running.stop()


# --- the gateway -------------------------------------------------------------------------------


class Running:
    """A gateway that serves, and a client of it that changes nothing on the way."""

    def __init__(
        self, gateway: Gateway, base: str, client: aiohttp.ClientSession, server: uvicorn.Server
    ) -> None:
        self.gateway = gateway
        self.server = server
        self.base = base
        self.client = client

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> "Response":
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json", **(headers or {})}
        async with self.client.post(
            self.base + path, data=io.BytesIO(data), headers=given
        ) as answer:
            return Response(answer.status, list(answer.raw_headers), await answer.read())

    async def get(self, path: str, headers: dict[str, str] | None = None) -> "Response":
        async with self.client.get(self.base + path, headers=headers) as answer:
            return Response(answer.status, list(answer.raw_headers), await answer.read())

    async def chat(self, body: Any, headers: dict[str, str] | None = None) -> "Response":
        return await self.post("/v1/chat/completions", body, headers)

    async def metrics(self) -> dict[str, float]:
        text = (await self.get("/metrics")).body.decode()
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    async def eventually(self, wanted: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """Counters once they are as wanted; comparisons are counted after the answer."""
        found: dict[str, float] = {}
        for _ in range(200):
            found = await self.metrics()
            if wanted(found):
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"the counters never came to be as wanted: {found}")


class Response(msgspec.Struct):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode()
        return next((v.decode() for k, v in self.headers if k.lower() == wanted), None)

    @property
    def decision(self) -> str:
        return self.header("x-reflexarc-decision") or ""


Starter = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Starter]:
    """Starts gateways; `loader` names a function of `misbehaving.py`."""
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    stops: list[Callable[[], Awaitable[None]]] = []

    async def starting(
        *,
        loader: str | None = None,
        environment: dict[str, str] | None = None,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        system1: System1Limits | None = None,
        max_consecutive_acts: int = 20,
        grace_s: float = 10.0,
        routes: tuple[Route, ...] = (),
        pool: dict[str, Any] | None = None,
        **route: Any,
    ) -> Running:
        route = {"upstream": upstream.url, "deadline_ms": 2000.0, "audit": 0.0, **route}
        if loader is not None:
            route.setdefault("reflex", "not-a-file")
        config = GatewayConfig(
            route=routes or (Route(**route),),
            port=0,
            limits=limits or Limits(),
            timeouts=timeouts or Timeouts(),
            system1=system1 or System1Limits(),
            max_consecutive_acts=max_consecutive_acts,
            grace_s=grace_s,
            state=os.environ["REFLEXARC_STATE"],
            **(pool or {}),
        )
        gateway = Gateway(
            checked(config, "test"),
            environment=environment or {},
            loader=f"misbehaving:{loader}" if loader else None,
        )
        await gateway.start()
        listener = listen("127.0.0.1", 0)
        server = uvicorn.Server(server_config(gateway))
        server.install_signal_handlers = lambda: None  # type: ignore[method-assign]
        serving = asyncio.create_task(server._serve(sockets=[listener]))
        client = aiohttp.ClientSession(auto_decompress=False)
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"

        async def stop() -> None:
            await client.close()
            server.should_exit = True
            await serving
            await gateway.close()
            listener.close()

        stops.append(stop)
        return Running(gateway, base, client, server)

    yield starting
    for stop in stops:
        await stop()


@pytest.fixture
async def two() -> AsyncIterator[tuple[FaultyUpstream, FaultyUpstream]]:
    first, second = FaultyUpstream(key="one"), FaultyUpstream(key="two")
    await first.start()
    await second.start()
    yield first, second
    await first.stop()
    await second.stop()


@pytest.fixture
async def faulty() -> AsyncIterator[FaultyUpstream]:
    """One that takes any key."""
    running = FaultyUpstream()
    await running.start()
    yield running
    await running.stop()
