"""Partial decisions: the tool and what is copied are certain, free text is left to System 2."""

import msgspec
import numpy as np
import pytest

from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.header import LEAST_THRESHOLD
from reflexarc.reflex.partial import open_arguments, propose
from reflexarc.steps import Message, ToolSpec
from reflexarc.steps.errors import ArtifactCorruptError
from tests.reflex import memos, parcels


@pytest.fixture(scope="module")
def reflex() -> Reflex:
    return learn(memos.sessions(0, 120), max_error=0.1)


def test_the_open_arguments_are_those_that_only_system_2_can_write(reflex: Reflex) -> None:
    tools = reflex.members[0].predictor.sources.tools
    found = {tool.name: set(open_arguments(tool)) for tool in tools}
    assert found == {
        "get_claim": set(),
        "search_handbook": {"question"},
        "create_note": {"text"},
    }


def test_a_partial_fills_what_is_copied_and_names_what_is_open(reflex: Reflex) -> None:
    messages, call = memos.before(9000, "search_handbook")
    decision = reflex.decide(messages, memos.TOOLS, partials=True)
    assert (decision.action, decision.reason) == ("partial", "certified")
    assert (decision.tool, decision.open) == ("search_handbook", ("question",))
    assert decision.arguments == {"policy_id": call.arguments["policy_id"]}
    assert decision.guarantee is not None
    assert (decision.guarantee.scope, decision.guarantee.max_error) == ("partial", 0.1)
    assert decision.call is not None
    source = decision.call.sources["policy_id"]
    assert (source.kind, source.path) == ("tool_result", "$.policy_id")


def test_nobody_gets_a_partial_who_did_not_ask_for_one(reflex: Reflex) -> None:
    messages, _ = memos.before(9000, "search_handbook")
    decision = reflex.decide(messages, memos.TOOLS)
    assert decision.action == "escalate"
    assert (decision.open, decision.tool, decision.arguments) == ((), None, {})


def test_a_whole_call_goes_before_a_partial_one(reflex: Reflex) -> None:
    messages, call = memos.before(9000, "get_claim")
    decision = reflex.decide(messages, memos.TOOLS, partials=True)
    assert (decision.action, decision.open) == ("act", ())
    assert decision.arguments == call.arguments


def test_a_write_never_gives_a_partial(reflex: Reflex) -> None:
    messages, _ = memos.before(9000, "create_note")
    decision = reflex.decide(messages, memos.TOOLS, partials=True)
    assert decision.action == "escalate"
    context = reflex_context(reflex, messages)
    ranking = reflex.rank(context, {tool.name for tool in memos.TOOLS})
    partial = propose(reflex.member(context).predictor, context, ranking)
    assert partial is not None, "there would be one, were it a read"
    assert partial.calls[0].name == "create_note"


def reflex_context(reflex: Reflex, messages: list[Message]):
    context = reflex.context()
    context.extend(messages)
    return context


def test_what_stops_an_act_stops_a_partial(reflex: Reflex) -> None:
    messages, _ = memos.before(9000, "search_handbook")
    changed = msgspec.structs.replace(memos.TOOLS[1], description="Search the old handbook.")
    stranger = ToolSpec("launch_rocket", "Launch.", {"type": "object"})
    opaque = [messages[0], msgspec.structs.replace(messages[1], opaque=True), *messages[2:]]
    prompted = [Message("system", "You are someone else."), *messages[1:]]
    declared = msgspec.structs.replace(memos.TOOLS[1], effect="write")
    for given, tools, model in (
        (messages, (*memos.TOOLS, stranger), None),
        (messages, (memos.TOOLS[0], changed, memos.TOOLS[2]), None),
        (messages, (memos.TOOLS[0], declared, memos.TOOLS[2]), None),
        (messages, memos.TOOLS, "another-model"),
        (opaque, memos.TOOLS, None),
        (prompted, memos.TOOLS, None),
        (messages[:-1], memos.TOOLS, None),
    ):
        assert reflex.decide(given, tools, model=model, partials=True).action == "escalate"


def test_a_partial_is_right_if_all_but_the_open_arguments_are_equal(reflex: Reflex) -> None:
    wrong = 0
    for task in range(9000, 9060):
        messages, call = memos.before(task, "search_handbook")
        decision = reflex.decide(messages, memos.TOOLS, partials=True)
        copied = {k: v for k, v in call.arguments.items() if k not in decision.open}
        wrong += decision.action != "partial" or decision.arguments != copied
    assert wrong == 0


def test_an_unsure_partial_is_not_certified() -> None:
    """System 2 searches under another policy in four of ten claims: no level is within reach."""
    reflex = learn(memos.sessions(0, 120, wrong_policy=0.4), max_error=0.1)
    assert reflex.card.partial
    assert all(one.threshold is None for one in reflex.card.partial)
    messages, _ = memos.before(9000, "search_handbook")
    assert reflex.decide(messages, memos.TOOLS, partials=True).action == "escalate"


def test_the_bound_holds_on_tasks_not_learned_from() -> None:
    """One claim in 25 is searched under another policy: at 10% most of the partials are certified,
    and on fresh claims their error stays within the bound."""
    reflex = learn(memos.sessions(0, 200, wrong_policy=0.04), max_error=0.1)
    certificate = next(one for one in reflex.card.partial if one.max_error == 0.1)
    assert certificate.threshold is not None
    assert certificate.threshold >= LEAST_THRESHOLD
    wrong: list[bool] = []
    for session in memos.sessions(20_000, 20_150, wrong_policy=0.04):
        call = session.messages[4].tool_calls[0]
        decision = reflex.decide(session.messages[:4], memos.TOOLS, partials=True)
        if decision.action == "partial":
            wrong.append(decision.arguments["policy_id"] != call.arguments["policy_id"])
    assert len(wrong) > 100
    assert np.mean(wrong) <= 0.1


def test_the_caller_may_ask_for_a_tighter_bound(reflex: Reflex) -> None:
    messages, _ = memos.before(9000, "search_handbook")
    tight = reflex.decide(messages, memos.TOOLS, partials=True, max_error=0.0005)
    assert tight.action == "escalate"


def test_partials_are_kept_in_the_artifact(reflex: Reflex) -> None:
    again = Reflex.from_bytes(reflex.to_bytes())
    assert again.to_bytes() == reflex.to_bytes()
    messages, _ = memos.before(9001, "search_handbook")
    decided = again.decide(messages, memos.TOOLS, partials=True)
    assert decided == reflex.decide(messages, memos.TOOLS, partials=True)
    assert decided.action == "partial"


def test_certificates_without_their_forest_are_refused(reflex: Reflex) -> None:
    without = Reflex.from_bytes(reflex.to_bytes())
    without.members = tuple(msgspec.structs.replace(one, partial=None) for one in without.members)
    with pytest.raises(ArtifactCorruptError):
        Reflex.from_bytes(without.to_bytes())


def test_an_agent_without_free_text_learns_no_partials() -> None:
    reflex = learn(parcels.sessions(0, 60), max_error=0.1)
    assert reflex.card.partial == ()
    assert [member.partial for member in reflex.members] == [None] * len(reflex.members)
