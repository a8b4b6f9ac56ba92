"""An agent that does the same in the same situation is learned, certified and answered rightly."""

import msgspec
import pytest

from reflexarc.reflex import Reflex, evaluate, learn, outcomes
from reflexarc.steps.errors import LearnError
from tests.reflex import parcels


def test_new_tasks_are_answered_within_the_certified_error(parcel_reflex: Reflex) -> None:
    judged = evaluate(parcel_reflex, parcels.sessions(100, 160, noise=0.02))
    assert judged.tasks == 60
    assert judged.call_exact_top1 > 0.9
    assert judged.read_only.top3 > 0.95
    answered = judged.certified["0.10"]
    assert answered.coverage_calls > 0.4
    assert answered.error <= 0.10


def test_writes_are_ranked_but_never_answered(parcel_reflex: Reflex) -> None:
    judged = evaluate(parcel_reflex, parcels.sessions(100, 130))
    assert judged.writes.n > 10
    assert judged.writes.top1 > 0.8
    found = list(outcomes(parcel_reflex, parcels.sessions(100, 130)))
    proposed = [one.decision.call.name for one in found if one.decision.call is not None]
    acted = [
        one.decision.call.name
        for one in found
        if one.acted["0.10"] and one.decision.call is not None
    ]
    assert "refund_order" in proposed
    assert set(acted) == {"get_order", "track_parcel"}


def test_thinking_is_not_counted_as_a_call() -> None:
    noisy = parcels.sessions(0, 40, noise=0.5)
    judged = evaluate(learn(noisy), noisy)
    thoughts = sum(
        call.name == "think" for session in noisy for message in session.messages
        for call in message.tool_calls
    )  # fmt: skip
    calls = sum(len(message.tool_calls) for session in noisy for message in session.messages)
    assert thoughts > 10
    assert judged.calls == calls - thoughts


def test_the_card_says_what_was_learned_from_what(parcel_reflex: Reflex) -> None:
    card = parcel_reflex.card
    assert (card.sessions, card.tasks) == (90, 90)
    assert card.models == ("parcel-model",)
    effects = {row.name: row.effect for row in card.tools}
    assert effects == {
        "get_order": "read", "track_parcel": "read", "refund_order": "write", "think": "think",
    }  # fmt: skip
    assert [(one.scope, one.max_error) for one in card.acting if one.scope == "reads"] == [
        ("reads", 0.02), ("reads", 0.05), ("reads", 0.1),
    ]  # fmt: skip
    assert {one.certificate_class for one in card.certificates} == {"exact", "model-based"}
    assert {one.certificate_class for one in card.acting} == {"model-based"}
    assert {one.scope for one in card.certificates} >= {"reads", "writes:refund_order"}
    assert not any(one.scope.startswith("writes") for one in card.reads)
    granted = {one.max_error for one in card.acting if one.granted and one.scope == "reads"}
    assert {one.max_error for one in card.per_task if one.origin == "new"} >= granted


def test_learning_twice_gives_the_same_bytes() -> None:
    some = parcels.sessions(0, 20)
    assert learn(some).to_bytes() == learn(some).to_bytes()


def test_the_order_of_the_sessions_does_not_decide_whether_a_level_is_certified() -> None:
    some = parcels.sessions(0, 30)
    first, second = learn(some), learn(some[::-1])
    granted = [
        [one.threshold is not None for one in reflex.card.certificates]
        for reflex in (first, second)
    ]
    assert granted[0] == granted[1]


def test_few_tasks_are_refused_with_the_number_needed() -> None:
    with pytest.raises(LearnError, match="3 tasks in 6 sessions: at least 5"):
        learn(parcels.sessions(0, 3, trials=2))


def test_sessions_without_calls_are_refused() -> None:
    silent = [
        msgspec.structs.replace(one, messages=(one.messages[0], one.messages[1]))
        for one in parcels.sessions(0, 8)
    ]
    with pytest.raises(LearnError, match="nothing can be learned"):
        learn(silent)


def test_a_misspelt_declared_effect_is_refused() -> None:
    with pytest.raises(LearnError, match="get_ordr, which no session offers"):
        learn(parcels.sessions(0, 8), effects={"get_ordr": "read"})


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1, 5, 1e-7])
def test_an_error_level_that_is_no_share_is_refused(error: float) -> None:
    with pytest.raises(LearnError, match="between 0 and 1"):
        learn(parcels.sessions(0, 8), max_error=error)


def test_a_declared_effect_wins_over_the_guess() -> None:
    some = parcels.sessions(0, 90)
    locked = learn(some, max_error=0.1, effects={"get_order": "write", "track_parcel": "write"})
    judged = evaluate(locked, parcels.sessions(100, 110))
    assert all(level.answered == 0 for level in judged.acting.values())
    assert judged.certified["0.10"].answered > 0, "as writes they are certified, and wait for leave"


def test_more_items_than_fit_in_memory_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflexarc.reflex.fit.MAX_ITEMS", 150)
    some = parcels.sessions(0, 60)
    sampled = learn(some)
    assert sampled.card.items > 300
    judged = evaluate(sampled, parcels.sessions(100, 120))
    assert judged.call_exact_top1 > 0.8
