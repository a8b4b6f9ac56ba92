"""Who may be asked at this moment: after a wait too, and by whose key."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.sim.faulty import FaultyUpstream

from .conftest import Starter
from .pools import CHEAP, DEAR, Two, asked, base_of, pool_of, pooled


async def test_who_waited_for_a_slot_is_not_sent_to_one_that_asked_for_a_pause_meanwhile(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two, pool=pool_of(two, max_parallel=1))
    fleet = running.gateway.system2.fleet
    first, second = fleet.of("a/faulty-1"), fleet.of("b/faulty-2")
    for one in (first, second):
        await one.slots.take("standard")
    waiting = asyncio.create_task(asked(running, "chat", stream=False))
    async with asyncio.timeout(10):
        while not first.slots.waiting("standard"):
            await asyncio.sleep(0.01)
    first.circuit.cool(time.perf_counter(), 60)
    first.slots.give("standard")
    second.slots.give("standard")
    status, headers, _ = await waiting
    assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
    assert not two[0].received
    assert (first.slots.busy, second.slots.busy) == (0, 0)


@pytest.fixture
async def anyones(two: Two) -> AsyncIterator[Two]:
    """The first takes any key."""
    first = FaultyUpstream()
    await first.start()
    yield first, two[1]
    await first.stop()


def passing(two: Two) -> dict[str, Any]:
    """The first takes the client's own key, the second has one."""
    pool = pool_of(two)
    pool["provider"]["a"] = ProviderConfig(
        url=base_of(two[0], "chat"), dialect="chat", private=True
    )
    return pool


def of(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_a_pause_for_one_clients_key_is_no_other_clients(
    start: Starter, anyones: Two
) -> None:
    running = await pooled(start, anyones, pool=passing(anyones))
    anyones[0].script.append("error=429 retry=60")
    for _ in range(2):
        _, headers, _ = await asked(running, "chat", stream=False, headers=of("busy"))
        assert headers["x-reflexarc-upstream"] == "b/faulty-2"
    assert len(anyones[0].received) == 1
    _, headers, _ = await asked(running, "chat", stream=False, headers=of("another"))
    assert headers["x-reflexarc-upstream"] == "a/faulty-1"
    anyones[1].usual = "error=429 retry=90"
    await asked(running, "chat", stream=False, headers=of("busy"))
    status, headers, _ = await asked(running, "chat", stream=False, headers=of("busy"))
    assert status == 503
    assert 50 < int(headers["retry-after"]) <= 60


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_keys_that_are_refused_close_nothing_to_those_that_are_not(
    start: Starter, anyones: Two, status: int
) -> None:
    running = await pooled(start, anyones, pool=passing(anyones))
    anyones[0].script.extend([f"error={status}"] * 6)
    for number in range(6):
        await asked(running, "chat", stream=False, headers=of(f"wrong-{number}"))
    assert len(anyones[0].received) == 6
    _, headers, _ = await asked(running, "chat", stream=False, headers=of("right"))
    assert headers["x-reflexarc-upstream"] == "a/faulty-1"


async def test_one_that_cannot_be_asked_such_a_thing_is_no_attempt(
    start: Starter, two: Two
) -> None:
    pool = pool_of(two, ("gemini", "chat"))
    unfit = tuple(Served("a", f"no/../name/{at}", price=CHEAP) for at in range(3))
    served = (*unfit, Served("b", "faulty-2", price=DEAR))
    pool["model"] = {"agent": ModelConfig(standard=served)}
    running = await pooled(start, two, pool=pool)
    status, headers, _ = await asked(running, "chat", stream=False)
    assert (status, headers["x-reflexarc-attempts"]) == (200, "1")
    two[1].script.append("error=429 retry=30")
    assert (await asked(running, "chat", stream=False))[0] == 429
    status, headers, _ = await asked(running, "chat", stream=False)
    assert status == 503  # another could have been asked, and can be again
    assert int(headers["retry-after"]) >= 1
