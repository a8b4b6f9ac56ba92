"""Whether a context looks like those learned from. Where it does not, System 1 leaves it alone.

What contexts looked like is kept as hashes of what at least three tasks showed: words of users and
of free texts in results, and per tool the places of values in its results and their shapes. A
message of another language, of another system behind the same tools, or with instructions put into
a result shows much that is not among them. How much is too much is learned on held-out tasks: what
a task shows is compared with what the tasks of other folds showed.
"""

import math
from collections.abc import Sequence, Set
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.context import Context
from reflexarc.reflex.looks import CALL, USER, Look, Memo, look_of

Check = Literal["words", "forms", "places", "shapes", "missing"]
Limits = tuple[float, float, float, float, float]
_STRANGE_RATE = 0.85


class ToolLooks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one tool's results (or of users' messages): the rate of unknown words in held-out ones,
    per check the most that is still familiar, and the hashes of what nearly all of them show."""

    word_rate: float
    limits: Limits
    usual: tuple[int, ...] = ()


class Looks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an artifact's header holds of familiarity; the known hashes are an array beside it.
    `rare_places`: of a tool whose results were hardly seen, the unknown places that are still
    familiar. `flagged` is the share of held-out contexts that were called unfamiliar."""

    tools: dict[str, ToolLooks]
    rare_places: int
    flagged: float


class Familiarity:
    """Immutable; judges contexts. `fault` is memoised in the context, message by message."""

    def __init__(self, looks: Looks, known: NDArray[np.uint64]) -> None:
        self.looks = looks
        self.known = known
        self._known = frozenset(int(one) for one in known)

    def fault(self, context: Context) -> str | None:
        """`unfamiliar:user`, `unfamiliar:result` or `injection` where any message of the context
        is so; None where all look familiar."""
        memo = context.memo
        if memo.owner is not self:
            memo.owner, memo.read, memo.surprise, memo.fault = self, 0, 0.0, None
            memo.said = set()
        while memo.read < len(context.seen) and memo.fault is None:
            look = look_of(context.seen[memo.read])
            memo.read += 1
            memo.fault = self._judge(look, memo)
            if look.tool in (USER, CALL):
                memo.said.update(look.cues, *look.segments)
        return memo.fault

    def _judge(self, look: Look, memo: Memo) -> str | None:
        if look.tool == CALL:
            return None
        tool = self.looks.tools.get(look.tool)
        if look.tool == USER:
            if tool is None:
                return "unfamiliar:user"
            change = words_surprise(sizes_of(look, self._known), tool.word_rate, user=True)
            memo.surprise = max(0.0, memo.surprise + change)
            return "unfamiliar:user" if memo.surprise > tool.limits[0] else None
        if look.cues - self._known - memo.said:
            return "injection"
        if tool is None:
            strange = look.kind not in self._known or (
                len(look.places - self._known) > self.looks.rare_places
            )
        else:
            sizes = sizes_of(look, self._known, memo.said)
            words = words_surprise(sizes, tool.word_rate)
            strange = _over((words, *result_counts(look, self._known, tool.usual)), tool.limits)
        return "unfamiliar:result" if strange else None


Sizes = list[tuple[int, int]]
"""Of each piece of text: how many of its words are unknown, how many there are."""


def sizes_of(look: Look, known: Set[int], said: Set[int] = frozenset()) -> Sizes:
    """`said`: words of users and calls so far, which a result may repeat."""
    return [(len(segment - known - said), len(segment)) for segment in look.segments]


def words_surprise(sizes: Sizes, rate: float, *, user: bool = False) -> float:
    """How much likelier a text's words are if they are not of what is known, as a logarithm: of a
    user's message, or the largest of a result's pieces. `rate`: of unknown words in known texts."""
    strange = max(_STRANGE_RATE, (1 + rate) / 2)
    unknown_weight = math.log(strange / rate)
    known_weight = math.log((1 - strange) / (1 - rate))
    values = [unknown * unknown_weight + (size - unknown) * known_weight for unknown, size in sizes]
    return sum(values) if user else max(values, default=0.0)


def result_counts(
    look: Look, known: Set[int], usual: Sequence[int]
) -> tuple[float, float, float, float]:
    """Unknown form (worse where no tool showed such a kind of text), unknown places, unknown
    shapes at known places, usual places that are missing. The first of `usual` is the form of
    results that show the others."""
    shapes = sum(
        shape not in known and (at in known or at == look.form) for shape, at in look.shapes.items()
    )
    missing = 0
    if usual and usual[0] == look.form:
        missing = sum(place not in look.places for place in usual[1:])
    return (
        float(look.form not in known),
        float(len(look.places - known)),
        float(shapes),
        float(missing),
    )


def _over(values: Limits, limits: Limits) -> bool:
    return any(value > limit for value, limit in zip(values, limits, strict=True))
