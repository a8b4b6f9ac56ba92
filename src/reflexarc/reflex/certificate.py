"""Which answers may act: the loosest confidence threshold with a certified bound on errors.

Unit: one answer (a call that would act). Claim: over tasks drawn as the learning tasks were, the
share of answers at or above the threshold that System 2 would have made otherwise is at most
`max_error`, with probability `confidence_level` over the tasks the certificate was judged on.

Procedure: fixed-sequence testing (Angelopoulos et al., "Learn then test", 2021; Wiens, Pharm. Stat.
2, 2003). A sequence of thresholds, from strict to loose, is laid down from scores and tasks alone,
before any error is looked at; each is tested at the full level 1 - confidence_level; the first that
fails ends the sequence. Each test asks how probable so few errors would be if answers were wrong
with probability `max_error` and errors clustered in tasks as much as these data allow
(`clustered.py`).

Assumes: scores and errors of a task come from models that did not learn from that task; tasks are
independent; within a task errors are exchangeable, with an intra-class correlation of at most .5;
tasks to come are like those learned from. A change of work breaks it: docs/certificate.md.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex import clustered
from reflexarc.reflex.clustered import binomial_upper as binomial_upper

PROCEDURE = "fixed sequence, beta-binomial over tasks"

_GROWTH = 1.1
"""Each prefix of the sequence is so much longer than the one before: thresholds lie dense where few
answers stand above them. Every threshold is also a chance to stop, so denser is not better."""

_SHORTEST = 8
"""Where to begin to look for a promising prefix: fewer answers certify nothing of interest."""

_LIKELY_CORRELATION = 0.2
"""The clustering supposed when prefixes are compared, before any error is looked at."""

Test = Callable[[NDArray[np.int64], NDArray[np.int64], float], float]
"""(answers per task, errors per task, max_error) -> p-value of "the error is above max_error"."""


class LevelBound(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one level of error may do. Without a certificate `threshold` is infinite (and left out
    in JSON, which has no infinity): nothing reaches it.

    `n` answers of `tasks` tasks stand at or above the threshold, `errors` of them wrong; without a
    certificate these describe the surest answers that came nearest to one, and `missing` says about
    how many more such answers, all right and in tasks of their own, would have done (0 with a
    certificate). `design_effect`: by how much clustering inflates the variance (1.0: not at all).
    """

    max_error: float
    confidence_level: float
    n: int
    errors: int
    tasks: int
    design_effect: float
    missing: int
    procedure: str = PROCEDURE
    threshold: float = math.inf

    @property
    def granted(self) -> bool:
        """Whether any answer may act under it."""
        return math.isfinite(self.threshold)


def certify(
    score: NDArray[np.floating[Any]],
    wrong: NDArray[np.bool_],
    task: NDArray[np.integer[Any]],
    *,
    alphas: Sequence[float] = (0.02, 0.05, 0.10),
    delta: float = 0.1,
    calibrated: bool = False,
) -> list[LevelBound]:
    """One certificate per level of error in `alphas`, in that order.

    `score`, `wrong` and `task`, each of n entries: the confidence of a cross-fitted answer (higher
    is surer), whether System 2 did otherwise, and its task. Only answers that may act belong here.
    `calibrated`: the scores are probabilities of being right, and may say where to begin; where
    they mislead, less is certified, never more.
    Each level holds with probability 1 - delta; that all hold at once is not claimed. Raises
    ValueError for lengths that differ, scores that are not finite, and levels outside (0, 1).
    """
    answers = Answers(score, wrong, task, calibrated=calibrated)
    if not 0.0 < delta < 1.0 or not all(0.0 < a < 1.0 for a in alphas):
        raise ValueError(f"levels must lie between 0 and 1: alphas {tuple(alphas)}, delta {delta}")
    return [_certify_level(answers, alpha, delta) for alpha in alphas]


class Answers:
    """Cross-fitted answers from the surest to the least sure; a prefix is all above a threshold."""

    def __init__(
        self,
        score: NDArray[np.floating[Any]],
        wrong: NDArray[np.bool_],
        task: NDArray[np.integer[Any]],
        *,
        calibrated: bool = False,
    ) -> None:
        if not len(score) == len(wrong) == len(task):
            raise ValueError(f"{len(score)} scores, {len(wrong)} outcomes, {len(task)} tasks")
        if not np.isfinite(score).all():
            raise ValueError("a score is not a finite number: leave out what cannot act")
        if calibrated and len(score) and not 0.0 <= score.min() <= score.max() <= 1.0:
            raise ValueError("calibrated scores are probabilities: they lie between 0 and 1")
        self.calibrated = calibrated
        order = np.argsort(-score, kind="stable")
        self.score = score[order].astype(np.float64)
        self.wrong = wrong[order].astype(np.int64)
        self.task = np.unique(task, return_inverse=True)[1].reshape(-1)[order]
        # Equal scores stand or fall together: a prefix ends only where the score changes.
        self.ends = (
            np.flatnonzero(np.append(self.score[1:] != self.score[:-1], True)[: len(score)]) + 1
        )

    def sizes(self, n: int) -> NDArray[np.int64]:
        """Answers per task among the n surest, tasks without any left out."""
        counts = np.bincount(self.task[:n])
        return counts[counts > 0]

    def errors(self, n: int) -> NDArray[np.int64]:
        """Errors per task, aligned with `sizes`."""
        counts = np.bincount(self.task[:n])
        errors = np.bincount(self.task[:n], weights=self.wrong[:n]).astype(np.int64)
        return errors[counts > 0]

    def prefix_from(self, n: int) -> int:
        """The shortest prefix of at least n answers that ends where the score changes."""
        return int(self.ends[np.searchsorted(self.ends, n)])


def fixed_sequence(
    answers: Answers, alpha: float, delta: float, test: Test
) -> tuple[int, int | None]:
    """(passed, failed): the longest prefix of answers that passed (0: none), and the one that
    failed (None: all passed, or there are too few answers to pass at all).

    The sequence starts at the prefix that would pass most clearly if calibrated scores hold, and
    runs to everything. Where the scores promise nothing it starts where a single error would be
    forgiven, or, with too few answers for that, where none would. All of that depends on scores
    and tasks, not on errors. (Started at the first prefix that could pass, one early error ends
    it: over recorded sessions that certified between a third and nothing of this.)
    """
    start = (
        _most_promising(answers, alpha)
        or _first_prefix(answers, alpha, delta, test, 1)
        or _first_prefix(answers, alpha, delta, test, 0)
    )
    passed = 0
    for n in _sequence(answers, start):
        if test(answers.sizes(n), answers.errors(n), alpha) > delta:
            return passed, n
        passed = n
    return passed, None


def _sequence(answers: Answers, start: int) -> list[int]:
    """The prefixes to test, from strict to loose; none where start is 0."""
    if not start:
        return []
    total = len(answers.score)
    steps = math.ceil(math.log(total / start) / math.log(_GROWTH))
    marks = [min(total, math.floor(start * _GROWTH**i)) for i in range(steps)]
    return sorted({answers.prefix_from(n) for n in (*marks, total)})


def _most_promising(answers: Answers, alpha: float) -> int:
    """The prefix whose p-value would be least if each answer were wrong with probability
    1 - score; 0 where scores are not calibrated or expect too many errors everywhere."""
    if not answers.calibrated or not len(answers.score):
        return 0
    expected = np.cumsum(1.0 - answers.score)
    best, promising = 1.0, 0
    for n in _sequence(answers, answers.prefix_from(min(_SHORTEST, len(answers.score)))):
        wrong = round(float(expected[n - 1]))
        if wrong < alpha * n:
            p = clustered.clustered_tail(wrong, answers.sizes(n), alpha, _LIKELY_CORRELATION)
            if p < best:
                best, promising = p, n
    return promising


def _first_prefix(answers: Answers, alpha: float, delta: float, test: Test, forgiven: int) -> int:
    """The shortest prefix that would pass with so many errors (0 or 1, in its largest task); 0
    where even all answers would not."""
    low, high = 0, len(answers.ends)
    while low < high:
        middle = (low + high) // 2
        sizes = answers.sizes(int(answers.ends[middle]))
        errors = np.zeros_like(sizes)
        errors[np.argmax(sizes)] = forgiven
        if test(sizes, errors, alpha) > delta:
            low = middle + 1
        else:
            high = middle
    return int(answers.ends[low]) if low < len(answers.ends) else 0


def clustered_test(sizes: NDArray[np.int64], errors: NDArray[np.int64], alpha: float) -> float:
    """The p-value that certificates rest on: exact under beta-binomial errors, at the largest
    correlation that the errors do not rule out."""
    n, wrong = int(sizes.sum()), int(errors.sum())
    if wrong >= alpha * n:
        return 1.0
    return clustered.clustered_tail(wrong, sizes, alpha, clustered.correlation_upper(sizes, errors))


def _certify_level(answers: Answers, alpha: float, delta: float) -> LevelBound:
    n, failed = fixed_sequence(answers, alpha, delta, clustered_test)
    missing, threshold = 0, math.inf
    if n:
        threshold = float(answers.score[n - 1])
    else:
        missing, n = _nearest(answers, alpha, delta, failed or len(answers.score))
    sizes, errors = answers.sizes(n), answers.errors(n)
    correlation = clustered.correlation_upper(sizes, errors)
    return LevelBound(
        max_error=alpha,
        confidence_level=round(1.0 - delta, 9),
        n=n,
        errors=int(errors.sum()),
        tasks=len(sizes),
        design_effect=round(clustered.design_effect(sizes, correlation), 3),
        missing=missing,
        threshold=threshold,
    )


def _nearest(answers: Answers, alpha: float, delta: float, failed: int) -> tuple[int, int]:
    """(missing, n) of the prefix, not longer than the one that failed, that lacks least: further
    answers, all right, in further tasks of the usual size, until the test would pass."""
    if not failed:
        nothing = np.zeros(0, np.int64)
        return _missing(nothing, nothing, alpha, delta, None) or 0, 0
    found: tuple[int, int] | None = None
    for n in _sequence(answers, answers.prefix_from(min(failed, 10))):
        if n <= failed:
            less_than = found[0] if found else None
            missing = _missing(answers.sizes(n), answers.errors(n), alpha, delta, less_than)
            found = (missing, n) if missing is not None else found
    return found or (0, failed)


def _missing(
    sizes: NDArray[np.int64],
    errors: NDArray[np.int64],
    alpha: float,
    delta: float,
    less_than: int | None,
) -> int | None:
    usual = max(1, round(float(sizes.mean()))) if len(sizes) else 1
    wrong, correlation = int(errors.sum()), clustered.correlation_upper(sizes, errors)

    def passes(tasks: int) -> bool:
        more = np.append(sizes, np.full(tasks, usual))
        return clustered.clustered_tail(wrong, more, alpha, correlation) <= delta

    if less_than is None:
        low, high = 0, 1
        while not passes(high):
            low, high = high, 2 * high
    else:
        low, high = 0, (less_than - 1) // usual
        if high < 1 or not passes(high):
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high * usual
