"""Bounds of shares whose cases cluster in tasks."""

import random

import pytest

from reflexarc.reflex.clustered import binomial_upper
from reflexarc.reflex.intervals import clustered_interval, clustered_upper


def test_tasks_of_one_case_give_the_binomial_bound() -> None:
    cases = [(str(n), n < 3) for n in range(60)]
    assert clustered_upper(cases) == pytest.approx(binomial_upper(3, 60, 0.05), abs=1e-4)


def test_cases_that_go_together_say_less_than_as_many_apart() -> None:
    apart = [(str(n), n < 12) for n in range(80)]
    together = [(str(n // 4), n < 12) for n in range(80)]
    assert clustered_upper(together) > clustered_upper(apart) + 0.02
    wide, narrow = clustered_interval(together), clustered_interval(apart)
    assert wide.low < narrow.low < 12 / 80 < narrow.high < wide.high


@pytest.mark.parametrize(
    ("cases", "low", "high"),
    [
        ([("a", True)] * 3, 0.0, 1.0),
        ([("a", False)] * 3, 0.0, 1.0),
        ([(str(n), True) for n in range(200)], 0.98, 1.0),
        ([(str(n), False) for n in range(200)], 0.0, 0.02),
    ],
    ids=["all of one task", "none of one task", "all", "none"],
)
def test_the_ends(cases: list[tuple[str, bool]], low: float, high: float) -> None:
    found = clustered_interval(cases)
    assert (found.low >= low, found.high <= high) == (True, True)
    assert 0.0 <= found.low <= found.high <= 1.0


def test_nothing_says_nothing() -> None:
    assert clustered_upper([]) == 1.0
    assert (clustered_interval([]).low, clustered_interval([]).high) == (0.0, 1.0)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Tasks of five, each with a share of its own (a beta law of mean .8, correlation .2)."""
    draw, held, rounds = random.Random(5), 0, 100
    for _ in range(rounds):
        cases = [
            (str(task), draw.random() < share)
            for task in range(30)
            for share in [draw.betavariate(3.2, 0.8)]
            for _ in range(5)
        ]
        found = clustered_interval(cases)
        held += found.low <= 0.8 <= found.high
    assert held >= 93
