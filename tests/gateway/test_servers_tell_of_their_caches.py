"""Events of vLLM's prefix cache reach what a gateway believes to be held there."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from reflexarc.gateway.cache_events import CacheEvents, Numbers
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.gateway.config_reading import checked
from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.affinity import Affinity, Prefix
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import Fleet

PROMPT = Prefix.of([b"system", b"hello"], 1)


def fleet_at(endpoint: str) -> Fleet:
    deployment = Deployment(
        provider="p", kind="vllm", base="http://h", dialects=("chat",), model="m",
        kv_events=endpoint,
    )  # fmt: skip
    fleet = Fleet()
    fleet.adopt([deployment])
    return fleet


def told(*events: Any) -> bytes:
    return msgspec.msgpack.encode([1.0, list(events)])


@pytest.fixture
def zmq() -> Any:
    pytest.importorskip("zmq.asyncio", reason="pyzmq is not installed")
    return pytest.importorskip("zmq")


@pytest.fixture
async def publisher(zmq: Any) -> AsyncIterator[Any]:
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.XPUB)
    socket.bind_to_random_port("tcp://127.0.0.1")
    yield socket
    context.destroy(linger=0)


@pytest.fixture
def clock() -> list[float]:
    """What time it is, as the test says."""
    return [10.0]


async def test_what_a_server_evicted_is_not_taken_for_held(
    zmq: Any, publisher: Any, clock: list[float]
) -> None:
    affinity = Affinity()
    endpoint = publisher.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0")
    listening = CacheEvents(fleet_at(endpoint), affinity, lambda: clock[0])
    listening.start()
    number = 0

    async def tells(*frames: bytes) -> None:
        nonlocal number
        number += 1
        await publisher.send_multipart(
            list(frames) if len(frames) > 1 else [b"", number.to_bytes(8, "big"), *frames]
        )

    def holds() -> bool:
        return bool(affinity.held("t", PROMPT, ("p/m",), clock[0]))

    async def until(wanted: bool) -> None:
        async with asyncio.timeout(20):
            while holds() != wanted:
                await asyncio.sleep(0.01)

    try:
        async with asyncio.timeout(20):
            await publisher.recv()  # it is subscribed to
        affinity.answered("t", PROMPT, "p/m", 100, 0, 0, 9.0)
        await tells(b"no batch")
        await tells(b"two", b"frames")
        await tells(
            told(["BlockStored", [7], None, [1] * 16, 16, None])
        )  # at 10: after it was read
        await tells(told(["BlockRemoved", [7]]))
        await until(False)
        affinity.answered("t", PROMPT, "p/m", 100, 0, 0, 11.0)
        assert holds()
        clock[0] = 20.0
        await tells(told(["AllBlocksCleared"]))
        await until(False)
        affinity.answered("t", PROMPT, "p/m", 100, 0, 0, 21.0)
        clock[0] = 30.0
        number = 0  # another process
        await tells(told(["BlockStored", [8], None, [1] * 16, 16, None]))
        await until(False)
    finally:
        await listening.close()


async def test_nothing_is_listened_to_where_nothing_is_told() -> None:
    listening = CacheEvents(fleet_at(""), Affinity(), lambda: 0.0)
    listening.start()
    await listening.close()


def test_without_the_library_a_gateway_that_should_listen_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    monkeypatch.setitem(sys.modules, "zmq.asyncio", None)
    with pytest.raises(ConfigError, match="pip install pyzmq"):
        CacheEvents(fleet_at("tcp://127.0.0.1:1"), Affinity(), lambda: 0.0)


def test_numbers_that_begin_anew_are_another_processs() -> None:
    numbers = Numbers()
    told = [numbers.began_anew(number.to_bytes(8, "big")) for number in (5, 6, 9, 0, 1, 1)]
    assert told == [False, False, False, True, False, False]
    assert not numbers.began_anew(b"x")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kind": "groq", "key_env": "K", "kv_events": ("tcp://h:1",)}, "is for vllm"),
        ({"kind": "vllm", "kv_events": ("tcp://h:1", "tcp://h:2")}, "one endpoint for each url"),
        ({"kind": "vllm", "kv_events": ("ipc:///tmp/x",)}, "is no endpoint such as tcp"),
        ({"kind": "vllm", "kv_events": ("tcp://h",)}, "is no endpoint such as tcp"),
    ],
)
def test_endpoints_that_cannot_be_meant_are_refused(more: dict[str, Any], said: str) -> None:
    config = GatewayConfig(
        route=(Route(upstream="models", mode="off"),),
        provider={"one": ProviderConfig(**more)},
        model={"agent": ModelConfig(standard=(Served("one", "m"),))},
    )
    with pytest.raises(ConfigError, match=said):
        checked(config, "here")
