"""Drawn worlds that certificates are tried on: a consistent agent, learners, several scopes."""

from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.scopes import ScopedAnswers

Floats = NDArray[np.float64]


class Drawn(msgspec.Struct, frozen=True):
    """Answers of which the truth is known. `error`: the probability that each is wrong."""

    score: Floats
    wrong: NDArray[np.bool_]
    task: NDArray[np.int64]
    error: Floats


_SURENESS = (0.0, 0.33, 0.4, 0.48, 0.54, 0.6, 0.66, 0.71, 0.78, 1.0)
_ERROR = (0.0002, 0.0005, 0.006, 0.05, 0.1, 0.11, 0.22, 0.5, 0.6, 0.97)
"""Error by the share of calls that is surer: with the best threshold in hindsight about .60, .70
and .78 of the calls could be answered at 2, 5 and 10%, as of the agent the pilot held out."""


def consistent_agent(random: np.random.Generator, tasks: int, runs: int) -> Drawn:
    """An agent like the one that was held out: `runs` runs of each task, nine calls a run, each
    situation met again in every run; errors hang together by task and, more, by situation (normal
    causes: not the law that the model-based class assumes)."""
    sureness: list[Floats] = []
    task: list[NDArray[np.int64]] = []
    cause: list[Floats] = []
    for number in range(tasks):
        calls = max(3, int(random.poisson(9)))
        place, situation, whole = random.random(calls), random.normal(size=calls), random.normal()
        for _ in range(runs):
            sureness.append(np.clip(place + random.normal(0.0, 0.03, calls), 0.0, 1.0))
            task.append(np.full(calls, number))
            own = random.normal(size=calls)
            cause.append(0.35**0.5 * whole + 0.45**0.5 * situation + 0.2**0.5 * own)
    error = np.interp(np.concatenate(sureness), _SURENESS, _ERROR)
    limit = np.array([NormalDist().inv_cdf(one) for one in error.tolist()])
    return Drawn(1.0 - error, np.concatenate(cause) < limit, np.concatenate(task), error)


def hindsight(drawn: Drawn, level: float) -> float:
    """The share of answers above the best threshold for these very errors."""
    order = np.argsort(-drawn.score, kind="stable")
    error = np.cumsum(drawn.wrong[order]) / np.arange(1, len(order) + 1)
    within = np.flatnonzero(error <= level)
    return float(within[-1] + 1) / len(order) if len(within) else 0.0


def several_tools(random: np.random.Generator, tasks: int, correlation: float, error: float) -> (
    ScopedAnswers
):  # fmt: skip
    """Answers of four tools, reads and writes, all wrong with the same probability, whatever the
    score; errors of a task share its difficulty."""
    sizes = 1 + random.poisson(random.gamma(2.0, 5.0, tasks))
    task = np.repeat(np.arange(tasks), sizes)
    n = len(task)
    if correlation:
        spread = (1.0 - correlation) / correlation
        chance = random.beta(error * spread, (1.0 - error) * spread, tasks)[task]
    else:
        chance = np.full(n, error)
    tool = random.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    return ScopedAnswers(
        score=random.uniform(0.9, 1.0, n),
        wrong=random.random(n) < chance,
        task=task.astype(np.int64),
        recalled=np.zeros(n, np.bool_),
        write=tool == 2,
        tool=tool.astype(np.int64),
        tools=("find", "read", "change", "list"),
    )


class Learned(msgspec.Struct, frozen=True):
    """What cross-fitting gives, and what its members do on many new tasks: scores and errors of
    an answer by a member drawn at random."""

    score: Floats
    wrong: NDArray[np.bool_]
    task: NDArray[np.int64]
    new_score: Floats
    new_wrong: NDArray[np.bool_]
    new_task: NDArray[np.int64]


_FOLDS = 5
_NEW_TASKS = 3_000


def cross_fitted(
    random: np.random.Generator, tasks: int, features: int, memory: float = 0.0
) -> Learned:
    """Five linear classifiers, each learned on four fifths of the tasks and judged on the rest;
    fewer answers than some ten times the features make them unstable. `memory`: of how much the
    margin is vouched for by the nearest learned answer, which changes with single tasks."""
    weights = random.normal(size=features) / features**0.5

    def answers(count: int) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
        sizes = 1 + random.poisson(5.0, count)
        task = np.repeat(np.arange(count), sizes)
        seen = 0.8 * random.normal(size=(len(task), features))
        seen += 0.6 * random.normal(size=(count, features))[task]
        cause = 0.2 * random.normal(size=len(task)) + 0.2 * random.normal(size=count)[task]
        return seen, seen @ weights + cause > 0.0, task.astype(np.int64)

    seen, truth, task = answers(tasks)
    new_seen, new_truth, new_task = answers(_NEW_TASKS)
    fold = random.permutation(tasks) % _FOLDS
    member = random.integers(0, _FOLDS, _NEW_TASKS)
    score, wrong = np.zeros(len(task)), np.zeros(len(task), np.bool_)
    new_score, new_wrong = np.zeros(len(new_task)), np.zeros(len(new_task), np.bool_)
    for number in range(_FOLDS):
        learned = fold[task] != number
        gram = seen[learned].T @ seen[learned] + np.eye(features)
        fitted = np.linalg.solve(gram, seen[learned].T @ (2.0 * truth[learned] - 1.0))
        judged, met = ~learned, member[new_task] == number
        for at, into_score, into_wrong, x, y in (
            (judged, score, wrong, seen, truth),
            (met, new_score, new_wrong, new_seen, new_truth),
        ):
            margin = x[at] @ fitted
            sure = np.abs(margin)
            if memory:
                near = np.argmax(x[at] @ seen[learned].T, axis=1)
                agrees = (margin > 0.0) == truth[learned][near]
                sure = sure + memory * agrees
            into_score[at] = sure
            into_wrong[at] = (margin > 0.0) != y[at]
    return Learned(score, wrong, task, new_score, new_wrong, new_task)


def true_error(learned: Learned, threshold: float, *, exact: bool) -> float:
    """The share of wrong answers (exact: of tasks touched by one) among new ones that act."""
    acts = learned.new_score >= threshold
    if not acts.any():
        return 0.0
    if not exact:
        return float(learned.new_wrong[acts].mean())
    wrong = acts & learned.new_wrong
    return len(np.unique(learned.new_task[wrong])) / len(np.unique(learned.new_task[acts]))


def mean(values: Sequence[float]) -> float:
    """0 of nothing."""
    return sum(values) / len(values) if values else 0.0
