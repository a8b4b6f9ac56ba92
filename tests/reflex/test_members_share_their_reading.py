"""Predictors that share sessions are those that each would be alone."""

import numpy as np
import pytest

from reflexarc.reflex.fit import MAX_ITEMS, fit_predictor, fit_predictors
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.steps import Session
from tests.reflex import loans, parcels

LEFT_OUT = 3


def left_out(sessions: list[Session]) -> list[set[str]]:
    tasks = sorted({session.task for session in sessions})
    return [set(tasks[at::LEFT_OUT]) for at in range(LEFT_OUT)]


def same(one: Predictor, other: Predictor) -> bool:
    forests = (
        (one.tool_forest, other.tool_forest),
        (one.argument_forest, other.argument_forest),
        (one.form_forest, other.form_forest),
        (one.choice.forest, other.choice.forest),
    )
    return (
        one.sources.tools == other.sources.tools
        and one.vocabulary == other.vocabulary
        and one.cues.weights == other.cues.weights
        and all(
            np.array_equal(array, b.arrays()[name])
            for a, b in forests
            for name, array in a.arrays().items()
        )
    )


@pytest.mark.parametrize("at_once", [MAX_ITEMS, 1], ids=["all at once", "one at a time"])
@pytest.mark.parametrize("sessions", [parcels.sessions(0, 45), loans.sessions(0, 36)])
def test_shared_counts_and_rows_are_those_of_each_alone(
    sessions: list[Session], at_once: int
) -> None:
    private = Private(sessions)
    out = left_out(sessions)
    every = fit_predictors(sessions, out, {"think"}, private, at_once=at_once)
    found = [learned.predictor for learned in every]
    for tasks, predictor in zip(out, found, strict=True):
        kept = [session for session in sessions if session.task not in tasks]
        assert same(predictor, fit_predictor(kept, {"think"}, private))
    assert not same(found[0], found[1])
