"""What was learned acts only while everything it was learned under still holds."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from reflexarc.reflex import Decision, Reflex, evaluate, learn, outcomes
from reflexarc.reflex.confidence import FEATURES, fit_confidence
from reflexarc.reflex.fork import fork
from reflexarc.reflex.identity import Identity
from reflexarc.reflex.prompts import lines_hash, prompt_lines
from reflexarc.steps import Message, Session, ToolSpec
from reflexarc.steps.errors import ArtifactError
from tests.reflex import parcels


def opening(prompt: str = parcels.PROMPT) -> list[Message]:
    return [Message("system", prompt), Message("user", "Hello, where is my order #W7654321?")]


def decide(
    reflex: Reflex,
    messages: Sequence[Message] | None = None,
    tools: Sequence[ToolSpec] = parcels.TOOLS,
    model: str | None = "parcel-model",
    max_error: float | None = None,
) -> Decision:
    return reflex.decide(messages or opening(), tools, model=model, max_error=max_error)


def test_it_acts_on_what_it_knows(parcel_reflex: Reflex) -> None:
    decision = decide(parcel_reflex)
    assert decision.action == "act"
    assert decision.call is not None
    assert decision.call.name == "get_order"
    assert decision.call.arguments == {"order_id": "#W7654321"}
    source = decision.call.sources["order_id"]
    assert (source.kind, source.message) == ("user_message", 1)
    assert decision.guarantee is not None
    assert decision.guarantee.max_error == 0.1
    assert decision.guarantee.n > decision.guarantee.errors


def test_sources_say_where_in_a_result_a_value_stood(parcel_reflex: Reflex) -> None:
    call = parcel_reflex.decide(parcels.session(700).messages[:4], parcels.TOOLS).call
    assert call is not None
    assert (call.name, call.sources["carrier"].kind) == ("track_parcel", "tool_result")
    assert call.sources["carrier"].path == "$.parcel.carrier"
    assert call.sources["parcel_id"].message == 3


def test_the_same_request_again_gives_the_same_decision(parcel_reflex: Reflex) -> None:
    assert decide(parcel_reflex) == decide(parcel_reflex)


def changed(tool: str) -> tuple[ToolSpec, ...]:
    return tuple(
        msgspec.structs.replace(one, description="Look up an order, or several.")
        if one.name == tool
        else one
        for one in parcels.TOOLS
    )


NEW_TOOL = ToolSpec("find_parcel", "Find a parcel by address.")


@pytest.mark.parametrize(
    ("reason", "asked"),
    [
        ("model_changed", {"model": "another-model"}),
        ("prompt_changed", {"messages": opening("You are the parcel desk. Refund everything.")}),
        ("prompt_changed", {"messages": opening(f"{parcels.PROMPT}\nAlways ask first.")}),
        ("prompt_changed", {"messages": opening()[1:]}),
        ("prompt_changed", {"messages": [Message("developer", parcels.PROMPT), *opening()[1:]]}),
        ("prompt_changed", {"messages": opening(f"{parcels.PROMPT} Refund at most 5 orders.")}),
        ("unseen_tools", {"tools": (*parcels.TOOLS, NEW_TOOL)}),
        ("unseen_tools", {"tools": (*parcels.TOOLS, parcels.TOOLS[0])}),
        ("schema_changed", {"tools": changed("get_order")}),
        ("schema_changed", {"tools": changed("track_parcel")}),
        ("schema_changed", {"tools": changed("think")}),
        ("opaque_content", {"messages": [*opening(), Message("user", "see", opaque=True)]}),
        ("no_certificate", {"max_error": 0.001}),
    ],
)
def test_it_escalates_where_something_changed(
    parcel_reflex: Reflex, reason: str, asked: dict[str, object]
) -> None:
    decision = decide(parcel_reflex, **asked)  # type: ignore[arg-type]
    assert (decision.action, decision.reason) == ("escalate", reason)
    assert decision.call is not None, "shadow mode still says what System 1 would have done"
    assert decision.guarantee is None


def test_dates_in_the_prompt_may_change(parcel_reflex: Reflex) -> None:
    tomorrow = parcels.PROMPT.replace("2024-05-15", "2024-05-16")
    assert decide(parcel_reflex, opening(tomorrow)).action == "act"


def test_a_tool_that_is_not_offered_is_not_called(parcel_reflex: Reflex) -> None:
    without = [tool for tool in parcels.TOOLS if tool.name != "get_order"]
    decision = decide(parcel_reflex, tools=without)
    assert decision.call is None or decision.call.name != "get_order"
    assert decide(parcel_reflex, tools=()).action == "escalate"


def test_a_tool_declared_a_write_by_the_request_does_not_act(parcel_reflex: Reflex) -> None:
    declared = tuple(msgspec.structs.replace(tool, effect="write") for tool in parcels.TOOLS)
    assert decide(parcel_reflex, tools=declared).reason == "side_effect"


def devices(number: int, policy: str = "") -> str:
    """A prompt that differs in every session: it lists what the user owns."""
    owned = "\n".join(f"device {number} kind {at}" for at in range(number % 5 + 1))
    return f"You are the desk.\nBe brief.{policy}\nThe user owns:\n{owned}\nAnswer in English."


def test_a_prompt_that_varies_fits_where_it_varied_and_nowhere_else() -> None:
    varied = [
        msgspec.structs.replace(one, messages=(Message("system", devices(at)), *one.messages[1:]))
        for at, one in enumerate(parcels.sessions(0, 60))
    ]
    prompt = Identity.of(varied, []).prompt
    assert len(prompt.lines) > 3

    def fits(text: str) -> bool:
        lines = prompt_lines("system", text)
        return prompt.fits(lines, lines_hash(lines))

    assert fits(devices(7))
    assert fits(devices(1234))
    assert not fits(devices(7, "\nRefund whatever is asked."))
    assert not fits(devices(7).replace("Be brief.", "Be long."))
    assert not fits(devices(7) + "\nIgnore the user.")
    assert not fits(devices(7).replace("device 7 kind 0", "\n".join(["anything"] * 40)))


def test_sessions_without_schemas_never_act_on_requests_that_have_them() -> None:
    bare = [msgspec.structs.replace(one, tools=()) for one in parcels.sessions(0, 90)]
    reflex = learn(bare, max_error=0.1)
    called = [tool for tool in parcels.TOOLS if tool.name != "think"]
    assert decide(reflex, tools=called).reason == "schema_changed"
    unrecorded = tuple(ToolSpec(tool.name, "unrecorded") for tool in called)
    assert decide(reflex, tools=unrecorded).reason == "schema_changed"
    judged = evaluate(reflex, [msgspec.structs.replace(parcels.session(200), tools=())])
    assert judged.certified["0.10"].answered > 0, "judged by name where nothing else is known"


def test_only_the_first_call_of_a_batch_is_judged_for_a_certificate() -> None:
    def batched(one: Session) -> Session:
        """Ask for every order at once, then stop: siblings' results are still out."""
        orders = [
            call
            for message in one.messages
            for call in message.tool_calls
            if call.name == "get_order"
        ]
        turn = Message("assistant", "", tuple(orders))
        results = tuple(Message("tool", "{}", (), call.id) for call in orders)
        done = Message("assistant", "Done.")
        return msgspec.structs.replace(one, messages=(*one.messages[:2], turn, *results, done))

    sessions = [batched(one) for one in parcels.sessions(0, 60)]
    reflex = learn(sessions, max_error=0.1)
    assert max(one.n for one in reflex.card.certificates) <= 60
    for outcome in outcomes(reflex, sessions):
        if outcome.decision.reason == "unanswered_calls":
            assert not any(outcome.acted.values())
    reasons = {outcome.decision.reason for outcome in outcomes(reflex, sessions)}
    assert "unanswered_calls" in reasons


def test_alternatives_are_ranked_and_bounded(parcel_reflex: Reflex) -> None:
    session = parcels.session(500)
    decision = parcel_reflex.decide(session.messages[:4], parcels.TOOLS, alternatives=99)
    assert decision.call is not None
    assert len(decision.alternatives) <= 16
    confidences = [one.confidence for one in decision.alternatives]
    assert confidences == sorted(confidences, reverse=True)
    assert all(one.confidence <= decision.confidence for one in decision.alternatives)


def test_a_tool_that_is_only_guessed_to_read_never_acts() -> None:
    unlabelled = tuple(msgspec.structs.replace(tool, effect=None) for tool in parcels.TOOLS)
    sessions = [
        msgspec.structs.replace(session, tools=unlabelled)
        for session in parcels.sessions(0, 90, noise=0.02)
    ]
    guessed = learn(sessions, max_error=0.1)
    assert guessed.effects["get_order"] == "read"
    messages = parcels.session(700).messages[:4]
    decision = guessed.decide(messages, unlabelled, model="parcel-model")
    assert (decision.action, decision.reason, decision.guarantee) == (
        "escalate",
        "unlabelled",
        None,
    )
    # The request's own annotation is a label; so is what was declared when it was learned.
    assert guessed.decide(messages, parcels.TOOLS, model="parcel-model").acts
    labelled = learn(sessions, max_error=0.1, effects={"track_parcel": "read"})
    assert labelled.decide(messages, unlabelled, model="parcel-model").acts
    later = guessed.with_effects({"track_parcel": "read"})
    assert later.decide(messages, unlabelled, model="parcel-model").acts
    locked = later.with_effects({"track_parcel": "write"})
    assert locked.decide(messages, parcels.TOOLS, model="parcel-model").reason == "side_effect"
    for wrong in ("trak_parcel", "refund_order"):
        with pytest.raises(ArtifactError, match=wrong):
            guessed.with_effects({wrong: "read"})


def test_a_context_is_ranked_anew_once_it_goes_on_or_other_tools_are_offered(
    parcel_reflex: Reflex,
) -> None:
    session = parcels.session(700)
    context = parcel_reflex.context()
    context.extend(session.messages[:4])
    offered = {tool.name for tool in parcels.TOOLS}
    first = parcel_reflex.rank(context, offered)
    assert parcel_reflex.rank(context, set(offered)) is first
    fewer = parcel_reflex.rank(context, offered - {first.calls[0].name})
    assert first.calls[0].name not in {call.name for call in fewer.calls}
    other = fork(context)
    context.append_call(session.messages[4].tool_calls[0])
    assert parcel_reflex.rank(context, offered) is not first
    again = parcel_reflex.rank(other, offered)
    assert [call.key for call in again.calls] == [call.key for call in first.calls]


def before_a_refund(number: int) -> list[Message]:
    """A talk up to where System 2 refunds the order."""
    for session in (parcels.session(at) for at in range(number, number + 60)):
        for at, message in enumerate(session.messages):
            if any(call.name == "refund_order" for call in message.tool_calls):
                return list(session.messages[:at])
    raise AssertionError("no session holds a refund")


def test_a_write_acts_only_where_it_is_named_under_a_certificate_of_its_own(
    parcel_reflex: Reflex,
) -> None:
    talk = before_a_refund(700)
    assert decide(parcel_reflex, talk).reason == "side_effect"
    other = parcel_reflex.decide(talk, parcels.TOOLS, max_error=0.1, writes=("get_order",))
    assert other.reason == "side_effect"
    named = parcel_reflex.decide(talk, parcels.TOOLS, max_error=0.1, writes=("refund_order",))
    assert (named.action, named.tool, named.scope) == (
        "act", "refund_order", "writes:refund_order",
    )  # fmt: skip
    assert named.guarantee is not None
    assert named.guarantee.scope == "writes:refund_order"
    assert named.guarantee.certificate_class == "model-based"
    assert parcel_reflex.decide(talk, parcels.TOOLS, max_error=0.0001,
                                writes=("refund_order",)).reason == "no_certificate"  # fmt: skip


def test_a_read_declared_a_write_afterwards_has_no_certificate_of_writes(
    parcel_reflex: Reflex,
) -> None:
    turned = parcel_reflex.with_effects({"get_order": "write"})
    found = turned.decide(opening(), parcels.TOOLS, max_error=0.1, writes=("get_order",))
    assert found.reason == "side_effect"


def test_what_is_far_likelier_a_message_does_not_act_when_alternatives_are_asked_for(
    parcel_reflex: Reflex,
) -> None:
    """However sure of the call: certificates are judged on calls that are proposed alone."""
    random = np.random.default_rng(0)
    features = random.random((400, len(FEATURES))).astype(np.float32)
    sure = fit_confidence(features, np.ones(400, np.bool_))
    members = [msgspec.structs.replace(one, confidence=sure) for one in parcel_reflex.members]
    certain = Reflex(
        parcel_reflex.card, parcel_reflex.identity, parcel_reflex.effects, members,
        frozenset(), parcel_reflex.recall,
    )  # fmt: skip
    assert certain.decide(opening(), parcels.TOOLS, max_error=0.1, alternatives=3).acts
    ends = 0
    for talk in (parcels.session(at).messages[:-1] for at in range(700, 730)):
        context = certain.context()
        context.extend(talk)
        ranking = certain.rank(context, {tool.name for tool in parcels.TOOLS})
        best = ranking.calls[0].name if ranking.calls else ""
        if ranking.is_message and certain.effects.get(best) == "read":
            ends += 1
            for alternatives in (0, 3):
                found = certain.decide(
                    talk, parcels.TOOLS, max_error=0.1, alternatives=alternatives
                )
                assert (found.action, found.reason) == ("escalate", "free_text")
            assert found.call is not None
    assert ends > 0
