"""The embedded engine as a deployment: tenants and sessions are told by the gateway alone."""

from collections.abc import AsyncIterator

import pytest

from reflexarc.gateway.config import Route
from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.sim.faulty import FaultyUpstream

from .conftest import Running, Starter

BODY = b'{"messages": [{"role": "user", "content": "hi"}], "model": "agent"}'
TENANT, SESSION = "x-reflexarc-tenant", "x-reflexarc-session"


@pytest.fixture
async def engine() -> AsyncIterator[FaultyUpstream]:
    faulty = FaultyUpstream()
    await faulty.start()
    yield faulty
    await faulty.stop()


@pytest.fixture
async def running(start: Starter, engine: FaultyUpstream) -> Running:
    provider = ProviderConfig(kind="embedded", url=engine.url, private=True)
    return await start(
        routes=(Route(upstream="models", mode="off"),),
        pool={
            "provider": {"here": provider},
            "model": {"agent": ModelConfig(standard=(Served("here", "any"),))},
        },
    )


async def told(running: Running, engine: FaultyUpstream, **headers: str) -> tuple[str, str]:
    """Tenant and session, as the engine is told them."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await running.post("/v1/chat/completions", BODY, given)
    assert answer.status == 200
    names = [(name.lower(), value) for name, value in engine.received[-1].headers.items()]
    (tenant,) = [value for name, value in names if name == TENANT]
    (session,) = [value for name, value in names if name == SESSION]
    return tenant, session


async def test_each_key_is_a_tenant_of_its_own(running: Running, engine: FaultyUpstream) -> None:
    one = await told(running, engine, authorization="Bearer a", x_reflexarc_session="s")
    other = await told(running, engine, authorization="Bearer b", x_reflexarc_session="s")
    again = await told(running, engine, authorization="Bearer a", x_reflexarc_session="s")
    assert one == again
    assert one[0] != other[0]
    assert one[1] != other[1]


async def test_a_client_cannot_say_that_it_is_another(
    running: Running, engine: FaultyUpstream
) -> None:
    honest = await told(running, engine, authorization="Bearer a", x_reflexarc_session="s")
    posing = await told(
        running,
        engine,
        authorization="Bearer b",
        x_reflexarc_session=honest[1],
        x_reflexarc_tenant=honest[0],
    )
    assert posing[0] != honest[0]
    assert posing[1] != honest[1]


async def test_sessions_are_told_apart(running: Running, engine: FaultyUpstream) -> None:
    found = {
        (await told(running, engine, authorization="Bearer a", x_reflexarc_session=name))[1]
        for name in ("s", "t", "s")
    }
    assert len(found) == 2
