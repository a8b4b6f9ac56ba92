"""Lines 1.01 on: scripted failures of two real upstreams behind a real gateway. Each says what the
client sees, what the upstreams saw, what is recorded, and what it cost; none may hang."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from acceptance import upstream_chaos_cases, upstream_chaos_ends
from acceptance import upstream_chaos_checks as checks
from acceptance.lines import Lines
from acceptance.processes import Process
from acceptance.upstream_chaos_cases import Case
from acceptance.upstream_chaos_checks import World
from acceptance.upstream_world import (
    Answered,
    Rows,
    ask,
    eventually,
    gateway,
    headers_of,
    make_key,
)

CASES = (*upstream_chaos_cases.CASES, *upstream_chaos_ends.CASES)
WHOLE_LIMIT_S = 240.0
_TIERS = {
    "tier.interactive": {"first_token_s": 3.0, "hedge": True},
    "tier.standard": {"first_token_s": 0.8, "attempts": 3},
    "accounts": {"keys": "required", "max_output_tokens": 200},
}


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-chaos-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


async def _measured(lines: Lines, folder: Path) -> None:
    began_s = time.monotonic()
    worlds = [World(number, case) for number, case in enumerate(CASES, 1)]
    plain = World(0, Case(what="plain"))
    sections: dict[str, Any] = {"route": [{"upstream": "models", "mode": "off"}], **_TIERS}
    for world in (plain, *worlds):
        await world.start()
        sections |= world.sections()
        world.key, world.secret = make_key(folder, world.name, world.case.budget)
    try:
        async with gateway(folder, sections) as running:
            rows = Rows(folder)
            for number, world in enumerate(worlds, 1):
                await _line(lines, f"1.{number:02d}", running, world, plain, rows)
            said = "".join(running.said)
        lines.add(
            "1.90", "after all of them: kept back; errors in the gateway's log", "0; none",
            f"{rows.reserved()}; {'none' if 'ERROR' not in said else said[-500:]}",
            rows.reserved() == 0 and "ERROR" not in said,
        )  # fmt: skip
    finally:
        for world in (plain, *worlds):
            await world.stop()
    took_s = time.monotonic() - began_s
    lines.at_most("1.91", f"{len(CASES)} scripted failures take", took_s, WHOLE_LIMIT_S, " s")


async def _line(
    lines: Lines, identity: str, running: Process, world: World, plain: World, rows: Rows
) -> None:
    case = world.case
    required = "; ".join((
        f"{case.sees} from {case.up}" if case.up else case.sees,
        f"asked {_times(case.asked)}", f"left {_times(case.left)}",
        ", ".join(case.attempts) or "nobody asked",
    ))  # fmt: skip
    async with aiohttp.ClientSession() as session:
        for _ in range(case.fillers):
            await _asked(session, running, plain, "plain")
        try:
            async with asyncio.timeout(case.within_s):
                measured, problems = await _played(session, running, world, rows)
        except TimeoutError:
            measured, problems = "", [f"it hung for more than {case.within_s:g} s"]
    shown = "; ".join([measured, *(f"BUT {one}" for one in problems)])
    lines.add(identity, case.what, required, shown, not problems)


def _times(both: tuple[int, int]) -> str:
    return " and ".join(str(one) if one >= 0 else "some times" for one in both)


async def _asked(
    session: aiohttp.ClientSession, running: Process, world: World, request_id: str
) -> Answered:
    case = world.case
    path, body = checks.request(world)
    headers = headers_of(case.client, world.secret) | case.given | {
        "x-request-id": request_id, "x-reflexarc-tier": case.tier,
    }  # fmt: skip
    return await ask(session, running.base, case.client, path, body, headers, stream=case.stream)


async def _played(
    session: aiohttp.ClientSession, running: Process, world: World, rows: Rows
) -> tuple[str, list[str]]:
    """What was measured, as it is written, and what of it is not as required."""
    case, request_id = world.case, f"{world.name}-last"
    for at in range(case.before):
        await _asked(session, running, world, f"{world.name}-{at}")
    began_s = time.monotonic()
    if case.leaves:
        answered = await _leaves(running, world, request_id)
    else:
        answered = await _asked(session, running, world, request_id)
    took_s = time.monotonic() - began_s
    problems = checks.seen(world, answered)
    problems += await checks.upstreams(world)
    charged, wrong = await checks.recorded(world, request_id, rows, answered)
    problems += wrong
    if case.cools_s is not None:
        problems += checks.cooling(running, world, case.cools_s)
    measured = "; ".join((
        _sight(answered), f"asked {len(world.a.received)} and {len(world.b.received)}",
        f"left {world.a.left} and {world.b.left}", charged, f"{took_s:.2f} s",
    ))  # fmt: skip
    return measured, problems


async def _leaves(running: Process, world: World, request_id: str) -> Answered:
    case = world.case
    faulty = world.b if case.leaves == "second" else world.a
    path, body = checks.request(world)
    headers = headers_of(case.client, world.secret) | {
        "x-request-id": request_id, "x-reflexarc-tier": case.tier,
    }  # fmt: skip
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.post(running.base + path, json=body, headers=headers))
        if case.leaves == "inside":
            answer = await asking
            for _ in range(3):
                await answer.content.readany()
            answer.close()
        else:
            await eventually(lambda: bool(faulty.received))
            await asyncio.sleep(0.3)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    await eventually(lambda: faulty.left > 0, checks.GONE_WITHIN_S)
    return Answered()


def _sight(answered: Answered) -> str:
    if not answered.status:
        return "gone"
    if answered.status >= 400:
        return (
            f"{answered.status} from {answered.headers.get('x-reflexarc-upstream', 'the gateway')}"
        )
    seen = answered.seen
    what = "unreadable" if seen is None else "cut" if seen.error else seen.calls or seen.text[:24]
    return f"{what} from {answered.headers.get('x-reflexarc-upstream')}"
