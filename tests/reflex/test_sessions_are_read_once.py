"""Sessions that are replayed again are not read again, and what they say is the same."""

import pytest

from reflexarc.reflex.context import Context
from reflexarc.reflex.fork import fork
from reflexarc.reflex.replay import Replays, replay
from reflexarc.reflex.tape import Room, Tape
from reflexarc.steps import Message, Session, ToolCall
from tests.reflex import loans, parcels

SESSIONS = [*parcels.sessions(0, 4), *loans.sessions(0, 4)]


def state(context: Context) -> tuple[object, ...]:
    """What a context says, by value."""
    return (
        context.event,
        list(context.symbols),
        [(event.kind, event.outcome, event.text) for event in context.log],
        [(one.slot, one.text, one.position, one.origin.message) for one in context.entries],
        {slot: [one.text for one in every] for slot, every in context.slots.items()},
        [(one.path, one.record.text, one.origin.message) for one in context.objects],
        [(one.tool, one.text, [entry.text for entry in one.entries]) for one in context.seen],
        (context.output_words, context.user.words, context.assistant.words, context.prompt_hash),
        (context.names_in_output, context.names_mentioned, context.words_mentioned),
    )


@pytest.mark.parametrize("room", [10**6, 40, 0], ids=["room", "little room", "no room"])
@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.id)
def test_a_replay_says_what_a_first_reading_says(session: Session, room: int) -> None:
    replays = Replays(room)
    wanted = [state(context) for context, _ in replay(session)]
    for _ in range(3):
        assert [state(context) for context, _ in replays(session)] == wanted


def test_what_was_read_is_not_read_again() -> None:
    replays = Replays()
    entries = [[list(context.entries) for context, _ in replays(SESSIONS[0])][-1] for _ in range(2)]
    read_again = [
        one for one, other in zip(*entries, strict=True)
        if one is not other and not one.slot.startswith("prev:")
    ]  # fmt: skip
    assert len(entries[0]) > 10
    assert not read_again


def test_room_is_for_all_sessions_together() -> None:
    room = Room(3)
    first, second = Tape(room), Tape(room)
    assert first.once("a", lambda: [1, 2], len) == [1, 2]
    assert second.once("b", lambda: [3, 4], len) == [3, 4]
    first.rewind()
    second.rewind()
    assert first.once("a", lambda: [9, 9], len) == [1, 2]
    assert second.once("b", lambda: [9, 9], len) == [9, 9]


def test_a_session_goes_on_where_its_replay_ends() -> None:
    session = SESSIONS[0]
    replays = Replays()
    whole = Context()
    whole.extend(session.messages)
    for _ in range(2):
        context = replays.context(session)
        for _ in replay(session, context):
            pass
        context.extend(session.messages[context.length :])
        assert state(context) == state(whole)


def test_a_fork_goes_its_own_way() -> None:
    session = SESSIONS[0]
    replays = Replays()
    wanted = [state(context) for context, _ in replays(session)]
    found: list[tuple[object, ...]] = []
    for context, _ in replays(session):
        other = fork(context)
        other.append_call(ToolCall("", "elsewhere", {"place": "Oslo 12345"}))
        other.extend([Message("user", "something else, for 98765")])
        found.append(state(context))
    assert found == wanted


def test_another_conversation_is_refused() -> None:
    tape = Tape(Room(100))
    Context(tape).extend([Message("user", "track 12345")])
    tape.rewind()
    with pytest.raises(RuntimeError, match="one conversation"):
        Context(tape).extend([Message("user", "track 54321")])
