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

_CORRELATIONS = np.array(
    [0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
)
_UNCUT = 64
"""Up to so many answers the law of their errors is computed in full."""

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
    low, high = 0.0, 1.0
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
    length = min(n, max(errors + math.ceil(n * p + 12 * spread), _UNCUT)) + 1
    length = 1 << (length - 1).bit_length()
    tables = _Rising(int(sizes.max()), p, np.array([correlation]))
    kinds, counts = np.unique(sizes, return_counts=True)
    laws = np.zeros((len(kinds), length))
    for row, size in zip(laws, kinds.tolist(), strict=True):
        law = np.exp(tables.log_law(size))
        for start in range(0, size + 1, length):
            part = law[start : start + length]
            row[: len(part)] += part
    total = np.fft.irfft(_product(np.fft.rfft(laws), counts), length)
    return float(np.clip(total[: errors + 1].sum(), 0.0, 1.0))


def _product(factors: NDArray[np.complex128], powers: NDArray[np.int64]) -> NDArray[np.complex128]:
    """The product of all factors (rows), each to its power, by squaring them all together."""
    product = np.ones(factors.shape[1], np.complex128)
    for bit in reversed(range(int(powers.max()).bit_length())):
        product *= product
        for row in np.flatnonzero(powers >> bit & 1):
            product *= factors[row]
    return product


def correlation_upper(sizes: NDArray[np.int64], errors: NDArray[np.int64]) -> float:
    """The largest correlation the data do not rule out at 95% (profile likelihood), at most
    MAX_CORRELATION; that maximum where there are no errors to learn it from."""
    n, wrong = int(sizes.sum()), int(errors.sum())
    if wrong == 0:
        return MAX_CORRELATION
    tables = _Rising(int(sizes.max()), (wrong + 0.5) / (n + 1.0), _CORRELATIONS)
    likelihood = (
        tables.wrong[:, errors] + tables.right[:, sizes - errors] - tables.every[:, sizes]
    ).sum(axis=1)
    left = np.flatnonzero(likelihood >= likelihood.max() - _DROP)
    return float(_CORRELATIONS[left[-1]])


def design_effect(sizes: NDArray[np.int64], correlation: float) -> float:
    """By how much clustering inflates the variance of an error share (Kish, Survey Sampling, 1965):
    1 + (m - 1) rho, with m the size of the task of a random answer."""
    n = float(sizes.sum())
    if n == 0.0:
        return 1.0
    m = float((sizes.astype(np.float64) ** 2).sum()) / n
    return 1.0 + (m - 1.0) * correlation


class _Rising:
    """Logarithms of the rising factorials a beta-binomial law is made of, for sizes 0..`largest`;
    one row per correlation. Scaled by the correlation, so that 0 (binomial) needs no special case.
    """

    def __init__(self, largest: int, p: float, correlations: NDArray[np.float64]) -> None:
        rho = correlations[:, None]
        steps = np.arange(largest) * rho
        self.wrong = _cumulated_logs(p * (1 - rho) + steps)
        self.right = _cumulated_logs((1 - p) * (1 - rho) + steps)
        self.every = _cumulated_logs((1 - rho) + steps)
        self.factorials = _log_factorials(largest)

    def log_law(self, size: int) -> NDArray[np.float64]:
        """Log-probabilities of 0..size errors in a task, at the first correlation."""
        logs = self.factorials[: size + 1]
        choose = logs[size] - logs - logs[::-1]
        return choose + self.wrong[0, : size + 1] + self.right[0, size::-1] - self.every[0, size]


def _cumulated_logs(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 and the cumulated logarithms along the last axis."""
    sums = np.cumsum(np.log(numbers), axis=-1)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def _log_factorials(n: int) -> NDArray[np.float64]:
    return _cumulated_logs(np.arange(1.0, n + 1.0))
