"""An explanation of a call that was recalled says from how many runs, and what else there was."""

from collections.abc import Collection

import msgspec
import numpy as np
import pytest

from reflexarc.reflex import Context, Reflex, learn
from reflexarc.reflex.choice import FEATURES
from reflexarc.reflex.explain import explain
from reflexarc.reflex.explain_choice import FIT
from reflexarc.reflex.feature_words import fit_words
from reflexarc.reflex.predictor import Ranking
from reflexarc.steps import Message, Session, ToolCall
from tests.reflex import parcels
from tests.reflex.test_recurring_work import PROMPT, TOOLS, run


@pytest.fixture(scope="module")
def house() -> Reflex:
    """Runs agree, but for those of every eighth task, of which half mean another lamp."""
    return learn(
        [
            run(task, trial, lamp="Bed Lamp" if task % 8 == 1 and trial < 2 else None)
            for task in range(40)
            for trial in range(4)
        ],
        max_error=0.1,
    )


def test_a_recalled_call_says_how_many_runs_agree(house: Reflex) -> None:
    session = run(3, 9)
    found = explain(house, session, 0)
    decision = house.decide(session.messages[:2], TOOLS)
    assert decision.acts
    assert (found.action, found.reason) == (decision.action, decision.reason)
    assert found.recalled is not None
    assert (found.recalled.runs, found.recalled.agreeing) == (4, 4)
    assert found.recalled.tool == "get_state"
    assert found.recalled.used
    assert not found.recalled.against
    assert found.confidence == pytest.approx(4.5 / 5)
    assert {level.scope for level in found.levels} == {"recalled reads"}
    (argument,) = found.arguments
    assert argument.chosen is not None
    assert argument.chosen.value == decision.arguments["name"]
    assert found.why_sure.compared_with == 0  # no forest was asked how sure it is


def test_a_recalled_tool_is_compared_with_another(
    house: Reflex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the forests take something else for likelier than what was recalled."""
    ranked = Reflex.rank

    def doubting(reflex: Reflex, context: Context, offered: Collection[str]) -> Ranking:
        found = ranked(reflex, context, offered)
        return Ranking(found.calls, found.classes, np.array([0.9, 0.1]), 0.9, found.recalled)

    monkeypatch.setattr(Reflex, "rank", doubting)
    found = explain(house, run(3, 9), 0, others=[run(5, 9)])
    assert found.recalled is not None
    assert found.recalled.used
    assert found.verdict == "get_state"
    assert found.over is not None
    assert (found.over.tool, found.over.probability) == (None, 0.9)
    assert found.why_tool.lead < 0.0


def test_runs_that_went_on_otherwise_are_a_gate(house: Reflex) -> None:
    session = run(3, 9)
    found = explain(house, session, 1)
    decision = house.decide(session.messages[:4], TOOLS)
    assert (found.action, found.reason) == (decision.action, decision.reason)
    assert found.recalled is not None
    assert found.recalled.tool is None
    assert found.recalled.against
    assert not found.recalled.used
    assert "recalled_otherwise" in [gate.reason for gate in found.gates]


def test_runs_that_disagree_are_told_and_not_followed(house: Reflex) -> None:
    found = explain(house, run(9, 9), 0)
    assert found.recalled is not None
    assert (found.recalled.runs, found.recalled.agreeing) == (4, 2)
    assert not found.recalled.used
    assert {level.scope for level in found.levels} == {"reads"}


def test_a_new_request_has_no_memory(house: Reflex) -> None:
    found = explain(house, run(4000, 0), 0)
    assert found.recalled is None
    assert 1 <= found.member <= len(house.members)


def test_a_remembered_value_that_is_no_candidate_is_shown() -> None:
    """A title the user gave may be found again where no slot holds it."""
    talk = [Message("system", PROMPT), Message("user", "Please tell me about the shed light now")]
    call = ToolCall("c", "get_state", {"name": "Shed Light"}, '{"name": "Shed Light"}')
    turn = (Message("assistant", "", (call,)), Message("tool", "{}", (), "c"))
    odd = [Session(f"odd-{n}", "odd", TOOLS, (*talk, *turn)) for n in range(4)]
    usual = [run(task, trial) for task in range(20) for trial in range(2)]
    reflex = learn([*usual, *odd], max_error=0.1)
    found = explain(reflex, odd[0], 0)
    assert found.recalled is not None
    assert found.recalled.used
    (argument,) = found.arguments
    assert argument.chosen is not None
    assert argument.chosen.value == "Shed Light"
    assert argument.chosen.made == "recalled" or argument.chosen.probability is not None


def test_the_fit_of_the_tools_is_part_of_the_lead(parcel_reflex: Reflex) -> None:
    session, others = parcels.session(104), parcels.sessions(105, 112)
    told = 0
    for step in range(3):
        found = explain(parcel_reflex, session, step, others=others)
        assert FIT in found.why_tool.groups
        told += bool(found.why_fit)
        if found.over is not None and found.verdict is not None and found.over.tool is not None:
            assert found.why_fit
    assert told
    assert all(fit_words(name) for name in FEATURES)
    only = msgspec.structs.replace(session, tools=session.tools[:1])
    assert explain(parcel_reflex, only, 0).why_fit == ()
