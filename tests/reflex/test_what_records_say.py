"""What stands in the records of values speaks for those an argument takes: "open", not "closed"."""

import random
from typing import Any

from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.record_cues import RecordLearner, record_sign
from reflexarc.reflex.replay import replay
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

TOOLS = (
    ToolSpec("get_ticket", "Gets a ticket.", {"type": "object", "properties": {}}),
    ToolSpec("archive_ticket", "Archives one.", {"type": "object", "properties": {}}),
)
STATES = ("settled", "brewing", "brewing")


def session(number: int, states: tuple[str, ...] = STATES) -> Session:
    """Three tickets are looked at; the one that is settled is archived."""
    drawn = random.Random(number)
    order = drawn.sample(states, len(states))
    tickets = [f"tk-{drawn.randrange(10**6):06d}" for _ in order]
    messages = [Message("user", f"Archive what may go: {', '.join(tickets)}")]
    for ticket, state in zip(tickets, order, strict=True):
        call = ToolCall(f"c{ticket}", "get_ticket", {"ticket": ticket}, "{}")
        messages.append(Message("assistant", tool_calls=(call,)))
        owner = f"zz{number}zz own{number % 2}x"
        result = f'{{"ticket": "{ticket}", "state": "{state}", "owner": "{owner}"}}'
        messages.append(Message("tool", result, tool_call_id=call.id))
    arguments: dict[str, Any] = {"ticket": tickets[order.index(states[0])]}
    messages.append(
        Message("assistant", tool_calls=(ToolCall("last", "archive_ticket", arguments, "{}"),))
    )
    messages.append(Message("tool", "ok", tool_call_id="last"))
    return Session(f"s{number}", f"t{number}", TOOLS, tuple(messages))


def observed(sessions: list[Session]) -> RecordLearner:
    learner = RecordLearner()
    for one in sessions:
        for context, item in replay(one):
            if item.recorded is not None:
                learner.observe(context, item.recorded, one.task)
    return learner


def learned(count: int = 40) -> Predictor:
    sessions = [session(number) for number in range(count)]
    return fit_predictor(sessions, set(), Private(sessions))


def test_the_state_speaks_for_an_object_and_against_others() -> None:
    weights = observed([session(number) for number in range(12)]).finish()
    settled = weights[record_sign("archive_ticket", "ticket", "settled")]
    brewing = weights[record_sign("archive_ticket", "ticket", "brewing")]
    assert settled > 0.5
    assert brewing < -0.5


def test_the_right_object_is_chosen_by_its_state() -> None:
    predictor = learned()
    right = 0
    for number in range(100, 130):
        *_, (context, item) = (
            (context, item)
            for context, item in replay(session(number))
            if item.recorded is not None and item.recorded.name == "archive_ticket"
        )
        best = predictor.fill(context, "archive_ticket", 1.0)[0]
        assert item.recorded is not None
        right += best.arguments == item.recorded.arguments
    assert right >= 28  # by chance it would be 10


def test_words_of_fewer_than_three_tasks_and_ids_are_not_kept() -> None:
    weights = learned().cues.weights
    assert record_sign("archive_ticket", "ticket", "settled") in weights
    for number in range(40):
        assert record_sign("archive_ticket", "ticket", f"zz{number}zz") not in weights
    assert not observed([session(1), session(2)]).finish()


def test_a_task_is_judged_without_its_own_words() -> None:
    sessions = [session(number) for number in range(3)]
    learner = observed(sessions)
    weights = learner.finish()
    where = record_sign("archive_ticket", "ticket", "settled")
    assert where in weights
    assert learner.without("t0", weights)[where] is None  # two tasks are left
    more = observed([session(number) for number in range(12)])
    without = more.without("t0", more.finish())[where]
    rest = observed([session(number) for number in range(1, 12)]).finish()[where]
    assert without == rest


def test_counts_of_parts_are_those_of_the_whole() -> None:
    whole = observed([session(number) for number in range(12)])
    taken = RecordLearner()
    for part in (range(5), range(5, 12)):
        taken.take(observed([session(number) for number in part]))
    assert taken.finish() == whole.finish()
