"""Which tokens are inside others is told by the total, else by what the source usually does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.traces.inclusive import Told, Usual, settled


@pytest.mark.parametrize(
    ("told", "usual", "prompt", "output", "unknown"),
    [
        # OpenAI's 17,903 with 17,817 of them cached, told as parts that overlap
        (Told(17_903, 10, 17_817, None, None, 17_913), "disjoint", 17_903, 10, False),
        # 5 uncached, 128,955 read, 1,253 written
        (Told(130_213, 7, 128_955, 1_253), "inclusive", 130_213, 7, False),
        (Told(5, 7, 128_955, 1_253), "inclusive", 130_213, 7, False),
        (Told(19, 4, 39_000), "inclusive", 39_019, 4, False),
        (Told(100, 10, 40, None, 6, 156), None, 140, 16, False),
        (Told(100, 10, 40, None, 6, 110), None, 100, 10, False),
        (Told(100, 10, 40, None, None, 150), None, 140, 10, False),
        (Told(100, 10, 40), None, 100, 10, True),
        (Told(100, 10, 40, None, None, 999), "inclusive", 100, 10, True),
        (Told(100, 10, 0, 0, None, 110), None, 100, 10, False),
        (Told(100, 10), "disjoint", 100, 10, False),
        (Told(None, 10, 40), "inclusive", None, 10, False),
    ],
)
def test_known_cases(
    told: Told, usual: Usual, prompt: float | None, output: float, unknown: bool
) -> None:
    found = settled(told, usual)
    assert (found.prompt, found.output, found.unknown) == (prompt, output, unknown)


@given(
    st.integers(0, 9_999), st.integers(0, 99), st.integers(0, 9_999), st.integers(0, 99),
    st.integers(1, 999), st.booleans(), st.booleans(), st.sampled_from(["inclusive", "disjoint"]),
)  # fmt: skip
def test_either_way_of_telling_gives_the_same(
    uncached: int, written: int, read: int, reasoning: int, words: int, disjoint: bool,
    with_total: bool, other: Usual,
) -> None:  # fmt: skip
    """With a total, whatever the source is said to do; without one, as it does."""
    prompt, output = uncached + read + written, words + reasoning
    shown = uncached if disjoint else prompt
    total = float(prompt + output) if with_total else None
    told = Told(shown, output, read, written, reasoning, total)
    usual: Usual = other if with_total else "disjoint" if disjoint else "inclusive"
    found = settled(told, usual)
    if not found.unknown and not (with_total and read + written == reasoning):
        assert (found.prompt, found.output) == (prompt, output)
    if not with_total:
        assert not found.unknown
