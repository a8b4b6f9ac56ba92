"""Whether pings pay, and what a ping is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.pings import ping_of
from reflexarc.context.warmth import FEWEST, MAX_GAPS, MAX_PINGS, Gaps, worth_pinging
from tests.context.prompts import request

LASTS_S, EVERY_S = 300.0, 270.0
seconds = st.floats(0, 10_000)


def gaps_of(*seen_s: float) -> Gaps:
    gaps = Gaps()
    for one in seen_s:
        gaps.add(one)
    return gaps


def pings(gaps: Gaps, miss: float = 11.5, ping: float = 1.0, **more: Any) -> int:
    """`miss` and `ping` as Anthropic's prices are to one another."""
    return worth_pinging(gaps, EVERY_S, LASTS_S, EVERY_S, miss, ping, **more)


def test_sessions_that_come_back_just_too_late_are_kept_warm() -> None:
    assert pings(gaps_of(*[400.0] * 20)) == 1
    assert pings(gaps_of(*[700.0] * 20)) == 2


def test_sessions_that_come_back_in_time_or_never_are_not() -> None:
    assert pings(gaps_of(*[60.0] * 200)) == 0
    assert pings(gaps_of(*[100_000.0] * 50)) == 0
    assert pings(gaps_of(*[400.0] * 5), still_idle_s=[5_000.0] * 200) == 0


def test_with_little_known_nothing_is_expected() -> None:
    assert pings(gaps_of(*[400.0] * (FEWEST - 1))) == 0
    assert pings(Gaps()) == 0


def test_a_cheap_miss_is_no_reason() -> None:
    gaps = gaps_of(*[400.0] * 10, *[9_000.0] * 10)
    assert pings(gaps, miss=1.0) == 0
    assert pings(gaps, miss=20.0) == 1


@given(st.lists(seconds, max_size=60), st.lists(seconds, max_size=20), st.floats(0, 50))
def test_what_is_done_is_worth_it_and_bounded(
    seen: list[float], idle: list[float], miss: float
) -> None:
    gaps = gaps_of(*seen)
    count = pings(gaps, miss, still_idle_s=idle)
    assert 0 <= count <= MAX_PINGS
    saved = gaps.returns(EVERY_S, count * EVERY_S + LASTS_S, idle) * miss
    assert count == 0 or saved > 1.0  # more than the first ping costs
    assert pings(gaps, miss, most=0, still_idle_s=idle) == 0


@given(st.lists(seconds, min_size=1), seconds, seconds)
def test_shares_are_shares(seen: list[float], idle_s: float, until_s: float) -> None:
    gaps = gaps_of(*seen)
    share = gaps.returns(idle_s, until_s)
    assert 0 <= share < 1
    assert share <= gaps.returns(idle_s, until_s + 100)


def test_old_gaps_are_forgotten_and_odd_ones_are_none() -> None:
    gaps = gaps_of(*[400.0] * MAX_GAPS, *[10.0] * MAX_GAPS, float("nan"), -1.0, float("inf"))
    assert len(gaps) == MAX_GAPS
    assert pings(gaps) == 0


def test_a_ping_is_the_same_prompt_with_the_shortest_answer() -> None:
    body = request(2, stream=True)
    ping = json.loads(ping_of(json.dumps(body).encode(), "messages") or b"")
    assert ping == {**body, "max_tokens": 1}
    chat = b'{"model":"m","messages":[],"max_completion_tokens":90}'
    assert json.loads(ping_of(chat, "chat") or b"")["max_completion_tokens"] == 1
    said = b'{"contents":[],"generationConfig":{"temperature":0}}'
    assert json.loads(ping_of(said, "gemini") or b"")["generationConfig"] == {
        "temperature": 0,
        "maxOutputTokens": 1,
    }
    response = b'{"input":"hi","store":false}'
    assert json.loads(ping_of(response, "responses") or b"")["max_output_tokens"] == 16


@pytest.mark.parametrize(
    ("spoken", "body"),
    [
        ("messages", b'{"messages":[],"thinking":{"type":"enabled","budget_tokens":2000}}'),
        ("chat", b'{"messages":[],"n":3}'),
        ("chat", b'{"messages":[],"reasoning_effort":"high"}'),
        ("responses", b'{"input":"it would be stored"}'),
        ("responses", b'{"input":"hi","store":false,"background":true}'),
        ("gemini", b'{"contents":[],"generationConfig":{"thinkingConfig":{}}}'),
        ("chat", b"no JSON"),
    ],
)
def test_what_does_more_than_answer_is_not_asked_again(spoken: str, body: bytes) -> None:
    assert ping_of(body, spoken) is None
