"""The two classes of certificates: what each claims, its test, its bound, what it lacks.

*model-based*, unit one answer: of the answers that act, at most so many are wrong. Errors of one
task follow a beta-binomial law (`clustered.py`); sharp, and as right as that law.

*exact*, unit one task: of the tasks in which it acts, at most so many see a wrong act. How errors
of one task hang together then does not matter, and the law of the count is binomial (Clopper &
Pearson, Biometrika 26, 1934) if tasks are exchangeable and the threshold was fixed before they were
seen. A random act of a random such task is then wrong at most as often, too; the share among all
acts is not bounded, since tasks with many acts weigh more there. 45 clean tasks give 5% with
confidence .9, and 114 give 2%.
"""

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.answers import LIKELY_CORRELATION, Answers, Promise, Test
from reflexarc.reflex.clustered import (
    binomial_tail,
    binomial_upper,
    clustered_bound,
    clustered_tail,
    clustered_test,
    correlation_under,
)

CertificateClass = Literal["exact", "model-based"]
CLASSES: tuple[CertificateClass, ...] = ("model-based", "exact")

Counts = NDArray[np.int64]
Passes = Callable[[int], bool]
"""Whether so many further clean tasks of the usual size would do."""


class Claim(msgspec.Struct, frozen=True):
    """What belongs to a class. `bound`: (answers per task, errors per task, delta) -> one-sided
    upper bound of what is claimed; `lower`: the same from below; `lacking`: (answers per task,
    errors per task, max_error, delta, usual answers of a task) -> `Passes`."""

    certificate_class: CertificateClass
    procedure: str
    test: Test
    promise: Promise
    bound: Callable[[Counts, Counts, float], float]
    lower: Callable[[Counts, Counts, float], float]
    lacking: Callable[[Counts, Counts, float, float, int], Passes]


def touched_test(sizes: Counts, errors: Counts, alpha: float) -> float:
    """The p-value of "more than alpha of the tasks in which it acts see a wrong act"."""
    return binomial_tail(int(np.count_nonzero(errors)), len(sizes), alpha)


def touched_bound(sizes: Counts, errors: Counts, delta: float) -> float:
    """Upper bound of that share, with confidence 1 - delta; 1.0 of no tasks."""
    return binomial_upper(int(np.count_nonzero(errors)), len(sizes), delta)


def claim_of(certificate_class: CertificateClass) -> Claim:
    """What belongs to this class. Raises ValueError for another name."""
    if certificate_class == "exact":
        return EXACT
    if certificate_class == "model-based":
        return MODEL_BASED
    raise ValueError(f"{certificate_class!r} is no class of certificates: {', '.join(CLASSES)}")


def _answers_promise(answers: Answers, n: int, alpha: float) -> float:
    wrong = round(float(answers.expected[n - 1]))
    if wrong >= alpha * n:
        return 1.0
    return clustered_tail(wrong, answers.sizes(n), alpha, LIKELY_CORRELATION)


def _tasks_promise(answers: Answers, n: int, alpha: float) -> float:
    right = np.log(np.maximum(answers.score[:n], 1e-9))
    clean = np.bincount(answers.task[:n], weights=right)
    touched = round(float((1.0 - np.exp(clean)).sum()))
    tasks = len(answers.sizes(n))
    return binomial_tail(touched, tasks, alpha) if touched < alpha * tasks else 1.0


def _answers_lower(sizes: Counts, errors: Counts, delta: float) -> float:
    return 1.0 - clustered_bound(sizes, sizes - errors, delta)


def _tasks_lower(sizes: Counts, errors: Counts, delta: float) -> float:
    clean = len(sizes) - int(np.count_nonzero(errors))
    return 1.0 - binomial_upper(clean, len(sizes), delta)


def _answers_lacking(
    sizes: Counts, errors: Counts, alpha: float, delta: float, usual: int
) -> Passes:
    wrong, correlation = int(errors.sum()), correlation_under(sizes, errors, alpha)

    def passes(tasks: int) -> bool:
        more = np.append(sizes, np.full(tasks, usual))
        return clustered_tail(wrong, more, alpha, correlation) <= delta

    return passes


def _tasks_lacking(sizes: Counts, errors: Counts, alpha: float, delta: float, _: int) -> Passes:
    touched = int(np.count_nonzero(errors))
    return lambda tasks: binomial_tail(touched, len(sizes) + tasks, alpha) <= delta


MODEL_BASED = Claim(
    "model-based", "fixed sequence, beta-binomial over tasks", clustered_test, _answers_promise,
    clustered_bound, _answers_lower, _answers_lacking,
)  # fmt: skip
EXACT = Claim(
    "exact", "fixed sequence, Clopper-Pearson over tasks", touched_test, _tasks_promise,
    touched_bound, _tasks_lower, _tasks_lacking,
)  # fmt: skip
