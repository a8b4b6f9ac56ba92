"""An explanation says of a decision what the decision itself says, and why; and it holds good."""

import msgspec
import numpy as np
import pytest

from reflexarc.reflex import Reflex
from reflexarc.reflex.argument_features import FEATURES
from reflexarc.reflex.confidence import FEATURES as CONFIDENCE_FEATURES
from reflexarc.reflex.explain import Explanation, explain
from reflexarc.reflex.feature_words import argument_words, confidence_words, history_words
from reflexarc.reflex.replay import replay
from reflexarc.steps import Message, Session, ToolCall, ToolSpec, decision_items
from reflexarc.steps.errors import InputError
from tests.reflex import parcels

NEW_TOOL = ToolSpec("find_parcel", "Find a parcel by address.")


def explained(
    reflex: Reflex, session: Session, max_error: float | None = None
) -> list[Explanation]:
    return [
        explain(reflex, session, item.step, max_error=max_error) for item in decision_items(session)
    ]


def altered(session: Session) -> list[Session]:
    """The same under circumstances that make it escalate, each for a reason of its own."""
    replace = msgspec.structs.replace
    reworded = replace(session.messages[0], content="You are somebody else entirely.")
    foreign = Message("user", "Bonjour, je voudrais savoir pourquoi rien ne fonctionne chez nous")
    picture = replace(session.messages[1], opaque=True)
    undeclared = tuple(replace(tool, effect=None) for tool in session.tools)
    return [
        replace(session, model="another"),
        replace(session, messages=(reworded, *session.messages[1:])),
        replace(session, messages=(*session.messages[:1], foreign, *session.messages[2:])),
        replace(session, messages=(*session.messages[:1], picture, *session.messages[2:])),
        replace(session, tools=(*session.tools, NEW_TOOL)),
        replace(session, tools=session.tools[1:]),
        replace(session, tools=undeclared),
        replace(session, tools=()),
        replace(session, model="another", tools=(*session.tools, NEW_TOOL)),
    ]


@pytest.mark.parametrize("max_error", [None, 0.02, 0.001])
def test_it_says_what_the_decision_says(parcel_reflex: Reflex, max_error: float | None) -> None:
    reasons: set[str] = set()
    for task in (100, 101, 102):
        session = parcels.session(task)
        for variant in (session, *altered(session)):
            if not variant.tools:
                continue  # judged by names alone, which no request is
            for item in decision_items(variant):
                found = explain(parcel_reflex, variant, item.step, max_error=max_error)
                decision = parcel_reflex.decide(
                    variant.messages[: item.message], variant.tools,
                    model=variant.model, max_error=max_error,
                )  # fmt: skip
                assert (found.action, found.reason) == (decision.action, decision.reason)
                assert found.confidence == pytest.approx(decision.confidence, abs=1e-6)
                if decision.call is not None:
                    assert found.proposed is not None
                    assert found.proposed.arguments == decision.call.arguments
                reasons.add(found.reason)
    expected = {"model_changed", "prompt_changed", "opaque_content", "unseen_tools", "free_text"}
    assert expected <= reasons
    # Familiar is asked of what would act.
    assert ({"certified", "unfamiliar:user"} <= reasons) == (max_error is None)


def test_every_gate_in_the_way_is_named_with_what_would_pass_it(parcel_reflex: Reflex) -> None:
    two = altered(parcels.session(100))[-1]
    found = explain(parcel_reflex, two, 0)
    failed = {gate.reason: gate.remedy or "" for gate in found.gates if not gate.passed}
    assert list(failed) == ["model_changed", "unseen_tools", "schema_changed"]
    assert "another" in failed["model_changed"]
    assert "parcel-model" in failed["model_changed"]
    assert failed["unseen_tools"] == "not known: find_parcel"


def test_a_session_without_schemas_is_judged_by_names_as_eval_does(parcel_reflex: Reflex) -> None:
    found = explain(parcel_reflex, msgspec.structs.replace(parcels.session(100), tools=()), 0)
    assert "schema_changed" not in [gate.reason for gate in found.gates]
    assert "unlabelled" not in [gate.reason for gate in found.gates]


def test_levels_say_when_it_would_act(parcel_reflex: Reflex) -> None:
    session = parcels.session(103)
    turned = 0
    for item in decision_items(session):
        found = explain(parcel_reflex, session, item.step, max_error=0.02)
        for level in found.levels:
            decision = parcel_reflex.decide(
                session.messages[: item.message], session.tools, max_error=level.max_error
            )
            if found.reason in ("certified", "no_certificate", "below_threshold", "free_text"):
                assert level.enough <= decision.acts
                turned += decision.acts and found.action == "escalate"
            assert level.enough == (level.short is not None and level.short <= 0)
    assert turned
    tight = explain(parcel_reflex, session, 0, max_error=0.02)
    assert tight.reason == "no_certificate"
    assert tight.changes[-1].startswith("it would act if an error of ")
    loose = explain(parcel_reflex, session, 0)
    assert loose.changes[0].startswith("it would escalate with a confidence below 0.")


def test_what_moved_the_choice_adds_up(parcel_reflex: Reflex) -> None:
    session, others = parcels.session(104), parcels.sessions(105, 115)
    for item in decision_items(session):
        found = explain(parcel_reflex, session, item.step, others=others)
        assert found.why_tool.compared_with > 20
        assert sum(found.why_tool.groups.values()) == pytest.approx(found.why_tool.lead, abs=1e-3)
        assert sum(found.why_sure.groups.values()) == pytest.approx(found.why_sure.lead, abs=1e-3)
    first = explain(parcel_reflex, session, 0, others=others)
    assert first.verdict == "get_order"
    assert first.why_tool.lead > 0
    assert "not used yet" in " ".join(one.says for one in first.why_tool.drivers) or any(
        "a message of the user" in one.says for one in first.why_tool.drivers
    )
    alone = explain(parcel_reflex, Session("s", "t", parcels.TOOLS, session.messages[:3]), 0)
    assert alone.why_tool.compared_with == 0


def test_arguments_say_where_they_came_from_and_what_else_there_was(parcel_reflex: Reflex) -> None:
    session = next(one for one in parcels.sessions(100, 140) if "and" in one.messages[1].content)
    found = explain(parcel_reflex, session, 0)
    (order,) = found.arguments
    assert found.proposed is not None
    assert order.chosen is not None
    assert {"order_id": order.chosen.value} == found.proposed.arguments
    assert order.chosen.source is not None
    assert (order.chosen.source.kind, order.chosen.source.message) == ("user_message", 1)
    assert order.chosen.place is not None
    assert order.chosen.place.startswith("usr:")
    (other,) = order.others
    assert other.value in session.messages[1].content
    assert (other.probability or 0.0) < (order.chosen.probability or 0.0)
    assert order.because[0].adds > 0
    second = explain(parcel_reflex, session, 1)
    by_name = {one.name: one.chosen for one in second.arguments}
    parcel = by_name["parcel_id"]
    assert parcel is not None
    assert parcel.source is not None
    assert (parcel.source.kind, parcel.source.path) == ("tool_result", "$.parcel.id")
    assert parcel.hit_rate is not None
    assert parcel.hit_rate > 0.9


def test_it_says_why_a_recorded_call_was_missed(parcel_reflex: Reflex) -> None:
    session = parcels.session(100)
    call = ToolCall("c", "get_order", {"order_id": "#W0000001"}, '{"order_id": "#W0000001"}')
    wrong = msgspec.structs.replace(
        session, messages=(*session.messages[:2], Message("assistant", "", (call,)))
    )
    recorded = explain(parcel_reflex, wrong, 0).recorded
    assert not recorded.agrees
    assert recorded.rank is None
    (argument,) = recorded.arguments
    assert argument.probability is None
    assert argument.why == "it stands nowhere in the conversation"
    order = session.messages[2].tool_calls[0].arguments["order_id"]
    misplaced = ToolCall("c", "track_parcel", {"parcel_id": order, "carrier": "swift"}, "{}")
    turned = msgspec.structs.replace(wrong, messages=(
        *session.messages[:4], Message("assistant", "", (misplaced,))
    ))  # fmt: skip
    found = {one.name: one for one in explain(parcel_reflex, turned, 1).recorded.arguments}
    assert "it stands in out:get_order:.order_id" in found["parcel_id"].why
    assert "not learned from there" in found["parcel_id"].why
    assert found["parcel_id"].probability is None
    unknown = ToolCall("c", "find_parcel", {}, "{}")
    novel = msgspec.structs.replace(wrong, messages=(
        *wrong.messages[:2], Message("assistant", "", (unknown,))
    ))  # fmt: skip
    assert explain(parcel_reflex, novel, 0).recorded.tool_probability is None


def test_steps_that_are_not_there_are_refused(parcel_reflex: Reflex) -> None:
    session = parcels.session(100)
    with pytest.raises(InputError, match="there is no step 99, --step is 0 to"):
        explain(parcel_reflex, session, 99)
    with pytest.raises(InputError, match="has 1 calls: --call is 0 to 0"):
        explain(parcel_reflex, session, 0, call=1)
    silent = msgspec.structs.replace(session, messages=session.messages[:2])
    with pytest.raises(InputError, match="decided nothing in it"):
        explain(parcel_reflex, silent, 0)


def test_a_later_call_of_a_batch_is_explained(parcel_reflex: Reflex) -> None:
    session = next(one for one in parcels.sessions(100, 140) if "and" in one.messages[1].content)
    calls = [one.tool_calls[0] for one in session.messages if one.tool_calls]
    orders = tuple(call for call in calls if call.name == "get_order")
    batch = msgspec.structs.replace(
        session, messages=(*session.messages[:2], Message("assistant", "", orders))
    )
    found = explain(parcel_reflex, batch, 0, call=1)
    assert found.reason == "unanswered_calls"
    assert found.recorded.call == orders[1]


def test_whether_a_task_was_learned_from_is_said(parcel_reflex: Reflex) -> None:
    assert explain(parcel_reflex, parcels.session(3), 0).learned_from
    assert not explain(parcel_reflex, parcels.session(300), 0).learned_from


def test_every_feature_has_words(parcel_reflex: Reflex) -> None:
    features = parcel_reflex.members[0].predictor.features
    names = features.names()
    assert len(names) == features.width
    assert len(set(names)) == len(names)
    for context, _ in replay(parcels.session(100)):
        vector = features.vector(context)
        assert vector.shape == (len(names),)
        for name, value in zip(names, vector, strict=True):
            group, says = history_words(name, float(value), context)
            assert group != "other", name
            assert says
        for value in (0.0, 1.0):
            words = [history_words(name, value, context) for name in names if ":" in name]
            assert all(says for _, says in words)
    assert all(argument_words(name) != name or len(name) > 3 for name in FEATURES)
    assert all(confidence_words(name) for name in CONFIDENCE_FEATURES)


def test_names_are_of_their_columns(parcel_reflex: Reflex) -> None:
    features = parcel_reflex.members[0].predictor.features
    column = {name: at for at, name in enumerate(features.names())}
    for context, _ in replay(parcels.session(100)):
        vector = features.vector(context)
        assert vector[column["user_turns"]] == context.user_turns
        assert vector[column["called:get_order"]] == context.tool_counts["get_order"]
        assert vector[column["user_length"]] == np.float32(np.log1p(len(context.user.text)))
        for word in features.vocabulary.words[0]:
            assert vector[column[f"user:{word}"]] == (word in context.user.words)
        for word in features.vocabulary.words[2]:
            assert vector[column[f"output:{word}"]] == (word in context.output_words)
