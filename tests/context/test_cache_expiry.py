"""What caches of a given time to live would miss, on prompts whose times are known."""

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.expiry import expiry, misses
from tests.context.sent import blocks, sent, text


def test_a_pause_longer_than_the_time_to_live_loses_all() -> None:
    turns = [sent(blocks(1, 2), 0), sent(blocks(1, 2, 3), 200), sent(blocks(1, 2, 3, 4), 1000)]
    short, long = expiry(turns, (300, 3600))
    assert (short.missed_tokens, long.missed_tokens) == (20 + 10 + 40, 20 + 10 + 10)
    assert short.cold_tokens == long.cold_tokens == 40
    assert short.prompt_tokens == 90
    assert short.share == 70 / 90


def test_each_use_keeps_a_prefix_for_another_time() -> None:
    turns = [sent(blocks(1, 2), at_s) for at_s in (0, 250, 500, 750)]
    (found,) = expiry(turns, (300,))
    assert found.missed_tokens == 20


def test_what_another_agent_of_the_session_sent_is_cached_too() -> None:
    turns = [sent(blocks(1, 2), 0), sent(blocks(1, 2), 10, thread="sub")]
    (found,) = expiry(turns, (300,))
    assert found.missed_tokens == 20


def test_prompts_without_a_time_are_left_out() -> None:
    assert len(misses([sent(text("a")), sent(text("a"), 1.0)], (300,))) == 1


@given(
    st.lists(
        st.tuples(st.floats(0, 2000), st.lists(st.integers(0, 1), min_size=1, max_size=6)),
        max_size=10,
    )
)
def test_nothing_that_lives_longer_misses_more(turns: list[tuple[float, list[int]]]) -> None:
    ordered = [sent(blocks(*ids), at_s) for at_s, ids in sorted(turns, key=lambda one: one[0])]
    short, long = expiry(ordered, (60, 600))
    assert long.cold_tokens <= long.missed_tokens <= short.missed_tokens <= short.prompt_tokens
