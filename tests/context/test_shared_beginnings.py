"""The longest beginning that a prompt shares with others is found, to the byte and to the block."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context import prefixes
from reflexarc.context.prefixes import (
    TEXT_BLOCK_BYTES,
    Beginnings,
    comparable,
    length_of,
    shared,
)
from reflexarc.steps.prompt import Blocks, Piece, Prompt
from tests.context.sent import blocks, text

_words = st.lists(st.sampled_from(["a", "bb", "x" * 300, "x" * 299 + "y", ""]), max_size=6)
_ids = st.lists(st.integers(0, 2), max_size=12)


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@given(_words, _words)
def test_texts_share_what_they_begin_with_piece_by_piece(one: list[str], other: list[str]) -> None:
    assert shared(text(*one), text(*other)) == shared(text(*other), text(*one))
    one, other = list(filter(None, one)), list(filter(None, other))  # an empty piece is none
    whole = _common(one, other)
    found = sum(len(word) for word in one[:whole])
    if whole < min(len(one), len(other)):
        found += _common(one[whole], other[whole])
    assert shared(text(*one), text(*other)) == found


@given(_ids, _ids)
def test_blocks_share_what_their_ids_begin_with(one: list[int], other: list[int]) -> None:
    assert shared(blocks(*one), blocks(*other)) == 10 * _common(one, other)


def test_blocks_of_two_scopes_and_texts_share_nothing() -> None:
    assert not comparable(blocks(1, scope="a"), blocks(1, scope="b"))
    assert shared(blocks(1, scope="a"), blocks(1, scope="b")) == 0
    assert shared(blocks(1), text("a")) == 0
    assert shared(Blocks(16, blocks(1).ids), blocks(1)) == 0


def test_settings_are_no_part_of_what_is_shared() -> None:
    tool_choice = Piece("settings", "tool_choice", b'"any"')
    with_it = Prompt((tool_choice, *text("hello").pieces))
    assert length_of(with_it) == 5
    assert shared(with_it, text("hello")) == 5


@given(st.lists(_ids, min_size=1, max_size=8))
def test_of_all_earlier_blocks_the_longest_beginning_is_found(prompts: list[list[int]]) -> None:
    held = Beginnings()
    for number, ids in enumerate(prompts):
        prompt = blocks(*ids)
        keys = held.keys(prompt)
        best = max((_common(ids, other) for other in prompts[:number]), default=0)
        match = held.match(prompt, keys)
        assert (match.length if match else 0) == 10 * best
        if match is not None:
            latest = max(at for at in range(number) if _common(ids, prompts[at]) == best)
            assert match.number == latest
            contained = any(other and other == ids[: len(other)] for other in prompts[:number]
                            if len(other) == best)  # fmt: skip
            assert match.whole == contained
        assert held.add(prompt, keys) == number


@given(st.lists(_words, min_size=1, max_size=6))
def test_of_all_earlier_texts_the_longest_beginning_is_found_within_a_block(
    prompts: list[list[str]],
) -> None:
    held = Beginnings()
    for number, words in enumerate(prompts):
        prompt = text(*words)
        keys = held.keys(prompt)
        best = max((shared(text(*other), prompt) for other in prompts[:number]), default=0)
        match = held.match(prompt, keys)
        found = match.length if match else 0
        assert best - TEXT_BLOCK_BYTES < found <= best
        held.add(prompt, keys)


@given(_words)
def test_the_ends_of_blocks_are_as_many_as_their_keys(words: list[str]) -> None:
    prompt = text(*words)
    held = Beginnings()
    ends = held.lengths(prompt)
    assert len(ends) == len(held.keys(prompt))
    assert (ends[-1] if len(ends) else 0) == length_of(prompt)


@given(st.lists(_words, min_size=1, max_size=8))
def test_what_was_walked_before_changes_no_key_and_no_length(prompts: list[list[str]]) -> None:
    held = Beginnings()
    for words in (some for whole in prompts for some in (whole[:-1], whole, whole)):
        prompt, fresh = text(*words), Beginnings()
        assert held.keys(prompt).tolist() == fresh.keys(prompt).tolist()
        assert held.lengths(prompt).tolist() == fresh.lengths(prompt).tolist()


def test_a_conversation_that_goes_on_is_not_walked_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked: list[int] = []
    ends_in = prefixes._ends_in  # pyright: ignore[reportPrivateUsage]: what is counted here

    def counting(size: int) -> list[int]:
        walked.append(size)
        return ends_in(size)

    monkeypatch.setattr(prefixes, "_ends_in", counting)
    held, pieces = Beginnings(), text(*(f"{number} " * 9 for number in range(100))).pieces
    for turn in range(1, 101):
        held.keys(Prompt(pieces[:turn]))
        held.lengths(Prompt(pieces[:turn]))
    assert len(walked) <= 2 * len(pieces)


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    held = Beginnings(max_blocks=100)
    for number in range(40):
        prompt = blocks(1, 2, *range(1000 * number, 1000 * number + 20))
        held.add(prompt, held.keys(prompt))
    for number, length in ((39, 220), (0, 20)):
        prompt = blocks(1, 2, *range(1000 * number, 1000 * number + 20))
        match = held.match(prompt, held.keys(prompt))
        assert match is not None
        assert match.length == length


def test_a_beginning_lives_as_long_as_its_last_use() -> None:
    held = Beginnings()
    times: list[float] = []
    for at_s, ids in ((0.0, (1, 2, 3)), (100.0, (1, 2)), (200.0, (9,))):
        prompt = blocks(*ids)
        held.add(prompt, held.keys(prompt))
        times.append(at_s)
    keys = held.keys(blocks(1, 2, 3, 4))
    assert [held.alive(keys, times, since) for since in (0.0, 50.0, 150.0)] == [3, 2, 0]
