"""What was learned acts only while everything it was learned under still holds."""

from collections.abc import Sequence

import msgspec
import pytest

from reflexarc.reflex import Decision, Reflex
from reflexarc.steps import Message, ToolSpec
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
        ("unseen_tools", {"tools": (*parcels.TOOLS, NEW_TOOL)}),
        ("schema_changed", {"tools": changed("get_order")}),
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


def test_numbers_in_the_prompt_may_change(parcel_reflex: Reflex) -> None:
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


def test_alternatives_are_ranked_and_bounded(parcel_reflex: Reflex) -> None:
    session = parcels.session(500)
    decision = parcel_reflex.decide(session.messages[:4], parcels.TOOLS, alternatives=99)
    assert decision.call is not None
    assert len(decision.alternatives) <= 16
    confidences = [one.confidence for one in decision.alternatives]
    assert confidences == sorted(confidences, reverse=True)
    assert all(one.confidence <= decision.confidence for one in decision.alternatives)
