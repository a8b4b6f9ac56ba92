"""How sure System 1 may be of its best call: features of the ranking, calibrated by a forest."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.batches import Batch
from reflexarc.reflex.boosting import train
from reflexarc.reflex.candidates import ABSENT, CONSTANT
from reflexarc.reflex.context import Context
from reflexarc.reflex.predictor import Ranking
from reflexarc.reflex.trees import Forest

FEATURES = (
    "joint", "tool_probability", "argument_probability", "least", "message_probability",
    "second", "lead", "calls", "arguments", "repeated", "last_event", "calls_since_user",
    "user_turns", "class_probability", "verdict_is_call", "tool", "weakest_slot", "constants",
    "newest_output", "length",
)  # fmt: skip
WHOLE_FEATURES = (
    *FEATURES, "batch", "ends", "goes_on", "joint_of_all", "least_of_all", "least_tool", "tools",
)  # fmt: skip
"""Of a batch: those of its first call, and what is told of all its calls."""
_EVENTS = {"U": 0, "C": 1, "O": 2, "X": 3, "M": 4}
_TREES: dict[str, Any] = {
    "objective": "binary",
    "num_leaves": 7,
    "learning_rate": 0.05,
    "min_data_in_leaf": 30,
    "lambda_l2": 5.0,
    "feature_fraction": 0.7,
}
_ROUNDS = 80


def confidence_features(context: Context, ranking: Ranking) -> NDArray[np.float32]:
    """(1, features) of the best-ranked call; all zero where there is none."""
    row = np.zeros((1, len(FEATURES)), dtype=np.float32)
    if not ranking.calls:
        return row
    best = ranking.calls[0]
    second = ranking.calls[1].joint if len(ranking.calls) > 1 else 0.0
    weakest, newest = 1.0, 0
    constants = 0
    for candidate in best.chosen.values():
        if candidate.made == CONSTANT:
            constants += 1
        elif candidate.made != ABSENT and candidate.entries:
            newest += candidate.entries[-1].origin.event == context.event
        weakest = min(weakest, len(candidate.slots) / 4.0)
    row[0] = (
        best.joint, best.tool_probability, best.argument_probability, best.least,
        ranking.message_probability, second, best.joint - second, len(ranking.calls),
        len(best.arguments), best.key in context.call_keys,
        _EVENTS[context.symbols[-1][0]] if context.symbols else 5,
        context.calls_since_user, context.user_turns, float(ranking.probabilities.max()),
        ranking.verdict is not None, ranking.classes.index(best.name), weakest, constants,
        newest, len(context.symbols),
    )  # fmt: skip
    return row


def whole_features(context: Context, ranking: Ranking, batch: Batch) -> NDArray[np.float32]:
    """(1, WHOLE_FEATURES) of the batch that begins with the best-ranked call."""
    calls = batch.calls
    told = (
        len(calls), batch.ends, batch.goes_on, math.prod(call.joint for call in calls),
        min(call.least for call in calls), min(call.tool_probability for call in calls),
        len({call.name for call in calls}),
    )  # fmt: skip
    row = confidence_features(context, ranking)
    return np.concatenate((row, np.array([told], dtype=np.float32)), axis=1)


def fit_confidence(features: NDArray[np.float32], right: NDArray[np.bool_]) -> Forest:
    """The probability that the best call, or the batch, is right, from rankings of tasks not
    learned from."""
    return train(features, right, _TREES, _ROUNDS)
