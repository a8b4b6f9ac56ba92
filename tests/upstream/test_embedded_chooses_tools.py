"""Which tool a request is for, given how likely each makes the request's words."""

import pytest

from reflexarc.steps import Message, ToolSpec
from reflexarc.upstream.embedded.choosing import (
    ANSWER_DESCRIPTION,
    FRAMES,
    MAX_WORDS_CHARS,
    OPENINGS,
    choose,
    described,
    request_words,
    spoken,
)
from reflexarc.upstream.embedded.options import SCORING_TOKENS

LIGHT = ToolSpec("set_light", "Turn a light on or off. Rooms have names.")
MUSIC = ToolSpec("playMusic", "Play a song")
ASK = [Message("user", "some jazz please")]


class Scores:
    """Likelihood by what a prompt holds; keeps what was asked."""

    def __init__(self, **by_text: float) -> None:
        self.by_text = {key.replace("_", " "): value for key, value in by_text.items()}
        self.asked: list[tuple[int, str, str]] = []

    async def __call__(self, frame: int, prompt: str, words: str) -> float:
        self.asked.append((frame, prompt, words))
        return sum(value for key, value in self.by_text.items() if key in prompt.lower())


async def test_the_likeliest_wins_over_all_frames() -> None:
    scores = Scores(play_a_song=-1, turn_a_light_on=-2)
    assert await choose(ASK, [LIGHT, MUSIC], scores, answer=False) == MUSIC
    assert sorted({frame for frame, _, _ in scores.asked}) == list(range(len(FRAMES)))
    assert {words for _, _, words in scores.asked} == {"some jazz please"}


async def test_an_answer_competes_only_where_it_is_allowed() -> None:
    scores = Scores(**{ANSWER_DESCRIPTION.lower(): 5})
    assert await choose(ASK, [LIGHT, MUSIC], scores, answer=True) is None
    assert await choose(ASK, [LIGHT, MUSIC], scores, answer=False) == LIGHT


async def test_after_a_result_comes_an_answer_in_words() -> None:
    history = [*ASK, Message("tool", "done", tool_call_id="c")]
    assert await choose(history, [LIGHT, MUSIC], Scores(), answer=True) is None
    assert await choose(history, [LIGHT], Scores(), answer=False) == LIGHT


async def test_a_choice_of_one_costs_nothing() -> None:
    scores = Scores()
    assert await choose(ASK, [LIGHT], scores, answer=False) == LIGHT
    assert scores.asked == []


async def test_without_words_of_a_user_nothing_is_called_unless_it_must() -> None:
    assert await choose([Message("system", "s")], [LIGHT], Scores(), answer=True) is None
    assert await choose([], [LIGHT, MUSIC], Scores(), answer=False) == LIGHT


def test_the_last_words_count() -> None:
    long = "a" * 1000 + " the end"
    words = request_words([Message("user", "first"), Message("user", long), Message("tool", "x")])
    assert len(words) == MAX_WORDS_CHARS
    assert words.endswith(" the end")


def test_words_hold_no_marks_and_no_line_ends() -> None:
    assert request_words([Message("user", "a\n\tb\x00<|im_end|>")]) == "a b < |im_end|>"


@pytest.mark.parametrize(
    ("name", "words"),
    [("get_order", "get order"), ("getOrderStatus", "get order status"), ("a.b-c", "a b c")],
)
def test_names_are_spoken(name: str, words: str) -> None:
    assert spoken(name) == words


def test_a_description_is_its_first_sentence_or_the_name() -> None:
    assert described(LIGHT) == "Turn a light on or off"
    assert described(ToolSpec("get_order")) == "Get order"


def test_whatever_is_written_all_frames_fit_what_is_kept_for_them() -> None:
    """A token can be a single byte; the frames' openings are 300 tokens together."""
    wild = "\U0001f9d1\u200d\U0001f680" * 500
    tool = ToolSpec("\u5de5" * 400, wild)
    words = request_words([Message("user", wild)])
    shown = [frame(spoken(tool.name), described(tool)) + words for frame in FRAMES]
    theirs = [
        text.removeprefix(opening).encode() for text, opening in zip(shown, OPENINGS, strict=True)
    ]
    assert sum(map(len, theirs)) <= SCORING_TOKENS - 300
    assert sum(map(len, OPENINGS)) < 3 * 300
    assert request_words([Message("user", "a" * 500)]) == "a" * MAX_WORDS_CHARS
