"""What a gateway that looks on says of each item is what `reflexarc eval` says of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.deciding import Decider
from reflexarc.gateway.frames import (
    Decide,
    Observe,
    Observed,
    ReflexSource,
    Setup,
    frame,
    from_worker,
)
from reflexarc.gateway.observing import MAX_ARGUMENT_BYTES, MAX_ITEMS
from reflexarc.gateway.worker import load
from reflexarc.reflex import Context, Reflex, outcomes
from reflexarc.reflex.evaluation import Outcome
from reflexarc.reflex.fork import fork
from reflexarc.steps import Message, Session, ToolCall
from reflexarc.store.records import Prediction

from .conftest import MODEL, TOOLS, chat_message, desk_session


def call(identity: str, name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(identity, name, arguments, json.dumps(arguments))


def batch_session(number: int) -> Session:
    """Both calls of the desk in one turn, results after them, then another batch."""
    plain = desk_session(number).messages
    first, second = plain[2].tool_calls[0], plain[4].tool_calls[0]
    third = call("again", "get_order", {"order_id": "W1"})
    odd = call("odd", "find_customer", {"email": "nobody@example.com"})
    return _session(
        *plain[:2],
        Message("assistant", tool_calls=(odd, first)),
        Message("tool", "{}", tool_call_id="odd"),
        plain[3],
        Message("assistant", "Let me see.", tool_calls=(second, third, odd)),
        plain[5],
        Message("tool", "Error: not found", tool_call_id="again"),
        Message("tool", "Error: not found", tool_call_id="odd"),
        plain[6],
        plain[7],
        plain[8],
    )


def odd_session() -> Session:
    """The assistant speaks before any user, and twice in a row."""
    plain = desk_session(31).messages
    return _session(
        plain[0],
        Message("assistant", "Hello!"),
        plain[1],
        Message("assistant", "One moment."),
        Message("assistant", "I look it up."),
        *plain[2:],
    )


def _session(*messages: Message) -> Session:
    return Session("s", "t", TOOLS, messages, model=MODEL)


class Shadow:
    """A decider that is shown sessions step by step, as a gateway in shadow shows them."""

    def __init__(self, reflex_path: Path, *, canary: float = 1.0, **setup: Any) -> None:
        self._canary = canary
        loaded = load(ReflexSource("/v1", str(reflex_path)))
        self.decider = Decider(
            {"/v1": loaded}, Setup(reflexes=[], **setup), lambda: 0.0, lambda: 0.0
        )
        self._number = 0

    def asks(self, session: Session, messages: int, *, respond: bool = False) -> int:
        self._number += 1
        request = {
            "model": session.model,
            "messages": [chat_message(m) for m in session.messages[:messages]],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": t.name, "description": t.description, "parameters": t.parameters
                    },
                }
                for t in session.tools
            ],
        }  # fmt: skip
        body = json.dumps(request).encode()
        asked = Decide(self._number, "/v1", b"t", respond, 0.05, canary=self._canary)
        self.decider.decide(asked, body)
        return self._number

    def answers(self, number: int, message: Message) -> Observed:
        choice = {"index": 0, "message": chat_message(message), "finish_reason": "stop"}
        observed = self.decider.observe(
            Observe(number, 200, "application/json", ""), json.dumps({"choices": [choice]}).encode()
        )
        assert observed is not None
        return observed

    def plays(self, session: Session) -> list[list[Prediction]]:
        return [
            self.answers(self.asks(session, at), message).predictions
            for at, message in enumerate(session.messages)
            if message.role == "assistant"
        ]


def told(one: Outcome | Prediction) -> tuple[Any, ...]:
    """What both say of an item."""
    name = one.recorded_tool if isinstance(one, Prediction) else one.named_tool
    return (
        name, one.proposed_tool, one.effect, one.thought, one.named, one.exact, one.among_three,
        one.read_exact, one.read_among_three, one.confidence, one.reason, one.acted,
    )  # fmt: skip


@pytest.mark.parametrize(
    "sessions",
    [
        [desk_session(number) for number in range(9000, 9010)],
        [batch_session(number) for number in range(9000, 9010)],
        [odd_session()],
    ],
    ids=["plain", "batches", "odd"],
)
def test_every_item_is_judged_as_eval_judges_it(
    sessions: Sequence[Session], reflex_path: Path
) -> None:
    shadow, reflex = Shadow(reflex_path), Reflex.load(reflex_path)
    acted = 0
    for session in sessions:
        seen = [told(one) for step in shadow.plays(session) for one in step]
        assert seen == [told(one) for one in outcomes(reflex, [session])]
        acted += sum(any(one[-1].values()) for one in seen)
    assert acted


def test_what_the_route_would_do_live_is_said_of_the_first_call_alone(reflex_path: Path) -> None:
    steps = Shadow(reflex_path).plays(batch_session(9000))
    assert [one.would_act for one in steps[0]] == [True, False]
    assert not any(one.would_act for step in steps for one in step[1:])
    # A certificate says nothing of a route's own rules: here, the share of sessions it acts for.
    kept = Shadow(reflex_path, canary=0.0).plays(desk_session(9000))[1]
    assert [(one.acted["0.05"], one.would_act) for one in kept] == [(True, False)]


def test_a_conversation_goes_on_as_if_no_batch_had_been_judged(reflex_path: Path) -> None:
    session, shadow = batch_session(9001), Shadow(reflex_path)
    number = shadow.asks(session, 2)
    assert len(shadow.answers(number, session.messages[2]).predictions) == 2
    # The client drops that answer, asks again and gets another one.
    plain = desk_session(9001)
    again = [told(one) for step in shadow.plays(plain) for one in step]
    assert again == [told(one) for one in outcomes(Reflex.load(reflex_path), [plain])]


def test_an_answer_that_comes_after_the_next_request_is_judged_by_what_was_known_then(
    reflex_path: Path,
) -> None:
    session, shadow = batch_session(9002), Shadow(reflex_path)
    at = [i for i, message in enumerate(session.messages) if message.role == "assistant"]
    numbers = [shadow.asks(session, index) for index in at]
    late = [
        told(one)
        for index, number in zip(at, numbers, strict=True)
        for one in shadow.answers(number, session.messages[index]).predictions
    ]
    assert late == [told(one) for one in outcomes(Reflex.load(reflex_path), [session])]


def test_a_forgotten_conversation_is_compared_but_not_judged(reflex_path: Path) -> None:
    shadow = Shadow(reflex_path, max_contexts=1)
    number = shadow.asks(desk_session(9003), 4)
    shadow.asks(desk_session(9004), 4)
    observed = shadow.answers(number, desk_session(9003).messages[4])
    assert (observed.outcome, observed.predictions) == ("agree", [])


def test_long_arguments_are_judged_and_left_out(reflex_path: Path) -> None:
    plain, shadow = desk_session(9005), Shadow(reflex_path)
    long = call("c", "get_order", {"order_id": "x" * MAX_ARGUMENT_BYTES})
    observed = shadow.answers(shadow.asks(plain, 4), Message("assistant", tool_calls=(long,)))
    (one,) = observed.predictions
    assert (one.recorded_tool, one.recorded, one.exact) == ("get_order", None, False)
    assert one.proposed == plain.messages[4].tool_calls[0].arguments


@pytest.mark.parametrize("value", [2**70, -(2**70), 1e300, "\ud800", {"\ud800": 1}, [[[]]]])
def test_whatever_a_call_holds_what_is_said_of_it_can_be_sent(
    value: Any, reflex_path: Path
) -> None:
    plain, shadow = desk_session(9005), Shadow(reflex_path)
    odd = call("c", "get_order", {"order_id": value})
    observed = shadow.answers(shadow.asks(plain, 4), Message("assistant", tool_calls=(odd,)))
    assert from_worker(frame(observed)[0][8:]) == observed


def test_of_a_batch_without_end_only_so_many_calls_are_judged(reflex_path: Path) -> None:
    shadow, plain = Shadow(reflex_path), desk_session(9006)
    calls = tuple(call(f"c{i}", "get_order", {"order_id": str(i)}) for i in range(MAX_ITEMS + 9))
    observed = shadow.answers(shadow.asks(plain, 4), Message("assistant", tool_calls=calls))
    assert [one.position for one in observed.predictions] == list(range(MAX_ITEMS))


def test_an_audited_act_is_compared_alone(reflex_path: Path) -> None:
    shadow, plain = Shadow(reflex_path), desk_session(9007)
    observed = shadow.answers(shadow.asks(plain, 4, respond=True), plain.messages[4])
    assert (observed.outcome, observed.predictions) == ("agree", [])


def test_answers_with_thinking_are_heard(reflex_path: Path) -> None:
    shadow, plain = Shadow(reflex_path), desk_session(9008)
    choice = {
        "index": 0,
        "message": {**chat_message(plain.messages[4]), "reasoning_content": "Well."},
        "finish_reason": "stop",
    }
    body = json.dumps({"choices": [choice]}).encode()
    number = shadow.asks(plain, 4)
    assert shadow.decider.observe(Observe(number, 200, "application/json", ""), body) is not None
    assert not shadow.answers(shadow.asks(plain, 4), plain.messages[4]).predictions[0].would_act


_MEMOS = ("user", "assistant", "memo", "entries", "slots", "objects", "seen", "_said", "log")


def test_what_a_fork_is_told_its_origin_never_hears() -> None:
    session = batch_session(9009)
    context, other = Context(), Context()
    for index, message in enumerate(session.messages):
        beside = fork(context)
        beside.extend(batch_session(1).messages)
        beside.append_call(call("c", "get_order", {"order_id": f"W{index}", "list": [1]}))
        for each in (context, other):
            each.extend([message])
            each.distinct("prev:order_id")
        for name, value in vars(other).items():
            if name not in _MEMOS:
                assert getattr(context, name) == value, name
        assert [len(slot) for slot in context.slots.values()] == [
            len(slot) for slot in other.slots.values()
        ]
        for name in ("entries", "objects", "seen", "log"):
            assert len(getattr(context, name)) == len(getattr(other, name))
