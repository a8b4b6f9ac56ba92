"""Answers in the order of their confidence, and the sequence of thresholds that is tested on them.

Everything here depends on scores and tasks alone, except `Answers.errors`.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROWTH = 1.03
"""Each prefix of the sequence is so much longer than the one before. Denser than that, more errors
end it by chance; with 1.1, on drawn agents whose confidences fall off steeply, it stops 3 points of
coverage short of what could be had."""

_COARSE = 1.1
"""The same where prefixes are only compared."""

LIKELY_CORRELATION = 0.2
"""The clustering supposed when prefixes are compared, before any error is looked at."""

_SHORTEST = 8
"""Where to begin to look for a promising prefix: fewer answers certify nothing of interest."""

Test = Callable[[NDArray[np.int64], NDArray[np.int64], float], float]
"""(answers per task, errors per task, max_error) -> p-value of "the error is above max_error"."""

Promise = Callable[["Answers", int, float], float]
"""(answers, n, max_error) -> the p-value expected of the n surest, were their scores true."""


class Answers:
    """Answers from the surest to the least sure; a prefix is all at or above a threshold.

    `score`, `wrong`, `task`: see `certificate.certify`, whose errors these are.
    """

    def __init__(
        self,
        score: NDArray[np.floating[Any]],
        wrong: NDArray[np.bool_],
        task: NDArray[np.integer[Any]],
        *,
        calibrated: bool = False,
        promising: float | None = None,
    ) -> None:
        if not len(score) == len(wrong) == len(task):
            raise ValueError(f"{len(score)} scores, {len(wrong)} outcomes, {len(task)} tasks")
        if not np.isfinite(score).all():
            raise ValueError("a score is not a finite number: leave out what cannot act")
        if calibrated and len(score) and not 0.0 <= score.min() <= score.max() <= 1.0:
            raise ValueError("calibrated scores are probabilities: they lie between 0 and 1")
        self.calibrated = calibrated
        self.promising = promising
        order = np.argsort(-score, kind="stable")
        self.score = score[order].astype(np.float64)
        self.wrong = wrong[order].astype(np.int64)
        self.task = np.unique(task, return_inverse=True)[1].reshape(-1)[order]
        # Equal scores stand or fall together: a prefix ends only where the score changes.
        self.ends = (
            np.flatnonzero(np.append(self.score[1:] != self.score[:-1], True)[: len(score)]) + 1
        )
        self.expected = np.cumsum(1.0 - self.score)

    def __len__(self) -> int:
        return len(self.score)

    def with_bad_luck(self) -> "Answers":
        """The same, expected to be wrong a standard deviation more often than the scores say, with
        errors that correlate by LIKELY_CORRELATION: what one draw in six exceeds."""
        other = copy.copy(self)
        places = np.arange(1, len(self) + 1)
        size = np.cumsum(np.bincount(self.task)[self.task]) / places
        effect = 1.0 + (size - 1.0) * LIKELY_CORRELATION
        other.expected = self.expected + np.sqrt(self.expected * effect)
        return other

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

    def prefixes(self, start: int, *, coarse: bool = False) -> list[int]:
        """The prefixes to look at, from strict to loose; none where `start` is 0."""
        if not start:
            return []
        growth = _COARSE if coarse else _GROWTH
        total = len(self)
        steps = math.ceil(math.log(total / start) / math.log(growth))
        marks = [min(total, math.floor(start * growth**i)) for i in range(steps)]
        return sorted({self.prefix_from(n) for n in (*marks, total)})


def fixed_sequence(
    answers: Answers, alpha: float, delta: float, test: Test, promise: Promise
) -> tuple[int, int | None]:
    """(passed, failed): the longest prefix of answers that passed (0: none), and the one that
    failed (None: all passed, or there are too few answers to pass at all).

    The sequence starts, among the prefixes that would pass without an error, at the one that would
    pass most clearly if calibrated scores hold, and runs to everything. Scores that are none may
    come with one from which answers are `promising`: it starts with all of those. Where nothing is
    promised it starts where a single error would be forgiven, or, with too few answers for that,
    where none would. (Started at the first prefix that
    could pass, one early error ends it: over recorded sessions that certified between a third and
    nothing of this.)
    """
    possible = _first_prefix(answers, alpha, delta, test, 0)
    if not possible:
        return 0, None
    start = (
        _most_promising(answers, alpha, promise, possible)
        or _promising(answers, possible)
        or _first_prefix(answers, alpha, delta, test, 1)
        or possible
    )
    passed = 0
    for n in answers.prefixes(start):
        if test(answers.sizes(n), answers.errors(n), alpha) > delta:
            return passed, n
        passed = n
    return passed, None


def promised(
    answers: Answers, alpha: float, delta: float, promise: Promise, at_least: int = 1
) -> int:
    """About how many answers would be certified, were their scores true; 0 where those are not
    calibrated, or where it would be fewer than `at_least`."""
    if not answers.calibrated or not len(answers):
        return 0
    for n in reversed(answers.prefixes(_shortest(answers))):
        if n < at_least:
            break
        if promise(answers, n, alpha) <= delta:
            return n
    return 0


def _most_promising(answers: Answers, alpha: float, promise: Promise, possible: int) -> int:
    """The prefix, not shorter than what is `possible`, whose p-value would be least were each
    answer wrong with probability 1 - score; 0 where scores are not calibrated or expect too many
    errors everywhere."""
    if not answers.calibrated:
        return 0
    best, promising = 1.0, 0
    for n in answers.prefixes(possible, coarse=True):
        p = promise(answers, n, alpha)
        if p < best:
            best, promising = p, n
    return promising


def _promising(answers: Answers, possible: int) -> int:
    """All that is promising, or what is possible if that is more; 0 where nothing is."""
    if answers.promising is None:
        return 0
    count = int(np.count_nonzero(answers.score >= answers.promising))
    return max(possible, count) if count else 0


def _shortest(answers: Answers) -> int:
    return answers.prefix_from(min(_SHORTEST, len(answers)))


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
