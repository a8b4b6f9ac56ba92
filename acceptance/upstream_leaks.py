"""Lines 1.92 on: 10,000 random requests with random faults, cancels and disconnects through a
gateway in this process, so that its tasks and slots can be counted when they are over."""

import asyncio
import contextlib
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from acceptance.lines import Lines
from acceptance.upstream_world import (
    DIALECTS,
    Rows,
    ask,
    base_of,
    eventually,
    fault_upstreams,
    headers_of,
    make_key,
    provider,
    request_of,
    toml,
)
from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config_reading import config_of
from reflexarc.gateway.serving import listen, server_config
from reflexarc.sim.faulty import FaultyUpstream

REQUESTS = 10_000
AT_ONCE = 50
HANGS_AFTER_S = 15.0
_SEED = 20
_WRITTEN_WITHIN_S = 120.0
"""The recorder leaves the cores to requests; what waits for it is written afterwards."""
_FAULTS = (
    *("error=500", "error=503 retry=0", "error=529", "error=429 retryms=5", "error=401"),
    *("error=400", "html=502", "nohead", "reset=0", "reset=3", "cut=0", "cut=4", "truncate=0"),
    *("truncate=4", "error_first=0", "error_after=4", "error_in_200", "stall=0", "stall=4"),
    *("toolfail", "toolfail unreadable", "nousage", "redirect", "badtype", "gzip", "header=70000"),
    *("slow=40", "slow=400", "pace=4", "long=200 pace=2", "usageonlast", "nodone", "nofinish"),
)
_FAULTY_SHARE, _LEAVING_SHARE = 0.25, 0.2


class _Drawn(deque[str]):
    """Words for each request, drawn as it comes."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__([""])
        self._draw = draw

    def popleft(self) -> str:
        return self._draw.choice(_FAULTS) if self._draw.random() < _FAULTY_SHARE else ""


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-leaks-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


@asynccontextmanager
async def _here(folder: Path, text: str) -> AsyncGenerator[tuple[Gateway, str]]:
    config = folder / "here.toml"
    gateway = Gateway(config_of(text, str(config)), environment={"UPSTREAM_KEY": "theirs"})
    await gateway.start()
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(server_config(gateway))
    serving = asyncio.create_task(server._serve(sockets=[listener]))  # pyright: ignore[reportPrivateUsage] - without its signal handlers
    try:
        yield gateway, f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        await gateway.close()
        listener.close()


def _config(folder: Path, upstreams: list[FaultyUpstream]) -> str:
    limits = {"first_byte_s": 0.3, "idle_s": 0.3, "total_s": 5.0}
    sections: dict[str, Any] = {
        "route": [{"upstream": "models", "mode": "off"}],
        "accounts": {"keys": "required", "max_output_tokens": 300},
        "tier.interactive": {"first_token_s": 0.3, "hedge": True},
        "tier.standard": {"first_token_s": 0.5},
        "tier.batch": {"first_token_s": 0.5},
    }
    served: list[dict[str, Any]] = []
    for at, (faulty, spoken) in enumerate(zip(upstreams, DIALECTS, strict=True)):
        name = f"p{at}"
        url = base_of(faulty, spoken)
        sections[f"provider.{name}"] = provider(
            url, spoken, timeouts=limits, max_parallel=24, kind="groq"
        )
        price = {"input": 1.0 + at, "output": 3.0 + at}
        served.append({"provider": name, "model": "m", "price": price})
    for at in range(len(served)):
        sections[f"model.m{at}"] = {"standard": [*served[at:], *served[:at]]}
    return toml(sections, state=str(folder / "state"))


async def _measured(lines: Lines, folder: Path) -> None:
    draw = random.Random(_SEED)
    keys = [
        make_key(folder, f"k{at}", *budgets)
        for at, budgets in enumerate(
            (("1000usd",), ("1000usd/day", "session=500usd"), ("tier:batch=500usd", "1000usd"),
             ("0.05usd",), ())
        )
    ]  # fmt: skip
    async with fault_upstreams(len(DIALECTS)) as upstreams:
        for faulty in upstreams:
            faulty.script = _Drawn(draw)
        async with _here(folder, _config(folder, upstreams)) as (gateway, base):
            rows = Rows(folder)
            before = _tasks()
            began_s = time.monotonic()
            seen = await _storm(lines, draw, base, [secret for _, secret in keys])
            took_s = time.monotonic() - began_s
            await eventually(lambda: not rows.reserved() and not _busy(gateway), 10.0)
            await eventually(lambda: _tasks() <= before, 10.0)
            await eventually(lambda: _written(rows), _WRITTEN_WITHIN_S)
            lines.say(f"      all is written {time.monotonic() - began_s - took_s:.0f} s later")
            _judge(lines, gateway, rows, upstreams, seen, _tasks() - before, took_s)


async def _storm(lines: Lines, draw: random.Random, base: str, secrets: list[str]) -> Counter[str]:
    """What the clients saw: statuses, `left`, `hung`, `unreadable`."""
    seen: Counter[str] = Counter()
    numbers = iter(range(REQUESTS))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one_after_another() -> None:
            for number in numbers:
                try:
                    async with asyncio.timeout(HANGS_AFTER_S):
                        seen[await _one(draw, session, base, secrets)] += 1
                except TimeoutError:
                    seen["hung"] += 1
                if number % 1000 == 999:
                    lines.say(f"      {number + 1} of {REQUESTS}: {dict(seen.most_common(6))}")

        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return seen


async def _one(
    draw: random.Random, session: aiohttp.ClientSession, base: str, secrets: list[str]
) -> str:
    client, stream = draw.choice(DIALECTS), draw.random() < 0.6
    words = f"hello, {draw.getrandbits(40):x}"
    path, body = request_of(client, f"m{draw.randrange(len(DIALECTS))}", words, stream=stream)
    headers = headers_of(client, draw.choice(secrets)) | {
        "x-reflexarc-tier": draw.choice(("interactive", "standard", "batch")),
        "x-reflexarc-session": f"s{draw.randrange(40)}",
    }
    leaves_s = draw.uniform(0, 0.08) if draw.random() < _LEAVING_SHARE else None
    asking = asyncio.create_task(ask(session, base, client, path, body, headers, stream=stream))
    if leaves_s is not None:
        await asyncio.wait({asking}, timeout=leaves_s)
        if not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return "left"
    with contextlib.suppress(aiohttp.ClientError):
        answered = await asking
        if answered.fault:
            return f"unreadable: {answered.fault}"
        return "internal" if b'"internal"' in answered.body else str(answered.status)
    return "broken"


def _written(rows: Rows) -> bool:
    """Whether the store has every attempt that the book has."""
    stored = rows.store("select count(*) from attempts")
    return stored == rows.book("select count(*) from charges")


def _tasks() -> int:
    """Those of the gateway and of the server before it."""
    ours = ("/reflexarc/gateway/", "/reflexarc/upstream/", "/reflexarc/accounts/", "/uvicorn/")
    found = 0
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "cr_code", None)
        found += code is not None and any(part in code.co_filename for part in ours)
    return found


def _busy(gateway: Gateway) -> int:
    shown = gateway.system2.fleet.shown(time.perf_counter())
    return sum(one["busy"] + sum(one["waiting"].values()) for one in shown)


def _judge(
    lines: Lines,
    gateway: Gateway,
    rows: Rows,
    upstreams: list[FaultyUpstream],
    seen: Counter[str],
    tasks: int,
    took_s: float,
) -> None:
    asked = sum(len(one.received) for one in upstreams)
    odd = [name for name in seen if not name.isdigit() and name != "left"]
    lines.add(
        "1.92", f"{REQUESTS:,} random requests, {AT_ONCE} at once, a quarter of attempts faulty",
        "each is answered as its dialect says it, or its client left",
        f"{', '.join(f'{count} {name}' for name, count in seen.most_common())}; {asked} attempts "
        f"reached an upstream; {took_s:.0f} s; odd: {odd or 'none'}",
        not odd and sum(seen.values()) == REQUESTS and seen["left"] > REQUESTS / 50,
    )  # fmt: skip
    reserved = rows.reserved()
    lines.add("1.93", "kept back of budgets afterwards", "0 micro-dollars", f"{reserved}",
              not reserved)  # fmt: skip
    spent = rows.book(
        "select t.key, t.micro_usd, (select coalesce(sum(micro_usd), 0) from charges c"
        " where c.key = t.key) from tallies t where scope = 'key' and window = ''"
    )
    [(total, count)] = rows.book("select sum(micro_usd), count(*) from charges")
    differ = [row for row in spent if row[1] != row[2]]
    lines.add(
        "1.94", "spent of each key's budget is the sum of its charges", "no key differs",
        f"{len(differ)} of {len(spent)} differ; {count} charges, {total} µ$",
        not differ and len(spent) >= 4,
    )  # fmt: skip
    twice = rows.book(
        "select count(*) from (select 1 from charges group by gateway, number"
        " having sum(outcome in ('answered', 'repaired')) > 1)"
    )[0][0]
    [(stored, attempts)] = rows.store("select sum(micro_usd), count(*) from attempts")
    lines.add(
        "1.95", "requests charged for two answers; the store's attempts beside the book's charges",
        "0; the same", f"{twice}; {attempts} of {stored} µ$",
        not twice and (stored, attempts) == (total, count),
    )  # fmt: skip
    small = rows.book(
        "select coalesce(max(micro_usd), 0) from tallies where scope = 'key' and window = ''"
        " and key = (select id from keys where name = 'k3')"
    )[0][0]
    lines.add("1.96", "a budget of 50,000 µ$ is never overspent", "<= 50000", f"{small}",
              small <= 50_000)  # fmt: skip
    busy, at_work = _busy(gateway), sum(one.at_work for one in upstreams)
    lines.add(
        "1.97", "slots held, tasks left in the gateway, requests still at work upstream",
        "0, 0, 0", f"{busy}, {tasks}, {at_work}", not busy and tasks <= 0 and not at_work,
    )  # fmt: skip
