"""Which tool is called is told by its name, its description and the parts of a request."""

from collections.abc import Sequence

import numpy as np
import pytest

from reflexarc.provenance.stems import name_stems, stems
from reflexarc.reflex.associations import Associations, sign
from reflexarc.reflex.choice import parts_of, words_of
from reflexarc.reflex.context import Context
from reflexarc.reflex.fit import fit_predictor
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.steps import Message, Session, ToolCall, ToolSpec

THINGS = ("lamp", "heater", "blind", "door", "oven", "radio", "fan", "kettle", "pump", "screen")
DONE = {
    "lamp": "light up", "heater": "warm", "blind": "shade", "door": "shut", "oven": "bake with",
    "radio": "listen to", "fan": "cool with", "kettle": "boil with", "pump": "drain with",
    "screen": "look at",
}  # fmt: skip
EMPTY = {"type": "object", "properties": {}}
TOOLS = tuple(ToolSpec(f"switch_{thing}", f"Switches the {thing}.", EMPTY) for thing in THINGS)


def session(task: str, said: str, tools: Sequence[str]) -> Session:
    messages = [Message("user", said)]
    for at, tool in enumerate(tools):
        call = ToolCall(f"c{at}", tool, {}, "{}")
        messages.append(Message("assistant", tool_calls=(call,)))
        messages.append(Message("tool", "ok", tool_call_id=f"c{at}"))
    return Session(task, task, TOOLS, (*messages, Message("assistant", "Done.")))


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    """Every thing is asked for by name; two of ten a task, in the order they are said."""
    sessions: list[Session] = []
    drawn = np.random.default_rng(5)
    for number in range(60):
        one, other = (THINGS[at] for at in drawn.permutation(len(THINGS))[:2])
        said = f"Please see to the {one} over there, and then the {other}. It is case x{number}q."
        sessions.append(session(f"t{number}", said, [f"switch_{one}", f"switch_{other}"]))
    return fit_predictor(sessions, set(), Private(sessions))


def first_choice(predictor: Predictor, context: Context) -> str:
    names = [tool.name for tool in TOOLS]
    return predictor.rank(context, names).calls[0].name


def test_the_tool_whose_name_was_said_is_chosen(predictor: Predictor) -> None:
    for thing in THINGS:
        context = Context()
        context.extend([Message("user", f"Now the {thing}s here, I would say.")])
        assert first_choice(predictor, context) == f"switch_{thing}"


def test_parts_of_a_request_are_done_one_after_the_other(predictor: Predictor) -> None:
    right = 0
    for one, other in zip(THINGS, THINGS[3:] + THINGS[:3], strict=True):
        context = Context()
        context.extend([Message("user", f"Please see to the {one} first, and then the {other}.")])
        assert first_choice(predictor, context) in (f"switch_{one}", f"switch_{other}")
        call = ToolCall("c0", f"switch_{one}", {}, "{}")
        context.extend([
            Message("assistant", tool_calls=(call,)), Message("tool", "ok", tool_call_id="c0")
        ])  # fmt: skip
        right += first_choice(predictor, context) == f"switch_{other}"
    assert right >= 9


def test_a_tool_that_is_not_offered_is_not_chosen(predictor: Predictor) -> None:
    context = Context()
    context.extend([Message("user", "Please see to the lamp.")])
    offered = [f"switch_{thing}" for thing in THINGS if thing != "lamp"]
    ranking = predictor.rank(context, offered)
    assert all(call.name != "switch_lamp" for call in ranking.calls)
    assert ranking.probabilities.sum() == pytest.approx(1.0)


def test_no_sign_of_a_single_task_is_kept(predictor: Predictor) -> None:
    kept = {
        int(key) for table in predictor.choice.fit.tables.values() for key in table.keys.tolist()
    }
    assert sign("lamp") in kept
    for number in range(60):
        assert kept.isdisjoint(words_of(f"x{number}q"))


def test_a_task_learns_nothing_from_itself() -> None:
    counted = Associations()
    for task in ("a", "b", "c", "d"):
        counted.observe([sign("red")], "open", task)
    counted.observe([sign("red")], "shut", "d")
    counted.observe([sign("rare")], "shut", "d")
    tools, tasks = ("open", "shut"), ("a", "b", "c")
    weighed = counted.weighed(tools, (*tasks, "d"))
    assert len(weighed.table.found([sign("rare")])) == 0
    others = counted.weighed(tools, tasks)
    np.testing.assert_allclose(weighed.found([sign("red")], "d"), others.found([sign("red")], "z"))
    np.testing.assert_array_equal(
        others.table.found([sign("red")]), others.found([sign("red")], "z")
    )


def test_stems_join_the_forms_of_a_word() -> None:
    assert len({stems(form, 1)[0] for form in ("delete", "deleted", "deleting", "deletes")}) == 1
    assert name_stems("customer.searchOrders_v2") == [
        "custom", "search", "ord", "v", "2",
    ]  # fmt: skip
    assert stems("Can you please do it", 20) == []


def test_parts_are_bounded_and_never_empty() -> None:
    assert parts_of("") == [[]]
    assert len(parts_of("do this thing, " * 500)) <= 16
    assert len(words_of("word " * 100_000)) <= 240
