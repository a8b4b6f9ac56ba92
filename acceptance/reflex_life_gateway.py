"""The lines of `acceptance.reflex_life` that a real gateway and a simulated System 2 answer."""

import asyncio
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvicorn

from acceptance.gateway_world import (
    MAX_ERROR,
    Answered,
    ask,
    desk_reflex,
    desk_sessions,
    gateway_config,
    load,
    request_of,
    state_of,
)
from acceptance.lines import Lines
from acceptance.processes import REFLEXARC, process
from reflexarc.bench.desk import ReturnsDeskSystem2
from reflexarc.bench.desk.schemas import TOOLS
from reflexarc.lifecycle.standing import ReflexState
from reflexarc.lifecycle.standing_file import FILE, name_of, read_standings
from reflexarc.reflex import Reflex
from reflexarc.sim import SimulatedSystem2, load_profiles
from reflexarc.sim.policy import Answer, PlannedCall
from reflexarc.steps import Message, Session, ToolSpec

FLIPPED = "get_order"
RUNS = 5
WARM_ACTS = 500
_LEARN_TASKS = 60
_TASKS = 400
_RATE_PER_S = 60
_PATIENCE_S = 30.0
_ROUTE = {"mode": "managed", "max_error": MAX_ERROR, "deadline_ms": 2000}


class Flippable:
    """The desk's policy; once `flipped`, calls of one tool go to another order."""

    def __init__(self) -> None:
        self.flipped = False
        self._policy = ReturnsDeskSystem2()

    @property
    def model(self) -> str:
        return self._policy.model

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        answer = self._policy.answer(messages, tools)
        if not self.flipped:
            return answer
        calls = tuple(
            PlannedCall(call.name, dict.fromkeys(call.arguments, "another"))
            if call.name == FLIPPED
            else call
            for call in answer.calls
        )
        return Answer(answer.content, calls)


@contextmanager
def simulator(policy: Flippable) -> Generator[str]:
    """The simulated System 2 on a port, in a thread; its base URL without /v1."""
    profile = next(iter(load_profiles(None).values()))
    config = uvicorn.Config(
        SimulatedSystem2(policy, profile, time_scale=0.0), log_level="warning", access_log=False
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


def measure(lines: Lines, folder: Path) -> None:
    """Lines 4 and following."""
    sessions = desk_sessions(_TASKS)
    desk_reflex(sessions[:_LEARN_TASKS], folder / "desk.reflex")
    steps = _requests(sessions[_LEARN_TASKS:])
    policy = Flippable()
    with simulator(policy) as upstream:
        acting = _answered_by_system1(folder, upstream, steps)
        lines.say(f"{len(acting)} requests of as many sessions on which System 1 acts")
        lines.part("4", "Promotion", lambda: _promotion(lines, folder, upstream, acting))
        lines.part("5", "A flip", lambda: _flip(lines, folder, upstream, acting, policy))
        lines.part("6", "Changes", lambda: _changes(lines, folder, upstream, acting))
        lines.part("7", "Rollback", lambda: _rollback(lines, folder, upstream, acting))


def _requests(sessions: Sequence[Session]) -> list[bytes]:
    """For each session one request that was answered by a call of the tool that flips."""
    found: list[bytes] = []
    for session in sessions:
        for at, message in enumerate(session.messages):
            calls = message.tool_calls
            if message.role == "assistant" and [call.name for call in calls] == [FLIPPED]:
                found.append(request_of(session, at, TOOLS))
                break
    return found


def _answered_by_system1(folder: Path, upstream: str, steps: Sequence[bytes]) -> list[bytes]:
    """Those on which it acts and System 2 would do the same; the others are no part of a flip."""
    config = _config(folder, "which", upstream, mode="live", audit=1.0)
    acting: list[bytes] = []
    with process("serve", "--config", str(config), "--port", "0") as gateway:
        for body, answer in zip(steps, _one_by_one(gateway.base, steps), strict=True):
            if answer.acted:
                acting.append(body)
        time.sleep(1.0)
        counters = gateway.metrics()
    wrong = sum(
        count for name, count in counters.items()
        if name.startswith("reflexarc_audits_total{") and 'outcome="disagree"' in name
    )  # fmt: skip
    assert wrong <= MAX_ERROR * len(acting), f"{wrong:g} of {len(acting)} acts are wrong anyway"
    return acting


def _promotion(lines: Lines, folder: Path, upstream: str, acting: Sequence[bytes]) -> None:
    config = _config(folder, "promotion", upstream)
    reflex = folder / "promotion.reflex"
    with process("serve", "--config", str(config), "--port", "0") as gateway:
        before = _one_by_one(gateway.base, acting[:20])
        refused = _reflexarc(
            folder, "promotion", "promote", reflex, "--scope", "writes:refund_order"
        )
        _reflexarc(folder, "promotion", "promote", reflex, "--by", "ann", check=True)
        after = _one_by_one(gateway.base, acting[:20])
        _reflexarc(folder, "promotion", "demote", reflex, "--by", "ann", check=True)
        again = _one_by_one(gateway.base, acting[:20])
    acts = [sum(_acted(one) for one in part) for part in (before, after, again)]
    lines.add(
        "4.1", "managed: acts before promotion, after it, after demotion; of 20 each",
        "0, 20, 0", ", ".join(map(str, acts)), acts == [0, 20, 0],
    )  # fmt: skip
    lines.add(
        "4.2", "promoting a write without a name", "refused, exit status 2",
        f"exit status {refused.returncode}: {refused.stderr.strip()[:90]}",
        refused.returncode == 2 and "--by" in refused.stderr,
    )  # fmt: skip
    found = [
        f"{one['what']} by {one['who']}"
        for what in ("promote", "demote")
        for one in _trail(folder, "promotion", what)
    ]
    lines.add(
        "4.3", "both stand in the audit trail", "promote by ann, demote by ann",
        ", ".join(found),
        found == ["promote by ann", "demote by ann"],
    )  # fmt: skip


def _flip(
    lines: Lines, folder: Path, upstream: str, acting: Sequence[bytes], policy: Flippable
) -> None:
    unaudited: list[int] = []
    audited: list[int] = []
    shares: list[float] = []
    bodies = [acting[number % len(acting)] for number in range(WARM_ACTS)]
    for run in range(RUNS):
        name = f"flip-{run}"
        config = _config(folder, name, upstream, mode="live")
        policy.flipped = False
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            warm = _one_by_one(gateway.base, bodies)
            shares.append(sum(_audited(one) for one in warm[-100:]) / 100)
            policy.flipped = True
            wrong = [0, 0]
            for number in range(10_000):
                answer = _one_by_one(gateway.base, [acting[number % len(acting)]])[0]
                if answer.decision.endswith("audits_busy"):
                    continue
                if not _acted(answer):
                    break
                wrong[_audited(answer)] += 1
            unaudited.append(wrong[False])
            audited.append(wrong[True])
            shown = answer.decision  # pyright: ignore[reportPossiblyUnboundVariable]
            assert shown.endswith("demoted"), shown
    policy.flipped = False
    mean = statistics.fmean(unaudited)
    lines.add(
        "5.1",
        f"{RUNS} gateways, flipped after {WARM_ACTS} acts: mean of unaudited wrong acts",
        "<= 20", f"{mean:.1f} {unaudited}, audited {audited}; share of audits in the last 100 acts "
        f"before {statistics.fmean(shares):.2f}", mean <= 20,
    )  # fmt: skip
    standing = _state(folder, "flip-0")
    scopes = [(one.scope, one.word, one.by) for one in standing.current.scopes]
    lines.add(
        "5.2", "what it says of itself", f"{FLIPPED} demoted by audits", f"{scopes}",
        any(word == "demoted" and by == "audits" for _, word, by in scopes),
    )  # fmt: skip


def _changes(lines: Lines, folder: Path, upstream: str, acting: Sequence[bytes]) -> None:
    def prompt(body: dict[str, Any]) -> None:
        body["messages"][0]["content"] = f"{body['messages'][0]['content']}\nBe brief and kind."

    def schema(body: dict[str, Any]) -> None:
        body["tools"][0]["function"]["description"] += " Newer."

    def model(body: dict[str, Any]) -> None:
        body["model"] = "another-model"

    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "prompt": prompt, "schema": schema, "model": model,
    }  # fmt: skip
    for number, (name, change) in enumerate(changes.items(), 1):
        config = _config(folder, name, upstream, mode="live")
        changed = [_with(body, change) for body in acting[:6]]
        with process("serve", "--config", str(config), "--port", "0") as gateway:
            odd = _one_by_one(gateway.base, [acting[9], changed[0], changed[1], acting[9]])
            then = _one_by_one(gateway.base, [*changed[2:5], acting[9]])
            time.sleep(1.5)
            state = _state(folder, name)
        reasons = [answer.decision.rsplit("; ", 1)[-1] for answer in (*odd[1:3], *then)]
        lines.add(
            f"6.{number}",
            f"{name} changed: escalates at once; two sessions stop nobody else, three in a row do",
            f"5 x {name}_changed, others act until the third in a row, then demoted",
            f"{reasons[:5]}, others {'act' if _acted(odd[3]) else 'stop'}, then {reasons[5]}; by "
            f"{[one.by for one in state.current.scopes]}",
            reasons[:5] == [f"{name}_changed"] * 5
            and _acted(odd[3]) and reasons[5] == "demoted"
            and [one.by for one in state.current.scopes] == ["identity"],
        )  # fmt: skip


def _rollback(lines: Lines, folder: Path, upstream: str, acting: Sequence[bytes]) -> None:
    name = "rollback"
    config = _config(folder, name, upstream, audit=0.0)
    reflex = folder / f"{name}.reflex"
    bodies = list(acting[:40])
    with process("serve", "--config", str(config), "--port", "0") as gateway:
        _reflexarc(folder, name, "promote", reflex, "--by", "ann", check=True)
        first = {_id(one) for one in _one_by_one(gateway.base, bodies) if _acted(one)}
        learned = Reflex.load(reflex)
        learned.card = msgspec.structs.replace(learned.card, items=learned.card.items + 1)
        learned.save(reflex)
        _reflexarc(folder, name, "promote", reflex, "--by", "ann", check=True)
        _until(lambda: _acts_as(gateway.base, bodies[0], first, wanted=False))
        second = {_id(one) for one in _one_by_one(gateway.base, bodies) if _acted(one)}
        time.sleep(3.0)  # the version before is loaded beside it
        answers, began_s, written_s = asyncio.run(
            _rolled_back(gateway.base, bodies, folder, name, reflex)
        )
    of_new = [one.at_s for one in answers if _acted(one) and _id(one) in second]
    of_old = [one.at_s for one in answers if _acted(one) and _id(one) in first]
    failed = sum(one.status != 200 for one in answers)
    last_s, first_s = max(of_new) - written_s, min(of_old) - written_s
    lines.add(
        "7.1",
        f"rollback under {_RATE_PER_S} requests a second: from the change to the last act of the "
        "version left, and to the first of the one before",
        "<= 1 s both, no request fails",
        f"{last_s:.2f} s, {first_s:.2f} s; {failed} of {len(answers)} failed; "
        f"{len(of_new)} and {len(of_old)} acts; the command began "
        f"{written_s - began_s:.2f} s before",
        last_s <= 1.0 and first_s <= 1.0 and not failed and not first & second,
    )  # fmt: skip


async def _rolled_back(
    base: str, bodies: Sequence[bytes], folder: Path, name: str, reflex: Path
) -> tuple[list[Answered], float, float]:
    loading = asyncio.create_task(load(base, bodies, _RATE_PER_S, 12.0))
    await asyncio.sleep(3.0)
    began_s = time.monotonic()
    path = state_of(folder, name) / FILE
    before_ns = path.stat().st_mtime_ns
    rolling = asyncio.create_task(
        asyncio.to_thread(_reflexarc, folder, name, "rollback", reflex, "--by", "ann", check=True)
    )
    while path.stat().st_mtime_ns == before_ns:
        await asyncio.sleep(0.005)
    written_s = time.monotonic()
    await rolling
    return await loading, began_s, written_s


def _config(folder: Path, name: str, upstream: str, **route: Any) -> Path:
    reflex = folder / f"{name}.reflex"
    reflex.write_bytes((folder / "desk.reflex").read_bytes())
    return gateway_config(folder, name, upstream, reflex, **{**_ROUTE, **route})


def _one_by_one(base: str, bodies: Sequence[bytes]) -> list[Answered]:
    async def asked() -> list[Answered]:
        async with aiohttp.ClientSession() as client:
            return [await ask(client, base, body) for body in bodies]

    return asyncio.run(asked())


def _reflexarc(
    folder: Path, name: str, what: str, reflex: Path, *more: str, check: bool = False
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        (*REFLEXARC, "reflex", what, str(reflex), "--state", str(state_of(folder, name)), *more),
        capture_output=True, text=True, check=check,
    )  # fmt: skip


def _trail(folder: Path, name: str, what: str) -> list[dict[str, Any]]:
    state = str(state_of(folder, name))
    done = subprocess.run(
        (*REFLEXARC, "audit", "show", "--what", what, "--json", "--state", state),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return msgspec.json.decode(done.stdout, type=list[dict[str, Any]])


def _state(folder: Path, name: str) -> ReflexState:
    state = read_standings(state_of(folder, name)).of(name_of(folder / f"{name}.reflex"))
    assert state is not None
    return state


def _acts_as(base: str, body: bytes, ids: set[str], *, wanted: bool) -> bool:
    answer = _one_by_one(base, [body])[0]
    return _acted(answer) and (_id(answer) in ids) == wanted


def _until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s, f"it did not come to be within {_PATIENCE_S:g} s"
        time.sleep(0.05)


def _acted(answer: Answered) -> bool:
    return answer.decision.split("; ")[1:2] == ["act"]


def _audited(answer: Answered) -> bool:
    return "audit=pending" in answer.cost


def _id(answer: Answered) -> str:
    return msgspec.json.decode(answer.body, type=_WithId).id


class _WithId(msgspec.Struct):
    id: str


def _with(body: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    request = msgspec.json.decode(body, type=dict[str, Any])
    change(request)
    return msgspec.json.encode(request)
