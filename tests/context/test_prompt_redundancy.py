"""How much of a prompt was in the previous one, on sessions whose lengths are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.context import redundancy, turns
from reflexarc.steps import Message, Session, ToolCall, ToolSpec


def session(*messages: Message, tools: tuple[ToolSpec, ...] = ()) -> Session:
    return Session("s", "t", tools, messages)


CALL = ToolCall("c", "look", {"at": 1}, '{"at": 1}')  # 4 + 9 characters


def test_a_turn_is_billed_for_everything_before_it() -> None:
    tool = ToolSpec("look", "looks", {"a": 1})  # 4 + 5 + 7 characters
    made = turns(
        session(
            Message("system", "s" * 10),
            Message("user", "u" * 20),
            Message("assistant", "", (CALL,)),
            Message("tool", "r" * 30),
            Message("assistant", "done"),
            tools=(tool,),
        )
    )
    assert [(t.message, t.prompt_chars, t.output_chars) for t in made] == [
        (2, 16 + 30, 13),
        (4, 16 + 30 + 13 + 30, 4),
    ]


def test_a_parallel_batch_is_one_turn() -> None:
    made = turns(
        session(
            Message("user", "u"),
            Message("assistant", "", (CALL, CALL)),
            Message("tool", "r"),
            Message("tool", "r"),
            Message("assistant", "done"),
        )
    )
    assert [t.message for t in made] == [1, 4]


def test_greetings_before_the_user_are_no_turns() -> None:
    made = turns(session(Message("assistant", "hi"), Message("user", "u"), Message("assistant")))
    assert [(t.message, t.prompt_chars) for t in made] == [(2, 3)]


def test_shares_over_turns_and_over_characters() -> None:
    found = redundancy(
        [
            session(
                Message("user", "u" * 50),
                Message("assistant", "a" * 50),
                Message("user", "v" * 100),
                Message("assistant", "b" * 100),
                Message("user", "w" * 100),
                Message("assistant", "c"),
            )
        ]
    )
    # prompts of 50, 200 and 400 characters
    assert found.turns == 2
    assert found.median == pytest.approx((50 / 200 + 200 / 400) / 2)
    assert found.weighted == pytest.approx(250 / 600)


def test_without_a_second_turn_there_is_nothing_to_share() -> None:
    found = redundancy([session(Message("user", "u"), Message("assistant", "a")), session()])
    assert (found.turns, found.median, found.weighted) == (0, 0.0, 0.0)


texts = st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=6)


@given(texts)
def test_shares_lie_between_nothing_and_everything(pairs: list[tuple[str, str]]) -> None:
    messages = [
        message
        for user, answer in pairs
        for message in (Message("user", user), Message("assistant", answer))
    ]
    found = redundancy([session(*messages)])
    assert found.turns == max(0, len(pairs) - 1)
    assert 0.0 <= found.median <= 1.0
    assert 0.0 <= found.weighted <= 1.0
