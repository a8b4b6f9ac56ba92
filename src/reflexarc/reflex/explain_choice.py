"""What spoke for a tool, and for being sure of a call, compared with other steps of the agent."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.confidence import FEATURES as CONFIDENCE_FEATURES
from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.contributions import contributions
from reflexarc.reflex.feature_words import OF_CONVERSATION, confidence_words, history_words
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.member import Member
from reflexarc.reflex.predictor import Predictor, Ranking
from reflexarc.reflex.replay import replay
from reflexarc.steps import Session

MAX_REFERENCES = 64
_MAX_REFERENCE_SESSIONS = 24
_DRIVERS = 8
_LEAST_MOVE = 0.02
_T = TypeVar("_T")
FIT = "the fit of the tools"


class Driver(msgspec.Struct, frozen=True):
    """One thing that spoke for a choice (`adds` above 0) or against it, in log-odds. `of`: what it
    is a thing of; `says`: the thing."""

    of: str
    says: str
    adds: float


class Why(msgspec.Struct, frozen=True):
    """What moved a score, in log-odds, compared with `compared_with` other steps (0: there were
    none, and nothing is said). `lead`: by how much more than at those. `groups` add up to it;
    `drivers` are the strongest single things."""

    compared_with: int
    lead: float
    groups: dict[str, float]
    drivers: tuple[Driver, ...]


class References(msgspec.Struct, frozen=True):
    """What other steps looked like: rows of the tool forest's and of the confidence's features."""

    history: NDArray[np.float32]
    confidence: NDArray[np.float32]


def references(member: Member, sessions: Sequence[Session]) -> References:
    """Steps to compare with: of at most 24 of the sessions, evenly taken, at most 64."""
    history: list[NDArray[np.float32]] = []
    confidence: list[NDArray[np.float32]] = []
    for session in _evenly(sessions, _MAX_REFERENCE_SESSIONS):
        offered = {tool.name for tool in offered_tools(session)}
        for context, item in replay(session):
            if item.position == 0:
                ranking = member.predictor.rank(context, offered)
                history.append(np.array(member.predictor.features.vector(context)))
                confidence.append(confidence_features(context, ranking)[0])
    taken = _evenly(range(len(history)), MAX_REFERENCES)
    return References(
        np.array([history[at] for at in taken]), np.array([confidence[at] for at in taken])
    )


def _evenly(things: Sequence[_T], most: int) -> list[_T]:
    if len(things) <= most:
        return list(things)
    return [things[at * len(things) // most] for at in range(most)]


_NOTHING = Why(0, 0.0, {}, ())


def why_tool(
    predictor: Predictor, context: Context, ranking: Ranking, known: References,
    verdict: int, over: int | None,
) -> Why:  # fmt: skip
    """The lead of the likeliest class over the next, compared with the same at other steps."""
    if len(known.history) < 2 or over is None:
        return _NOTHING
    row = predictor.features.vector(context)
    forest = predictor.tool_forest
    moved = contributions(forest, verdict, row, known.history)
    moved = moved - contributions(forest, over, row, known.history)
    names = predictor.features.names()
    # The forest's own word on the lead; what it became once the fit of tools was heard as well.
    raw = forest.raw(row[None, :])[0]
    lead = math.log(ranking.probabilities[verdict] / ranking.probabilities[over])
    mended = lead - float(raw[verdict] - raw[over])
    words = [
        (float(moved[at]), history_words(names[at], float(row[at]), context))
        for at in np.flatnonzero(moved).tolist()
    ]
    words.append((mended, (FIT, "how well the tools fit what was said and done")))
    return _summed(len(known.history), words)


def why_sure(member: Member, context: Context, ranking: Ranking, known: References) -> Why:
    """What made the confidence in the best call more or less than at other steps; nothing of one
    that was recalled, whose confidence is how far the runs agree."""
    if len(known.confidence) < 2 or not ranking.calls or ranking.recalled is not None:
        return _NOTHING
    row = confidence_features(context, ranking)[0]
    moved = contributions(member.confidence, 0, row, known.confidence)
    words = [
        (float(moved[at]), _confidence(at, row, known, ranking))
        for at in np.flatnonzero(moved).tolist()
    ]
    return _summed(len(known.confidence), words)


def _confidence(
    at: int, row: NDArray[np.float32], known: References, ranking: Ranking
) -> tuple[str, str]:
    name = CONFIDENCE_FEATURES[at]
    of = "the conversation" if name in OF_CONVERSATION else "the ranking"
    if name == "tool":
        return of, f"the tool is {ranking.calls[0].name}"
    usual = float(np.median(known.confidence[:, at]))
    return of, f"{confidence_words(name)}: {row[at]:.3g} (usual: {usual:.3g})"


def _summed(compared_with: int, moved: Sequence[tuple[float, tuple[str, str]]]) -> Why:
    groups: defaultdict[str, float] = defaultdict(float)
    things: defaultdict[tuple[str, str], float] = defaultdict(float)
    for adds, thing in moved:
        groups[thing[0]] += adds
        things[thing] += adds  # several columns may say the same
    strongest = sorted(things.items(), key=lambda one: -abs(one[1]))[:_DRIVERS]
    return Why(
        compared_with,
        round(sum(adds for adds, _ in moved), 4),
        {of: round(adds, 4) for of, adds in sorted(groups.items(), key=lambda one: -abs(one[1]))},
        tuple(
            Driver(of, says, round(adds, 4))
            for (of, says), adds in strongest
            if abs(adds) >= _LEAST_MOVE
        ),
    )
