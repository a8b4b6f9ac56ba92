"""A step is made where it saves more than the prompt behind it costs anew; a cache that is gone
makes it free; and it is made once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.horizon import fit
from reflexarc.context.pruning import Rules, Step, Terms, Walk, worthwhile
from reflexarc.context.pruning_items import Item, read_item
from reflexarc.wire.json import encode_json
from tests.context.talking import conversation

TERMS = Terms(read=0.3, write=3.75, cold=0.05)
RULES = Rules(keep_turns=1)


def step(saved: int, again: int) -> Step:
    return Step(0, saved, again)


def chosen(
    steps: list[Step], remaining: float, *, cold: bool = False, terms: Terms = TERMS
) -> Step | None:
    return worthwhile(terms, RULES)(steps, remaining, cold)


def test_little_saved_before_much_that_follows_is_not_cut() -> None:
    assert chosen([step(1_000, 20_000)], 10) is None


def test_much_saved_near_the_end_is_cut() -> None:
    assert chosen([step(10_000, 1_000)], 10) == step(10_000, 1_000)


def test_a_cache_that_is_gone_makes_it_free() -> None:
    assert chosen([step(1_000, 20_000)], 10, cold=True) == step(1_000, 20_000)


def test_a_session_about_to_end_is_left() -> None:
    assert chosen([step(10_000, 2_000)], 0) is None
    assert chosen([step(10_000, 2_000)], 20) is not None


def test_a_cache_likely_to_go_by_itself_is_waited_for() -> None:
    steps = [step(10_000, 4_000)]
    never_cold, often_cold = Terms(0.3, 3.75, 0.0), Terms(0.3, 3.75, 0.7)
    assert chosen(steps, 30, terms=never_cold) is not None
    assert chosen(steps, 30, terms=often_cold) is None


def test_where_reads_cost_as_much_as_writes_nothing_is_recomputed() -> None:
    assert chosen([step(1_000, 50_000)], 1, terms=Terms(3.0, 3.0, 0.05)) is not None


def test_a_step_of_little_use_is_not_made() -> None:
    assert chosen([step(RULES.least_step_tokens - 1, 1)], 1_000) is None


def test_terms_and_rules_that_mean_nothing_are_refused() -> None:
    for read, write, cold in ((-1, 1, 0), (2, 1, 0), (1, 2, 1.5), (1, 2, -0.1)):
        with pytest.raises(ValueError, match="costs"):
            Terms(read, write, cold)
    with pytest.raises(ValueError, match="always kept"):
        Rules(keep_turns=0)
    with pytest.raises(ValueError, match="not negative"):
        Rules(least_tokens=-1)
    with pytest.raises(ValueError, match="margin"):
        Rules(margin=-0.1)


@given(
    st.lists(st.tuples(st.integers(1, 50_000), st.integers(0, 200_000)), min_size=1, max_size=8),
    st.floats(0, 200),
    st.floats(0, 1),
    st.booleans(),
)
def test_what_is_chosen_never_costs_more_than_cutting_nothing(
    given_: list[tuple[int, int]], remaining: float, chance: float, cold: bool
) -> None:
    terms = Terms(0.3, 3.75, chance)
    best = chosen([step(*one) for one in given_], remaining, cold=cold, terms=terms)
    if best is not None and not cold:
        each = chance * terms.write + (1 - chance) * terms.read
        saved = best.saved_tokens * (terms.read + remaining * each)
        assert saved > best.again_tokens * (terms.write - terms.read)


def items(turns: int, size: int = 8_000) -> list[Item]:
    """Each turn reads the same file anew."""
    calls = [
        (f"c{at}", "read_file", {"path": "a.py"}, f"{at} " + "x" * size) for at in range(turns)
    ]
    return [read_item("chat", encode_json(one)) for one in conversation("chat", *calls)]


def walk(read: list[Item], *, cold: bool = False) -> Walk:
    made = Walk(RULES, fit([30] * 50), worthwhile(TERMS, RULES))
    made.add(read)
    made.decide(cold=cold)
    return made


def test_the_last_turns_stay_whatever_they_say() -> None:
    for keep in (1, 2, 5):
        rules = Rules(keep_turns=keep)
        made = Walk(rules, fit([30] * 50), worthwhile(TERMS, rules))
        read = items(6)
        made.add(read)
        made.decide(cold=True)
        assert made.cuts
        assert max(at for at, _ in made.cuts) == len(read) - 1 - 2 * keep


def test_cuts_are_made_in_steps_of_several() -> None:
    made, sizes = Walk(Rules(keep_turns=3), fit([60] * 50), worthwhile(TERMS, Rules())), [0]
    for item in items(24, 3_000):
        made.add([item])
        if not item.turn:
            made.decide()
        if len(made.cuts) != sizes[-1]:
            sizes.append(len(made.cuts))
    assert sizes[-1] >= 12
    assert len(sizes) - 1 <= sizes[-1] / 2


@given(st.integers(2, 14), st.lists(st.integers(1, 6), max_size=12))
def test_a_history_gone_through_again_is_cut_the_same(turns: int, pieces: list[int]) -> None:
    read = items(turns)
    at_once = walk(read)
    bit_by_bit = Walk(RULES, fit([30] * 50), worthwhile(TERMS, RULES))
    at = 0
    for piece in [*pieces, len(read)]:
        bit_by_bit.add(read[at : at + 2 * piece])
        at = min(len(read), at + 2 * piece)
        if at % 2:  # ends with a result: a request
            bit_by_bit.decide()
    bit_by_bit.decide()
    assert bit_by_bit.cuts == at_once.cuts
    assert bit_by_bit.saved_tokens == at_once.saved_tokens


def test_what_was_cut_stays_cut_and_a_request_sent_again_changes_nothing() -> None:
    read = items(12)
    made = walk(read)
    before = dict(made.cuts)
    assert before
    made.decide(cold=True)
    assert made.cuts == before
    made.add(items(3)[1:])
    made.decide()
    assert before.items() <= made.cuts.items()
