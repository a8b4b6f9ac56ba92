"""Prompts of transcripts: as many as fit, and what does not fit is said."""

from reflexarc.traces.formats.visible import Prompts, message


def test_prompts_share_their_pieces_and_are_not_complete() -> None:
    pieces = [message("user", "a", 0), message("assistant", "b", 1)]
    prompts = Prompts()
    first, second = prompts.of(pieces[:1]), prompts.of(pieces)
    assert first is not None
    assert second is not None
    assert first.pieces[0] is second.pieces[0]
    assert not second.complete
    assert prompts.of([]) is None
    assert prompts.cut == ""


def test_past_the_limit_there_are_no_prompts_and_that_is_said() -> None:
    pieces = [message("user", "a", 0)] * 3
    prompts = Prompts(most=5)
    assert prompts.of(pieces) is not None
    assert prompts.of(pieces) is None
    assert "more than 5 messages" in prompts.cut


def test_looking_at_messages_that_are_not_sent_counts_too() -> None:
    prompts = Prompts(most=5)
    assert prompts.of([], walked=6) is None
    assert prompts.cut
