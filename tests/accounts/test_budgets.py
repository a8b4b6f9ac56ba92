"""Budgets are written as people write them, and begin anew with days and months of UTC."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.accounts.budgets import (
    MAX_MICRO_USD,
    Budget,
    budget_from,
    budgets_from,
    renewal,
    usd,
    window,
)
from reflexarc.steps.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("5usd", Budget("key", 5_000_000, "never")),
        ("5usd/month", Budget("key", 5_000_000, "monthly")),
        ("0.000001usd/day", Budget("key", 1, "daily")),
        ("session=0.50usd", Budget("session", 500_000, "never")),
        ("tier:batch=2 USD/Day", Budget("tier:batch", 2_000_000, "daily")),
        ("key=0usd", Budget("key", 0, "never")),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    assert budget_from(text) == budget
    assert budget_from(str(budget)) == budget


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write 5usd"),
        ("5", "write 5usd"),
        ("-5usd", "write 5usd"),
        ("5eur", "write 5usd"),
        ("team=5usd", "write 5usd"),
        ("5usd/week", "every day or every month, not 'week'"),
        ("tier:slow=5usd", "known are interactive, standard, batch"),
        ("0.0000001usd", "six digits"),
        ("999999999999usd", "1000000000 dollars at most"),
    ],
)
def test_what_is_no_budget_is_said(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        budget_from(text)
    assert says in str(caught.value)


def test_two_budgets_of_the_same_contradict_each_other() -> None:
    assert len(budgets_from(("5usd/day", "50usd/month", "session=1usd"))) == 3
    with pytest.raises(ConfigError, match="5usd/day and 6usd/day"):
        budgets_from(("5usd/day", "6usd/day"))


@given(st.integers(0, MAX_MICRO_USD), st.sampled_from(["never", "daily", "monthly"]))
def test_any_budget_is_read_as_it_is_written(micro_usd: int, renews: str) -> None:
    budget = Budget("session", micro_usd, renews)  # pyright: ignore[reportArgumentType]  drawn
    assert budget_from(str(budget)) == budget


def test_dollars_are_written_without_what_is_not_needed() -> None:
    assert [usd(n) for n in (5_000_000, 500_000, 1, 0, -1_500_000)] == [
        "5", "0.5", "0.000001", "0", "-1.5",
    ]  # fmt: skip


def at(*date: int) -> float:
    return datetime(*date, tzinfo=UTC).timestamp()  # pyright: ignore[reportArgumentType]  a date


def test_a_day_and_a_month_end_in_utc() -> None:
    last = at(2026, 12, 31, 23, 59, 59)
    assert (window("daily", last), window("monthly", last)) == ("2026-12-31", "2026-12")
    assert renewal("daily", last) == renewal("monthly", last) == at(2027, 1, 1)
    assert window("daily", last + 1) == "2027-01-01"
    assert renewal("monthly", at(2028, 2, 1)) == at(2028, 3, 1)
    assert renewal("never", last) is None
    assert window("never", last) == ""


@given(st.floats(0, 4e9), st.sampled_from(["daily", "monthly"]))
def test_a_window_holds_until_its_renewal(unix_s: float, renews: str) -> None:
    ends_s = renewal(renews, unix_s)  # pyright: ignore[reportArgumentType]  drawn
    assert ends_s is not None
    assert ends_s > unix_s
    same = window(renews, unix_s)  # pyright: ignore[reportArgumentType]  drawn
    assert window(renews, ends_s - 1) == same  # pyright: ignore[reportArgumentType]  drawn
    assert window(renews, ends_s) != same  # pyright: ignore[reportArgumentType]  drawn
