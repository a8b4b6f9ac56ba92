"""Certificates keep their promise where errors cluster, and still certify what they should."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflexarc.reflex.answers import Test
from reflexarc.reflex.certificate import Certificate, certify
from reflexarc.reflex.clustered import binomial_upper, clustered_test
from reflexarc.reflex.simulate import (
    Law,
    Trials,
    World,
    betting_over_tasks,
    effective_sample,
    empirical_error,
    independent_errors,
    procedure_of,
    violation_rate,
)

Sample = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]
DELTA = 0.1


def sample(n: int, errors: int, tasks: int, seed: int = 0) -> Sample:
    """n answers spread over tasks at random, errors (never two that need share a task) likelier
    where the score is low."""
    random = np.random.default_rng(seed)
    score = random.random(n)
    wrong = np.zeros(n, np.bool_)
    wrong[random.choice(n, errors, replace=False, p=(1 - score) / (1 - score).sum())] = True
    return score, wrong, random.integers(0, tasks, n)


def at(certificates: list[Certificate], level: float) -> Certificate:
    return next(c for c in certificates if c.max_error == level)


@pytest.mark.parametrize("seed", range(5))
def test_seven_errors_in_330_answers_of_60_tasks_certify_ten_percent(seed: int) -> None:
    certificate = at(certify(*sample(330, 7, 60, seed)), 0.10)
    assert (certificate.granted, certificate.n, certificate.errors) == (True, 330, 7)
    assert certificate.missing == 0


@pytest.mark.parametrize("seed", range(5))
def test_160_clean_answers_of_60_tasks_certify_five_percent_and_nearly_two(seed: int) -> None:
    found = certify(*sample(160, 0, 60, seed))
    assert at(found, 0.05).granted
    assert at(found, 0.05).n == 160
    assert not at(found, 0.02).granted
    assert 0 < at(found, 0.02).missing <= 60


def test_the_same_errors_heaped_in_one_task_certify_less_than_spread_out() -> None:
    score, wrong, task = sample(330, 0, 60)
    worst = np.argsort(score)[:20]
    wrong[worst] = True
    spread = at(certify(score, wrong, task), 0.10)
    heaped_task = task.copy()
    heaped_task[worst] = 100
    heaped = at(certify(score, wrong, heaped_task), 0.10)
    assert spread.n == 330
    assert heaped.n < spread.n
    assert heaped.granted


def test_nothing_is_certified_of_no_answers() -> None:
    nothing = np.zeros(0)
    for certificate in certify(nothing, nothing.astype(np.bool_), nothing.astype(np.int64)):
        assert not certificate.granted
        assert (certificate.n, certificate.errors, certificate.tasks) == (0, 0, 0)
        assert binomial_upper(0, certificate.missing, DELTA) <= certificate.max_error


def test_nothing_is_certified_where_scores_say_nothing_and_errors_abound() -> None:
    score, _, task = sample(500, 0, 60)
    wrong = np.random.default_rng(1).random(500) < 0.3
    assert not any(certificate.granted for certificate in certify(score, wrong, task))


def test_what_is_missing_is_enough_when_it_comes() -> None:
    score, wrong, task = sample(160, 0, 60)
    missing = at(certify(score, wrong, task), 0.02).missing
    more = np.full(missing, 2.0)
    certificate = at(
        certify(
            np.concatenate([score, more]),
            np.concatenate([wrong, np.zeros(missing, np.bool_)]),
            np.concatenate([task, 1000 + np.arange(missing) // 3]),
        ),
        0.02,
    )
    assert certificate.granted


def test_answers_of_one_score_stand_or_fall_together() -> None:
    score, wrong, task = sample(400, 4, 80)
    score = np.round(score, 1)
    for certificate in certify(score, wrong, task):
        if certificate.threshold is not None:
            assert certificate.n == int((score >= certificate.threshold).sum())
            assert certificate.errors == int(wrong[score >= certificate.threshold].sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 400), st.integers(1, 80), st.floats(0.0, 0.5))
def test_a_certificate_never_claims_less_error_than_the_binomial_bound(
    seed: int, n: int, tasks: int, share: float
) -> None:
    random = np.random.default_rng(seed)
    score = np.round(random.random(n), 2)
    wrong = random.random(n) < share * (1 - score)
    for certificate in certify(score, wrong, random.integers(0, tasks, n), delta=DELTA):
        if certificate.granted:
            bound = binomial_upper(certificate.errors, certificate.n, DELTA)
            assert bound <= certificate.max_error + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 300))
def test_the_order_and_the_names_of_tasks_do_not_matter(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    score, wrong = random.random(n), random.random(n) < 0.03
    task = random.integers(0, 40, n)
    order, names = random.permutation(n), random.permutation(1000)
    assert certify(score, wrong, task) == certify(score[order], wrong[order], names[task[order]])


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        certify(np.array([0.5, math.nan]), np.zeros(2, np.bool_), np.arange(2))


def test_inputs_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 scores, 3 outcomes, 2 tasks"):
        certify(np.zeros(2), np.zeros(3, np.bool_), np.arange(2))


@pytest.mark.parametrize(("alphas", "delta"), [((0.0,), 0.1), ((1.0,), 0.1), ((0.05,), 0.0)])
def test_levels_outside_zero_and_one_are_refused(alphas: tuple[float], delta: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        certify(*sample(10, 0, 5), alphas=alphas, delta=delta)


def test_a_certificate_survives_json_granted_or_not() -> None:
    for certificate in certify(*sample(160, 0, 60)):
        data = msgspec.json.encode(certificate)
        assert msgspec.json.decode(data, type=Certificate) == certificate


# Validity: the true error is known, and exceeds the bound in at most a share DELTA of certificates.

LEVEL = 0.05
REPETITIONS = 120


def just_above(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """The hardest case: every answer is wrong a little more often than allowed."""
    return np.full_like(score, LEVEL * 1.0001)


def rising(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sure answers are better; the surer half has just the error allowed."""
    return 4 * LEVEL * (1 - score)


def trials(
    procedure: Test,
    curve: Callable[[NDArray[np.float64]], NDArray[np.float64]] = just_above,
    *,
    tasks: int = 60,
    answers: float = 6.0,
    icc: float = 0.5,
    law: Law = "beta",
    calibrated: bool = False,
    repetitions: int = REPETITIONS,
) -> Trials:
    return violation_rate(
        procedure_of(procedure),
        World(answers=answers, correlation=icc, curve=curve, law=law),
        tasks=tasks,
        alpha=LEVEL,
        delta=DELTA,
        repetitions=repetitions,
        seed=4,
        calibrated=calibrated,
    )


def tolerated(repetitions: int) -> float:
    """DELTA and three standard errors of a share estimated so often."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / repetitions)


@pytest.mark.parametrize("icc", [0.0, 0.5])
def test_the_promise_is_kept_where_error_rises_as_confidence_falls(icc: float) -> None:
    found = trials(clustered_test, rising, tasks=120, answers=4.0, icc=icc)
    assert found.violated <= tolerated(REPETITIONS)
    assert found.certified > 0.3  # and not by certifying nothing


@pytest.mark.parametrize("icc", [0.0, 0.5])
def test_scores_that_mislead_about_where_to_begin_do_not_break_the_promise(icc: float) -> None:
    found = trials(clustered_test, just_above, icc=icc, calibrated=True)
    assert found.violated <= tolerated(REPETITIONS)


def test_scores_that_hold_certify_more() -> None:
    """Where all answers are good, an early error must not end the sequence before it began."""
    random = np.random.default_rng(11)
    told, untold = [], []
    for _ in range(40):
        score = random.uniform(0.95, 0.99, 400)
        wrong = random.random(400) > score
        task = random.integers(0, 100, 400)
        for found, calibrated in ((told, True), (untold, False)):
            (one,) = certify(score, wrong, task, alphas=(LEVEL,), calibrated=calibrated)
            found.append(one.n if one.granted else 0)
    assert np.mean(told) > 1.2 * np.mean(untold) > 0.0


def test_without_a_bound_the_promise_is_broken_far_beyond_chance() -> None:
    for icc in (0.0, 0.5):
        assert trials(empirical_error, icc=icc).violated > 0.4 > 2 * tolerated(REPETITIONS)


def test_a_bound_that_takes_answers_for_independent_breaks_the_promise_where_they_cluster() -> None:
    assert trials(independent_errors, tasks=30, icc=0.0).violated <= tolerated(REPETITIONS)
    assert trials(independent_errors, tasks=30, icc=0.5).violated > tolerated(REPETITIONS)


def test_betting_over_tasks_keeps_the_promise_and_certifies_less() -> None:
    assert trials(betting_over_tasks).violated <= tolerated(REPETITIONS)
    ours = trials(clustered_test, rising, tasks=120, icc=0.1, repetitions=40)
    betting = trials(betting_over_tasks, rising, tasks=120, icc=0.1, repetitions=40)
    assert betting.coverage < ours.coverage / 2


def test_clustering_costs_less_than_a_third_of_what_independence_would_certify() -> None:
    independent = trials(independent_errors, rising, tasks=120, icc=0.0, repetitions=60)
    ours = trials(clustered_test, rising, tasks=120, icc=0.0, repetitions=60)
    assert ours.coverage > independent.coverage * 2 / 3


def test_an_estimated_design_effect_alone_is_optimistic_where_few_errors_were_seen() -> None:
    found = trials(effective_sample, tasks=30, answers=9.0, repetitions=300)
    assert found.violated > tolerated(300)


@pytest.mark.parametrize(("promising", "passed"), [(None, 0), (0.8, 200), (0.99, 0), (0.0, 0)])
def test_scores_that_say_nothing_begin_where_they_are_promising(
    promising: float | None, passed: int
) -> None:
    """Two early errors end what begins strictly; those of all that is promising are forgiven."""
    score = np.concatenate((np.linspace(1.0, 0.8, 200), np.linspace(0.79, 0.6, 100)))
    wrong = np.zeros(300, np.bool_)
    wrong[[3, 9, 20]] = True
    wrong[200:] = True
    (held,) = certify(
        score, wrong, np.arange(300), alphas=(0.05,), promising=promising, scope="recalled reads"
    )
    assert (held.n if held.granted else 0) == passed


def test_where_nothing_is_promising_one_early_error_is_forgiven() -> None:
    score = np.linspace(0.79, 0.6, 300)
    wrong = np.zeros(300, np.bool_)
    wrong[3] = True
    (held,) = certify(
        score, wrong, np.arange(300), alphas=(0.05,), promising=0.8, scope="recalled reads"
    )
    assert held.n == 300
    assert held.granted
