"""How fast and how many at once: buckets that fill at a steady rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.accounts.keys import VirtualKey
from reflexarc.accounts.limits import KeyLimits, Pass
from reflexarc.steps.errors import RateLimitError
from tests.accounts.booking import Clock, key


def enters(limits: KeyLimits, one: VirtualKey, tokens: int = 0) -> Pass | float:
    """Let in, or after how many seconds to ask again."""
    try:
        return limits.enter(one, tokens)
    except RateLimitError as error:
        return error.retry_after_s


def test_a_minutes_requests_pass_and_one_more_after_a_sixtieth_of_it() -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(requests_per_minute=60)
    assert all(isinstance(enters(limits, one), Pass) for _ in range(60))
    assert enters(limits, one) == pytest.approx(1.0)
    clock.now_s += 0.5
    assert enters(limits, one) == pytest.approx(0.5)
    clock.now_s += 0.5
    assert isinstance(enters(limits, one), Pass)
    assert enters(limits, one) == pytest.approx(1.0)


def test_what_is_not_used_does_not_pile_up() -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(requests_per_minute=2)
    clock.now_s += 3600
    assert isinstance(enters(limits, one), Pass)
    assert isinstance(enters(limits, one), Pass)
    assert enters(limits, one) == pytest.approx(30.0)


def test_tokens_are_set_right_when_it_is_known_how_many_there_were() -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(tokens_per_minute=600)
    first = limits.enter(one, 500)
    assert enters(limits, one, 200) == pytest.approx(10.0)
    limits.leave(first, 300)
    second = limits.enter(one, 200)
    limits.leave(second, 900)
    assert enters(limits, one, 1) == pytest.approx(60.1)


def test_a_request_larger_than_a_minute_passes_an_unused_minute_and_is_paid_for() -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(tokens_per_minute=100)
    assert isinstance(enters(limits, one, 300), Pass)
    assert enters(limits, one, 1) == pytest.approx(120.6)


def test_no_more_are_inside_than_may_be() -> None:
    limits, one = KeyLimits(Clock(0.0)), key(max_parallel=2)
    first, second = limits.enter(one), limits.enter(one)
    with pytest.raises(RateLimitError, match="has 2 requests on their way; 2 may be") as caught:
        limits.enter(one)
    assert caught.value.retry_after_s > 0
    limits.leave(first)
    limits.leave(first)  # a second time does nothing
    assert limits.inside(one.id) == 1
    limits.enter(one)
    assert isinstance(enters(limits, one), float)
    limits.leave(second)


def test_a_refused_request_uses_nothing() -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(requests_per_minute=2, tokens_per_minute=60)
    limits.enter(one, 60)
    assert isinstance(enters(limits, one, 60), float)
    clock.now_s += 60
    limits.enter(one, 60)
    assert limits.inside(one.id) == 2


def test_keys_do_not_share_and_no_limit_never_binds() -> None:
    limits = KeyLimits(Clock(0.0))
    limits.enter(key(requests_per_minute=1))
    limits.enter(key(id="key_2", requests_per_minute=1))
    assert all(isinstance(enters(limits, key(id="key_3"), 10**9), Pass) for _ in range(1000))
    assert isinstance(enters(limits, key(id="key_4", requests_per_minute=0)), float)


def test_a_changed_limit_holds_at_once_and_keeps_what_was_used() -> None:
    limits = KeyLimits(Clock(0.0))
    limits.enter(key(requests_per_minute=2))
    limits.enter(key(requests_per_minute=3))
    limits.enter(key(requests_per_minute=3))
    assert isinstance(enters(limits, key(requests_per_minute=3)), float)
    assert isinstance(enters(limits, key()), Pass)


def test_what_is_remembered_is_bounded_and_never_forgets_who_is_inside() -> None:
    limits = KeyLimits(Clock(0.0), max_keys=3)
    busy = limits.enter(key(max_parallel=1))
    for number in range(50):
        limits.leave(limits.enter(key(id=f"other_{number}")))
    assert isinstance(enters(limits, key(max_parallel=1)), float)
    limits.leave(busy)


@given(
    st.integers(1, 600),
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 500)), max_size=60),
)
def test_no_stretch_of_time_sees_more_than_it_may(
    per_minute: int, asked: list[tuple[float, int]]
) -> None:
    clock = Clock(0.0)
    limits, one = KeyLimits(clock), key(tokens_per_minute=per_minute)
    used: list[tuple[float, int]] = []
    for pause_s, tokens in asked:
        clock.now_s += pause_s
        if isinstance(enters(limits, one, min(tokens, per_minute)), Pass):
            used.append((clock.now_s, min(tokens, per_minute)))
    for at, (began_s, _) in enumerate(used):
        total = 0
        for now_s, tokens in used[at:]:
            total += tokens
            assert total <= per_minute + (now_s - began_s) * per_minute / 60 + 1e-3
