"""Retries are a bounded share of requests, whatever fails."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.upstream.retrying import RetryBudget


@given(st.integers(0, 100), st.integers(0, 20), st.lists(st.booleans(), max_size=400))
def test_retries_never_exceed_their_share(percent: int, at_least: int, retries: list[bool]) -> None:
    budget = RetryBudget(percent / 100, at_least)
    requests = made = 0
    for wants_retry in retries:
        if wants_retry:
            made += budget.retry()
        else:
            budget.request()
            requests += 1
        assert made <= at_least + percent * requests / 100 + 1e-9


def test_a_share_is_earned_to_the_last_bit() -> None:
    budget = RetryBudget(0.2, at_least=0)
    for _ in range(5):
        assert not budget.retry()
        budget.request()
    assert budget.retry()
    assert not budget.retry()


def test_what_was_not_used_is_not_saved_up_without_end() -> None:
    budget = RetryBudget(0.2, at_least=10)
    for _ in range(1_000):
        budget.request()
    assert sum(budget.retry() for _ in range(100)) == 10


def test_under_a_total_outage_load_grows_by_the_share_alone() -> None:
    """Every attempt fails, and each request would be tried three more times."""
    budget = RetryBudget(0.2, at_least=10)
    attempts = 0
    for _ in range(1_000):
        budget.request()
        attempts += 1
        for _ in range(3):
            if not budget.retry():
                break
            attempts += 1
    assert 1_000 < attempts <= 1_210


def test_single_faults_are_all_tried_again() -> None:
    draw = random.Random(7)
    budget = RetryBudget(0.2, at_least=10)
    refused = 0
    for _ in range(2_000):
        budget.request()
        if draw.random() < 0.05:
            refused += not budget.retry()
    assert refused == 0


@pytest.mark.parametrize(("share", "at_least"), [(-0.1, 10), (1.1, 10), (0.2, -1)])
def test_what_is_no_budget_is_refused(share: float, at_least: int) -> None:
    with pytest.raises(ValueError, match="no budget"):
        RetryBudget(share, at_least)
