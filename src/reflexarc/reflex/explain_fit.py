"""How well a tool fits what was said, beside the other tools: the second voice in a choice."""

import numpy as np

from reflexarc.reflex.choice import FEATURES
from reflexarc.reflex.context import Context
from reflexarc.reflex.contributions import contributions
from reflexarc.reflex.explain_choice import Driver
from reflexarc.reflex.feature_words import fit_words
from reflexarc.reflex.predictor import MESSAGE, Predictor, Ranking

_DRIVERS = 5
_LEAST_MOVE = 0.02


def why_fit(
    predictor: Predictor, context: Context, ranking: Ranking, verdict: int, over: int | None
) -> tuple[Driver, ...]:
    """What made one tool fit better, or worse, than another, or, where the other is a message, than
    the other tools offered on average; nothing where there is no other tool."""
    tool, others = _compared(ranking, verdict, over)
    if tool is None or not others:
        return ()
    allowed = ranking.probabilities[1:] > 0.0
    rows = predictor.choice.fit.rows(context, allowed, predictor.features.counts(context))
    row, beside = rows[tool], rows[others]
    moved = contributions(predictor.choice.forest, 0, row, beside)
    found: list[Driver] = []
    for at in map(int, np.argsort(-np.abs(moved), kind="stable")[:_DRIVERS]):
        if abs(moved[at]) >= _LEAST_MOVE:
            usual = float(beside[:, at].mean())
            says = f"{float(row[at]):.2g} rather than {usual:.2g}"
            found.append(Driver(fit_words(FEATURES[at]), says, round(float(moved[at]), 4)))
    return tuple(found)


def _compared(ranking: Ranking, verdict: int, over: int | None) -> tuple[int | None, list[int]]:
    """The tool explained and those it is compared with, as rows."""
    if verdict == MESSAGE:
        return None, []
    if over not in (None, MESSAGE):
        return verdict - 1, [over - 1]
    others = np.flatnonzero(ranking.probabilities[1:] > 0.0).tolist()
    return verdict - 1, [at for at in others if at != verdict - 1]
