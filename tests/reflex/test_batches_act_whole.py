"""An agent that calls several tools at once is answered turn by turn: all calls of one, or none."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from reflexarc.reflex import Context, Reflex, evaluate, learn, outcomes
from reflexarc.reflex.artifact import pack, unpack
from reflexarc.reflex.batches import MAX_CALLS, Batch
from reflexarc.reflex.decision import Decision
from reflexarc.reflex.evaluation import Outcome
from reflexarc.reflex.ranking import RankedCall
from reflexarc.reflex.recall import RecallLearner
from reflexarc.reflex.scopes import SEVERAL, ScopedAnswers, certify_scopes, pool_name, scopes_apart
from reflexarc.steps import Message, Session, ToolCall, call_key
from reflexarc.steps.errors import ArtifactCorruptError
from tests.reflex import greenhouse, parcels

LEVEL = "0.10"


@pytest.fixture(scope="module")
def reflex() -> Reflex:
    return learn(greenhouse.sessions(0, 100), max_error=0.1)


@pytest.fixture(scope="module")
def judged(reflex: Reflex) -> list[Outcome]:
    return list(outcomes(reflex, greenhouse.sessions(500, 540)))


def turn_at(session: Session, tool: str) -> tuple[list[Message], list[str]]:
    """The messages before a session's turn that calls a tool, and the keys of all its calls."""
    for at, message in enumerate(session.messages):
        if any(call.name == tool for call in message.tool_calls):
            return list(session.messages[:at]), sorted(call.key for call in message.tool_calls)
    raise AssertionError(f"no turn calls {tool}")


def keys(decision: Decision) -> list[str]:
    return sorted(call_key(call.name, call.arguments) for call in decision.calls)


def test_the_card_says_that_it_batches(reflex: Reflex) -> None:
    sessions = greenhouse.sessions(0, 100)
    turns = [m for session in sessions for m in session.messages if m.tool_calls]
    assert (reflex.card.turns, reflex.card.whole, reflex.card.parts) == (len(turns), True, True)
    assert reflex.card.batches == sum(len(m.tool_calls) > 1 for m in turns) > 50


def test_all_calls_of_a_turn_are_made_at_once(reflex: Reflex) -> None:
    sizes: set[int] = set()
    for number in range(600, 612):
        before, wanted = turn_at(greenhouse.session(number), "read_bed")
        decision = reflex.decide(before, greenhouse.TOOLS)
        assert decision.acts
        assert keys(decision) == wanted
        assert decision.call == decision.calls[0]
        assert {call.confidence for call in decision.calls} == {round(decision.confidence, 6)}
        sizes.add(len(wanted))
    assert sizes == {2, 3, 4}


def test_one_turn_is_one_answer(reflex: Reflex, judged: Sequence[Outcome]) -> None:
    answered = [one for one in judged if one.acted[LEVEL]]
    assert {one.calls for one in answered} == {1, 2, 3, 4}
    assert len({(one.session, one.step) for one in answered}) == len(answered)
    figures = evaluate(reflex, greenhouse.sessions(500, 540))
    acting = figures.acting[LEVEL]
    turns = {(one.session, one.step) for one in judged if one.acted[LEVEL]}
    assert (acting.answered, acting.errors) == (len(turns), 0)
    made = sum(one.made for one in answered)
    assert acting.coverage_calls == pytest.approx(made / figures.calls, abs=1e-6)
    assert acting.coverage_calls > 0.6
    assert acting.coverage_steps == pytest.approx(len(turns) / figures.tool_steps, abs=1e-6)


def test_a_batch_of_which_one_call_differs_is_wrong(reflex: Reflex) -> None:
    plain = greenhouse.session(700)
    changed: list[Message] = []
    for message in plain.messages:
        if len(message.tool_calls) > 1 and message.tool_calls[0].name == "read_bed":
            message = msgspec.structs.replace(message, tool_calls=message.tool_calls[:-1])
        changed.append(message)
    fewer = msgspec.structs.replace(plain, messages=tuple(changed))
    before, after = (
        [one for one in outcomes(reflex, [session]) if one.acted[LEVEL] and one.step == 1]
        for session in (plain, fewer)
    )
    assert [one.answer_right for one in before] == [True]
    assert [one.answer_right for one in after] == [False]
    assert after[0].exact  # its first call is among those made


def test_it_is_kept_in_the_artifact(reflex: Reflex) -> None:
    again = Reflex.from_bytes(reflex.to_bytes())
    assert again.to_bytes() == reflex.to_bytes()
    before, wanted = turn_at(greenhouse.session(601), "read_bed")
    assert keys(again.decide(before, greenhouse.TOOLS)) == wanted


@pytest.mark.parametrize("lost", ["0.whole.leaf", "3.ends.shape"])
def test_an_artifact_that_lacks_part_of_it_is_refused(reflex: Reflex, lost: str) -> None:
    header, arrays = unpack(reflex.to_bytes())
    broken = {name: array for name, array in arrays.items() if name != lost}
    assert len(broken) < len(arrays)
    with pytest.raises(ArtifactCorruptError):
        Reflex.from_bytes(pack(header, broken))


def test_a_forest_of_ends_that_reads_something_else_is_refused(reflex: Reflex) -> None:
    header, arrays = unpack(reflex.to_bytes())
    shape = arrays["2.ends.shape"].copy()
    shape[0] += 1
    with pytest.raises(ArtifactCorruptError, match="forest of ends"):
        Reflex.from_bytes(pack(header, {**arrays, "2.ends.shape": shape}))


def test_a_batch_that_writes_needs_a_certificate_of_writes(reflex: Reflex) -> None:
    session = next(
        one for one in greenhouse.sessions(600, 640) if len(turn_of_two(one, "water_bed")) > 1
    )
    before, wanted = turn_at(session, "water_bed")
    decision = reflex.decide(before, greenhouse.TOOLS)
    assert (decision.acts, decision.reason) == (False, "side_effect")
    assert keys(decision) == wanted
    assert decision.scope == "writes:water_bed"
    allowed = reflex.decide(before, greenhouse.TOOLS, writes=["water_bed"])
    assert allowed.acts
    assert keys(allowed) == wanted
    assert allowed.guarantee is not None
    assert allowed.guarantee.scope == "writes:water_bed"


def turn_of_two(session: Session, tool: str) -> list[str]:
    called = {call.name for message in session.messages for call in message.tool_calls}
    return turn_at(session, tool)[1] if tool in called else []


def test_every_call_has_to_fit_its_schema_and_be_declared_a_read(reflex: Reflex) -> None:
    before, _ = turn_at(greenhouse.session(602), "read_bed")
    weather = next(tool for tool in greenhouse.TOOLS if tool.name == "weather")
    changed = msgspec.structs.replace(weather, effect="write")
    tools = [changed if tool is weather else tool for tool in greenhouse.TOOLS]
    assert reflex.decide(before, tools).reason == "side_effect"
    without = [tool for tool in greenhouse.TOOLS if tool is not weather]
    decision = reflex.decide(before, without)
    assert all(call.name == "read_bed" for call in decision.calls)


def test_an_agent_that_often_splits_its_batches_is_answered_one_call_at_a_time() -> None:
    reflex = learn(greenhouse.sessions(0, 80, splits=0.6), max_error=0.1)
    assert reflex.card.batches > 20
    assert not reflex.card.whole
    assert all(member.batching is None for member in reflex.members)
    found = list(outcomes(reflex, greenhouse.sessions(500, 530, splits=0.6)))
    answered = [one for one in found if one.acted[LEVEL]]
    assert len(answered) > 40
    assert {one.calls for one in answered} == {1}
    assert sum(not one.answer_right for one in answered) <= 0.1 * len(answered)


def test_where_parts_do_not_count_one_call_of_several_is_wrong() -> None:
    """Then a lone answer is right only where System 2 makes that call alone."""
    reflex = learn(greenhouse.sessions(0, 80, splits=0.6), max_error=0.1, parts=False)
    assert not reflex.card.parts
    found = list(outcomes(reflex, greenhouse.sessions(500, 530, splits=0.6)))
    lone = [one for one in found if one.calls == 1 and one.exact and one.proposed_tool]
    assert {one.made > 1 for one in lone} == {True, False}
    assert all(one.answer_right == (one.made == 1) for one in lone)


def test_who_never_batches_has_no_part_of_it(parcel_reflex: Reflex) -> None:
    card = parcel_reflex.card
    assert (card.batches, card.whole) == (0, False)
    assert all(member.batching is None for member in parcel_reflex.members)
    _, arrays = unpack(parcel_reflex.to_bytes())
    assert not [name for name in arrays if ".ends." in name or ".whole." in name]
    before = parcels.session(400).messages[:2]
    assert len(parcel_reflex.decide(list(before), parcels.TOOLS).calls) == 1


def call(name: str, **arguments: str) -> ToolCall:
    return ToolCall("", name, arguments)


def said(text: str) -> Context:
    context = Context()
    context.extend([Message("user", text)])
    return context


def test_memory_keeps_the_whole_turn_where_most_runs_agree_on_it() -> None:
    on, off, other = call("on", at="a"), call("off", at="b"), call("off", at="c")
    learner = RecallLearner()
    for session, calls in enumerate([(on, off), (on, off), (on, off), (on, other)]):
        learner.observe(said("lights"), calls, session)
    found = learner.finish(lambda _tool, _names: True).find(said("lights"))
    assert found is not None
    assert (found.runs, found.agreeing, found.whole) == (4, 4, 3)
    assert [one.tool for one in found.calls] == ["on", "off"]
    assert found.whole_score < found.score


def test_memory_keeps_the_first_call_where_runs_agree_on_no_more() -> None:
    on, off, other = call("on", at="a"), call("off", at="b"), call("off", at="c")
    learner = RecallLearner()
    for session, calls in enumerate([(on, off), (on, other), (on,), (on,)]):
        learner.observe(said("lights"), calls, session)
    found = learner.finish(lambda _tool, _names: True).find(said("lights"))
    assert found is not None
    assert (found.agreeing, found.whole) == (4, 2)
    assert [one.tool for one in found.calls] == ["on"]


def test_a_recurring_request_is_answered_with_the_whole_turn_recalled() -> None:
    sessions = [
        msgspec.structs.replace(greenhouse.session(task, trial), task=f"day-{trial}-{task}")
        for task in range(12)
        for trial in range(8)
    ]
    reflex = learn(sessions, max_error=0.1)
    before, wanted = turn_at(greenhouse.session(3), "read_bed")
    decision = reflex.decide(before, greenhouse.TOOLS)
    assert decision.scope.startswith("recalled")
    assert len(wanted) > 1
    assert keys(decision) == wanted


def test_calls_of_several_tools_share_a_scope_that_is_never_set_apart() -> None:
    assert pool_name(["a", "a"]) == "a"
    assert pool_name(["a", "b"]) == SEVERAL
    n = 400
    mixed = ScopedAnswers(
        score=np.full(n, 0.99),
        wrong=np.zeros(n, np.bool_),
        task=np.arange(n),
        recalled=np.zeros(n, np.bool_),
        write=np.arange(n) % 2 == 0,
        tool=np.where(np.arange(n) % 4 < 2, 0, 1),
        tools=(SEVERAL, "look"),
    )
    scopes = [name for name, _ in scopes_apart(mixed, (0.05,), 0.1)]
    assert not [name for name in scopes if SEVERAL in name]
    alone = mixed.part(mixed.tool == 0)
    assert {one.scope for one in certify_scopes(alone, (0.05,), 0.1)} == {"reads", "writes"}


def test_a_batch_is_a_turn_in_whatever_order() -> None:
    made = [call("a"), call("b")]
    batch = Batch([RankedCall(one.name, 1.0, 1.0, 1.0, one.arguments, {}) for one in made])
    assert batch.is_turn([call("b"), call("a")])
    assert not batch.is_turn([call("a")])
    assert not batch.is_turn([call("a"), call("b"), call("c")])
    assert not batch.is_turn([call("a"), call("a"), call("b")])
    assert MAX_CALLS >= 4
