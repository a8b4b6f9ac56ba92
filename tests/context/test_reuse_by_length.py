"""How much of prompts was sent before: in the previous turn, in any earlier prompt, by length."""

import pytest

from reflexarc.context.reuse import by_context, concentration, reuse
from reflexarc.context.settled import settled
from reflexarc.steps.prompt import Piece, Prompt
from tests.context.sent import blocks, sent, text


def test_a_conversation_that_grows_sends_all_of_its_last_turn_again() -> None:
    found = reuse(sent(text(*"abcd"[:length])) for length in (1, 2, 4))
    assert [one.previous for one in found] == [None, 0.5, 0.5]
    assert [one.earlier for one in found] == [None, 0.5, 0.5]


def test_an_orchestrator_reuses_nothing_of_its_last_turn_and_all_of_an_earlier_one() -> None:
    one, other = text("plan the work", " at hand"), text("write the code", " for it")
    found = reuse(sent(prompt) for prompt in (one, other, one, other))
    assert [round(share.previous or 0, 2) for share in found[2:]] == [0.0, 0.0]
    assert [share.earlier for share in found[2:]] == [1.0, 1.0]
    assert [share.again for share in found] == [False, False, True, True]


def test_a_part_of_a_prompt_that_is_the_same_makes_no_same_prompt() -> None:
    part = Prompt(text("hello").pieces, complete=False)
    assert [one.again for one in reuse([sent(part), sent(part)])] == [False, False]


def test_agents_of_one_session_have_turns_of_their_own() -> None:
    found = reuse([sent(blocks(1, 2)), sent(blocks(7, 8), thread="sub"), sent(blocks(1, 2, 3, 4))])
    assert [one.previous for one in found] == [None, None, 0.5]


def test_another_scope_is_not_compared() -> None:
    found = reuse([sent(blocks(1, scope="a")), sent(blocks(1, scope="b"))])
    assert [(one.previous, one.earlier) for one in found] == [(None, None)] * 2


def test_of_blocks_what_fills_no_block_counts_as_new() -> None:
    first, second = sent(blocks(1, 2)), sent(blocks(1, 2))
    found = reuse([first, type(first)("main", second.prompt, 25)])
    assert found[1].previous == pytest.approx(20 / 25)


def test_bands_hold_the_prompts_of_their_length() -> None:
    bands = by_context([8000, 15_999, 16_000, 250_000, 9000], [0.9, 0.7, 0.5, 1.0, None])
    assert [(band.context, band.n, band.median) for band in bands] == [
        ("8k-16k", 2, 0.8),
        ("16k-32k", 1, 0.5),
        ("over 100k", 1, 1.0),
    ]
    assert (bands[0].p10, bands[0].p90) == (0.72, 0.88)
    assert bands[-1].to_tokens is None


def test_few_turns_cause_most_of_what_is_read_anew() -> None:
    found = concentration([100.0] * 10 + [1000.0, 50.0], [0.99] * 10 + [0.1, None])
    assert (found.turns, found.little) == (11, 1)
    assert found.tokens_anew == pytest.approx(910)
    assert found.share_of_turns == pytest.approx(1 / 11)
    assert found.share_of_tokens == pytest.approx(900 / 910)


def _message(at: int, raw: bytes) -> Piece:
    return Piece("message", f"messages[{at}]", raw, "user")


def test_marks_for_caches_that_move_hide_nothing_of_what_is_the_same() -> None:
    marked = b'{"role": "user", "content": [{"type": "text", "text": "%s", "cache_control": {}}]}'
    plain = b'{"role":"user","content":"%s"}'
    before = Prompt((_message(0, plain % b"a"), _message(1, marked % b"b")))
    after = Prompt(
        (_message(0, plain % b"a"), _message(1, plain % b"b"), _message(2, marked % b"c"))
    )
    first, second = settled([before, after])
    found = reuse([sent(first), sent(second)])
    assert found[1].previous == pytest.approx(2 / 3, abs=0.02)
    assert settled([text("a")]) == [text("a")]
