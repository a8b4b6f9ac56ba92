"""A recorded policy answers what was recorded after the same conversation."""

import pytest

from reflexarc.sim import Answer, PlannedCall, RecordedPolicy, UnknownConversationError
from reflexarc.steps import Message, Session, ToolCall

CALL = ToolCall("call_1", "look", {"id": 7}, '{"id": 7}')
MESSAGES = (
    Message("system", "Be brief."),
    Message("user", "Look at 7."),
    Message("assistant", "", (CALL,)),
    Message("tool", "seven", tool_call_id="call_1"),
    Message("assistant", "It is seven."),
)
SESSION = Session("s", "t", (), MESSAGES, model="recorded-model")


def test_each_assistant_step_is_answered_as_it_was_recorded() -> None:
    policy = RecordedPolicy([SESSION])
    assert policy.answer(MESSAGES[:2], ()) == Answer(
        "", (PlannedCall("look", {"id": 7}, '{"id": 7}'),)
    )
    assert policy.answer(MESSAGES[:4], ()) == Answer("It is seven.")
    assert policy.model == "recorded-model"


def test_call_ids_and_the_spelling_of_arguments_do_not_matter() -> None:
    other = ToolCall("another id", "look", {"id": 7.0}, '{ "id":7.0 }')
    messages = (*MESSAGES[:2], Message("assistant", "", (other,)), MESSAGES[3])
    assert RecordedPolicy([SESSION]).answer(messages, ()).content == "It is seven."


def test_of_two_recordings_with_the_same_beginning_the_first_answers() -> None:
    second = Session("s2", "t", (), (*MESSAGES[:4], Message("assistant", "Seven, I think.")))
    assert RecordedPolicy([SESSION, second]).answer(MESSAGES[:4], ()).content == "It is seven."


@pytest.mark.parametrize(
    "changed", [Message("user", "Look at 8."), Message("system", "Look at 7.")]
)
def test_an_unknown_conversation_is_refused(changed: Message) -> None:
    with pytest.raises(UnknownConversationError, match="1 recorded sessions"):
        RecordedPolicy([SESSION]).answer((MESSAGES[0], changed), ())
