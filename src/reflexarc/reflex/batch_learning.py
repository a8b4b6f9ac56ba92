"""How sure a whole batch is, learned from batches judged on other tasks; and whether to answer so.

An agent that calls several tools at once, but seldom the same ones, is better answered one call at
a time. Which of the two is decided by what scores promise to certify, before any error is looked
at, so that certificates hold whatever was decided.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.answers import Answers, promised
from reflexarc.reflex.claims import MODEL_BASED
from reflexarc.reflex.confidence import fit_confidence
from reflexarc.reflex.judging import AnswerRow, JudgedItem, answer_rows
from reflexarc.reflex.member import LEAST_THRESHOLD, MEMBERS, Batching
from reflexarc.reflex.trees import Forest

_LEAST_ITEMS = 60


def learn_batching(
    judged: Sequence[JudgedItem],
    scores: NDArray[np.float64],
    fold: NDArray[np.integer[Any]],
    ends: Sequence[Forest | None],
    writes: AbstractSet[str],
    levels: Sequence[float],
    delta: float,
) -> tuple[NDArray[np.float64], dict[int, Batching]]:
    """The cross-fitted score of each item's batch (0: none), and by fold what its member answers
    batches with; nothing of either where batches are few, or one call at a time promises more.
    `scores` are those of single calls; `ends`, by fold, say where batches end."""
    nothing = np.zeros(len(judged)), dict[int, Batching]()
    chosen = np.array([item.batch is not None for item in judged], np.bool_)
    batches = [item.batch for item in judged if item.batch is not None]
    if len(batches) < _LEAST_ITEMS:
        return nothing
    features = np.concatenate([one.features for one in batches])
    right = np.array([one.right for one in batches], np.bool_)
    fold_of = fold[chosen]
    whole, found = np.zeros(len(batches)), dict[int, Batching]()
    for number in range(MEMBERS):
        here, end_forest = fold_of == number, ends[number]
        if here.all():
            return nothing
        if end_forest is None:
            continue
        found[number] = Batching(end_forest, fit_confidence(features[~here], right[~here]))
        if here.any():
            whole[here] = found[number].confidence.probabilities(features[here])[:, 0]
    every = np.zeros(len(judged))
    every[chosen] = whole
    if not _worth_it(judged, scores, every, writes, levels, delta):
        return nothing
    return every, found


def _worth_it(
    judged: Sequence[JudgedItem],
    scores: NDArray[np.float64],
    whole: NDArray[np.float64],
    writes: AbstractSet[str],
    levels: Sequence[float],
    delta: float,
) -> bool:
    """Whether more calls are promised with batches than without."""
    batched = answer_rows(judged, scores, whole, writes, LEAST_THRESHOLD)
    single = answer_rows(judged, scores, np.zeros(len(judged)), writes, LEAST_THRESHOLD)
    return _promised_calls(batched, levels, delta) > _promised_calls(single, levels, delta)


def _promised_calls(rows: Sequence[AnswerRow], levels: Sequence[float], delta: float) -> int:
    """How many calls of new answers would be certified, were the scores true, over all levels."""
    total = 0
    for write in (False, True):
        here = [row for row in rows if not row.recalled and row.write == write]
        score = np.array([row.score for row in here], np.float64)
        calls = np.array([row.calls for row in here], np.int64)
        answers = Answers(
            score, np.zeros(len(here), np.bool_), np.array([row.unit for row in here], np.int64),
            calibrated=True,
        )  # fmt: skip
        surest = np.cumsum(calls[np.argsort(-score, kind="stable")])
        for level in levels:
            n = promised(answers, level, delta, MODEL_BASED.promise)
            total += int(surest[n - 1]) if n else 0
    return total
