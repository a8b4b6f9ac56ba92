"""Lines 3.1 on: two deployments of which one turns slow, and a local one, behind a real gateway.

Interactive clients stream all the time; a pile of batch requests comes when the slow time begins;
some requests must not leave. Three times of some seconds: both fast, one slow, both fast again.
"""

import asyncio
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from acceptance.lines import Lines
from acceptance.processes import Process
from acceptance.upstream_world import (
    CHEAP,
    DEAR,
    admin_state,
    ask,
    eventually,
    fault_upstreams,
    gateway,
    headers_of,
    provider,
    request_of,
)
from reflexarc.sim.faulty import FaultyUpstream

TARGET_MS = 800.0
FAST, SLOW = "slow=60 pace=4", "slow=2500 pace=4"
CLIENTS, BATCH = 6, 60
FIRST_S, SLOW_S = 6.0, 12.0
_STAYS = "this must stay at home"
_SECTIONS: dict[str, Any] = {
    "route": [{"upstream": "models", "mode": "off", "record": "none"}],
    "tier.interactive": {"first_token_ms": TARGET_MS, "token_ms": 100.0, "first_token_s": 20.0},
}


class Tally(msgspec.Struct):
    """What one kind of traffic saw in one time: first tokens in ms, who answered, statuses."""

    first_ms: list[float] = []
    answered_by: Counter[str] = msgspec.field(default_factory=Counter[str])
    statuses: Counter[int] = msgspec.field(default_factory=Counter[int])

    @property
    def p95_ms(self) -> float:
        return statistics.quantiles(self.first_ms, n=20)[18] if len(self.first_ms) > 20 else 1e9

    def shares(self) -> str:
        whole = max(1, self.answered_by.total())
        each = (f"{name} {count / whole:.0%}" for name, count in self.answered_by.most_common())
        return ", ".join(each)


class Load:
    """All clients of one run."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        self.now = ""
        self.interactive: dict[str, Tally] = {}
        self.home = Tally()
        self.batch_s: list[float] = []
        self.batch = Tally()
        self._stop = asyncio.Event()

    async def interact(self) -> None:
        """One after the other, a moment between, until told to stop."""
        while not self._stop.is_set():
            when = self.now
            tally = self.interactive.setdefault(when, Tally())
            await self._one(tally, "hello", stream=True)
            await asyncio.sleep(0.03)

    async def stay(self) -> None:
        while not self._stop.is_set():
            await self._one(self.home, _STAYS, stream=False, x_reflexarc_local="only")
            await asyncio.sleep(0.1)

    async def leave_batch(self) -> None:
        began_s = time.monotonic()
        await self._one(self.batch, "batch", stream=False, x_reflexarc_tier="batch")
        self.batch_s.append(time.monotonic() - began_s)

    async def stay_once(self) -> int:
        tally = Tally()
        await self._one(tally, _STAYS, stream=False, x_reflexarc_local="only")
        return next(iter(tally.statuses))

    def stop(self) -> None:
        self._stop.set()

    async def _one(self, tally: Tally, words: str, *, stream: bool, **more: str) -> None:
        path, body = request_of("chat", "agent", words, stream=stream)
        headers = headers_of("chat", "", **more)
        answer = await ask(self._session, self._base, "chat", path, body, headers, stream=stream)
        tally.statuses[answer.status] += 1
        tally.first_ms.append(answer.first_s * 1e3)
        tally.answered_by[answer.headers.get("x-reflexarc-upstream", "nobody").split("/")[0]] += 1


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-placement-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


async def _measured(lines: Lines, folder: Path) -> None:
    async with fault_upstreams(3) as (near, far, home):
        for one in (near, far, home):
            one.usual = FAST
        local = provider(home.url, kind="vllm", max_parallel=2)
        sections = {
            **_SECTIONS,
            "provider.near": provider(near.url, max_parallel=CLIENTS),
            "provider.far": provider(far.url, max_parallel=CLIENTS),
            "provider.home": {k: v for k, v in local.items() if k != "private"},
            "model.agent": {
                "interactive": [_served("near", CHEAP), _served("far", DEAR)],
                "batch": [_served("near", CHEAP), _served("far", DEAR)],
                "standard": [_served("home", DEAR)],
            },
        }
        async with gateway(folder, sections) as running, aiohttp.ClientSession() as session:
            await _times(lines, running, Load(session, running.base), near, far, home)


def _served(name: str, price: dict[str, float]) -> dict[str, Any]:
    return {"provider": name, "model": "faulty-1", "price": price}


async def _times(
    lines: Lines,
    running: Process,
    load: Load,
    near: FaultyUpstream,
    far: FaultyUpstream,
    home: FaultyUpstream,
) -> None:
    load.now = "fast"
    clients = [asyncio.create_task(load.interact()) for _ in range(CLIENTS)]
    clients += [asyncio.create_task(load.stay()) for _ in range(2)]
    await asyncio.sleep(FIRST_S)
    lines.say(f"   near turns slow, {BATCH} batch requests come")
    near.usual, load.now = SLOW, "slow"
    batch = [asyncio.create_task(load.leave_batch()) for _ in range(BATCH)]
    await asyncio.sleep(SLOW_S)
    drained = len(load.batch_s)
    waiting = await asyncio.to_thread(_waiting, running)
    lines.say(f"   near is fast again; {drained} of {BATCH} batch requests are answered")
    near.usual, load.now = FAST, "again"
    await asyncio.sleep(FIRST_S)
    load.stop()
    await asyncio.gather(*clients)
    await asyncio.wait_for(asyncio.gather(*batch), 60)
    _interactive(lines, load)
    _batch(lines, load, drained, waiting)
    empty = await eventually(lambda: _waiting(running) == 0)
    lines.add(
        "3.5", "afterwards: batch requests that still wait", "0", str(_waiting(running)), empty
    )
    await _home(lines, load, near, far, home)


def _interactive(lines: Lines, load: Load) -> None:
    fast, slow = load.interactive["fast"], load.interactive["slow"]
    lines.at_most(
        "3.1", f"interactive, both fast ({fast.shares()}): p95 of the first token",
        round(fast.p95_ms, 1), TARGET_MS, " ms",
    )  # fmt: skip
    lines.at_most(
        "3.2",
        f"interactive, near slow for {SLOW_S:g} s, {BATCH} batch requests beside "
        f"({slow.shares()}): p95 of the first token",
        round(slow.p95_ms, 1),
        TARGET_MS,
        " ms",
    )
    statuses = sum((tally.statuses for tally in load.interactive.values()), Counter[int]())
    lines.add(
        "3.3", "interactive requests answered", "all", f"{statuses[200]} of {statuses.total()}",
        set(statuses) == {200},
    )  # fmt: skip


def _batch(lines: Lines, load: Load, drained: int, waiting: int) -> None:
    slow = load.interactive["slow"]
    typical_s = statistics.median(load.batch_s)
    times = typical_s * 1e3 / max(1.0, statistics.median(slow.first_ms))
    lines.add(
        "3.4",
        "batch starves while one is slow, and then drains",
        "some wait at the end of the slow time; all are answered",
        f"{drained} answered and {waiting} waiting at its end; {load.batch.statuses[200]} of "
        f"{BATCH} answered; it took {typical_s:.1f} s (median), {times:.0f} times an interactive "
        "first token",
        waiting > 0 and drained < BATCH and load.batch.statuses == {200: BATCH},
    )


async def _home(
    lines: Lines, load: Load, near: FaultyUpstream, far: FaultyUpstream, home: FaultyUpstream
) -> None:
    home.usual = "error=503"
    status = await load.stay_once()
    left = sum(_STAYS.encode() in one.body for one in (*near.received, *far.received))
    stayed = sum(_STAYS.encode() in one.body for one in home.received)
    lines.add(
        "3.6",
        "requests that must not leave: seen by those that are not local; status where home fails",
        "0; an error",
        f"{left} of {stayed}; {status}",
        left == 0 and stayed > 20 and status >= 500 and set(load.home.statuses) == {200},
    )


def _waiting(running: Process) -> int:
    told = admin_state(running.base)
    return sum(one["waiting"]["batch"] for one in told["deployments"])
