"""Ranks the calls System 2 could make next: which tool, then its arguments by beam search."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.argument_features import (
    Chosen,
    argument_matrix,
    link_columns,
    linked_rows,
)
from reflexarc.reflex.candidates import ABSENT_VALUE, Candidate, enumerate_candidates
from reflexarc.reflex.choice import ToolChoice
from reflexarc.reflex.context import Context
from reflexarc.reflex.cues import Cues
from reflexarc.reflex.history import HistoryFeatures, Vocabulary
from reflexarc.reflex.recall import Recollection
from reflexarc.reflex.sources import Argument, Sources
from reflexarc.reflex.trees import Forest
from reflexarc.steps import call_key

_MAX_TOOLS = 3
_MIN_TOOL_PROBABILITY = 0.03
_BEAM = 3
_HOPELESS = 0.01
ONLY_CANDIDATE = 0.97
"""How probable a value is taken to be that has no other beside it."""
_NO_CANDIDATE = 0.01
MESSAGE = 0
"""Class 0 of the tool forest: System 2 writes a message (or thinks)."""


def argument_rows(
    context: Context, argument: Argument, candidates: list[Candidate], after: Sequence[Chosen],
    cues: Cues,
) -> NDArray[np.float32]:  # fmt: skip
    """(len(after) * candidates, features): every candidate after each choice of the arguments that
    are filled before."""
    matrix = argument_matrix(context, argument, candidates, cues)
    return np.concatenate([link_columns(matrix, context, candidates, chosen) for chosen in after])


def _shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of (beams, candidates) as probabilities: together at most 1 for each beam."""
    return scores / np.maximum(1.0, scores.sum(axis=1, keepdims=True))


class RankedCall:
    """A possible next call. `joint` = `tool_probability` x `argument_probability`."""

    __slots__ = (
        "_key", "argument_probability", "arguments", "chosen", "joint", "least", "name",
        "tool_probability",
    )  # fmt: skip

    def __init__(
        self, name: str, tool_probability: float, argument_probability: float, least: float,
        arguments: dict[str, Any], chosen: dict[str, Candidate],
    ) -> None:  # fmt: skip
        self.name = name
        self.tool_probability = tool_probability
        self.argument_probability = argument_probability
        self.least = least
        self.joint = tool_probability * argument_probability
        self.arguments = arguments
        self.chosen = chosen
        self._key: str | None = None

    @property
    def key(self) -> str:
        if self._key is None:
            self._key = call_key(self.name, self.arguments)
        return self._key

    def with_tool(self, probability: float) -> "RankedCall":
        """The same call, its tool as probable as this."""
        return RankedCall(
            self.name, probability, self.argument_probability, self.least, self.arguments,
            self.chosen,
        )  # fmt: skip


class Ranking:
    """All ranked calls, best first, and the probability of each class (0 is a message).

    `recalled`: what earlier runs of this very situation did, where that is the best-ranked call;
    `contradicted`: they did otherwise, and what they did cannot be made."""

    __slots__ = ("calls", "classes", "contradicted", "probabilities", "recalled")

    def __init__(
        self,
        calls: list[RankedCall],
        classes: tuple[str, ...],
        probabilities: NDArray[np.float64],
        recalled: Recollection | None = None,
    ) -> None:
        self.calls = calls
        self.classes = classes
        self.probabilities = probabilities
        self.recalled = recalled
        self.contradicted = False

    @property
    def message_probability(self) -> float:
        return float(self.probabilities[MESSAGE])

    @property
    def verdict(self) -> str | None:
        """The most probable class: a tool's name, or None for a message."""
        if self.recalled is not None:
            return self.recalled.tool
        best = int(np.argmax(self.probabilities))
        return None if best == MESSAGE else self.classes[best]


class _Beam:
    __slots__ = ("arguments", "chosen", "least", "linked", "probability")

    def __init__(
        self, probability: float, least: float, arguments: dict[str, Any],
        chosen: dict[str, Candidate], linked: Chosen,
    ) -> None:  # fmt: skip
        self.probability = probability
        self.least = least
        self.arguments = arguments
        self.chosen = chosen
        self.linked = linked

    def then(self, argument: Argument, candidate: Candidate, probability: float) -> "_Beam":
        arguments = self.arguments
        if candidate.value is not ABSENT_VALUE:
            arguments = {**arguments, argument.name: candidate.value}
        return _Beam(
            self.probability * probability,
            min(self.least, probability),
            arguments,
            {**self.chosen, argument.name: candidate},
            self.linked.then(candidate),
        )


class Predictor:
    """Sources, vocabulary, two forests and the choice of tools. Immutable; safe to use from
    several threads."""

    def __init__(
        self, sources: Sources, vocabulary: Vocabulary, tools: Forest, arguments: Forest,
        choice: ToolChoice, cues: Cues,
    ) -> None:  # fmt: skip
        self.sources = sources
        self.vocabulary = vocabulary
        self.tool_forest = tools
        self.argument_forest = arguments
        self.choice = choice
        self.cues = cues
        self.features = HistoryFeatures(vocabulary, sources)
        self.classes = ("", *(tool.name for tool in sources.tools))

    def rank(self, context: Context, offered: Collection[str] | None = None) -> Ranking:
        """Rank the calls to tools that are offered (None: to any tool). Asked again before the
        context goes on (to decide, then to compare) it gives what it gave."""
        asked = (context.event, context.length, None if offered is None else frozenset(offered))
        if context.ranked is not None and context.ranked[:2] == (self, asked):
            return cast(Ranking, context.ranked[2])
        ranking = self._rank(context, offered)
        context.ranked = (self, asked, ranking)
        return ranking

    def _rank(self, context: Context, offered: Collection[str] | None) -> Ranking:
        counts = self.features.counts(context)
        vector = self.features.vector(context, counts)
        probabilities = self.tool_forest.probabilities(vector[None, :])[0]
        if offered is not None:
            allowed = [True, *(name in offered for name in self.classes[1:])]
            probabilities = np.where(allowed, probabilities, 0.0)
            probabilities = probabilities / max(1e-9, float(probabilities.sum()))
        probabilities = self.choice.pooled(context, probabilities, counts)
        return Ranking(self._ranked(context, probabilities, {}), self.classes, probabilities)

    def rank_among(
        self, context: Context, ranking: Ranking, offered: Collection[str]
    ) -> list[RankedCall]:
        """What `rank` gives with fewer tools offered, best first, for a ranking just made in this
        context: what it has worked out already is used again."""
        allowed = [True, *(name in offered for name in self.classes[1:])]
        probabilities = np.where(allowed, ranking.probabilities, 0.0)
        probabilities = probabilities / max(1e-9, float(probabilities.sum()))
        filled: dict[str, list[RankedCall]] = {}
        for call in ranking.calls:
            filled.setdefault(call.name, []).append(call)
        return self._ranked(context, probabilities, filled)

    def _ranked(
        self,
        context: Context,
        probabilities: NDArray[np.float64],
        filled: Mapping[str, Sequence[RankedCall]],
    ) -> list[RankedCall]:
        order = [int(at) for at in np.argsort(-probabilities, kind="stable") if at != MESSAGE]
        calls: list[RankedCall] = []
        for at in order[:_MAX_TOOLS]:
            probability = float(probabilities[at])
            if probability < _MIN_TOOL_PROBABILITY and calls:
                break
            if probability <= 0.0:
                continue
            known = filled.get(self.classes[at])
            if known is None:
                calls += self.fill(context, self.classes[at], probability)
            else:
                calls += [call.with_tool(probability) for call in known]
        calls.sort(key=lambda call: -call.joint)
        return calls

    def fill(
        self, context: Context, name: str, probability: float, leaving: Collection[str] = ()
    ) -> list[RankedCall]:
        """Calls of one tool, its arguments filled but for those left open."""
        beams = [_Beam(1.0, 1.0, {}, {}, Chosen())]
        for argument in self.sources.by_name[name].arguments:
            if argument.name in leaving:
                continue
            candidates = enumerate_candidates(context, argument, self.sources.constants(argument))
            beams = self._extend(context, argument, candidates, beams)
        return [
            RankedCall(name, probability, beam.probability, beam.least, beam.arguments, beam.chosen)
            for beam in beams
        ]

    def scores(self, rows: NDArray[np.float32], beams: int) -> NDArray[np.float64]:
        """(beams, candidates): how probable each candidate is after each beam, from the rows of
        `argument_rows`."""
        return _shares(self.argument_forest.probabilities(rows)[:, 0].reshape(beams, -1))

    def _extend(
        self, context: Context, argument: Argument, candidates: list[Candidate], beams: list[_Beam]
    ) -> list[_Beam]:
        if not candidates:
            for beam in beams:
                beam.probability *= _NO_CANDIDATE
                beam.least = _NO_CANDIDATE
            return beams
        if len(candidates) == 1:
            return [beam.then(argument, candidates[0], ONLY_CANDIDATE) for beam in beams]
        matrix = argument_matrix(context, argument, candidates, self.cues)
        linked = [beam.linked for beam in beams]
        rows, places = linked_rows(matrix, context, candidates, linked)
        scores = _shares(self.argument_forest.probabilities(rows)[:, 0][places])
        extended: list[_Beam] = []
        for beam, row in zip(beams, scores, strict=True):
            best = [int(at) for at in np.argsort(-row, kind="stable")[:_BEAM]]
            extended += [beam.then(argument, candidates[at], float(row[at])) for at in best]
        extended.sort(key=lambda beam: -beam.probability)
        hopeless = _HOPELESS * extended[0].probability
        return [beam for beam in extended[:_BEAM] if beam.probability >= hopeless]
