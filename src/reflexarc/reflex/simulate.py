"""How often a certificate would be broken: procedures tried on drawn tasks whose truth is known.

Not part of deciding or learning. It answers three questions of whoever changes the procedure: does
it keep its promise where errors cluster and learning is repeated, what becomes of the promise where
its assumptions fail, and what does it certify (its power)?
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.answers import Answers, Test, fixed_sequence
from reflexarc.reflex.claims import MODEL_BASED, Claim
from reflexarc.reflex.clustered import binomial_tail
from reflexarc.reflex.spending import attempt_delta

ErrorCurve = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Error probability of an answer by its score; scores are uniform on (0, 1), higher is surer."""

Law = Literal["beta", "shared", "touched"]

_POPULATION = np.linspace(0.0, 1.0, 20_001)
_MANY_TASKS = 40_000
_GROWTH = 1.5
"""By how much the tasks grow from one attempt at learning to the next."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What tasks are drawn from. They have 1 + Poisson(Gamma) answers, `answers` (>= 1) on average,
    so that a few hold many; a score, uniform on (0, 1), and an error probability by `curve`.

    Errors of one task have the intra-class correlation `correlation` where the curve is flat.
    `law` `beta`: by a beta-distributed difficulty per task (thinned by score where the curve is not
    flat), which is what the model-based class assumes. `shared`: by a cause that hits some answers
    of a task alike, which it does not. `touched`: the curve is the probability that a task's surest
    answer is wrong, the others then with probability `correlation`: only the exact class says
    something about that. `size_matters`: difficulty rises with the number of answers to this power.
    """

    answers: float
    correlation: float
    curve: ErrorCurve
    law: Law = "beta"
    size_matters: float = 0.0


class Trials(msgspec.Struct, frozen=True):
    """`violated`: share of repetitions in which what was certified is truly over the bound;
    `certified`: share in which anything was certified; `coverage`: mean share of answers that were
    certified (0 where nothing was)."""

    violated: float
    certified: float
    coverage: float


def violation_rate(
    claim: Claim,
    world: World,
    *,
    tasks: int,
    alpha: float,
    delta: float,
    repetitions: int,
    seed: int,
    calibrated: bool = False,
    relearned_from: int | None = None,
    spent: bool = True,
    drift: float = 1.0,
) -> Trials:
    """Draws tasks, certifies at error `alpha` and confidence 1 - delta, and compares with the true
    share among answers (exact: tasks) above the threshold; `repetitions` times.

    `calibrated`: the procedure takes scores for probabilities, which they are only if the curve is
    1 - score. `relearned_from`: first on so many tasks, then on half as many more again, until
    something is certified or `tasks` are reached; `spent`: the attempts share delta. Each attempt
    ranks tasks anew where the curve is flat. `drift`: the truth is so many times the error drawn.
    """
    random = np.random.default_rng(seed)
    truth = _truth(claim, world, drift)
    violated = certified = 0
    coverage = 0.0
    for _ in range(repetitions):
        score, wrong, task = draw(random, world, tasks)
        for attempt, held in _attempts(tasks, relearned_from):
            here = task < held
            if attempt > 1 and _flat(world):
                score = _ranked_anew(random, score, task)
            answers = Answers(score[here], wrong[here], task[here], calibrated=calibrated)
            level = attempt_delta(delta, attempt) if spent and relearned_from else delta
            n, _failed = fixed_sequence(answers, alpha, level, claim.test, claim.promise)
            if n:
                violated += truth(float(answers.score[n - 1])) > alpha
                certified += 1
                coverage += n / len(answers)
                break
    return Trials(violated / repetitions, certified / repetitions, coverage / repetitions)


def draw(
    random: np.random.Generator, world: World, tasks: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """(score, wrong, task) of each answer of so many tasks."""
    sizes = 1 + random.poisson(random.gamma(2.0, (world.answers - 1.0) / 2.0, tasks))
    task = np.repeat(np.arange(tasks), sizes)
    score = random.random(len(task))
    error = world.curve(score)
    rho = world.correlation
    harder = np.ones(tasks)
    if world.size_matters:
        weight = sizes**world.size_matters
        # Mean over answers 1: the curve stays the error of a random answer.
        harder = weight * sizes.sum() / (weight * sizes).sum()
    if world.law == "shared":
        # Two answers of a task both look at its common draw with probability rho.
        looks = random.random(len(task)) < np.sqrt(rho)
        wrong = np.where(looks, random.random(tasks)[task], random.random(len(task))) < error
    elif world.law == "touched":
        surest = np.lexsort((-score, task))[np.cumsum(sizes) - sizes]
        touched = random.random(tasks) < world.curve(score[surest])
        wrong = touched[task] & (random.random(len(task)) < rho)
        wrong[surest] = touched
    elif rho == 0.0:
        wrong = random.random(len(task)) < error * harder[task]
    else:
        most = float(world.curve(_POPULATION).max())
        mean = np.clip(most * harder, 1e-9, 1 - 1e-9)
        spread = (1.0 - rho) / rho
        difficulty = random.beta(mean * spread, (1.0 - mean) * spread)
        wrong = random.random(len(task)) < difficulty[task] * error / most
    return score, wrong, task


def _ranked_anew(
    random: np.random.Generator, score: NDArray[np.float64], task: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Other scores, in the same order within each task."""
    fresh, anew = random.random(len(score)), np.empty(len(score))
    anew[np.lexsort((score, task))] = fresh[np.lexsort((fresh, task))]
    return anew


def procedure_of(test: Test) -> Claim:
    """A claim about answers that rests on another test."""
    return msgspec.structs.replace(MODEL_BASED, test=test)


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


def _attempts(tasks: int, relearned_from: int | None) -> Iterator[tuple[int, int]]:
    """(number, tasks held) of each attempt."""
    attempt, held = 1, float(tasks if relearned_from is None else relearned_from)
    while held < tasks:
        yield attempt, int(held)
        attempt, held = attempt + 1, held * _GROWTH
    yield attempt, tasks


def _flat(world: World) -> bool:
    curve = world.curve(_POPULATION)
    return float(curve.min()) == float(curve.max())


def _truth(claim: Claim, world: World, drift: float) -> Callable[[float], float]:
    """The true share of what is claimed, by threshold."""
    curve = drift * world.curve(_POPULATION)
    if claim.certificate_class == "model-based":
        # Mean error of all scores >= each point of the population.
        above = np.cumsum(curve[::-1])[::-1] / np.arange(len(curve), 0, -1)
        return lambda threshold: float(above[np.searchsorted(_POPULATION, threshold)])
    if world.law == "touched" and _flat(world):
        return lambda _: float(curve[0])
    score, wrong, task = draw(np.random.default_rng(0), world, _MANY_TASKS)
    surest, surest_wrong = np.full(_MANY_TASKS, -1.0), np.full(_MANY_TASKS, -1.0)
    np.maximum.at(surest, task, score)
    np.maximum.at(surest_wrong, task[wrong], score[wrong])
    surest.sort()
    surest_wrong.sort()

    def touched(threshold: float) -> float:
        hit = _MANY_TASKS - int(np.searchsorted(surest_wrong, threshold))
        return drift * hit / max(1, _MANY_TASKS - int(np.searchsorted(surest, threshold)))

    return touched


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
