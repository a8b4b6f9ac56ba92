"""What a decision and learning cost: CPU of decisions on every set, CPU and memory of learning.

python -m acceptance.reflex_speed [--only PART]... [--set NAME]...

A decision is what `reflexarc eval` times: reading the new messages, ranking, confidence, gate.
Warm: the context is kept from step to step. Cold: a fresh context reads the whole conversation
first. Of each set, long sessions are those with the most messages, and there the last items count.
About six minutes on one core.
"""

import argparse
import contextlib
import gc
import io
import os
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np

from acceptance.lines import Lines
from acceptance.quality import SESSIONS, TEST_SHARE
from reflexarc.cli import main as command_line
from reflexarc.reflex import Reflex, learn, outcomes
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.outcome import Offered, decide_item
from reflexarc.steps import Session, decision_items
from reflexarc.traces import read_sessions, split_sessions

P50_MS, P99_MS = 0.3, 3.0
LEARN_S, LEARN_MB = 30.0, 400.0
LEARNED = "tau1_retail_fork"
PARTS = ("decisions", "learning")
_SEED = 1
_LONGEST = 20
_LAST_ITEMS = 5
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Cost(msgspec.Struct, frozen=True):
    """Milliseconds of CPU of the decisions on one set: all of them, those at the end of its longest
    sessions with the context kept, and the same with a fresh one."""

    name: str
    warm: list[float]
    warm_late: list[float]
    cold_late: list[float]


class Learned(msgspec.Struct, frozen=True):
    """What `reflexarc learn` took: CPU of its whole process, the most memory it held at once, and
    how much of that stood before any session was read."""

    sessions: int
    cpu_s: float
    peak_mb: float
    start_mb: float


def measure(lines: Lines, sets: Sequence[str] = (), parts: Sequence[str] = PARTS) -> None:
    """Adds the lines of speed and size; `sets`: only these."""
    if "decisions" in parts:
        _decisions(lines, sets or sorted(p.name.split(".")[0] for p in _files()))
    if "learning" in parts:
        _learning(lines)


def _files() -> Iterable[Path]:
    return SESSIONS.glob("*.jsonl.gz")


def _decisions(lines: Lines, sets: Sequence[str]) -> None:
    costs: list[Cost] = []
    for name in sets:
        # A process of its own for each: nothing one set leaves behind slows the next.
        with _one_process() as pool:
            cost = pool.submit(decisions, name).result()
        costs.append(cost)
        lines.say(
            f"      {name}: all items {_quantiles(cost.warm)}; end of the longest sessions "
            f"{_quantiles(cost.warm_late)}; cold {_quantiles(cost.cold_late)}"
        )
    _lines_of(lines, "4.1", "all items", {cost.name: cost.warm for cost in costs})
    late = {cost.name: cost.warm_late for cost in costs}
    _lines_of(lines, "4.2", "end of the longest sessions", late)
    cold = [value for cost in costs for value in cost.cold_late]
    lines.say(f"      cold, the whole conversation read first, all sets: {_quantiles(cold)}")


def _lines_of(lines: Lines, identity: str, which: str, costs: dict[str, list[float]]) -> None:
    what = f"CPU of a decision, {which}"
    pooled = [value for values in costs.values() for value in values]
    p99 = {name: float(np.quantile(values, 0.99)) for name, values in costs.items()}
    slowest = max(p99, key=lambda name: p99[name])
    lines.at_most(f"{identity}a", f"{what}, all sets: p50", float(np.median(pooled)), P50_MS, " ms")
    lines.at_most(f"{identity}b", f"{what}, {slowest}: p99", p99[slowest], P99_MS, " ms")


def decisions(name: str) -> Cost:
    """Learn on two thirds of a set's tasks, then time decisions on the other third."""
    sessions = read_sessions([SESSIONS / f"{name}.jsonl.gz"])
    split = split_sessions(sessions, test_share=TEST_SHARE, seed=_SEED)
    reflex = learn([sessions[i] for i in split.train])
    reflex = Reflex.from_bytes(reflex.to_bytes())  # as it is served
    test = [sessions[i] for i in split.test]
    longest = {s.id for s in sorted(test, key=lambda s: -len(s.messages))[:_LONGEST]}
    for _ in outcomes(reflex, test[:3]):  # what Python compiles and caches once is no decision's
        pass
    found = list(outcomes(reflex, test))
    by_session: dict[str, list[float]] = {}
    for one in found:
        by_session.setdefault(one.session, []).append(one.cpu_ms)
    return Cost(
        name=name,
        warm=[one.cpu_ms for one in found],
        warm_late=[ms for s in longest for ms in by_session.get(s, [])[-_LAST_ITEMS:]],
        cold_late=[ms for s in test if s.id in longest for ms in _cold(reflex, s)],
    )


def _cold(reflex: Reflex, session: Session) -> Iterator[float]:
    """Milliseconds of CPU for the last items of a session, each from a fresh context."""
    tools = Offered(reflex, offered_tools(session), recorded=bool(session.tools))
    for item in [one for one in decision_items(session) if one.position == 0][-_LAST_ITEMS:]:
        gc.collect()
        gc.disable()
        start = time.thread_time()
        context = reflex.context()
        context.extend(session.messages[: item.message])
        decide_item(reflex, context, tools, model=session.model)
        yield (time.thread_time() - start) * 1e3
        gc.enable()


def _learning(lines: Lines) -> None:
    with _one_process() as pool:
        took = pool.submit(learning, LEARNED).result()
    what = f"reflexarc learn, {took.sessions} sessions of {LEARNED}"
    lines.at_most("4.3", f"{what}: CPU on one core", took.cpu_s, LEARN_S, " s")
    lines.at_most(
        "4.4",
        f"{what}: peak memory of the process ({took.start_mb:.0f} MB before it read anything)",
        took.peak_mb,
        LEARN_MB,
        " MB",
    )


def learning(name: str) -> Learned:
    """Run `reflexarc learn` in this process, which should have done nothing before."""
    path = SESSIONS / f"{name}.jsonl.gz"
    start_mb, start_s = _peak_mb(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="reflexarc-speed-") as folder:
        target = Path(folder) / "agent.reflex"
        with contextlib.redirect_stdout(io.StringIO()):
            command_line.main(["learn", str(path), "-o", str(target)], standalone_mode=False)
        cpu_s, peak_mb = time.process_time() - start_s, _peak_mb()
    return Learned(len(read_sessions([path])), cpu_s, peak_mb, start_mb)


def _peak_mb() -> float:
    """The most memory this process ever held. Not `ru_maxrss`, where Linux tells better: that one
    also counts what the process that started it held."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS


def _one_process() -> ProcessPoolExecutor:
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _quantiles(values: Sequence[float]) -> str:
    p50, p99 = float(np.median(values)), float(np.quantile(values, 0.99))
    return f"p50 {p50:.3f}, p99 {p99:.2f}, most {max(values):.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(prog="acceptance.reflex_speed", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    parser.add_argument("--set", action="append", dest="sets", help="decisions of this set only")
    arguments = parser.parse_args()
    if not SESSIONS.is_dir():
        parser.error("the public recordings are not beside this checkout")
    lines = Lines("reflex_speed", os.cpu_count() or 1)
    title = "Decisions and learning: CPU and memory"
    lines.part("4", title, lambda: measure(lines, arguments.sets or (), arguments.only or PARTS))
    return lines.finish(write=not (arguments.only or arguments.sets))


if __name__ == "__main__":
    raise SystemExit(main())
