"""A newly learned artifact judged on what happened after all it was learned from.

Sessions are cut by time, not by chance: the artifact learns from the earlier ones and is judged,
its thresholds frozen, on the later ones, as it will be judged by those of tomorrow; tasks recur
there as they do in production. The artifact that was judged is the one that acts: it is not learned
again with the later sessions.
"""

from collections.abc import Iterable, Sequence

import msgspec

from reflexarc.reflex import Reflex
from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.evaluation import Outcome, level_name, outcomes
from reflexarc.reflex.judging import AnswerRow, scoped_answers
from reflexarc.reflex.outcome import with_writes
from reflexarc.reflex.scopes import ScopedAnswers, pool_name
from reflexarc.reflex.validation import validate
from reflexarc.steps import Session
from reflexarc.steps.errors import LearnError

LATER_SHARE = 0.25
MIN_LATER = 20
"""Later answers a new artifact must have given for anything to be said of it."""
DELTA = 0.1
"""A new artifact that keeps all its certificates is refused one time in ten at most."""


class Later(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an artifact would have answered in later sessions under its bound: `answered` calls,
    `right` of them; `refuted`: the scopes, those of writes among them, whose certificates these
    sessions speak against."""

    answered: int
    right: int
    refuted: tuple[str, ...] = ()


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
    elif found.refuted:
        why_not = (
            f"it errs more than certified for {', '.join(found.refuted)}; "
            f"{found.answered - found.right} of its {found.answered} later answers were wrong"
        )
    elif before is not None and not before.refuted and before.right > found.right:
        why_not = f"it answered {found.right} later calls rightly, the one in use {before.right}"
    return Verdict(len(later), found, before, why_not)


def _later(reflex: Reflex, later: Sequence[Session], max_error: float) -> Later:
    held = _held(reflex, max_error)
    if not held:
        return Later(0, 0)
    level = level_name(max(one.max_error for one in held))
    found = list(outcomes(reflex, later))
    acted = [one for one in found if one.acted.get(level)]
    might = (one for one in found if one.acted.get(level) or one.acted.get(with_writes(level)))
    judged = validate(held, _answers(reflex, might), DELTA / len(held))
    refuted = tuple(one.scope for one in judged if one.verdict == "refuted")
    return Later(len(acted), sum(one.answer_right for one in acted), refuted)


def _held(reflex: Reflex, max_error: float) -> list[Certificate]:
    """The certificate of each scope that a gateway would act under within this bound."""
    found: dict[str, Certificate] = {}
    for one in reflex.card.acting:
        best = found.get(one.scope)
        if one.granted and one.max_error <= max_error:
            found[one.scope] = one if best is None or best.max_error < one.max_error else best
    return list(found.values())


def _answers(reflex: Reflex, acted: Iterable[Outcome]) -> ScopedAnswers:
    """As certificates are judged on them: the unit of what is recalled is the session."""
    units: dict[tuple[bool, str], int] = {}
    rows: list[AnswerRow] = []
    for one in acted:
        recalled = one.decision.scope.startswith("recalled")
        names = [call.name for call in one.decision.calls]
        unit = units.setdefault((recalled, one.session if recalled else one.task), len(units))
        write = any(reflex.effects.get(name) != "read" for name in names)
        rows.append(AnswerRow(
            one.decision.confidence, not one.answer_right, unit, recalled, write,
            pool_name(names), len(names),
        ))  # fmt: skip
    return scoped_answers(rows)
