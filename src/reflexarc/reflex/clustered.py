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
_PRECISION = 1e-5
_UNCUT = 64
"""Up to so many answers the law of their errors is computed in full."""

_DROP = 0.2
"""Correlations whose log-likelihood is at most this much below the best are not ruled out, and the
largest of them is taken. With none (the likeliest correlation) tests of 30 to 70 tasks whose errors
correlate by .5 pass up to a sixth too often; with .2 the excess is a tenth of the level or less."""


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
    laws = np.exp(tables.log_laws(kinds))
    if laws.shape[1] > length:
        folds = -(-laws.shape[1] // length)
        laws = np.pad(laws, ((0, 0), (0, folds * length - laws.shape[1])))
        laws = laws.reshape(len(kinds), folds, length).sum(axis=1)
    spectra = np.fft.rfft(laws, length)
    total = np.fft.irfft(_product(spectra, counts), length)
    return float(np.clip(total[: errors + 1].sum(), 0.0, 1.0))


def _product(factors: NDArray[np.complex128], powers: NDArray[np.int64]) -> NDArray[np.complex128]:
    """The product of all factors (rows), each to its power, by squaring them all together."""
    product = np.ones(factors.shape[1], np.complex128)
    for bit in reversed(range(int(powers.max()).bit_length())):
        product *= product
        for row in np.flatnonzero(powers >> bit & 1):
            product *= factors[row]
    return product


def correlation_under(sizes: NDArray[np.int64], errors: NDArray[np.int64], p: float) -> float:
    """The correlation of errors within tasks, were every answer wrong with probability p: about
    the likeliest one, at most MAX_CORRELATION.

    That it is taken under the hypothesis tested, and not at the share seen, is what keeps tests of
    few tasks honest (a parametric bootstrap from the restricted estimate: Davison, Hinkley & Young,
    Biometrika 90, 2003): far fewer errors than p makes likely are a sign that errors come together.
    Where there are none, that sign is as strong as it can be. Where there is but one, it has no
    other to come together with, and nothing was seen of correlation. The answer to both is
    MAX_CORRELATION.
    """
    if not len(sizes) or int(sizes.max()) < 2:
        return 0.0
    if int(errors.sum()) < 2:
        return MAX_CORRELATION
    tables = _Rising(int(sizes.max()), p, _CORRELATIONS)
    kinds, counts = np.unique(sizes * (int(sizes.max()) + 1) + errors, return_counts=True)
    size, wrong = np.divmod(kinds, int(sizes.max()) + 1)
    laws = tables.wrong[:, wrong] + tables.right[:, size - wrong] - tables.every[:, size]
    likelihood = laws @ counts
    left = np.flatnonzero(likelihood >= likelihood.max() - _DROP)
    return float(_CORRELATIONS[left[-1]])


def clustered_test(sizes: NDArray[np.int64], errors: NDArray[np.int64], p: float) -> float:
    """How probable so few errors would be, were every answer wrong with probability p: the p-value
    of "the error is at least p". `errors` per task, aligned with `sizes`."""
    n, wrong = int(sizes.sum()), int(errors.sum())
    if wrong >= p * n:
        return 1.0
    return clustered_tail(wrong, sizes, p, correlation_under(sizes, errors, p))


def clustered_bound(sizes: NDArray[np.int64], errors: NDArray[np.int64], delta: float) -> float:
    """One-sided upper bound of the error with confidence 1 - delta: the largest share that the test
    does not rule out (its inversion, as Clopper & Pearson did it), to 1e-5. 1.0 of no answers."""
    n, wrong = int(sizes.sum()), int(errors.sum())
    low, high = (wrong / n if n else 1.0), 1.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        ruled_out = clustered_test(sizes, errors, middle) <= delta
        low, high = (low, middle) if ruled_out else (middle, high)
    return high


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

    def log_laws(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log-probabilities of 0, 1, ... errors in tasks of these sizes (rows, the largest is as
        long as there are columns), at the first correlation; minus infinity beyond a size."""
        size = sizes[:, None]
        wrong = np.arange(len(self.factorials))
        right = size - wrong
        inside = right >= 0
        right = np.where(inside, right, 0)
        choose = self.factorials[size] - self.factorials[wrong] - self.factorials[right]
        logs = choose + self.wrong[0, wrong] + self.right[0, right] - self.every[0, size]
        return np.where(inside, logs, -np.inf)


def _cumulated_logs(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 and the cumulated logarithms along the last axis."""
    sums = np.cumsum(np.log(numbers), axis=-1)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def _log_factorials(n: int) -> NDArray[np.float64]:
    return _cumulated_logs(np.arange(1.0, n + 1.0))
