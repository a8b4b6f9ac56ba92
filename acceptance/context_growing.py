"""A session of 500 turns that grows to 115,000 tokens, through the real gateway.

python -m acceptance.context_growing

The agent is System 1's, so that everything is at work that a request meets: the gateway itself, its
System 1, which looks on, its recorder. CPU is user and system time of each of these processes, by
their CPU clocks. Beside it the same session goes through a proxy that copies bytes, on the same
server stack: what the reading of bodies costs in any case. In the middle the gateway is stopped and
started again, on the same state.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from acceptance.context_growing_talk import BYTES_PER_TOKEN, bodies
from acceptance.gateway_world import desk_reflex, desk_sessions
from acceptance.lines import Lines
from acceptance.processes import Process, cpu_s, process
from reflexarc.context import lines as prompt_lines
from reflexarc.gateway import shortening
from reflexarc.store import recording
from reflexarc.wire import growing

TURNS = 500
TOKENS = 115_000
EARLY, LATE = (50, 100), (450, 500)
RESTART_AT = 250
DIALECTS = ("chat", "messages")
_PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
_TURN_TOKENS = 1_000
_SESSIONS = 8
_AT_5K = (3, 8)
_BOUNDS_MIB = {
    "gateway": (growing.MAX_BYTES + prompt_lines.MAX_BYTES) / 2**20,
    "worker": (growing.MAX_BYTES + shortening.MAX_BYTES) / 2**20,
    "recorder_process": (
        recording.REMEMBERED_BYTES + recording.MAX_WAITING_BYTES + shortening.MAX_BYTES
    )
    / 2**20,
}
"""Bodies remembered, prompts to be gone on from, bodies whose rest crosses, steps that wait."""
_SETTLED_WITHIN_S = 60.0
_IDLE_S = 0.03
"""CPU of all processes within `_TOLD_S` when nothing is asked: watches, signs of life."""
_TOLD_S = 2.5
"""The recorder rests between its writes; after this long it has written what came."""


class Spent(msgspec.Struct):
    """CPU of a turn, in ms, by process: of the early turns and of the late ones; bytes of the last
    body; memory of the processes, in MiB, at the end of both."""

    early_ms: dict[str, float]
    late_ms: dict[str, float]
    body_bytes: int
    early_mib: dict[str, float] = {}
    late_mib: dict[str, float] = {}

    def grew_mib(self) -> dict[str, float]:
        return {name: mib - self.early_mib[name] for name, mib in self.late_mib.items()}

    def ratio(self, less: "Spent | None" = None) -> float:
        early, late = sum(self.early_ms.values()), sum(self.late_ms.values())
        if less is not None:
            early -= sum(less.early_ms.values())
            late -= sum(less.late_ms.values())
        return late / max(early, 1e-9)

    def __str__(self) -> str:
        def told(of: dict[str, float]) -> str:
            parts = " + ".join(f"{name} {ms:.2f}" for name, ms in of.items())
            return f"{sum(of.values()):.2f} ms ({parts})" if len(of) > 1 else parts + " ms"

        return f"early {told(self.early_ms)}, late {told(self.late_ms)}"


def measure(lines: Lines, dialects: tuple[str, ...] = DIALECTS) -> None:
    """Lines 2.1 on."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-growing-") as name:
        folder = Path(name)
        desk_reflex(desk_sessions(), folder / "desk.reflex")
        with _started("acceptance.wire_cpu_upstream") as (upstream, _):
            for number, dialect in enumerate(dialects, 1):
                _measure(lines, folder, number, dialect, upstream)
            _side_by_side(lines, folder, upstream)


def _measure(lines: Lines, folder: Path, number: int, dialect: str, upstream: str) -> None:
    with _started("acceptance.wire_cpu_proxy", upstream) as (base, pid):
        meter = _Meter(lambda: {"proxy": pid})
        for turn, body in enumerate(bodies(dialect, TURNS, TOKENS), 1):
            _ask(base, dialect, body)
            meter.after(turn)
        copied = meter.spent(0)
    spent, kept = _through_gateway(folder, dialect, upstream)
    marks = ", its cache marks moving" if dialect == "messages" else ""
    what = f"{TURNS} turns to {spent.body_bytes // BYTES_PER_TOKEN:,} tokens, {dialect}{marks}"
    lines.say(f"  {what}: {spent}; copied by a proxy: {copied}")
    lines.add(
        f"2.{number}1",
        f"{what}: CPU of a turn, turns {LATE[0]}-{LATE[1]} to {EARLY[0]}-{EARLY[1]}, all processes",
        "<= 2 times",
        f"{spent.ratio():.2f} times: {spent}",
        spent.ratio() <= 2,
    )
    lines.add(
        f"2.{number}2",
        "the same, what a proxy takes that copies the same bodies taken off",
        "<= 2 times",
        f"{spent.ratio(copied):.2f} times; the proxy {copied}",
        spent.ratio(copied) <= 2,
    )
    lines.add(
        f"2.{number}3",
        "memory of each of the gateway's processes, from the end of the early turns to that of the "
        "late ones, a restart between",
        "no more than the stated bounds on what each keeps of bodies: "
        + ", ".join(f"{name} {mib:.0f}" for name, mib in _BOUNDS_MIB.items())
        + " MiB",
        ", ".join(f"{name} {mib:+.1f}" for name, mib in spent.grew_mib().items()) + " MiB",
        all(mib <= _BOUNDS_MIB[name] for name, mib in spent.grew_mib().items()),
    )
    lines.add(
        f"2.{number}4",
        f"restarted after turn {RESTART_AT}: what the store has of the session",
        f"1 session, {TURNS} steps, each answered",
        f"{kept[0]} sessions, {kept[1]} steps, {kept[2]} answered",
        kept == (1, TURNS, TURNS),
    )


def _side_by_side(lines: Lines, folder: Path, upstream: str) -> None:
    """Turns of 1,000 tokens at 5,000 and at 115,000 tokens, of several sessions in turn."""
    turns = TOKENS // _TURN_TOKENS
    spent: list[Spent] = []
    config = _config(folder, "side", "chat", upstream)
    with (
        _started("acceptance.wire_cpu_proxy", upstream) as (copying, pid),
        process("serve", "--config", str(config), "--port", "0") as served,
    ):
        gateway = {"gateway": served.process.pid, **served.children()}
        for base, pids in ((copying, {"proxy": pid}), (served.base, gateway)):
            meter = _Meter(lambda pids=pids: pids, _AT_5K, (turns - 5, turns), _SESSIONS)
            talks = [bodies("chat", turns, TOKENS, session) for session in range(_SESSIONS)]
            for turn in range(1, turns + 1):
                for talk in talks:
                    _ask(base, "chat", next(talk))
                meter.after(turn)
            spent.append(meter.spent(0))
    copied, own = spent
    lines.add(
        "2.31",
        f"a turn of {_TURN_TOKENS:,} tokens at {TOKENS:,} tokens to one at 5,000, {_SESSIONS} "
        "sessions in turn: CPU of all processes, the reading of the body apart (what a proxy takes "
        "that copies it)",
        "<= 2 times",
        f"{own.ratio(copied):.2f} times: {own}; the proxy {copied}",
        own.ratio(copied) <= 2,
    )


def _config(folder: Path, name: str, dialect: str, upstream: str) -> Path:
    config = folder / f"{name}.toml"
    config.write_text(
        f'state = "{folder / (name + "-state")}"\n[[route]]\nupstream = "{upstream}/v1"\n'
        f'dialect = "{dialect}"\nreflex = "{folder / "desk.reflex"}"\nmode = "shadow"\n'
        'record = "hashed"\n'
    )
    return config


def _through_gateway(
    folder: Path, dialect: str, upstream: str
) -> tuple[Spent, tuple[int, int, int]]:
    config = _config(folder, dialect, dialect, upstream)
    state = folder / f"{dialect}-state"
    turns = enumerate(bodies(dialect, TURNS, TOKENS), 1)
    size = 0
    running: list[Process] = []

    def pids() -> dict[str, int]:
        served = running[-1]
        return {"gateway": served.process.pid, **served.children()}

    meter = _Meter(pids)
    for until in (RESTART_AT, TURNS):
        with process("serve", "--config", str(config), "--port", "0") as served:
            running.append(served)
            for turn, body in turns:
                size = len(body)
                _ask(served.base, dialect, body)
                meter.after(turn)
                if turn == until:
                    break
            time.sleep(_TOLD_S)
    with closing(sqlite3.connect(state / "reflexarc.db")) as store:
        sessions = store.execute("select count(*) from sessions").fetchone()[0]
        steps = store.execute("select count(*) from steps").fetchone()[0]
        answered = store.execute("select count(*) from steps where status = 200").fetchone()[0]
    return meter.spent(size), (sessions, steps, answered)


class _Meter:
    """Reads the CPU clocks at the ends of the early and of the late turns."""

    def __init__(
        self,
        pids: Callable[[], dict[str, int]],
        early: tuple[int, int] = EARLY,
        late: tuple[int, int] = LATE,
        sessions: int = 1,
    ) -> None:
        self._pids = pids
        self._early, self._late, self._sessions = early, late, sessions
        self._read: dict[int, dict[str, float]] = {}
        self._mib: dict[int, dict[str, float]] = {}

    def after(self, turn: int) -> None:
        if turn not in (*self._early, *self._late):
            return
        pids = self._pids()
        _settled(pids)
        self._read[turn] = {name: cpu_s(pid) for name, pid in pids.items()}
        self._mib[turn] = {name: _resident_mib(pid) for name, pid in pids.items()}

    def spent(self, body_bytes: int) -> Spent:
        def of(begin: int, end: int) -> dict[str, float]:
            return {
                name: (self._read[end][name] - began_s) * 1e3 / (end - begin) / self._sessions
                for name, began_s in self._read[begin].items()
            }

        early, late = self._early, self._late
        return Spent(of(*early), of(*late), body_bytes, self._mib[early[1]], self._mib[late[1]])


def _settled(pids: dict[str, int]) -> None:
    """Waits until what these processes do after their answers is done: the recorder rests longer
    than it works."""
    until_s = time.monotonic() + _SETTLED_WITHIN_S
    spent_s = -1.0
    while time.monotonic() < until_s:
        time.sleep(_TOLD_S)
        now_s = sum(cpu_s(pid) for pid in pids.values())
        if now_s - spent_s < _IDLE_S:
            return
        spent_s = now_s


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line[:6] == "VmRSS:") / 1024


_connections: dict[str, HTTPConnection] = {}


def _ask(base: str, dialect: str, body: bytes) -> None:
    at = urlsplit(base)
    connection = _connections.get(base)
    if connection is None:
        connection = _connections[base] = HTTPConnection(at.hostname or "", at.port, timeout=60)
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    connection.request("POST", _PATHS[dialect], body, headers)
    with connection.getresponse() as answer:
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {answer.read(300)!r}")
        answer.read()


@contextmanager
def _started(*command: str) -> Generator[tuple[str, int]]:
    running = subprocess.Popen(
        (sys.executable, "-m", *command), stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), running.pid
    finally:
        running.terminate()
        running.wait(timeout=10)
        if running.stdout is not None:
            running.stdout.close()


if __name__ == "__main__":
    collected = Lines("context-growing", os.cpu_count() or 1)
    measure(collected)
    sys.exit(collected.finish(write=False))
