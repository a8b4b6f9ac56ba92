"""Servers of one's own are asked for their load where a provider says so; requests go by it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.gateway.config_reading import checked
from reflexarc.gateway.polling import Polling
from reflexarc.steps.errors import ConfigError
from reflexarc.upstream import Timeouts, Transport
from reflexarc.upstream.readings import MAX_BYTES

from .conftest import Running, Starter
from .upstream import completion_bytes


class Server:
    """A model server that says of its load what the test says."""

    def __init__(self) -> None:
        self.said: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        self.url = ""
        self.hangs = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.keys.append(request.headers.get("authorization"))
        if request.method == "POST":
            return web.Response(body=completion_bytes("hi"), content_type="application/json")
        if self.hangs:
            await asyncio.sleep(60)
        if request.path not in self.said:
            return web.Response(status=404)
        return web.Response(body=self.said[request.path])


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    made = [Server(), Server()]
    runners: list[web.AppRunner] = []
    for one in made:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", one.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        host, port = runner.addresses[0][:2]
        one.url = f"http://{host}:{port}/v1"
    yield made
    for runner in runners:
        await runner.cleanup()


async def farm(start: Starter, servers: list[Server], kind: str = "vllm") -> Running:
    provider = ProviderConfig(kind=kind, urls=tuple(one.url for one in servers), metrics=True)
    return await start(
        routes=(Route(upstream="models", mode="off"),),
        pool={
            "provider": {"farm": provider},
            "model": {"agent": ModelConfig(standard=(Served("farm", "m"),))},
        },
    )


def running_now(running: int, waiting: int = 0, queried: int = 0) -> bytes:
    return (
        f'vllm:num_requests_running{{model_name="m"}} {running}\n'
        f'vllm:num_requests_waiting{{model_name="m"}} {waiting}\n'
        f'vllm:prefix_cache_queries_total{{model_name="m"}} {queried}\n'
    ).encode()


async def poll(running: Running) -> None:
    """Once, now."""
    system2 = running.gateway.system2
    clock_s = asyncio.get_running_loop().time
    transport = Transport(Timeouts(), clock_s)
    polling = Polling(system2.fleet, system2.chooser.affinity, transport, running_clock(running))
    try:
        await polling.poll()
    finally:
        await transport.close()


def running_clock(running: Running) -> Any:
    return running.gateway.system2._clock_s  # pyright: ignore[reportPrivateUsage] - the one it has


async def ask(running: Running, words: str) -> str:
    body = {"model": "agent", "messages": [{"role": "user", "content": words}]}
    answer = await running.post("/v1/chat/completions", json.dumps(body).encode(), {})
    assert answer.status == 200
    return {n.decode().lower(): v.decode() for n, v in answer.headers}["x-reflexarc-upstream"]


async def test_a_server_that_others_keep_busy_gets_no_new_sessions(
    start: Starter, servers: list[Server]
) -> None:
    for one in servers:
        one.said["/metrics"] = running_now(0)
    servers[0].said["/metrics"] = running_now(40)
    running = await farm(start, servers)
    await poll(running)
    for number in range(8):
        await ask(running, f"session {number}")
    assert "/v1/chat/completions" not in servers[0].asked
    assert servers[1].asked.count("/v1/chat/completions") == 8


async def test_a_session_stays_until_its_server_has_far_more_to_do(
    start: Starter, servers: list[Server]
) -> None:
    running = await farm(start, servers)
    for load, stays in ((3, True), (40, False)):
        for one in servers:
            one.said["/metrics"] = running_now(0)
        words = f"long session {load}"
        first = await ask(running, words)
        (holds,) = [one for one in servers if first.endswith(one.url[7:-3])]
        holds.said["/metrics"] = running_now(load)
        await poll(running)
        assert (await ask(running, words) == first) == stays


async def test_a_server_that_began_anew_holds_nothing(
    start: Starter, servers: list[Server]
) -> None:
    for one in servers:
        one.said["/metrics"] = running_now(0, queried=1_000)
    running = await farm(start, servers)
    await poll(running)
    await ask(running, "hello")
    affinity = running.gateway.system2.chooser.affinity
    emptied: list[str] = []
    affinity.emptied = lambda name, now_s: emptied.append(name)  # noqa: ARG005 - its form
    await poll(running)
    assert emptied == []
    servers[1].said["/metrics"] = running_now(0, queried=3)
    await poll(running)
    assert emptied == [f"farm/m#{servers[1].url[7:-3]}"]


async def test_slots_of_llama_cpp_that_are_all_taken_are_full(
    start: Starter, servers: list[Server]
) -> None:
    busy = [{"id": at, "is_processing": True} for at in range(2)]
    free = [{"id": at, "is_processing": False} for at in range(2)]
    servers[0].said["/slots"] = json.dumps(busy).encode()
    servers[1].said["/slots"] = json.dumps(free).encode()
    running = await farm(start, servers, kind="llamacpp")
    await poll(running)
    told = running.gateway.system2.fleet.shown(running_clock(running)())
    assert [one["server"]["slots"] for one in told] == [2, 2]
    for number in range(4):
        assert (await ask(running, f"session {number}")).endswith(servers[1].url[7:-3])


async def test_a_server_that_tells_nothing_is_sent_requests_all_the_same(
    start: Starter, servers: list[Server], caplog: pytest.LogCaptureFixture
) -> None:
    running = await farm(start, servers[:1])
    said = {"page": b"<html>hello</html>", "too much": running_now(9) + b"#" * MAX_BYTES}
    for says in ("nothing", "page", "too much", "hangs"):
        if says in said:
            servers[0].said["/metrics"] = said[says]
        servers[0].hangs = says == "hangs"
        caplog.clear()
        await poll(running)
        assert running.gateway.system2.fleet.all()[0].reading is None
        assert "tells nothing of its load" in caplog.text
    assert await ask(running, "hello")


async def test_no_clients_key_is_shown_where_load_is_asked_for(
    start: Starter, servers: list[Server]
) -> None:
    running = await farm(start, servers)
    await poll(running)
    asked = [key for one in servers for key in one.keys]
    assert asked
    assert set(asked) == {None}


def test_a_provider_that_tells_no_load_is_not_asked_for_it() -> None:
    config = GatewayConfig(
        route=(Route(upstream="models", mode="off"),),
        provider={"one": ProviderConfig(kind="groq", key_env="K", metrics=True)},
        model={"agent": ModelConfig(standard=(Served("one", "m"),))},
    )
    with pytest.raises(ConfigError, match="groq tells no load: metrics is for vllm"):
        checked(config, "here")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"urls": ("http://h.internal/v1", "http://h.internal"), "private": True}, "twice"),
        ({"url": "https://h.example/v1", "urls": ("https://i.example/v1",)}, "not both"),
        ({"urls": ("https://h.example/v1", "ftp://i.example")}, r"urls\[1\] must be a URL"),
        ({"urls": ("https://h.example/v1", "http://127.0.0.1/v1")}, r"urls\[1\] leads into a pri"),
        ({"urls": tuple(f"https://h{n}.example" for n in range(65))}, "more than 64"),
        ({"kind": "embedded", "urls": ("http://127.0.0.1/v1",)}, "has no urls"),
    ],
)
def test_replicas_that_cannot_be_meant_are_refused(more: dict[str, Any], said: str) -> None:
    key = {} if "kind" in more else {"key_env": "K"}
    config = GatewayConfig(
        route=(Route(upstream="models", mode="off"),),
        provider={"one": ProviderConfig(**key, **more)},
        model={"agent": ModelConfig(standard=(Served("one", "m"),))},
    )
    with pytest.raises(ConfigError, match=said):
        checked(config, "here")
