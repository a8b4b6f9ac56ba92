"""The card of a reflex: what it was learned from, what it may do, under which certificates."""

import math
from collections.abc import Sequence

import msgspec

from reflexarc.reflex.certificate import LevelBound
from reflexarc.reflex.integrity import ResultsFit
from reflexarc.reflex.repeat import NOTHING_RECURS, Repeats
from reflexarc.steps import Effect

READS = "reads"
RECALLED_READS = "recalled reads"
"""Scopes: calls of read tools that a member ranked best, and those answered from memory."""


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on the error of what a scope answers.

    With probability `confidence_level` over the draw of the learning tasks, at most `max_error` of
    the answers with confidence >= `threshold` are not what System 2 would have done. Judged on `n`
    answers, `errors` of them wrong, in `tasks` tasks, none of which was learned from by the model
    that answered. `threshold` is None where nothing could be certified; `missing` is about how
    many further right answers the level would then need.
    """

    max_error: float
    confidence_level: float
    scope: str
    threshold: float | None
    n: int
    errors: int
    tasks: int
    design_effect: float
    procedure: str
    missing: int


def shown(bounds: Sequence[LevelBound], scope: str) -> tuple[Certificate, ...]:
    """Bounds as a card shows them."""
    return tuple(
        Certificate(
            max_error=one.max_error,
            confidence_level=one.confidence_level,
            scope=scope,
            threshold=float(one.threshold) if math.isfinite(one.threshold) else None,
            n=one.n,
            errors=one.errors,
            tasks=one.tasks,
            design_effect=one.design_effect,
            procedure=one.procedure,
            missing=one.missing,
        )
        for one in bounds
    )


class ToolRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool: its effect and why it is taken for that; over held-out calls: how many there
    were, the share whose best-ranked call was exact."""

    name: str
    effect: Effect
    why: str
    calls: int
    tasks: int
    exact: float


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a person needs to judge a reflex. Shares are of calls of tasks not learned from
    (cross-fitted by task). `partial` certifies calls whose free text is left open. Where `results`
    says that recorded results do not belong to their calls, nothing is certified. `repeats`: how
    System 2 agrees with itself in the sessions learned from, beside which `exact` has to be read.
    """

    sessions: int
    tasks: int
    items: int
    calls: int
    exact: float
    max_error: float
    confidence_level: float
    models: tuple[str, ...]
    prompts: int
    results: ResultsFit
    tools: tuple[ToolRow, ...]
    certificates: tuple[Certificate, ...]
    partial: tuple[Certificate, ...] = ()
    repeats: Repeats = NOTHING_RECURS
