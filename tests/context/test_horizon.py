"""Turns still to come and caches that are gone: fitted from data, held by a prior where there is
little of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.horizon import Horizon, fit, fit_gaps


def test_without_data_the_prior_speaks() -> None:
    assert fit([], 7.0).remaining(0) == fit([], 7.0).remaining(100) == 7.0


def test_much_data_outweighs_the_prior() -> None:
    horizon = fit([10] * 1000, prior_turns=50.0)
    assert horizon.remaining(4) == pytest.approx(6, abs=0.3)


def test_only_sessions_that_came_so_far_count() -> None:
    horizon = Horizon([2] * 50 + [40] * 50, 0.0, 1.0)
    assert horizon.remaining(3) == pytest.approx(37 * 50 / 51)
    assert horizon.remaining(41) == 0.0


@given(
    st.lists(st.integers(0, 300), max_size=60),
    st.integers(0, 400),
    st.floats(0, 100),
    st.floats(0.1, 10),
)
def test_what_remains_is_the_mean_over_those_alive(
    lengths: list[int], turns: int, prior: float, weight: float
) -> None:
    alive = [length - turns for length in lengths if length >= turns]
    mean = (sum(alive) + weight * prior) / (len(alive) + weight)
    assert Horizon(lengths, prior, weight).remaining(turns) == pytest.approx(mean)


def test_a_prior_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="prior"):
        Horizon([], -1.0)
    with pytest.raises(ValueError, match="prior"):
        Horizon([], 1.0, 0.0)


@given(st.lists(st.floats(-10, 1e6), max_size=50), st.floats(1, 1e5), st.floats(1, 1e5))
def test_a_longer_life_of_the_cache_makes_it_no_colder(
    seconds: list[float], one_s: float, other_s: float
) -> None:
    gaps = fit_gaps(seconds)
    assert 0 < gaps.cold(max(one_s, other_s)) <= gaps.cold(min(one_s, other_s)) < 1


def test_gaps_longer_than_the_cache_holds_count_as_cold() -> None:
    gaps = fit_gaps([10.0] * 400 + [301.0] * 600)
    assert gaps.cold(300) == pytest.approx(0.6, abs=0.02)
    assert gaps.cold(400) < 0.01
