"""Partial decisions: the tool and its copied arguments are sure, only free text is missing.

Which arguments are free text is learned: their values are strings that stand nowhere in the
conversation before the call and are not said again and again. Such an argument is left open, the
others are filled as ever, and the result has a confidence and certificates of its own.

A partial is right if System 2 then calls that tool and every argument that was not left open is
equal. It is proposed only where the whole call cannot act because its confidence is under
`LEAST_THRESHOLD`: the two certificates speak of different steps, whatever their thresholds.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.certificate import Certificate, certify
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.confidence import confidence_features, fit_confidence
from reflexarc.reflex.context import Context
from reflexarc.reflex.header import LEAST_THRESHOLD
from reflexarc.reflex.member import MEMBERS
from reflexarc.reflex.predictor import Predictor, Ranking
from reflexarc.reflex.sources import Tool
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Item, call_key

SCOPE = "partial"
MAX_KNOWN_SHARE = 0.1
"""Of the calls, at most: the value stood somewhere before, or is a constant."""
MIN_TASKS = 10
"""A tool seen in fewer tasks does not show which of its arguments are free text."""

_LEAST_ITEMS = 60


class PartialItem(msgspec.Struct):
    """One cross-fitted item with a partial: features of its ranking, whether it was right, whether
    it is a read with no result out."""

    features: NDArray[np.float32]
    right: bool
    may_act: bool


def open_arguments(tool: Tool) -> frozenset[str]:
    """The arguments of a tool that only System 2 can write."""
    if tool.tasks < MIN_TASKS:
        return frozenset()
    return frozenset(
        argument.name
        for argument in tool.arguments
        if argument.kind == "string"
        and argument.found_share + sum(constant.share for constant in argument.constants)
        <= MAX_KNOWN_SHARE
    )


def propose(predictor: Predictor, context: Context, ranking: Ranking) -> Ranking | None:
    """The likeliest tool's calls without its open arguments, best first; None where a message is
    likelier, or the tool has no open argument."""
    name = ranking.verdict
    if name is None:
        return None
    left_open = open_arguments(predictor.sources.by_name[name])
    if not left_open:
        return None
    probability = float(ranking.probabilities[ranking.classes.index(name)])
    calls = predictor.fill(context, name, probability, left_open)
    calls.sort(key=lambda call: -call.joint)
    if not calls:
        return None
    return Ranking(calls, ranking.classes, ranking.probabilities, ranking.message_probability)


def judge_item(
    predictor: Predictor,
    context: Context,
    ranking: Ranking,
    item: Item,
    thinking: Collection[str],
    acting: Collection[str],
) -> PartialItem | None:
    """What a partial would have been at one recorded item; None where there is none."""
    partial = propose(predictor, context, ranking)
    if partial is None:
        return None
    best = partial.calls[0]
    left_open = open_arguments(predictor.sources.by_name[best.name])
    return PartialItem(
        features=confidence_features(context, partial),
        right=best.key in _answers(item, left_open, thinking),
        may_act=best.name in acting and not context.unanswered_calls,
    )


def _answers(item: Item, left_open: Collection[str], thinking: Collection[str]) -> set[str]:
    """Keys of the calls System 2 made, without their open arguments."""
    if not item.answers(thinking):
        return set()
    return {
        call_key(call.name, _without(call.arguments, left_open))
        for call in item.calls
        if call.well_formed
    }


def _without(arguments: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in names}


def certify_partials(
    items: Sequence[PartialItem | None],
    whole: NDArray[np.float64],
    fold: NDArray[np.integer[Any]],
    task: NDArray[np.integer[Any]],
    *,
    levels: Sequence[float],
    confidence: float,
    certificate_class: CertificateClass,
    attempt: int,
) -> tuple[tuple[Certificate, ...], dict[int, Forest]]:
    """Certificates of partials and, by fold, the forest of their confidence in the member judged
    on it; each entry of the arrays belonging to an item: the cross-fitted confidence of the whole
    call, fold and task.

    Nothing where there are fewer than 60 partials, or all of one fold.
    """
    chosen = np.array([item is not None for item in items], dtype=np.bool_)
    found = [item for item in items if item is not None]
    forests: dict[int, Forest] = {}
    if len(found) < _LEAST_ITEMS:
        return (), forests
    features = np.concatenate([item.features for item in found])
    right = np.array([item.right for item in found], dtype=np.bool_)
    whole, fold, task = whole[chosen], fold[chosen], task[chosen]
    scores = np.zeros(len(found))
    for number in range(MEMBERS):
        here = fold == number
        if here.all():
            return (), {}
        forests[number] = fit_confidence(features[~here], right[~here])
        scores[here] = forests[number].probabilities(features[here])[:, 0]
    eligible = np.array([item.may_act for item in found], dtype=np.bool_)
    eligible &= (whole < LEAST_THRESHOLD) & (scores >= LEAST_THRESHOLD)
    bounds = certify(
        scores[eligible], ~right[eligible], task[eligible],
        alphas=tuple(levels), delta=1 - confidence, calibrated=True, scope=SCOPE,
        certificate_class=certificate_class, attempt=attempt,
    )  # fmt: skip
    return tuple(bounds), forests
