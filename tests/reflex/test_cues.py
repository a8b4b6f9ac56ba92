"""The words around a user's value tell which argument it is, and nothing of one task is kept."""

import random

from reflexarc.provenance import Entry, Origin
from reflexarc.reflex.associations import sign
from reflexarc.reflex.cues import CueLearner, place_of
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import replay
from reflexarc.reflex.signs_stored import cue_arrays, stored_cues
from reflexarc.steps import Message, Session, ToolCall, ToolSpec, call_key

TOOLS = (ToolSpec("book_ferry", "Books a ferry.", {"type": "object", "properties": {}}),)


def port(drawn: random.Random) -> str:
    return "".join(drawn.choices("BCDFGHJKLM", k=3))


def session(number: int) -> Session:
    drawn = random.Random(number)
    origin, target = port(drawn), port(drawn)
    said = [
        f"Get me from {origin} to {target}, it is for zz{number}zz.",
        f"A trip to {target} and it starts from {origin}.",
        f"I want to leave from {origin}; bring me to {target} by zz{number}zz.",
    ][number % 3]
    arguments = {"start": origin, "target": target}
    call = ToolCall("c", "book_ferry", arguments, "{}")
    messages = (
        Message("user", said), Message("assistant", tool_calls=(call,)),
        Message("tool", "ok", tool_call_id="c"), Message("assistant", "Done."),
    )  # fmt: skip
    return Session(f"s{number}", f"t{number}", TOOLS, messages)


def learned() -> Predictor:
    sessions = [session(number) for number in range(60)]
    return fit_predictor(sessions, set(), Private(sessions))


def test_two_arguments_of_one_shape_are_told_apart() -> None:
    predictor = learned()
    right = 0
    for number in range(100, 130):
        context, item = next(replay(session(number)))
        best = predictor.rank(context, ["book_ferry"]).calls[0]
        assert item.recorded is not None
        right += best.key == call_key("book_ferry", item.recorded.arguments)
    assert right >= 28


def test_a_cue_of_fewer_than_three_tasks_is_not_kept() -> None:
    weights = learned().cues.weights
    assert sign("start|1 from") in weights
    for number in range(60):
        for argument in ("start", "target"):
            for cue in ("1", "r"):
                assert sign(f"{argument}|{cue} zz{number}zz") not in weights


def test_a_task_learns_nothing_from_itself() -> None:
    sessions = [session(number) for number in range(20)]
    counted, alone = CueLearner(), CueLearner()
    for one in sessions:
        for context, item in replay(one):
            if item.recorded is not None:
                counted.observe(context, item.recorded, one.task)
    for one in sessions[:-1]:
        for context, item in replay(one):
            if item.recorded is not None:
                alone.observe(context, item.recorded, one.task)
    left_out = counted.without(sessions[-1].task, counted.finish()).weights
    known = alone.finish().weights
    key = sign("start|1 from")
    assert abs(left_out[key] - known[key]) < 0.1


def test_a_value_is_found_as_a_whole_word() -> None:
    origin = Origin("user_message", 0, 1, "Plan a plane from an inn")
    assert place_of(Entry("usr:a", "an", origin)).cues[0] == "1 from"
    assert place_of(Entry("usr:a", "missing", origin)).cues == ("", "", "")


def test_cues_come_back_as_they_were() -> None:
    cues = learned().cues
    assert stored_cues(cue_arrays(cues)).weights == cues.weights
