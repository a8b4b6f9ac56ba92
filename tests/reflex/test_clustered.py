"""Tails of error counts are those of scipy, and of drawn tasks where scipy has none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflexarc.reflex import clustered
from reflexarc.reflex.clustered import (
    binomial_tail,
    binomial_upper,
    clustered_bound,
    clustered_tail,
    clustered_test,
    correlation_under,
    design_effect,
)

stats: Any = pytest.importorskip("scipy.stats", reason="scipy comes with the extra [learn]")

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=100, deadline=None)
@given(counts, st.sampled_from([0.01, 0.05, 0.1, 0.5, 0.9]))
def test_the_binomial_bound_is_clopper_pearsons(count: tuple[int, int], delta: float) -> None:
    errors, n = count
    expected = stats.beta.ppf(1 - delta, errors + 1, n - errors) if errors < n else 1.0
    assert binomial_upper(errors, n, delta) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(counts, st.floats(0.0001, 0.9999))
def test_the_binomial_tail_is_scipys(count: tuple[int, int], p: float) -> None:
    errors, n = count
    expected = stats.binom.cdf(errors, n, p)
    assert binomial_tail(errors, n, p) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(counts, st.floats(0.01, 0.5))
def test_the_bound_is_never_below_the_error_seen_and_falls_with_confidence(
    count: tuple[int, int], delta: float
) -> None:
    errors, n = count
    assert errors / n <= binomial_upper(errors, n, delta) <= binomial_upper(errors, n, delta / 2)


def test_the_bound_after_no_answers_is_one() -> None:
    assert binomial_upper(0, 0) == 1.0


@pytest.mark.parametrize("arguments", [(-1, 5, 0.1), (6, 5, 0.1), (0, 5, 0.0), (0, 5, 1.0)])
def test_a_bound_of_impossible_counts_is_refused(arguments: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="no bound for"):
        binomial_upper(*arguments)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.floats(0.005, 0.6), st.sampled_from([0.01, 0.1, 0.3, 0.5]), st.data())
def test_one_task_follows_the_beta_binomial_law(size: int, p: float, rho: float, data: Any) -> None:
    errors = data.draw(st.integers(0, size))
    spread = (1 - rho) / rho
    expected = stats.betabinom.cdf(errors, size, p * spread, (1 - p) * spread)
    got = clustered_tail(errors, np.array([size]), p, rho)
    assert got == pytest.approx(expected, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=80), st.floats(0.01, 0.3), st.data())
def test_without_correlation_tasks_do_not_matter(sizes: list[int], p: float, data: Any) -> None:
    errors = data.draw(st.integers(0, sum(sizes)))
    expected = stats.binom.cdf(errors, sum(sizes), p)
    assert clustered_tail(errors, np.array(sizes), p, 0.0) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("rho", [0.05, 0.3, 0.5])
def test_many_tasks_follow_the_law_of_drawn_tasks(rho: float) -> None:
    random = np.random.default_rng(0)
    sizes = random.integers(1, 15, 40)
    spread = (1 - rho) / rho
    difficulty = random.beta(0.1 * spread, 0.9 * spread, (40_000, 40))
    drawn = random.binomial(sizes, difficulty).sum(axis=1)
    for errors in (0, 3, 10, 30, 80):
        expected = np.count_nonzero(drawn <= errors) / len(drawn)
        assert clustered_tail(errors, sizes, 0.1, rho) == pytest.approx(expected, abs=0.01)


def test_a_cut_support_never_makes_few_errors_look_rarer() -> None:
    sizes = np.full(200, 50)
    uncut: NDArray[np.float64] = np.ones(1)
    one: NDArray[np.float64] = stats.betabinom.pmf(np.arange(51), 50, 0.1, 0.9)
    for _ in range(200):
        uncut = np.convolve(uncut, one)
    for errors in (300, 600, 900):
        exact, got = float(np.sum(uncut[: errors + 1])), clustered_tail(errors, sizes, 0.1, 0.5)
        assert exact - 1e-9 <= got <= exact + 1e-6


def test_few_errors_are_less_surprising_where_errors_cluster() -> None:
    sizes = np.full(60, 5)
    tails = [clustered_tail(5, sizes, 0.05, rho) for rho in (0.0, 0.1, 0.3, 0.5)]
    assert tails == sorted(tails)


def test_without_errors_they_may_all_sit_in_one_task() -> None:
    nothing = np.zeros(60, np.int64)
    assert correlation_under(np.full(60, 5), nothing, 0.05) == clustered.MAX_CORRELATION


def test_errors_one_to_a_task_speak_against_correlation() -> None:
    errors = np.zeros(60, np.int64)
    errors[:20] = 1
    assert correlation_under(np.full(60, 6), errors, 20 / 360) < 0.1


def test_far_fewer_errors_than_supposed_speak_for_correlation() -> None:
    errors = np.zeros(60, np.int64)
    errors[:10] = 1
    found = [correlation_under(np.full(60, 6), errors, p) for p in (0.03, 0.08, 0.2)]
    assert found[0] < found[1] < found[2]


def test_errors_that_fill_their_tasks_speak_for_correlation() -> None:
    errors = np.zeros(60, np.int64)
    errors[:4] = 6
    assert correlation_under(np.full(60, 6), errors, 24 / 360) == clustered.MAX_CORRELATION


def test_of_a_single_error_nothing_is_seen_of_correlation() -> None:
    """38 tasks of three answers: an error in one of them is no proof that errors keep apart."""
    sizes, errors = np.full(38, 3), np.zeros(38, np.int64)
    errors[0] = 1
    for p in (0.02, 0.05, 0.2):
        assert correlation_under(sizes, errors, p) == clustered.MAX_CORRELATION
    errors[1] = 1
    assert correlation_under(sizes, errors, 0.02) < clustered.MAX_CORRELATION


def test_tasks_of_one_answer_each_have_no_correlation() -> None:
    assert correlation_under(np.ones(50, np.int64), np.zeros(50, np.int64), 0.05) == 0.0


@pytest.mark.parametrize("rho", [0.05, 0.2, 0.4])
def test_the_correlation_of_many_tasks_is_found(rho: float) -> None:
    random = np.random.default_rng(2)
    sizes = random.integers(4, 12, 2_000)
    spread = (1 - rho) / rho
    errors = random.binomial(sizes, random.beta(0.1 * spread, 0.9 * spread, 2_000))
    assert correlation_under(sizes, errors, 0.1) == pytest.approx(rho, abs=0.05)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 60), st.floats(0.01, 0.3))
def test_the_clustered_bound_inverts_the_clustered_test(
    seed: int, tasks: int, delta: float
) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 9, tasks)
    errors = random.binomial(sizes, 0.05)
    bound = clustered_bound(sizes, errors, delta)
    assert bound == 1.0 or clustered_test(sizes, errors, bound) <= delta
    assert clustered_test(sizes, errors, max(1e-9, bound - 1e-4)) > delta or bound < 2e-4


def test_the_bound_of_no_answers_is_one() -> None:
    nothing = np.zeros(0, np.int64)
    assert clustered_bound(nothing, nothing, 0.1) == 1.0


def test_the_design_effect_is_kishs() -> None:
    assert design_effect(np.full(10, 5), 0.25) == pytest.approx(2.0)
    assert design_effect(np.ones(10, np.int64), 0.5) == 1.0
    assert design_effect(np.zeros(0, np.int64), 0.5) == 1.0
