"""Calls are filled where they could act, and only there; what acts is the same."""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.certificate import certify
from reflexarc.reflex.gates import gates
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.outcome import Offered, decide_item, with_proposal
from reflexarc.reflex.ranking import RankedCall, Ranking
from reflexarc.reflex.reach import Reach, least_tool_probability, reaches
from reflexarc.reflex.replay import replay
from reflexarc.reflex.scopes import ScopedAnswers
from tests.reflex import parcels

LEVELS = (0.02, 0.05, 0.10)


def with_reach(reflex: Reflex, reach: tuple[Reach, ...]) -> Reflex:
    """The same, with another reach."""
    card = msgspec.structs.replace(reflex.card, reach=reach)
    return Reflex(card, reflex.identity, reflex.effects, reflex.members, frozenset(), reflex.recall)


def test_the_decision_is_the_same_with_and_without_a_proposal(parcel_reflex: Reflex) -> None:
    reflex = with_reach(parcel_reflex, (Reach(0.1, 0.985),))
    acted = spared = 0
    for number in range(500, 530):
        session = parcels.session(number)
        tools = Offered(reflex, offered_tools(session))
        for context, _ in replay(session):
            ranking, decision = decide_item(reflex, context, tools, model="parcel-model")
            whole = with_proposal(reflex, context, tools, ranking, decision, model="parcel-model")
            assert whole.acts == decision.acts
            if decision.call is not None:
                assert whole == decision
                acted += decision.acts
            else:
                spared += whole.call is not None
    assert acted
    assert spared


def opening() -> list[dict[str, str]]:
    return [
        {"role": "system", "content": parcels.PROMPT},
        {"role": "user", "content": "Hello, where is my order #W7654321?"},
    ]


@pytest.mark.parametrize("proposing", [True, False])
def test_what_is_out_of_reach_does_not_act_whoever_asks(
    parcel_reflex: Reflex, proposing: bool
) -> None:
    """A level has the reach of its own: who asks for less error needs a likelier tool."""
    far = with_reach(parcel_reflex, (Reach(0.1, 1.0),))
    decision = far.decide(opening(), parcels.TOOLS, proposing=proposing)
    assert (decision.action, decision.reason) == ("escalate", "below_threshold")
    assert (decision.call is not None) == proposing
    near = with_reach(parcel_reflex, (Reach(0.02, 1.0), Reach(0.1, 0.2)))
    assert near.decide(opening(), parcels.TOOLS, proposing=proposing).acts
    found = near.decide(opening(), parcels.TOOLS, proposing=proposing, max_error=0.02)
    assert found.action == "escalate"


def test_without_a_certificate_no_call_is_looked_for() -> None:
    thin = learn(parcels.sessions(0, 12), max_error=0.05)
    assert not any(one.granted for one in thin.card.certificates)
    context = thin.context()
    context.extend(parcels.session(500).messages[:2])
    ranking = thin.rank(context, {tool.name for tool in parcels.TOOLS})

    def filled() -> list[RankedCall]:
        raise AssertionError("calls were looked for")

    watched = Ranking(filled, ranking.classes, ranking.probabilities, ranking.message_probability)
    decision = thin.judge(context, watched, parcels.TOOLS, max_error=1.0, proposing=False)
    assert (decision.action, decision.reason) == ("escalate", "no_certificate")
    with pytest.raises(AssertionError, match="looked for"):
        thin.judge(context, watched, parcels.TOOLS)


def test_an_obstacle_is_named_before_what_is_out_of_reach(parcel_reflex: Reflex) -> None:
    far = with_reach(parcel_reflex, (Reach(0.1, 1.0),))
    decision = far.decide(opening(), parcels.TOOLS, model="another", proposing=False)
    assert decision.reason == "model_changed"


def test_the_gates_say_what_was_out_of_reach(parcel_reflex: Reflex) -> None:
    far = with_reach(parcel_reflex, (Reach(0.1, 1.0),))
    context = far.context()
    context.extend(parcels.session(500).messages[:2])
    ranking = far.rank(context, {tool.name for tool in parcels.TOOLS})
    asked = gates(
        far, context, ranking, parcels.TOOLS, model="parcel-model", max_error=0.1, recorded=True
    )
    (refused,) = [gate for gate in asked if not gate.passed]
    assert refused.reason == "below_threshold"
    assert refused.remedy is not None
    assert "none had less than 1.000" in refused.remedy


def judged(tasks: int, *, seed: int = 0) -> tuple[ScopedAnswers, NDArray[np.float64]]:
    """Answers whose confidence tells, some recalled, and how likely their tool was."""
    random = np.random.default_rng(seed)
    n = tasks * 4
    score = random.uniform(0.5, 1.0, n)
    answers = ScopedAnswers(
        score=score,
        wrong=random.random(n) > np.minimum(1.0, score + 0.2),
        task=np.repeat(np.arange(tasks), 4),
        recalled=random.random(n) < 0.2,
        write=np.zeros(n, np.bool_),
        tool=random.integers(0, 2, n),
        tools=("find", "read"),
    )
    return answers, np.clip(score + random.normal(0, 0.05, n), 0.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_all_that_was_certified_is_within_reach(seed: int) -> None:
    answers, likely = judged(200, seed=seed)
    new = answers.part(~answers.recalled)
    certificates = certify(new.score, new.wrong, new.task, calibrated=True)
    assert any(one.granted for one in certificates)
    found = reaches(answers, likely, certificates, "model-based", LEVELS)
    for one in certificates:
        if one.threshold is not None:
            acts = ~answers.recalled & (answers.score >= one.threshold)
            assert least_tool_probability(found, one.max_error) <= likely[acts].min()
    limits = [one.tool_probability for one in found]
    assert limits == sorted(limits, reverse=True)
    assert least_tool_probability(found, 0.001) == 0.0


def test_errors_have_no_part_in_the_reach() -> None:
    answers, likely = judged(200)
    new = answers.part(~answers.recalled)
    certificates = certify(new.score, new.wrong, new.task, calibrated=True)
    turned = msgspec.structs.replace(answers, wrong=~answers.wrong)
    assert reaches(answers, likely, certificates, "model-based", LEVELS) == reaches(
        turned, likely, certificates, "model-based", LEVELS
    )
