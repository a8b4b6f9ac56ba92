"""How often a certificate would be broken: procedures tried on drawn tasks whose truth is known.

Not part of deciding or learning. It answers two questions of whoever changes `certificate.py`: does
the procedure keep its promise where errors cluster, and what does it certify (its power)?
"""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.certificate import Answers, Test, fixed_sequence
from reflexarc.reflex.clustered import binomial_tail

ErrorCurve = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Error probability of an answer by its score; scores are uniform on (0, 1), higher is surer."""

_POPULATION = np.linspace(0.0, 1.0, 20_001)


class Trials(msgspec.Struct, frozen=True):
    """`violated`: share of repetitions in which the certified answers' true error was over the
    bound; `certified`: share in which anything was certified; `coverage`: mean share of answers
    that were certified (0 where nothing was)."""

    violated: float
    certified: float
    coverage: float


def violation_rate(
    procedure: Test,
    *,
    tasks: int,
    decisions_per_task: float,
    icc: float,
    error_curve: ErrorCurve,
    alpha: float,
    delta: float,
    repetitions: int,
    seed: int,
    shared: bool = False,
    calibrated: bool = False,
) -> Trials:
    """Draws `tasks` tasks, certifies at error `alpha` and confidence 1 - delta, and compares with
    the true error among answers above the threshold; `repetitions` times.

    Tasks have 1 + Poisson(Gamma) answers, `decisions_per_task` (>= 1) on average, so that a few
    hold many. Errors of one task have the intra-class correlation `icc` where the curve is flat:
    by a beta-distributed difficulty per task (thinned by score where it is not flat), or, with
    `shared`, by a cause that hits some answers of a task alike, which is not the law that the
    shipped procedure assumes. `calibrated`: the procedure takes scores for probabilities, which
    they are only if the curve is 1 - score.
    """
    random = np.random.default_rng(seed)
    error = error_curve(_POPULATION)
    # Mean error of all scores >= each point of the population.
    above = np.cumsum(error[::-1])[::-1] / np.arange(len(error), 0, -1)
    violated = certified = 0
    coverage = 0.0
    for _ in range(repetitions):
        answers = _draw(random, tasks, decisions_per_task, icc, error_curve, shared, calibrated)
        n, _failed = fixed_sequence(answers, alpha, delta, procedure)
        if n:
            threshold = answers.score[n - 1]
            violated += bool(above[np.searchsorted(_POPULATION, threshold)] > alpha)
            certified += 1
            coverage += n / len(answers.score)
    return Trials(violated / repetitions, certified / repetitions, coverage / repetitions)


def empirical_error(sizes: NDArray[np.int64], errors: NDArray[np.int64], alpha: float) -> float:
    """No bound at all: passes wherever the share of errors seen is within the level."""
    return 0.0 if errors.sum() <= alpha * sizes.sum() else 1.0


def independent_errors(sizes: NDArray[np.int64], errors: NDArray[np.int64], alpha: float) -> float:
    """The exact binomial test (Clopper & Pearson 1934), as if tasks did not matter."""
    return binomial_tail(int(errors.sum()), int(sizes.sum()), alpha)


def effective_sample(sizes: NDArray[np.int64], errors: NDArray[np.int64], alpha: float) -> float:
    """The binomial test on a sample cut by the design effect (Kish 1965; Korn & Graubard, Survey
    Methodology 24, 1998), correlation estimated by one-way analysis of variance, counts rounded
    to the side of caution. Where no error was seen it estimates no clustering at all."""
    n, wrong = float(sizes.sum()), float(errors.sum())
    m = float((sizes.astype(np.float64) ** 2).sum()) / n
    effect = 1.0 + (m - 1.0) * _anova_correlation(sizes, errors)
    return binomial_tail(int(np.ceil(wrong / effect)), int(n / effect), alpha)


def betting_over_tasks(sizes: NDArray[np.int64], errors: NDArray[np.int64], alpha: float) -> float:
    """A mixture of bets on each task's errors minus its allowance (Waudby-Smith & Ramdas, J. R.
    Stat. Soc. B 86, 2023). Exact with no assumption but independent tasks, and of little power
    with fewer than some hundreds of them."""
    largest = float(sizes.max()) * (1.0 - alpha)
    bets = np.linspace(0.02, 0.98, 49) / largest
    wealth = np.log1p(bets[:, None] * (alpha * sizes - errors)).sum(axis=1)
    return float(min(1.0, np.exp(np.log(len(bets)) - np.logaddexp.reduce(wealth))))


def _draw(
    random: np.random.Generator,
    tasks: int,
    decisions_per_task: float,
    icc: float,
    error_curve: ErrorCurve,
    shared: bool,
    calibrated: bool,
) -> Answers:
    sizes = 1 + random.poisson(random.gamma(2.0, (decisions_per_task - 1.0) / 2.0, tasks))
    task = np.repeat(np.arange(tasks), sizes)
    score = random.random(len(task))
    error = error_curve(score)
    if shared:
        # Two answers of a task both look at its common draw with probability icc.
        looks = random.random(len(task)) < np.sqrt(icc)
        wrong = np.where(looks, random.random(tasks)[task], random.random(len(task))) < error
    elif icc == 0.0:
        wrong = random.random(len(task)) < error
    else:
        most = float(error_curve(_POPULATION).max())
        spread = (1.0 - icc) / icc
        difficulty = random.beta(most * spread, (1.0 - most) * spread, tasks)
        wrong = random.random(len(task)) < difficulty[task] * error / most
    return Answers(score, wrong, task, calibrated=calibrated)


def _anova_correlation(sizes: NDArray[np.int64], errors: NDArray[np.int64]) -> float:
    """Intra-class correlation by analysis of variance (Donner, Int. Stat. Rev. 54, 1986)."""
    tasks, n = len(sizes), float(sizes.sum())
    share = errors / sizes
    mean = float(errors.sum()) / n
    if tasks < 2 or n <= tasks or mean in (0.0, 1.0):
        return 0.0
    between = float((sizes * (share - mean) ** 2).sum()) / (tasks - 1)
    within = float((errors * (1.0 - share)).sum()) / (n - tasks)
    usual = (n - float((sizes**2).sum()) / n) / (tasks - 1)
    spread = between + (usual - 1.0) * within
    return max(0.0, (between - within) / spread) if spread > 0.0 else 0.0
