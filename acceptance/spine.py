"""`make accept-spine`: what the spine promises, measured. Writes results/spine.json.

python -m acceptance.spine [--no-clone] [--only PART]...

The exit status is 0 where every line holds and everything was measured, but for what an option
left out. A run with parts left out says so in the file, and is never written over a whole one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from acceptance import front, size
from acceptance.lines import Lines
from acceptance.quality import SESSIONS, Judged, Shuffle, Task, measure
from reflexarc.reflex.clustered import clustered_test
from reflexarc.reflex.evaluation import level_name
from reflexarc.reflex.simulate import World, empirical_error, procedure_of, violation_rate

REPOSITORY = Path(__file__).resolve().parents[1]
SEEDS = (1, 2, 3, 4, 5)
LEVELS = (0.02, 0.05, 0.10)
RETAIL, BFCL, AIRLINE = "tau1_retail_fork", "bfcl_multiturn_gold", "tau1_airline_gpt4o"
BENCH_LIMIT_S = 900
LEAST_DECIDED = 0.5  # of the bench's requests: a System 1 that decides nothing costs nothing
PARTS = ("quality", "toys", "front", "bench", "try", "size", "clone")


def main() -> int:
    arguments = _arguments()
    wanted: Sequence[str] = arguments.only or PARTS
    lines = Lines("spine", os.cpu_count() or 1)
    parts = {
        "size": ("size", "Core install", lambda: _size(lines)),
        "try": ("6", "reflexarc try on an agent that cannot be certified", lambda: _try(lines)),
        "front": ("4", "The gateway before the simulator", lambda: front.measure(lines)),
        "bench": ("5", "Added latency", lambda: _bench(lines)),
        "quality": (
            "2",
            f"Real sessions, split by seeds {SEEDS}",
            lambda: _quality(lines, arguments.processes),
        ),
        "toys": ("3", "Against toys", lambda: _toys(lines, arguments.processes)),
        "clone": ("1", "A fresh clone", lambda: _clone(lines)),
    }
    needs_data = {"quality", "toys", "try"}
    for name, (identity, title, measured) in parts.items():
        if name not in wanted or (name == "clone" and arguments.no_clone):
            lines.skip(name, asked=True)
        elif name in needs_data and not SESSIONS.is_dir():
            lines.skip(f"{name} (the public recordings are not beside this checkout)")
        else:
            lines.part(identity, title, measured)
    return lines.finish(write=not arguments.only)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="acceptance.spine", description=__doc__)
    parser.add_argument(
        "--no-clone", action="store_true", help="leave out demo and test in a fresh clone"
    )
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="measure only this part and write nothing"
    )
    parser.add_argument("--processes", type=int, default=2, help="learn so many at a time")
    return parser.parse_args()


def _quality(lines: Lines, processes: int) -> None:
    tasks = [Task(name, seed) for name in (RETAIL, BFCL, AIRLINE) for seed in SEEDS]
    found: dict[str, list[Judged]] = {RETAIL: [], BFCL: [], AIRLINE: []}
    start = time.monotonic()
    for judged in measure(tasks, processes):
        found[judged.task.name].append(judged)
        one = judged.evaluation
        lines.say(
            f"      {judged.task.name} seed {judged.task.seed}: exact {one.call_exact_top1:.3f}, "
            f"reads {one.read_only.top1:.3f}, at 10% {one.certified['0.10'].coverage_calls:.3f} "
            f"({time.monotonic() - start:.0f} s)"
        )
    retail = [judged.evaluation for judged in found[RETAIL]]
    bfcl = [judged.evaluation for judged in found[BFCL]]
    lines.at_least("2.1", "retail, call_exact_top1", mean(e.call_exact_top1 for e in retail), 0.63)
    lines.at_least("2.2", "retail, read_only.top1", mean(e.read_only.top1 for e in retail), 0.77)
    lines.at_least("2.3", "retail, read_only.top3", mean(e.read_only.top3 for e in retail), 0.88)
    coverage = mean(e.certified["0.10"].coverage_calls for e in retail)
    lines.at_least("2.4", "retail, certified at 10%: coverage_calls", coverage, 0.10)
    lines.at_least("2.5", "bfcl, call_exact_top1", mean(e.call_exact_top1 for e in bfcl), 0.40)
    for number, (name, judged) in enumerate(found.items(), 6):
        for level in LEVELS:
            _pooled(lines, f"2.{number}", name, judged, level)
    evaluations = [judged.evaluation for several in found.values() for judged in several]
    p50 = max(_mean_of(several, "p50") for several in found.values())
    p99 = max(_mean_of(several, "p99") for several in found.values())
    worst = max(e.latency_ms.max for e in evaluations)
    lines.at_most("2.9", "CPU of a decision, p50 of the slowest set", p50, 1.0, " ms")
    lines.at_most("2.10", "CPU of a decision, p99 of the slowest set", p99, 15.0, " ms")
    lines.say(f"      the slowest decision of all took {worst:.1f} ms")
    baseline = mean(j.baseline_exact for j in found[RETAIL] if j.baseline_exact is not None)
    lines.at_least(
        "3.1",
        f"retail, call_exact_top1 above the plain baseline's {baseline:.3f}",
        mean(e.call_exact_top1 for e in retail) - baseline,
        0.10,
    )


def _pooled(lines: Lines, identity: str, name: str, judged: list[Judged], level: float) -> None:
    """Errors over all splits together against the bound; answering nothing holds any bound."""
    cells = [one.evaluation.certified[level_name(level)] for one in judged]
    answered, errors = sum(c.answered for c in cells), sum(c.errors for c in cells)
    share = errors / answered if answered else 0.0
    lines.add(
        f"{identity}{'abc'[LEVELS.index(level)]}",
        f"{name}, pooled error of what is answered at {level:.0%}",
        f"<= {level:g}",
        f"{share:.4f} ({errors} of {answered})" if answered else "nothing answered",
        share <= level,
    )


def _mean_of(judged: list[Judged], quantile: str) -> float:
    return mean(getattr(one.evaluation.latency_ms, quantile) for one in judged)


def _toys(lines: Lines, processes: int) -> None:
    kinds: tuple[Shuffle, ...] = ("outputs", "all texts")
    tasks = [Task(RETAIL, seed, shuffled) for shuffled in kinds for seed in SEEDS]
    found: dict[Shuffle, list[Judged]] = {kind: [] for kind in kinds}
    for judged in measure(tasks, processes):
        found[judged.task.shuffled].append(judged)
        cell = judged.evaluation.certified["0.10"]
        levels = ", ".join(f"{level:.0%}" for level in judged.certified) or "nothing"
        lines.say(
            f"      {judged.task.shuffled} shuffled, seed {judged.task.seed}: certified {levels}; "
            f"{cell.answered} answers at 10%, {cell.errors} wrong"
        )
    for identity, what, judged in (
        ("3.2", "tool outputs", found["outputs"]),
        ("3.3", "all texts", found["all texts"]),
    ):
        what = f"retail, {what} shuffled between sessions, 5 splits: certified"
        _nothing_certified(lines, identity, what, judged)
    _validity(lines)


def _nothing_certified(lines: Lines, identity: str, what: str, judged: list[Judged]) -> None:
    certified = [
        f"{level:.0%} at seed {one.task.seed}" for one in judged for level in one.certified
    ]
    measured = ", ".join(certified) or "nothing"
    lines.add(identity, what, "nothing at any level", measured, not certified)


def _validity(lines: Lines) -> None:
    """On drawn tasks whose true errors are known: scores that tell right from wrong, errors that
    cluster. A certificate may be broken once in ten times; 0.02 more is chance over 600 draws."""
    broken = {clustered_test: 0.0, empirical_error: 0.0}
    for icc in (0.0, 0.1, 0.3):
        for procedure in broken:
            trials = violation_rate(
                procedure_of(procedure),
                World(answers=8, correlation=icc, curve=lambda score: 0.5 * (1.0 - score)),
                tasks=60,
                alpha=0.1,
                delta=0.1,
                repetitions=600,
                seed=1,
            )
            broken[procedure] = max(broken[procedure], trials.violated)
    what = "drawn tasks, correlation 0 to .3: certificates at 10% that are broken"
    lines.at_most("3.4", f"{what}, as shipped", broken[clustered_test], 0.12)
    lines.add(
        "3.5",
        f"{what}, with the empirical error as the bound",
        "more than 3.4 allows",
        f"{broken[empirical_error]:.3g}",
        broken[empirical_error] > 0.12,
    )


def _bench(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-accept-") as folder:
        path = Path(folder) / "latency.json"
        command = [sys.executable, "-m", "reflexarc.bench.latency", "--json", str(path)]
        command.append("--install-nginx")  # its figures have to stand beside
        done = subprocess.run(command, cwd=REPOSITORY, timeout=BENCH_LIMIT_S)
        figures = json.loads(path.read_text())
        lines.say(f"      the benchmark itself ended with status {done.returncode}")
    for identity, body, bound in (("5.1", "small", 0.4), ("5.2", "large", 0.8)):
        arms = figures["sizes"][body]["arms"]
        beside = f"nginx {arms['nginx']['added_p50_ms']:.3f}" if "nginx" in arms else "no nginx"
        what = f"added p50 over direct, {body} body ({beside})"
        lines.at_most(identity, what, arms["reflexarc"]["added_p50_ms"], bound, " ms")
    for identity, body in (("5.3", "small"), ("5.4", "large")):
        seen = figures["sizes"][body]["shadow"]
        lines.add(
            identity,
            f"meanwhile System 1 decides, {body} body",
            f"at least {LEAST_DECIDED:.0%} of the requests",
            f"{seen['decided_share']:.0%} ({seen['decided']} of {seen['requests']})",
            seen["decided_share"] >= LEAST_DECIDED,
        )


def _try(lines: Lines) -> None:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "reflexarc", "try", str(SESSIONS / f"{AIRLINE}.jsonl.gz")],
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - start
    lines.at_most("6.1", "reflexarc try, airline", seconds, 60.0, " s")
    verdict = next((x for x in done.stdout.splitlines() if x.startswith("Verdict:")), "no verdict")
    short = verdict.removeprefix("Verdict: ").split(":")[0]
    lines.add("6.2", "its verdict", "do not enable", short, short == "do not enable")
    lines.add("6.3", "its exit status", "0", str(done.returncode), done.returncode == 0)


def _size(lines: Lines) -> None:
    what = "core install in site-packages, byte code aside"
    lines.at_most("size", what, size.core_size_mb(), 150.0, " MB")


def _clone(lines: Lines) -> None:
    """What is committed, beside the checkout, so that the public recordings are where the tests
    look for them."""
    for target in ("demo", "test"):
        clone = Path(tempfile.mkdtemp(prefix="clone-", dir=REPOSITORY.parent))
        try:
            subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(clone)], check=True)
            start = time.monotonic()
            done = subprocess.run(
                ["make", target], cwd=clone, stdin=subprocess.DEVNULL, capture_output=True
            )
            seconds = time.monotonic() - start
        finally:
            shutil.rmtree(clone)
        if done.returncode:
            lines.say(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
        lines.add(
            f"1.{target}",
            f"make {target} as the only command in a fresh clone",
            "exit status 0",
            f"{done.returncode} in {seconds:.0f} s",
            done.returncode == 0,
        )


if __name__ == "__main__":
    sys.exit(main())
