"""Which earlier prompt each one goes on from: breaks are told from other conversations."""

from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context.lineage import lineage
from reflexarc.context.reuse import Sent
from tests.context.sent import blocks, sent, text


def _hows(*turns: Sent, starts: tuple[int, ...] = ()) -> list[tuple[str, int | None]]:
    found = lineage(turns, [at in starts for at in range(len(turns))])
    return [(one.how, one.before) for one in found]


def test_a_conversation_that_grows_is_kept() -> None:
    turns = [sent(text(*"abcde"[:length])) for length in (1, 2, 5)]
    assert _hows(*turns) == [("first", None), ("kept", 0), ("kept", 1)]


def test_what_goes_on_from_an_earlier_prompt_has_lost_nothing() -> None:
    main, title = sent(blocks(1, 2, 3, 4)), sent(blocks(9, 8))
    assert _hows(main, title, sent(blocks(1, 2, 3, 4, 5))) == [
        ("first", None), ("new", None), ("returned", 0),
    ]  # fmt: skip


def test_an_edited_history_is_a_break_and_costs_what_stands_behind() -> None:
    before, after = sent(blocks(1, 2, 3, 4, 5)), sent(blocks(1, 2, 9, 9, 9, 9))
    (_, found) = lineage([before, after], [False, False])
    assert (found.how, found.before, found.shared_tokens) == ("broken", 0, 20)
    assert found.lost_tokens == 30  # of 50 that were sent, 20 are still the same


def test_a_first_byte_that_changes_is_a_break_where_the_prompt_goes_on_growing() -> None:
    before, after = sent(text("12:01 ", "x" * 900)), sent(text("12:02 ", "x" * 900, "more"))
    (_, found) = lineage([before, after], [False, False])
    assert found.how == "broken"
    assert found.lost_tokens > 890


def test_a_short_prompt_that_shares_nothing_is_another_conversation() -> None:
    assert _hows(sent(blocks(*range(20))), sent(blocks(99, 98)))[1] == ("new", None)


def test_what_a_log_calls_a_new_chain_is_no_break() -> None:
    turns = (sent(blocks(1, 2, 3, 4)), sent(blocks(1, 9, 9, 9)))
    assert _hows(*turns)[1] == ("broken", 0)
    assert _hows(*turns, starts=(1,))[1] == ("new", None)


def test_a_last_message_sent_otherwise_goes_on_from_the_prompt_before_it() -> None:
    turns = (sent(blocks(1, 2)), sent(blocks(1, 2, 3, 4)), sent(blocks(1, 2, 5)))
    assert _hows(*turns)[2][0] == "returned"


def test_a_message_left_out_of_the_middle_is_a_break_although_a_turn_ended_there() -> None:
    said = [f"message {number} " * 30 for number in range(8)]
    turns = [sent(text(*said[:length])) for length in (2, 4, 6, 8)]
    cut = sent(text(*said[:4], *said[5:], "and more"))
    found = lineage([*turns, cut], [False] * 5)[-1]
    assert (found.how, found.before) == ("broken", 3)


def test_turns_taken_back_are_no_break() -> None:
    said = [f"message {number} " * 30 for number in range(8)]
    turns = [sent(text(*said[:length])) for length in (2, 4, 6, 8)]
    again = sent(text(*said[:4], "something else this time " * 40))
    assert lineage([*turns, again], [False] * 5)[-1].how == "returned"


def test_agents_go_on_from_their_own_prompts() -> None:
    turns = (
        sent(blocks(1, 2, 3)), sent(blocks(1, 7, 7, 7, 7), thread="sub"), sent(blocks(1, 2, 3, 4)),
        sent(blocks(1, 7, 7, 7, 7, 8), thread="sub"),
    )  # fmt: skip
    assert _hows(*turns) == [("first", None), ("new", None), ("kept", 0), ("kept", 1)]


@given(st.lists(st.lists(st.integers(0, 2), max_size=8), max_size=10))
def test_nothing_loses_more_than_it_holds(prompts: list[list[int]]) -> None:
    turns = [sent(blocks(*ids)) for ids in prompts]
    found = lineage(turns, [False] * len(turns))
    for turn, one in zip(turns, found, strict=True):
        assert 0 <= one.lost_tokens <= turn.tokens - one.shared_tokens
        assert (one.before is None) == (one.how in ("first", "new"))
