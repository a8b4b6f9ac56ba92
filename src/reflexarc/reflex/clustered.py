"""Exact tails of error counts, for independent answers and for errors that cluster in tasks.

Independent answers: the binomial bound of Clopper & Pearson (Biometrika 26, 1934). Clustered ones:
the errors of a task of s answers follow a beta-binomial law of mean p and intra-class correlation
rho (Skellam, J. R. Stat. Soc. B 10, 1948), tasks are independent, and the law of their sum is
computed, not approximated. Pure numpy, since scipy is not installed where decisions are served.
"""

import math

import numpy as np
from numpy.typing import NDArray

MAX_CORRELATION = 0.5
"""What is assumed at most of the intra-class correlation where the data cannot say less. Among the
confident answers of recorded agents .02 to .48 was measured."""

_CORRELATIONS = (
    0.0,
    0.01,
    0.02,
    0.035,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.35,
    0.4,
    0.45,
    0.5,
)
_DROP = 2.706 / 2
"""Correlations whose log-likelihood is this much below the best are ruled out: the upper end of
what remains is a one-sided 95% bound (half the .90 quantile of chi-squared, one degree)."""


def binomial_tail(errors: int, n: int, p: float) -> float:
    """P(at most `errors` errors among n independent answers, each wrong with probability p)."""
    if errors >= n or p <= 0.0:
        return 1.0
    if errors < 0 or p >= 1.0:
        return 0.0
    k = np.arange(errors + 1)
    log_choose = _log_factorials(n)[n] - _log_factorials(n)[k] - _log_factorials(n)[n - k]
    terms = log_choose + k * math.log(p) + (n - k) * math.log1p(-p)
    top = float(terms.max())
    return min(1.0, math.exp(top) * float(np.exp(terms - top).sum()))


def binomial_upper(errors: int, n: int, delta: float = 0.05) -> float:
    """One-sided upper bound of an error probability with confidence 1 - delta, after `errors` wrong
    of n independent answers (Clopper & Pearson 1934): the p at which so few have probability
    delta. 1.0 where nothing was answered.

    Raises ValueError unless 0 <= errors <= n and 0 < delta < 1.
    """
    if not 0 <= errors <= n or not 0.0 < delta < 1.0:
        raise ValueError(f"no bound for {errors} errors of {n} at delta {delta}")
    if errors == n:
        return 1.0
    low, high = errors / n, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if binomial_tail(errors, n, middle) > delta else (low, middle)
    return high


def clustered_tail(errors: int, sizes: NDArray[np.int64], p: float, correlation: float) -> float:
    """P(at most `errors` errors among all answers of tasks with these numbers of answers).

    Each answer is wrong with probability p, two of one task with this correlation. Where the
    support is cut for speed, the result is larger than the exact one, never smaller.
    """
    n = int(sizes.sum())
    if errors >= n:
        return 1.0
    squares = float((sizes.astype(np.float64) ** 2).sum())
    spread = math.sqrt(p * (1 - p) * (n + correlation * (squares - n)))
    # The law modulo a length: what lies beyond it is counted as few errors, which is conservative.
    length = min(n, errors + math.ceil(n * p + 12 * spread)) + 1
    length = 1 << (length - 1).bit_length()
    transform = np.ones(length // 2 + 1, np.complex128)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        law = task_law(int(size), p, correlation)
        if len(law) > length:
            folded = np.pad(law, (0, -len(law) % length)).reshape(-1, length).sum(axis=0)
        else:
            folded = law
        transform *= np.fft.rfft(folded, length) ** int(count)
    total = np.fft.irfft(transform, length)
    return float(np.clip(total[: errors + 1].sum(), 0.0, 1.0))


def task_law(size: int, p: float, correlation: float) -> NDArray[np.float64]:
    """Probabilities of 0..size errors in one task (beta-binomial; binomial at correlation 0)."""
    return np.exp(_log_task_law(size, p, correlation))


def correlation_upper(sizes: NDArray[np.int64], errors: NDArray[np.int64]) -> float:
    """The largest correlation the data do not rule out at 95% (profile likelihood), at most
    MAX_CORRELATION; that maximum where there are no errors to learn it from."""
    n, wrong = int(sizes.sum()), int(errors.sum())
    if wrong == 0:
        return MAX_CORRELATION
    p = (wrong + 0.5) / (n + 1.0)
    pairs, counts = np.unique(np.stack([sizes, errors]), axis=1, return_counts=True)
    likelihood = np.array(
        [
            sum(
                int(c) * float(_log_task_law(int(s), p, rho)[int(e)])
                for (s, e), c in zip(pairs.T, counts, strict=True)
            )
            for rho in _CORRELATIONS
        ]
    )
    left = np.flatnonzero(likelihood >= likelihood.max() - _DROP)
    return _CORRELATIONS[int(left[-1])]


def design_effect(sizes: NDArray[np.int64], correlation: float) -> float:
    """By how much clustering inflates the variance of an error share (Kish, Survey Sampling, 1965):
    1 + (m - 1) rho, with m the size of the task of a random answer."""
    n = float(sizes.sum())
    if n == 0.0:
        return 1.0
    m = float((sizes.astype(np.float64) ** 2).sum()) / n
    return 1.0 + (m - 1.0) * correlation


def _log_task_law(size: int, p: float, correlation: float) -> NDArray[np.float64]:
    # Rising factorials scaled by the correlation, so that 0 needs no case of its own.
    steps = np.arange(size) * correlation
    wrong = _cumulated_logs(p * (1 - correlation) + steps)
    right = _cumulated_logs((1 - p) * (1 - correlation) + steps)
    every = _cumulated_logs((1 - correlation) + steps)
    logs = _log_factorials(size)
    choose = logs[size] - logs - logs[::-1]
    return choose + wrong + right[::-1] - every[size]


def _cumulated_logs(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(numbers))])


def _log_factorials(n: int) -> NDArray[np.float64]:
    return _cumulated_logs(np.arange(1.0, n + 1.0))
