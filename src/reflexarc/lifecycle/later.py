"""A newly learned artifact judged on what happened after all it was learned from.

Sessions are cut by time, not by chance: the artifact learns from the earlier ones and is judged,
its thresholds frozen, on the later ones, as it will be judged by those of tomorrow; tasks recur
there as they do in production. The artifact that was judged is the one that acts: it is not learned
again with the later sessions.
"""

from collections.abc import Sequence

import msgspec

from reflexarc.lifecycle.betting import Evidence
from reflexarc.lifecycle.clusters import Clusters
from reflexarc.reflex import Reflex
from reflexarc.reflex.evaluation import level_name, outcomes
from reflexarc.steps import Session
from reflexarc.steps.errors import LearnError

LATER_SHARE = 0.25
MIN_LATER = 20
"""Later answers a new artifact must have given for anything to be said of it."""
REFUTED = 10.0
"""Odds against the certified error from which a new artifact is refused: one that keeps it is
refused one time in ten at most."""


class Later(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an artifact would have answered in later sessions under its bound: `answered` calls,
    `right` of them; `against`: the odds that it errs more than it may."""

    answered: int
    right: int
    against: float


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`why_not` is empty where the new one may take over. `old` is None where there is none that
    could answer."""

    sessions: int
    new: Later
    old: Later | None
    why_not: str


def cut(sessions: Sequence[Session]) -> tuple[list[Session], list[Session]]:
    """The earlier sessions, to learn from, and the later ones; given oldest first. Raises
    `LearnError` where there are too few."""
    later = round(len(sessions) * LATER_SHARE)
    if not later or len(sessions) - later < 1:
        raise LearnError(f"{len(sessions)} sessions are too few to learn from some and judge later")
    return list(sessions[:-later]), list(sessions[-later:])


def judged(new: Reflex, old: Reflex | None, later: Sequence[Session], max_error: float) -> Verdict:
    """Whether the new artifact may replace the old one."""
    found = _later(new, later, max_error)
    before = _later(old, later, max_error) if old is not None else None
    why_not = ""
    if found.answered < MIN_LATER:
        why_not = (
            f"it would have answered {found.answered} calls of {len(later)} later sessions, and "
            f"{MIN_LATER} are needed to judge it"
        )
    elif found.against >= REFUTED:
        why_not = (
            f"{found.answered - found.right} of its {found.answered} later answers were wrong: the "
            f"odds that it errs more than {max_error:.0%} are {min(found.against, 1e12):.3g} to 1"
        )
    elif before is not None and before.against < REFUTED and before.right > found.right:
        why_not = f"it answered {found.right} later calls rightly, the one in use {before.right}"
    return Verdict(len(later), found, before, why_not)


def _later(reflex: Reflex, later: Sequence[Session], max_error: float) -> Later:
    level = _level(reflex, max_error)
    evidence, clusters = Evidence(), Clusters()
    right = answered = 0
    for one in outcomes(reflex, later):
        if level is None or not one.acted.get(level):
            continue
        answered += 1
        right += one.exact
        null = clusters.null(one.session.encode(), "later", max_error, wrong=not one.exact)
        evidence = evidence.after(wrong=not one.exact, null=null, share=1.0)
    return Later(answered, right, evidence.against)


def _level(reflex: Reflex, max_error: float) -> str | None:
    """The level whose answers a gateway would give under this bound."""
    levels = [
        one.max_error
        for one in reflex.card.reads
        if one.threshold is not None and one.max_error <= max_error
    ]
    return level_name(max(levels)) if levels else None
