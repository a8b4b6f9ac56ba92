"""Ranks the calls System 2 could make next: which tool, then its arguments by beam search."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, cast
from weakref import ref

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
from reflexarc.reflex.form_ranking import FormFeatures
from reflexarc.reflex.forms import Form, fill
from reflexarc.reflex.history import HistoryFeatures, Vocabulary
from reflexarc.reflex.ranking import MESSAGE as MESSAGE
from reflexarc.reflex.ranking import RankedCall as RankedCall
from reflexarc.reflex.ranking import Ranking as Ranking
from reflexarc.reflex.ranking import each_once
from reflexarc.reflex.sources import Argument, Sources, Tool
from reflexarc.reflex.standing import by_standing
from reflexarc.reflex.trail import OPEN, Moves
from reflexarc.reflex.trees import Forest

_MAX_TOOLS = 3
_MIN_TOOL_PROBABILITY = 0.03
_MIN_OF_BEST_TOOL = 0.1
_BEAM = 3
_HOPELESS = 0.01
ONLY_CANDIDATE = 0.97
"""How probable a value is taken to be that has no other beside it."""
_NO_CANDIDATE = 0.01
_MAX_FORMS = 4
_LEAST_OF_BEST = 0.15
_MAX_FILLED = 6


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


def filling_order(tool: Tool, form: Form) -> list[int]:
    """The holes of a form in the order they are filled: the surest first."""

    def best(at: int) -> float:
        slots = tool.holes[form.holes[at]].slots
        return slots[0].hit_rate if slots else 0.0

    return sorted(range(len(form.holes)), key=lambda at: (-best(at), at))


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
        self,
        sources: Sources,
        vocabulary: Vocabulary,
        tools: Forest,
        arguments: Forest,
        choice: ToolChoice,
        cues: Cues,
        forms: Forest,
    ) -> None:
        self.sources = sources
        self.vocabulary = vocabulary
        self.tool_forest = tools
        self.argument_forest = arguments
        self.choice = choice
        self.cues = cues
        self.form_forest = forms
        self._forms = {
            tool.name: (FormFeatures(tool, sources), Moves(tool.moves))
            for tool in sources.tools
            if tool.forms
        }
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
        made = _Lazily(self, context, offered)
        return Ranking(
            made.calls, self.classes, made.mended, made.message_probability, history=made.history
        )

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
        return self.ranked(context, probabilities, filled)

    def ranked(
        self,
        context: Context,
        probabilities: NDArray[np.float64],
        filled: Mapping[str, Sequence[RankedCall]],
    ) -> list[RankedCall]:
        """The calls of the likeliest tools, best first; `filled`: those filled already."""
        order = [int(at) for at in np.argsort(-probabilities, kind="stable") if at != MESSAGE]
        calls: list[RankedCall] = []
        best = float(probabilities[order[0]]) if order else 0.0
        least = min(_MIN_TOOL_PROBABILITY, _MIN_OF_BEST_TOOL * best)
        for at in order[:_MAX_TOOLS]:
            probability = float(probabilities[at])
            if probability < least and calls:
                break
            if probability <= 0.0:
                continue
            known = filled.get(self.classes[at])
            if known is None:
                calls += self.fill(context, self.classes[at], probability)
            else:
                calls += [call.with_tool(probability) for call in known]
        return by_standing(calls)

    def fill(
        self, context: Context, name: str, probability: float, leaving: Collection[str] = ()
    ) -> list[RankedCall]:
        """Calls of one tool, its arguments filled but for those left open."""
        tool = self.sources.by_name[name]
        if tool.forms and not leaving:
            return self._fill_forms(context, tool, probability)
        return self._fill_plainly(context, tool, probability, leaving)

    def filling(self, name: str, form: int) -> list[Argument]:
        """The arguments of a tool's calls in the order they are filled: the holes of a form, or
        those of a call that has none."""
        tool = self.sources.by_name[name]
        if form == OPEN:
            return list(tool.arguments)
        holes = tool.forms[form].holes
        return [tool.holes[holes[at]] for at in filling_order(tool, tool.forms[form])]

    def _fill_plainly(
        self, context: Context, tool: Tool, probability: float, leaving: Collection[str]
    ) -> list[RankedCall]:
        beams = [_Beam(1.0, 1.0, {}, {}, Chosen())]
        for argument in tool.arguments:
            if argument.name in leaving:
                continue
            candidates = enumerate_candidates(context, argument, self.sources.constants(argument))
            beams = self._extend(context, argument, candidates, beams)
        return [
            RankedCall(
                tool.name, probability, beam.probability, beam.least, beam.arguments, beam.chosen
            )
            for beam in beams
        ]

    def _fill_forms(self, context: Context, tool: Tool, probability: float) -> list[RankedCall]:
        """Calls of the likeliest forms, their holes filled."""
        features, moves = self._forms[tool.name]
        numbers = [*range(len(tool.forms)), OPEN]
        scores = self.form_forest.probabilities(features.matrix(context, None, moves.after))[:, 0]
        scores = scores / max(1e-9, float(scores.sum()))
        order = np.argsort(-scores, kind="stable")[:_MAX_FORMS]
        calls: list[RankedCall] = []
        for at in order:
            share = float(scores[at])
            if share < _LEAST_OF_BEST * float(scores[order[0]]):
                break
            number = numbers[int(at)]
            if number == OPEN:
                plain = self._fill_plainly(context, tool, probability, ())
                calls += [call.with_form(share) for call in plain]
            else:
                calls += self._fill_form(context, tool, number, probability, share)
        return each_once(calls)[:_MAX_FILLED]

    def _fill_form(
        self, context: Context, tool: Tool, number: int, probability: float, share: float
    ) -> list[RankedCall]:
        form = tool.forms[number]
        beams = [_Beam(share, share, {}, {}, Chosen())]
        for hole in self.filling(tool.name, number):
            candidates = enumerate_candidates(context, hole, self.sources.constants(hole))
            beams = self._extend(context, hole, candidates, beams)
            if not candidates:
                return []
        calls: list[RankedCall] = []
        for beam in beams:
            values = [beam.arguments[tool.holes[at].name] for at in form.holes]
            arguments = fill(form.leaves, values)
            calls.append(
                RankedCall(
                    tool.name, probability, beam.probability, beam.least, arguments, beam.chosen,
                    number,
                )
            )  # fmt: skip
        return calls

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
        order: list[list[int]] = np.argsort(-scores, axis=1, kind="stable")[:, :_BEAM].tolist()
        each: list[list[float]] = scores.tolist()
        extended = [
            (beam.probability * row[at], beam, at, row[at])
            for beam, row, best in zip(beams, each, order, strict=True)
            for at in best
        ]
        extended.sort(key=lambda one: -one[0])
        hopeless = _HOPELESS * extended[0][0]
        return [
            beam.then(argument, candidates[at], share)
            for probability, beam, at, share in extended[:_BEAM]
            if probability >= hopeless
        ]


class _Lazily:
    """What a ranking is made of, each worked out once it is asked for. It does not keep the context
    alive, which holds the ranking."""

    def __init__(
        self, predictor: Predictor, context: Context, offered: Collection[str] | None
    ) -> None:
        self._predictor = predictor
        self._context = ref(context)
        self._here = (context.event, context.length)
        self._offered = offered

    def _at(self) -> Context:
        context = self._context()
        if context is None or (context.event, context.length) != self._here:
            raise RuntimeError("calls are ranked before the context goes on")
        return context

    @cached_property
    def _counts(self) -> list[tuple[int, int]]:
        return self._predictor.features.counts(self._at())

    @cached_property
    def _vector(self) -> NDArray[np.float32]:
        return self._predictor.features.vector(self._at(), self._counts)

    @cached_property
    def _probabilities(self) -> NDArray[np.float64]:
        predictor = self._predictor
        probabilities = predictor.tool_forest.probabilities(self._vector[None, :])[0]
        if self._offered is None:
            return probabilities
        allowed = [True, *(name in self._offered for name in predictor.classes[1:])]
        probabilities = np.where(allowed, probabilities, 0.0)
        return probabilities / max(1e-9, float(probabilities.sum()))

    @cached_property
    def _mended(self) -> NDArray[np.float64]:
        return self._predictor.choice.pooled(self._at(), self._probabilities, self._counts)

    def history(self) -> NDArray[np.float32]:
        return self._vector

    def message_probability(self) -> float:
        return float(self._probabilities[MESSAGE])

    def mended(self) -> NDArray[np.float64]:
        return self._mended

    def calls(self) -> list[RankedCall]:
        return self._predictor.ranked(self._at(), self._mended, {})
