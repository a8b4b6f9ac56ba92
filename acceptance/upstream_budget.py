"""Lines 4.1 on: budgets admit just what they cover, and a client that leaves ends what it asked."""

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from acceptance.lines import Lines
from acceptance.upstream_world import (
    CHEAP,
    DIALECTS,
    Rows,
    base_of,
    eventually,
    fault_upstreams,
    gateway,
    headers_of,
    make_key,
    provider,
    request_of,
)
from reflexarc.sim.faulty import FaultyUpstream
from reflexarc.upstream.ratios import Ratios
from reflexarc.wire.price import Price

AT_ONCE = 200
COVERED = 50
GONE_S = 1.0
_MAX_TOKENS = 100
_HOLD = "slow=2500"
"""Long enough that all have come before the first is settled."""


class _Case(msgspec.Struct, frozen=True):
    what: str
    scope: str
    gateways: int = 1
    headers: tuple[tuple[str, str], ...] = ()


_CASES = (
    _Case("a key's budget", ""),
    _Case("a session's budget", "session=", headers=(("x-reflexarc-session", "one"),)),
    _Case("a tier's budget", "tier:batch=", headers=(("x-reflexarc-tier", "batch"),)),
    _Case("a key's budget, two gateways on one state directory", "", gateways=2),
)


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-budget-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


async def _measured(lines: Lines, folder: Path) -> None:
    for number, case in enumerate(_CASES, 1):
        (folder / str(number)).mkdir()
        async with fault_upstreams(1) as (faulty,):
            faulty.usual = _HOLD
            await _budget(lines, f"4.{number}", case, folder / str(number), faulty)
    (folder / "gone").mkdir()
    async with fault_upstreams(len(DIALECTS)) as running:
        await _leaving(lines, folder / "gone", running)


def _sections(*spoken: tuple[str, FaultyUpstream]) -> dict[str, Any]:
    sections: dict[str, Any] = {
        "route": [{"upstream": "models", "mode": "off"}],
        "accounts": {"keys": "required"},
    }
    for name, faulty in spoken:
        sections[f"provider.{name}"] = provider(base_of(faulty, name), name)
        served = {"provider": name, "model": "faulty-1", "price": CHEAP}
        sections[f"model.over-{name}"] = {"standard": [served]}
    return sections


async def _budget(
    lines: Lines, identity: str, case: _Case, folder: Path, faulty: FaultyUpstream
) -> None:
    path, body = request_of("chat", "over-chat", "hello", stream=False, max_tokens=_MAX_TOKENS)
    price = Price(Decimal(str(CHEAP["input"])), Decimal(str(CHEAP["output"])))
    size = len(json.dumps(body).encode())
    most = price.most_micro_usd(Ratios().tokens("chat", size), _MAX_TOKENS)
    budget = f"{case.scope}{(COVERED * most + most // 2) / 1e6:.6f}usd"
    _, secret = make_key(folder, "k", budget)
    statuses: Counter[int] = Counter()
    began_s = time.monotonic()
    bases: list[str] = []
    connections = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(connector=connections) as session,
        gateway(folder, _sections(("chat", faulty))) as first,
    ):
        bases.append(first.base)
        if case.gateways == 1:
            statuses = await _at_once(session, bases, path, body, case, secret)
        else:
            async with gateway(folder, _sections(("chat", faulty)), "second") as second:
                bases.append(second.base)
                statuses = await _at_once(session, bases, path, body, case, secret)
        rows = Rows(folder)
        settled = await eventually(lambda: rows.reserved() == 0)
    seen = len(faulty.received)
    spent = rows.book("select count(*), coalesce(sum(micro_usd), 0) from charges")[0]
    lines.add(
        identity,
        f"{case.what}: of {AT_ONCE} at once",
        f"{COVERED} admitted and sent, the rest 402; nothing kept back, each charged once",
        f"{statuses[200]} admitted, {seen} sent, {statuses[402]} refused; {rows.reserved()} kept "
        f"back, {spent[0]} charges of {spent[1]} micro-dollars; {time.monotonic() - began_s:.1f} s",
        statuses == {200: COVERED, 402: AT_ONCE - COVERED}
        and seen == COVERED
        and settled
        and spent[0] == COVERED,
    )


async def _at_once(
    session: aiohttp.ClientSession,
    bases: Sequence[str],
    path: str,
    body: dict[str, Any],
    case: _Case,
    secret: str,
) -> Counter[int]:
    headers = {**headers_of("chat", secret), **dict(case.headers)}

    async def one(number: int) -> int:
        base = bases[number % len(bases)]
        async with session.post(base + path, json=body, headers=headers) as answer:
            await answer.read()
            return answer.status

    return Counter(await asyncio.gather(*(one(number) for number in range(AT_ONCE))))


async def _leaving(lines: Lines, folder: Path, running: Sequence[FaultyUpstream]) -> None:
    """A client hangs up: before the head, and inside the stream; every pair of dialects."""
    spoken = tuple(zip(DIALECTS, running, strict=True))
    _, secret = make_key(folder, "k", "100usd")
    whats = ("whole", "stream, before content", "stream, inside")
    waits: dict[str, list[float]] = {what: [] for what in whats}
    async with gateway(folder, _sections(*spoken)) as process:
        for client in DIALECTS:
            for name, faulty in spoken:
                for what, words in (
                    ("whole", "slow=20000"),
                    ("stream, before content", "stall=0"),
                    ("stream, inside", "pace=300"),
                ):
                    stream = what != "whole"
                    path, body = request_of(
                        client, f"over-{name}", "answer: long=60", stream=stream
                    )
                    faulty.script.append(words)
                    took_s = await _left(
                        faulty, process.base + path, body, headers_of(client, secret), what
                    )
                    waits[what].append(took_s)
        rows = Rows(folder)
        settled = await eventually(lambda: rows.reserved() == 0)
        flagged = rows.book(
            "select count(*) from charges where outcome = 'client_gone' and partial and estimated"
        )[0][0]
    for number, (what, took) in enumerate(waits.items(), 1):
        lines.at_most(
            f"4.{10 + number}",
            f"a client leaves ({what}), {len(took)} pairs of dialects: the upstream sees it within",
            round(max(took), 3),
            GONE_S,
            " s",
        )
    count = sum(len(took) for took in waits.values())
    lines.add(
        "4.14", "what those had used is charged, partial and estimated; kept back", f"{count}; 0",
        f"{flagged}; {rows.reserved()}", flagged == count and settled,
    )  # fmt: skip


async def _left(
    faulty: FaultyUpstream, url: str, body: dict[str, Any], headers: dict[str, str], what: str
) -> float:
    """Seconds from the client's hanging up to the upstream's seeing it."""
    before, came = faulty.left, len(faulty.received)
    async with aiohttp.ClientSession() as session:

        async def ask() -> None:
            async with session.post(url, json=body, headers=headers) as answer:
                while await answer.content.readany():
                    pass

        asking = asyncio.create_task(ask())
        await eventually(lambda: len(faulty.received) > came)
        await asyncio.sleep(1.0 if what == "stream, inside" else 0.3)
        began_s = time.monotonic()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    if not await eventually(lambda: faulty.left > before, 5.0):
        return 99.0
    return time.monotonic() - began_s
