"""What a reflex predicts and what it is certified for, on public recordings, several splits."""

import time
from collections.abc import Callable
from statistics import mean

import msgspec

from acceptance.lines import Lines
from acceptance.quality import Judged, Task, measure
from reflexarc.reflex.evaluation import Evaluation, level_name
from reflexarc.traces import SplitBy

SEEDS = (1, 2, 3, 4, 5)
LEVELS = (0.02, 0.05, 0.10)


class Set(msgspec.Struct, frozen=True):
    """A recording and what it is split by. Where that is the session, requests recur."""

    name: str
    by: SplitBy = "task"

    def __str__(self) -> str:
        return self.name if self.by == "task" else f"{self.name} by {self.by}"


RETAIL = Set("tau1_retail_fork")
AIRLINE = Set("tau1_airline_gpt4o")
BFCL = Set("bfcl_multiturn_gold")
API = Set("apiflow_terra")
OFFICE = Set("workbench_gpt4", "family")
HOME_AGAIN = Set("ha_qwen3_30b", "session")
HOME_NEW = Set("ha_qwen3_30b")
SETS = (
    RETAIL, AIRLINE, BFCL, API, OFFICE, HOME_AGAIN, HOME_NEW, Set("apiflow_terra_ops"),
    Set("apibank_lv12"), Set("tau2_airline_mit"),
)  # fmt: skip


def _exact(one: Evaluation) -> float:
    return one.call_exact_top1


def _reads(one: Evaluation) -> float:
    return one.read_only.top3


def _writes(one: Evaluation) -> float:
    return one.writes.top1


def _covered(level: float) -> Callable[[Evaluation], float]:
    return lambda one: one.certified[level_name(level)].coverage_calls


FLOORS: tuple[tuple[Set, str, Callable[[Evaluation], float], float], ...] = (
    (RETAIL, "call_exact_top1", _exact, 0.68),
    (RETAIL, "read_only.top3", _reads, 0.93),
    (RETAIL, "writes.top1", _writes, 0.30),
    (RETAIL, "certified at 10%: coverage_calls", _covered(0.10), 0.18),
    (BFCL, "call_exact_top1", _exact, 0.46),
    (AIRLINE, "read_only.top3", _reads, 0.62),
    (API, "call_exact_top1", _exact, 0.45),
    (API, "certified at 10%: coverage_calls", _covered(0.10), 0.20),
    (OFFICE, "call_exact_top1", _exact, 0.30),
    (HOME_AGAIN, "call_exact_top1", _exact, 0.85),
    (HOME_AGAIN, "certified at 5%: coverage_calls", _covered(0.05), 0.60),
    (HOME_AGAIN, "certified at 2%: coverage_calls", _covered(0.02), 0.40),
)


def measure_quality(lines: Lines, processes: int, only: str | None = None) -> None:
    """Adds a line for every floor, and for every set and level one for the pooled error."""
    sets = [one for one in SETS if only is None or str(one) == only]
    tasks = [Task(one.name, seed, by=one.by) for one in sets for seed in SEEDS]
    found: dict[Set, list[Judged]] = {one: [] for one in sets}
    start = time.monotonic()
    for judged in measure(tasks, processes):
        one = Set(judged.task.name, judged.task.by)
        found[one].append(judged)
        evaluation = judged.evaluation
        covered = ", ".join(
            f"{name} {cell.coverage_calls:.3f} ({cell.errors} of {cell.answered})"
            for name, cell in evaluation.certified.items()
        )
        lines.say(
            f"      {one} seed {judged.task.seed}: exact {evaluation.call_exact_top1:.3f}, reads "
            f"in three {evaluation.read_only.top3:.3f}, writes {evaluation.writes.top1:.3f}; "
            f"certified {covered} ({time.monotonic() - start:.0f} s)"
        )
    for number, (one, what, figure, floor) in enumerate(FLOORS, 1):
        if one in found:
            value = mean(figure(judged.evaluation) for judged in found[one])
            lines.at_least(f"1.{number}", f"{one}, {what}", value, floor)
    for number, (one, several) in enumerate(found.items(), len(FLOORS) + 1):
        for letter, level in zip("abc", LEVELS, strict=True):
            pooled(lines, f"1.{number}{letter}", str(one), several, level)


def pooled(lines: Lines, identity: str, name: str, judged: list[Judged], level: float) -> None:
    """Errors over all splits together against the bound; answering nothing holds any bound."""
    cells = [one.evaluation.certified[level_name(level)] for one in judged]
    answered, errors = sum(c.answered for c in cells), sum(c.errors for c in cells)
    share = errors / answered if answered else 0.0
    lines.add(
        identity,
        f"{name}, pooled error of what is answered at {level:.0%}",
        f"<= {level:g}",
        f"{share:.4f} ({errors} of {answered})" if answered else "nothing answered",
        share <= level,
    )
