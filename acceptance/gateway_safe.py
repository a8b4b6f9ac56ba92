"""Lines 1 and 2: what never acts, off within a second under load, and faults that fail nothing."""

import asyncio
import os
import random
import resource
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from acceptance.gateway_world import (
    MAX_ERROR,
    Answered,
    ask,
    called,
    desk_reflex,
    desk_sessions,
    gateway_config,
    load,
    request_of,
    state_of,
)
from acceptance.lines import Lines
from acceptance.processes import REFLEXARC, Process, process
from reflexarc.bench.desk.schemas import READ_TOOLS, TOOLS
from reflexarc.steps import Session

RATE_PER_S = 200
_BEFORE_S, _AFTER_S = 3.0, 6.0
_FAULT_RATE_PER_S = 50
_LIVE = {"mode": "live", "max_error": MAX_ERROR, "deadline_ms": 1000, "audit": 0.0}


def measure(lines: Lines, seed: int) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="reflexarc-safe-") as name:
        folder = Path(name)
        sessions = desk_sessions()
        desk_reflex(sessions, folder / "desk.reflex")
        bodies = _steps(sessions, draw, list(TOOLS))
        with process("sim", "--time-scale", "0", "--port", "0") as upstream:
            _never_acts(lines, folder, upstream.base, sessions, draw)
            _off(lines, folder, upstream.base, bodies)
            _faults(lines, folder, upstream.base, bodies)


def _steps(sessions: Sequence[Session], draw: random.Random, tools: list[Any]) -> list[bytes]:
    """Requests as they came before every assistant step of some sessions, in random order."""
    bodies = [
        request_of(session, at, tools)
        for session in draw.sample(list(sessions), 20)
        for at, message in enumerate(session.messages)
        if message.role == "assistant"
    ]
    draw.shuffle(bodies)
    return bodies


# --- 1: what never acts -----------------------------------------------------------------------


def _never_acts(
    lines: Lines, folder: Path, upstream: str, sessions: Sequence[Session], draw: random.Random
) -> None:
    reflex = folder / "desk.reflex"
    bodies = _steps(sessions, draw, list(TOOLS))[:200]

    def acts(name: str, reflex: Path, bodies: Sequence[bytes], **route: Any) -> list[Answered]:
        config = gateway_config(folder, name, upstream, reflex, **route)
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            return _one_by_one(gateway.base, bodies)

    live = acts("labelled", reflex, bodies, **_LIVE)
    acted = sum(answer.acted for answer in live)
    lines.add(
        "1.0", "control: live, with labels, it acts", "more than 0 times",
        f"{acted} of {len(live)} requests", acted > 0,
    )  # fmt: skip
    fresh = acts("default", reflex, bodies)
    lines.add(
        "1.1", "with nothing but an upstream and a reflex configured it acts", "0 times",
        _acts(fresh), not any(answer.acted for answer in fresh),
    )  # fmt: skip

    bare = [{name: part for name, part in tool.items() if name != "annotations"} for tool in TOOLS]
    unlabelled = [
        msgspec.structs.replace(
            session,
            tools=tuple(msgspec.structs.replace(tool, effect=None) for tool in session.tools),
        )
        for session in sessions
    ]
    learned = folder / "unlabelled.reflex"
    desk_reflex(unlabelled, learned)
    answers = acts("unlabelled", learned, _steps(unlabelled, draw, bare)[:200], **_LIVE)
    wanted = sum("unlabelled" in answer.decision for answer in answers)
    lines.add(
        "1.2", "live, tools without a label (in sessions and requests) act",
        "0 times, though it was sure",
        f"{_acts(answers)}; {wanted} left alone for want of a label",
        wanted > 0 and not any(answer.acted for answer in answers),
    )  # fmt: skip

    loose = {**_LIVE, "max_error": 0.9}
    answers = acts("writes", reflex, _steps(sessions, draw, list(TOOLS))[:200], **loose)
    made = Counter(tool for answer in answers if answer.acted for tool in called(answer.body))
    written = {tool: count for tool, count in made.items() if tool not in READ_TOOLS}
    relabelled = [{**tool, "annotations": {"readOnlyHint": False}} for tool in TOOLS]
    locked = acts("locked", reflex, _steps(sessions, draw, relabelled)[:200], **loose)
    lines.add(
        "1.3", "live at a bound of 90%: writes act, and reads that a request calls writes",
        "0 times",
        f"{sum(written.values())} of {sum(made.values())} acts; {_acts(locked)}",
        bool(made) and not written and not any(answer.acted for answer in locked),
    )  # fmt: skip


def _acts(answers: Sequence[Answered]) -> str:
    return f"{sum(answer.acted for answer in answers)} of {len(answers)} requests"


def _one_by_one(base: str, bodies: Sequence[bytes]) -> list[Answered]:
    import aiohttp

    async def all_of_them() -> list[Answered]:
        async with aiohttp.ClientSession() as client:
            return [await ask(client, base, body) for body in bodies]

    return asyncio.run(all_of_them())


# --- 2: off, and faults ------------------------------------------------------------------------


def _off(lines: Lines, folder: Path, upstream: str, bodies: Sequence[bytes]) -> None:
    def by_command(_: Process, state: Path) -> None:
        subprocess.run(
            (*REFLEXARC, "off", "--state", str(state), "--why", "acceptance"),
            check=True, capture_output=True,
        )  # fmt: skip

    def by_request(gateway: Process, _: Path) -> None:
        gateway.post("/admin/off", {"why": "acceptance"})

    for identity, how, switch in (
        ("2.1", "reflexarc off", by_command),
        ("2.2", "POST /admin/off", by_request),
    ):
        name = f"off-{identity[-1]}"
        config = gateway_config(folder, name, upstream, folder / "desk.reflex", **_LIVE)
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            answers, off_s, took_s = asyncio.run(
                _switched(gateway, state_of(folder, name), bodies, switch)
            )
        before = [answer for answer in answers if answer.at_s < off_s - took_s]
        late = [answer for answer in answers if answer.acted and answer.at_s > off_s + 1.0]
        failed = sum(answer.status != 200 for answer in answers)
        acted = sum(answer.acted for answer in before)
        after = sum(answer.at_s > off_s + 1.0 for answer in answers)
        lines.add(
            identity,
            f"{how} under {RATE_PER_S} requests a second: acts from one second later on",
            "0, no request failed, and it acted before",
            f"{len(late)} of {after}; {failed} of {len(answers)} failed; "
            f"{acted} of {len(before)} acted before",
            not late and not failed and acted > 0 and after > RATE_PER_S,
        )


async def _switched(
    gateway: Process,
    state: Path,
    bodies: Sequence[bytes],
    switch: Callable[[Process, Path], None],
) -> tuple[list[Answered], float, float]:
    """Every answer; when it was written down that it is off, and how long the switch had taken
    until then."""
    loading = asyncio.create_task(load(gateway.base, bodies, RATE_PER_S, _BEFORE_S + _AFTER_S))
    await asyncio.sleep(_BEFORE_S)
    asked_s = time.monotonic()
    await asyncio.to_thread(switch, gateway, state)
    off_s = time.monotonic() - (time.time() - (state / "off.json").stat().st_mtime)
    return await loading, off_s, off_s - asked_s


def _faults(lines: Lines, folder: Path, upstream: str, bodies: Sequence[bytes]) -> None:
    """Each fault comes a second after the load begins; the gateway is a fresh one each time."""

    def corrupt(gateway: Process, state: Path) -> None:
        reflex = state.with_suffix(".reflex")
        data = bytearray(reflex.read_bytes())
        for at in range(0, len(data), 97):
            data[at] ^= 0x5A
        reflex.write_bytes(data)
        # Also the process that had loaded it: what it finds when it starts again is broken.
        os.kill(gateway.children()["worker"], signal.SIGKILL)

    def lock(_: Process, state: Path) -> None:
        with sqlite3.connect(state / "reflexarc.db", isolation_level=None) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            time.sleep(3.0)
            holder.execute("ROLLBACK")

    def fill(gateway: Process, state: Path) -> None:
        # As a full disk: not one byte beyond what the files have already can be written.
        pid = gateway.children()["recorder_process"]
        size = max(path.stat().st_size for path in state.glob("reflexarc.db*"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))

    def hang(gateway: Process, _: Path) -> None:
        os.kill(gateway.children()["worker"], signal.SIGSTOP)

    def kill_recorder(gateway: Process, _: Path) -> None:
        os.kill(gateway.children()["recorder_process"], signal.SIGKILL)

    for identity, what, fault, counted in (
        ("2.3", "the artifact corrupted, System 1 started anew", corrupt, ("artifact",)),
        ("2.4", "the store locked for 3 s", lock, ('recorder_trouble_total{kind="fault"',)),
        ("2.5", "the disk full", fill, ('recorder_trouble_total{kind="fault"',)),
        ("2.6", "a decision that hangs", hang, ('kind="deadline"', 'kind="hang"')),
        ("2.7", "the recorder killed", kill_recorder, ('recorder_trouble_total{kind="died"',)),
    ):
        name = f"fault-{identity[-1]}"
        reflex = folder / f"{name}-state.reflex"
        reflex.write_bytes((folder / "desk.reflex").read_bytes())
        route = {**_LIVE, "deadline_ms": 200}
        config = gateway_config(folder, name, upstream, reflex, **route)
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            answers = asyncio.run(_under_fault(gateway, state_of(folder, name), bodies, fault))
            found = gateway.metrics()
        failed = Counter(answer.status for answer in answers if answer.status != 200)
        counts = {
            key: sum(value for series, value in found.items() if key in series) for key in counted
        }
        acted = sum(answer.acted for answer in answers)
        lines.add(
            identity,
            f"{what}: requests that fail",
            "0, and it is counted",
            f"{sum(failed.values())} of {len(answers)}{dict(failed) or ''}; {acted} acted; "
            + ", ".join(f"{_short(key)} {count:.0f}" for key, count in counts.items()),
            not failed and acted > 0 and all(count > 0 for count in counts.values()),
        )
    _starts_broken(lines, folder, upstream, bodies)


async def _under_fault(
    gateway: Process,
    state: Path,
    bodies: Sequence[bytes],
    fault: Callable[[Process, Path], None],
) -> list[Answered]:
    loading = asyncio.create_task(load(gateway.base, bodies, _FAULT_RATE_PER_S, 6.0))
    await asyncio.sleep(1.5)
    await asyncio.to_thread(fault, gateway, state)
    return await loading


def _starts_broken(lines: Lines, folder: Path, upstream: str, bodies: Sequence[bytes]) -> None:
    """Started with a corrupt artifact and a store that is none."""
    reflex = folder / "broken.reflex"
    reflex.write_bytes((folder / "desk.reflex").read_bytes()[:-500])
    state = state_of(folder, "broken")
    state.mkdir(mode=0o700)
    (state / "reflexarc.db").write_bytes(b"this is no database" * 500)
    config = gateway_config(folder, "broken", upstream, reflex, **_LIVE)
    with process("serve", "--config", str(config), "--port", "0") as gateway:
        answers = _one_by_one(gateway.base, bodies[:100])
        found = gateway.metrics()
    failed = sum(answer.status != 200 for answer in answers)
    counted = [
        sum(value for series, value in found.items() if key in series)
        for key in ('kind="artifact"', 'recorder_trouble_total{kind="fault"')
    ]
    lines.add(
        "2.8", "started with a corrupt artifact and a corrupt store: requests that fail",
        "0, and both are counted",
        f"{failed} of {len(answers)}; {_acts(answers)} acted; counted {counted}",
        not failed and all(counted) and not any(answer.acted for answer in answers),
    )  # fmt: skip


def _short(key: str) -> str:
    return key.split('"')[1] if '"' in key else key
