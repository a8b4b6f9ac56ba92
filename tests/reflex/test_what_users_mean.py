"""Days, times, durations, names and quotations of a user's message become values."""

from datetime import datetime

import pytest

from reflexarc.provenance.mentions import mentions
from reflexarc.provenance.times import meant_times, number_of, told_by_prompt, told_now
from reflexarc.reflex import Context
from reflexarc.steps import Message

NOW = datetime(2027, 3, 10, 14, 5)  # a Wednesday


def meant(text: str, how: str, now: datetime | None = NOW, year: str = "2027") -> list[object]:
    return [one.value for one in meant_times(text, now, year) if one.how == how]


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        ("today", "day:today", "2027-03-10"),
        ("by tomorrow, please", "day:tomorrow", "2027-03-11"),
        ("the day before yesterday", "day:day before yesterday", "2027-03-08"),
        ("since Friday", "day:weekday before", "2027-03-05"),
        ("on Friday", "day:weekday after", "2027-03-12"),
        ("next Monday", "day:next weekday", "2027-03-15"),
        ("last Monday", "day:last weekday", "2027-03-01"),
        ("on Wednesday", "day:weekday after", "2027-03-17"),
        ("in 5 days", "day:ahead", "2027-03-15"),
        ("two weeks ago", "day:back", "2027-02-24"),
        ("in the last 3 months", "day:back", "2026-12-10"),
        ("in a fortnight", "day:ahead", "2027-03-24"),
        ("last week", "day:last week start", "2027-03-01"),
        ("last week", "day:last week end", "2027-03-07"),
        ("next month", "day:next month end", "2027-04-30"),
        ("in February", "day:month end", "2027-02-28"),
        ("on the 3rd", "day:ordinal", "2027-03-03"),
        ("on May 4th", "day:said", "2027-05-04"),
        ("4 May 2031", "day:said", "2031-05-04"),
        ("on 12/24/2027", "day:said", "2027-12-24"),
        ("May 4", "start:said", "2027-05-04 00:00:00"),
        ("May 4", "end:said", "2027-05-04 23:59:59"),
        ("on May 4 at 3:30pm", "near:told:said", "2027-05-04 15:30:00"),
        ("on May 4 at 3:30", "near:later:said", "2027-05-04 15:30:00"),
        ("on May 4 at 11", "near:bare:said", "2027-05-04 11:00:00"),
        ("tomorrow at noon", "near:named:tomorrow", "2027-03-11 12:00:00"),
        ("12am", "time:told", "00:00"),
        ("half an hour", "lasts:min", 30),
        ("for 1.5 hours", "lasts:min", 90),
        ("a 45-minute call", "lasts:min", 45),
        ("ninety", "lasts:min", None),
    ],
)
def test_a_time_is_understood(text: str, how: str, value: object) -> None:
    found = meant(text, how)
    assert (value in found) if value is not None else not found


def test_without_a_now_nothing_relative_is_made_up() -> None:
    assert not meant("tomorrow, next week, on Friday, in 3 days, on the 4th", "day:tomorrow", None)
    assert not list(meant_times("tomorrow, next week, on Friday, in 3 days", None, ""))
    assert not list(meant_times("on May 4", None, ""))
    assert meant("on May 4", "day:said", None, "2029") == ["2029-05-04"]


def test_impossible_times_are_none() -> None:
    for text in ("February 31", "2027-13-01", "13/45/2027", "in 9999 years", "at 25:70", "77pm"):
        for one in meant_times(text, NOW, "2027"):
            assert isinstance(one.value, (int, float)) or "2027" in one.value or one.at == -1


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("Today's date is Thursday, 2026-11-30 and the current time is 09:30:00.",
         datetime(2026, 11, 30, 9, 30)),
        ("The current time is 2025-05-15 15:00:00 EST.", datetime(2025, 5, 15, 15)),
        ("It is now May 15th, 2025.", datetime(2025, 5, 15)),
        ('{"current_time": "2025-05-15T15:00:00Z"}', datetime(2025, 5, 15, 15)),
        ('{"date": "2025-05-15", "price": 3}', None),
        ("You were born on 1999-01-01.", None),
        ("The date is 2025-02-31.", None),
    ],
)  # fmt: skip
def test_a_text_tells_the_time(text: str, now: datetime | None) -> None:
    assert told_now(text) == now
    assert told_by_prompt(text) == now


def test_only_the_beginning_of_a_text_is_asked_what_time_it_is() -> None:
    said = "Today is 2026-03-04."
    for told in (told_now, told_by_prompt):
        assert told("x " * 9_900 + said) == datetime(2026, 3, 4)
        assert told("x " * 10_000 + said) is None


def values(text: str, kind: str) -> list[object]:
    return [one.value for one in mentions(text) if one.kind == kind]


def test_a_quotation_may_hold_apostrophes_and_lines() -> None:
    text = "Email Bo saying 'Hey Bo,\n\nI've read it, don't worry.\n\nAda' and title it \"Re: all\""
    assert values(text, "quoted") == ["Hey Bo,\n\nI've read it, don't worry.\n\nAda", "Re: all"]


def test_names_and_what_follows_a_cue() -> None:
    text = "Please book Crescent Hollow Inn for Ada Byron's team, called spring retreat, for 3."
    assert values(text, "name") == ["Crescent Hollow Inn", "Ada Byron"]
    assert "spring retreat" in values(text, "cued")
    assert "Ada Byron" in values(text, "owner")


def test_numbers_are_plain() -> None:
    assert values("pay $1,250.50 or 3k for 12.0 items, not a1 or 7-up", "number") == [
        1250.5, 3000, 12,
    ]  # fmt: skip
    assert values("two or fifteen", "worded") == [2, 15]
    assert number_of("half an") == 0.5


def test_mentions_are_bounded() -> None:
    for odd in ("'a ", '"', "Ab Cd ", "to x y ", "1 ", "#aa ", "a@b.cc ", "monday 3pm "):
        text = odd * 20_000
        assert len(list(mentions(text))) < 700
        assert len(list(meant_times(text, NOW, "2027"))) < 400


def test_the_newest_now_counts() -> None:
    context = Context()
    context.extend([
        Message("system", "Today is 2026-01-05."), Message("user", "Anything tomorrow?"),
    ])  # fmt: skip
    assert [one.value for one in context.slots["usr:day:tomorrow"]] == ["2026-01-06"]
    context.extend([
        Message("tool", '{"current_date": "2026-02-01"}', name="clock"),
        Message("user", "And tomorrow?"),
    ])  # fmt: skip
    assert context.slots["usr:day:tomorrow"][-1].value == "2026-02-02"
