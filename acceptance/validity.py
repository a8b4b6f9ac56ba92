"""`make validity`: do certificates keep their promise? Writes results/validity.json.

python -m acceptance.validity [--repetitions N] [--only PART]... [--processes N] [--seed N]

Tasks are drawn whose truth is known; what is certified is compared with it. Required is that at
most delta = .10 of the certificates are false, plus three standard errors of a share estimated so
often. Lines "without promise" show what happens where an assumption fails: nothing is required.
About eight minutes on two cores. The exit status is 0 where every line holds.
"""

import argparse
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import msgspec

from acceptance import validity_trials as trials
from acceptance.lines import Lines
from reflexarc.reflex.simulate import Trials

REPETITIONS = 500
DELTA = trials.DELTA
PARTS = ("answers", "tasks", "relearned", "around", "members", "failing", "power")
_CORRELATIONS = (0.0, 0.1, 0.3, 0.5)
_SIZES = ((30, 9.0), (69, 27.0), (100, 5.0), (300, 3.0), (1000, 3.0), (2000, 3.0))


class Trial(msgspec.Struct, frozen=True):
    """One line: a function of `validity_trials`, its arguments but repetitions and seed, by what
    share of the repetitions it is tried. `required`: at most delta ("kept"), more than delta
    ("broken", where a safeguard is left out on purpose), or nothing ("shown")."""

    identity: str
    what: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    required: str = "kept"
    more: int = 1


def tolerated(repetitions: int) -> float:
    """DELTA and three standard errors of a share estimated so often."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / repetitions)


def planned(parts: Sequence[str]) -> list[Trial]:
    """The trials of these parts, in their order (`power` is no trial of a promise)."""
    makers = {
        "answers": _answers, "tasks": _tasks, "relearned": _relearned, "around": _around,
        "members": _members, "failing": _failing,
    }  # fmt: skip
    return [trial for part in parts if part in makers for trial in makers[part]()]


def run(trial: Trial, repetitions: int, seed: int) -> Any:
    """What the function of a trial gives."""
    return trial.function(*trial.arguments, repetitions, seed)


def _hardest(
    identity: str,
    what: str,
    certificate_class: str,
    tasks: int,
    answers: float,
    correlation: float,
    *,
    alpha: float = 0.05,
    law: str = "beta",
    calibrated: bool = False,
    relearned: bool = False,
    spent: bool = True,
    required: str = "kept",
) -> Trial:
    arguments = (
        certificate_class, tasks, answers, correlation, alpha, law, calibrated, relearned, spent,
    )  # fmt: skip
    return Trial(identity, what, trials.hardest, arguments, required)


def _answers() -> list[Trial]:
    found = [
        _hardest("1a", f"{tasks} tasks x {each:g}, correlation {rho:g}", "model-based",
                 tasks, each, rho)
        for tasks, each in _SIZES for rho in _CORRELATIONS
    ]  # fmt: skip
    found += [
        _hardest("1b", f"{alpha:.0%} of 69 tasks x 27, correlation {rho:g}", "model-based",
                 69, 27.0, rho, alpha=alpha)
        for alpha in (0.02, 0.10) for rho in _CORRELATIONS
    ]  # fmt: skip
    found += [
        _hardest("1c", f"{tasks} tasks x {each:g}, correlation {rho:g} by a shared cause",
                 "model-based", tasks, each, rho, law="shared")
        for tasks, each in ((30, 9.0), (100, 5.0), (300, 3.0)) for rho in (0.1, 0.3, 0.5)
    ]  # fmt: skip
    found += [
        _hardest("1d", f"100 tasks x 5, correlation {rho:g}, scores that lie", "model-based",
                 100, 5.0, rho, calibrated=True)
        for rho in _CORRELATIONS
    ]  # fmt: skip
    found += [
        Trial("1e", f"{tasks} tasks x {each:g}, correlation {rho:g}, surer answers better",
              trials.rising, ("model-based", tasks, each, rho, 0.05, 0.0, 1.0))
        for tasks, each in ((100, 5.0), (1000, 3.0)) for rho in (0.0, 0.3, 0.5)
    ]  # fmt: skip
    return found


def _tasks() -> list[Trial]:
    found = [
        _hardest("2a", f"{alpha:.0%} of {tasks} tasks x {each:g}, correlation {rho:g}", "exact",
                 tasks, each, rho, alpha=alpha, law="touched")
        for tasks, each, alpha in (
            (30, 9.0, 0.10), (69, 27.0, 0.05), (100, 5.0, 0.05), (300, 3.0, 0.02),
            (300, 3.0, 0.05), (1000, 3.0, 0.05), (2000, 3.0, 0.02),
        )
        for rho in (0.0, 0.5)
    ]  # fmt: skip
    found += [
        Trial("2b", f"{tasks} tasks x {each:g}, correlation {rho:g}, surer answers better",
              trials.rising, ("exact", tasks, each, rho, 0.05, 0.0, 1.0))
        for tasks, each in ((100, 5.0), (300, 3.0), (1000, 3.0)) for rho in (0.0, 0.3, 0.5)
    ]  # fmt: skip
    found += [
        Trial("2c", f"{tasks} tasks x 5, correlation 0.9, larger tasks harder", trials.rising,
              ("exact", tasks, 5.0, 0.9, 0.05, 1.0, 1.0))
        for tasks in (300, 1000)
    ]  # fmt: skip
    return found


def _relearned() -> list[Trial]:
    classes = (
        ("model-based", "beta", (30, 100, 300, 2000)),
        ("exact", "touched", (100, 300, 2000)),
    )
    found: list[Trial] = []
    for name, law, sizes in classes:
        found += [
            _hardest("3a", f"{name}, learned again from 30 to {tasks} tasks, correlation {rho:g}",
                     name, tasks, 3.0, rho, law=law, relearned=True)
            for tasks in sizes for rho in _CORRELATIONS
        ]  # fmt: skip
        found += [
            _hardest("3b", f"{name}, the same, but the whole budget spent on each attempt, "
                     f"correlation {rho:g}", name, 300, 3.0, rho, law=law, relearned=True,
                     spent=False, required="broken")
            for rho in (0.3, 0.5)
        ]  # fmt: skip
    return found


def _around() -> list[Trial]:
    found = [
        Trial("4a", f"any one scope of several, 150 tasks x 11, correlation {rho:g}",
              trials.scopes_falsely, (150, rho))
        for rho in (0.0, 0.1, 0.3)
    ]  # fmt: skip
    found += [
        Trial("4b", f"frozen thresholds confirmed by {tasks} later tasks, {name}, "
              f"correlation {rho:g}", trials.frozen, (name, tasks, rho))
        for name in ("model-based", "exact") for tasks in (60, 300) for rho in (0.0, 0.5)
    ]  # fmt: skip
    for identity, what, function in (
        ("4c", "bound of the share of tasks touched", trials.touched_missed),
        ("4d", "bound of wrong acts of a task", trials.wrong_missed),
    ):
        found += [
            Trial(identity, f"{what}, {tasks} tasks x 5, correlation {rho:g}", function,
                  (tasks, rho))
            for tasks in (300, 1000) for rho in (0.0, 0.3)
        ]  # fmt: skip
    return found


def _members() -> list[Trial]:
    found = [
        Trial("5", f"{name}: five members of {features} features, {tasks} tasks"
              + (", leaning on the nearest case" if memory else ""),
              trials.members, (name, tasks, features, memory, 0.10))
        for name in ("model-based", "exact")
        for tasks, features, memory in ((30, 6, 0.0), (60, 20, 0.0), (100, 30, 0.0), (60, 8, 1.0))
    ]  # fmt: skip
    found += [
        Trial("5b", f"memory of {requests} requests, {runs} runs each, {what}",
              trials.recalled, (requests, runs, unsure, 0.05))
        for requests, runs, unsure, what in (
            (60, 3, 0.0, "all wrong slightly too often"),
            (60, 3, 0.15, "some at odds"),
            (100, 2, 0.15, "some at odds"),
            (20, 10, 0.2, "some at odds"),
        )
    ]  # fmt: skip
    return found


def _failing() -> list[Trial]:
    found = [
        _hardest("6a", f"model-based, correlation {rho:g}, 69 tasks x 27", "model-based",
                 69, 27.0, rho, required="shown")
        for rho in (0.7, 0.9)
    ]  # fmt: skip
    found += [
        Trial("6b", f"model-based, larger tasks harder, correlation {rho:g}, 100 tasks x 9",
              trials.rising, ("model-based", 100, 9.0, rho, 0.05, 1.0, 1.0), "shown")
        for rho in (0.3, 0.5)
    ]  # fmt: skip
    found += [
        Trial("6c", f"{name}, work that drifts: {drift:g} times the error, 300 tasks x 3",
              trials.rising, (name, 300, 3.0, 0.1, 0.05, 0.0, drift), "shown")
        for name in ("model-based", "exact") for drift in (1.2, 2.0)
    ]  # fmt: skip
    return found


def report(lines: Lines, trial: Trial, result: Any, repetitions: int) -> None:
    """One line of what a trial gave."""
    share = result.violated if isinstance(result, Trials) else float(result)
    held = f"{share:.3f}"
    if isinstance(result, Trials):
        held += f" (granted {result.certified:.2f})"
    limit = tolerated(repetitions)
    if trial.required == "kept":
        lines.add(trial.identity, trial.what, f"false <= {limit:.3f}", held, share <= limit)
    elif trial.required == "broken":
        lines.add(trial.identity, trial.what, f"false > {DELTA:g}", held, share > DELTA)
    else:
        lines.add(trial.identity, trial.what, "without promise", held, True)


def report_power(lines: Lines, tasks: int, runs: int, found: dict[str, list[float]]) -> None:
    """What is certified of a consistent agent, beside what the best threshold would have given."""
    what = f"a consistent agent, {tasks} tasks x {runs} runs of 9 calls"
    for at, (level, share) in enumerate(zip(trials.LEVELS, (0.65, 0.9, 0.9), strict=True)):
        best, ours = found["hindsight"][at], found["model-based"][at]
        lines.add(
            "7a", f"certified at {level:.0%} of {what}",
            f">= {share:g} of the {best:.3f} in hindsight",
            f"{ours:.3f} (exact: {found['exact'][at]:.3f})", ours >= share * best,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.validity")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="of each trial")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    arguments = parser.parse_args()
    repetitions: int = arguments.repetitions
    parts: Sequence[str] = arguments.only or PARTS
    lines = Lines("validity", os.cpu_count() or 1)
    for part in PARTS:
        if part not in parts:
            lines.skip(part, asked=True)
    lines.say(f"{repetitions} repetitions of each trial, seed {arguments.seed}")
    listed = planned(parts)
    with ProcessPoolExecutor(arguments.processes) as pool:
        try:
            waiting = [
                pool.submit(run, trial, repetitions, arguments.seed + at)
                for at, trial in enumerate(listed)
            ]
            agents = [
                (tasks, runs, pool.submit(trials.power, tasks, runs, 100, arguments.seed))
                for tasks, runs in ((69, 3), (200, 1))
                if "power" in parts
            ]
            for trial, result in zip(listed, waiting, strict=True):
                report(lines, trial, result.result(), repetitions)
            for tasks, runs, found in agents:
                report_power(lines, tasks, runs, found.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            return 130
    if "power" in parts:
        for tasks, alpha in ((45, 0.05), (114, 0.02)):
            held = (trials.clean(tasks - 1, alpha), trials.clean(tasks, alpha))
            lines.add("7b", f"clean tasks for {alpha:.0%}, exact", f"{tasks}, not {tasks - 1}",
                      f"granted {held}", held == (False, True))  # fmt: skip
    return lines.finish(write=repetitions >= REPETITIONS)


if __name__ == "__main__":
    raise SystemExit(main())
