"""Fits a predictor to recorded sessions: sources and vocabulary first, then the two forests."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.argument_features import FEATURES, Chosen, argument_matrix, link_columns
from reflexarc.reflex.batches import EndLearner
from reflexarc.reflex.boosting import HISTORY_TREES, train
from reflexarc.reflex.candidates import (
    ABSENT,
    ABSENT_TEXT,
    ABSENT_VALUE,
    COPIED,
    Candidate,
    enumerate_candidates,
)
from reflexarc.reflex.choice import offered_mask
from reflexarc.reflex.choice_learning import ChoiceCounts, ChoiceLearner
from reflexarc.reflex.context import Context
from reflexarc.reflex.cues import CueLearner, Cues
from reflexarc.reflex.form_learning import learn_forms
from reflexarc.reflex.form_ranking import FEATURES as FORM_FEATURES
from reflexarc.reflex.form_ranking import FormFeatures
from reflexarc.reflex.history import HistoryFeatures, VocabularyLearner
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.predictor import Predictor, filling_order
from reflexarc.reflex.private import Private
from reflexarc.reflex.replay import Replay, replay
from reflexarc.reflex.schema_choices import common_choices, common_examples, parameter_names
from reflexarc.reflex.slot_index import SlotIndex
from reflexarc.reflex.source_learning import SourceLearner
from reflexarc.reflex.sources import Argument, Sources
from reflexarc.reflex.telling import dense_rows, telling_columns
from reflexarc.reflex.trail import OPEN, MoveLearner
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Item, Session, ToolCall
from reflexarc.steps.errors import LearnError

_NEGATIVES = 40
MAX_ITEMS = 30_000
"""Items a predictor is trained on; of more, a random share (memory: about 6 kB an item). What
stands where, and which words occur, is still counted over all of them."""
_FEW_CLASSES = 20
_TOOL_TREES: dict[str, Any] = {**HISTORY_TREES, "objective": "multiclass", "learning_rate": 0.105}
_TOOL_ROUNDS = 60
"""Of up to 20 classes, each of which grows a tree a round."""
_ARGUMENT_TREES: dict[str, Any] = {
    "objective": "binary",
    "num_leaves": 16,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.8,
    "lambda_l2": 2.0,
}
_ARGUMENT_ROUNDS = 150
_FORM_TREES: dict[str, Any] = {
    "objective": "binary",
    "num_leaves": 16,
    "learning_rate": 0.08,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.6,
    "lambda_l2": 2.0,
}
_FORM_ROUNDS = 150


class Learned(NamedTuple):
    """A predictor, and where batches of calls end (None: they are of one call)."""

    predictor: Predictor
    ends: Forest | None


def fit_predictor(
    sessions: Sequence[Session],
    thinking: Collection[str],
    private: Private,
) -> Predictor:
    """Learn which call comes next. `thinking` names the tools that only record a thought;
    `private` is what must not be kept."""
    return next(fit_predictors(sessions, [()], thinking, private)).predictor


def fit_predictors(
    sessions: Sequence[Session],
    left_out: Sequence[Collection[str]],
    thinking: Collection[str],
    private: Private,
    reading: Replay = replay,
    again: Replay = replay,
    at_once: int = MAX_ITEMS,
) -> Iterator[Learned]:
    """A predictor for each collection of tasks that it leaves out. They share most sessions: each
    is counted once, and read once more to make rows for all of them, or for as many at a time as
    have `at_once` items together. `reading` replays a session, and is asked for each once, in
    order, before the first predictor is there; `again` replays it for rows. Raises LearnError
    where no tool was called often enough."""
    fits = [
        _Fit([session for session in sessions if session.task not in out], thinking, private)
        for out in left_out
    ]
    watching = [
        tuple(at for at, out in enumerate(left_out) if session.task not in out)
        for session in sessions
    ]
    counts = ChoiceCounts()
    named = frozenset(
        name for session in sessions for tool in session.tools for name in parameter_names(tool)
    )
    parts = {group: _Counts(private, named) for group in watching}
    for session, group in zip(sessions, watching, strict=True):
        for context, item in reading(session):
            call = _called(item, thinking)
            index = parts[group].observe(context, call, session.task)
            if call is not None and index is not None:
                counts.observe(context, call.name, session.task)
                for at in group:
                    fits[at].sources.observe_form(call, session.task, index)
    for at, fit in enumerate(fits):
        fit.count([part for group, part in parts.items() if at in group], counts)
    parts.clear()
    together = max(1, at_once // max([1, *(fit.items for fit in fits)]))
    for first in range(0, len(fits), together):
        here = range(first, min(first + together, len(fits)))
        for session, group in zip(sessions, watching, strict=True):
            reads = [fits[at] for at in group if at in here]
            for fit in reads:
                fit.begin(session)
            for context, item in again(session) if reads else ():
                call = _called(item, thinking)
                for fit in reads:
                    fit.add(context, call, session.task, ends=item.is_last)
        for at in here:
            yield fits[at].learned()


def _called(item: Item, thinking: Collection[str]) -> ToolCall | None:
    """The call of an item; None for a message or a thought."""
    call = item.recorded
    return None if call is not None and call.name in thinking else call


class _Counts:
    """What is counted over sessions that the same predictors learn from."""

    def __init__(self, private: Private, named: Collection[str]) -> None:
        """`named`: how the tools' arguments are called."""
        self.items = 0
        self.sources = SourceLearner(private, named=named)
        self.vocabulary = VocabularyLearner(private)
        self.cues = CueLearner()

    def observe(self, context: Context, call: ToolCall | None, task: str) -> SlotIndex | None:
        """Count one item, `context` being what stood before it; what stands where, if `call` is
        one."""
        self.items += 1
        self.vocabulary.observe(context, task)
        if call is None:
            return None
        self.cues.observe(context, call, task)
        return self.sources.observe(context, call, task)


class _Fit:
    """What one predictor learns from some of the sessions: `count`, then `begin` each session and
    `add` its items, then `learned`."""

    def __init__(
        self, sessions: Sequence[Session], thinking: Collection[str], private: Private
    ) -> None:
        self.items = 0
        self.sources = SourceLearner(
            private,
            common_choices(sessions),
            learn_forms(sessions, thinking, private),
            examples=common_examples(sessions),
        )
        self._private = private
        self._specs = {tool.name: tool for session in sessions for tool in session.tools}
        self._tasks = {session.task for session in sessions}
        self._drawn = np.random.default_rng(1)
        self._ends = EndLearner(sessions)

    def count(self, parts: Sequence[_Counts], counts: ChoiceCounts) -> None:
        """Take what was counted over the sessions that this one learns from."""
        vocabulary, cues = VocabularyLearner(self._private), CueLearner()
        for part in parts:
            self.items += part.items
            self.sources.take(part.sources)
            vocabulary.take(part.vocabulary)
            cues.take(part.cues)
        sources = self.sources.finish()
        if not sources.tools:
            raise LearnError(
                "no tool was called three times or more in these sessions: nothing can be learned"
            )
        self._names = tuple(tool.name for tool in sources.tools)
        self._vocabulary = vocabulary.finish(sources)
        self._cue_counts, self._cues = cues, cues.finish()
        choice = ChoiceLearner(self._names, self._specs, counts.of(self._names, self._tasks))
        features = HistoryFeatures(self._vocabulary, sources)
        self._rows = _Rows(sources, features, choice, self.sources.moves, self._ends)

    def begin(self, session: Session) -> None:
        """The items that are added next are of this session."""
        self._allowed = offered_mask(self._names, {tool.name for tool in offered_tools(session)})
        self._without = self._cue_counts.without(session.task, self._cues)

    def add(self, context: Context, call: ToolCall | None, task: str, *, ends: bool) -> None:
        """Rows of one item; of too many, a random share. `ends`: no further call of its batch
        follows."""
        if self.items > MAX_ITEMS and self._drawn.random() >= MAX_ITEMS / self.items:
            return
        self._rows.add(context, call, task, self._allowed, self._without, ends=ends)

    def learned(self) -> Learned:
        """Learned from the rows, which are forgotten."""
        rows = self._rows
        del self._rows
        predictor = Predictor(
            rows.sources, self._vocabulary, rows.tool_forest(), rows.argument_forest(),
            rows.choice.finish(), self._cues, rows.form_forest(),
        )  # fmt: skip
        return Learned(predictor, self._ends.finish(rows.features.width))


class _Rows:
    """Training rows of both forests, gathered in one pass."""

    def __init__(
        self,
        sources: Sources,
        features: HistoryFeatures,
        choice: ChoiceLearner,
        moves: MoveLearner,
        ends: EndLearner,
    ) -> None:
        self.sources = sources
        self.choice = choice
        self.features = features
        self._class = {tool.name: at + 1 for at, tool in enumerate(sources.tools)}
        self._vectors: list[tuple[NDArray[np.uint16], NDArray[np.float32]]] = []
        self._classes: list[int] = []
        self._matrices: list[NDArray[np.float32]] = []
        self._right: list[NDArray[np.bool_]] = []
        self._random = np.random.default_rng(0)
        self._moves = moves
        self._forms = {
            tool.name: FormFeatures(tool, sources) for tool in sources.tools if tool.forms
        }
        self._form_rows: list[NDArray[np.float32]] = []
        self._form_right: list[NDArray[np.bool_]] = []
        self._ends = ends

    def add(
        self, context: Context, call: ToolCall | None, task: str, allowed: NDArray[np.bool_],
        cues: Cues, ends: bool,
    ) -> None:  # fmt: skip
        """`ends`: whether the call is the last of its batch."""
        if call is not None and call.name not in self._class:
            return
        counts = self.features.counts(context)
        vector = self.features.vector(context, counts)
        places = vector.nonzero()[0].astype(np.uint16)  # most of it is nothing
        self._vectors.append((places, vector[places]))
        self._classes.append(self._class[call.name] if call is not None else 0)
        if call is not None:
            self.choice.add(context, call.name, task, allowed, counts)
            form, chosen = self._add_arguments(context, call, task, cues)
            tool = self._class[call.name]
            self._ends.add(context, self._vectors[-1], call, tool, form, chosen, ends)

    def _add_arguments(
        self, context: Context, call: ToolCall, task: str, cues: Cues
    ) -> tuple[int, dict[str, Candidate]]:
        tool = self.sources.by_name[call.name]
        if tool.forms:
            found = self.sources.forms[call.name].find(call.arguments)
            form = found[0] if found is not None else OPEN
            numbers = [*self.sources.form_numbers(call.name, without=task), OPEN]
            if form in numbers:
                self._add_form(context, call.name, form, numbers, task)
            if found is not None:
                holes = tool.forms[form].holes
                order = filling_order(tool, tool.forms[form])
                values = [(tool.holes[holes[at]], found[1][at]) for at in order]
                return form, self._add_values(context, values, task, cues)
        return OPEN, self._add_values(
            context,
            [
                (argument, call.arguments.get(argument.name, ABSENT_VALUE))
                for argument in tool.arguments
            ],
            task,
            cues,
        )

    def _add_form(
        self, context: Context, tool: str, form: int, numbers: list[int], task: str
    ) -> None:
        def after(key: int) -> Counter[int] | None:
            return self._moves.after(tool, key, task)

        self._form_rows.append(self._forms[tool].matrix(context, numbers, after))
        self._form_right.append(np.array([number == form for number in numbers], dtype=np.bool_))

    def _add_values(
        self, context: Context, values: Sequence[tuple[Argument, Any]], task: str, cues: Cues
    ) -> dict[str, Candidate]:
        """Returns what each argument was filled with."""
        chosen = Chosen()
        filled: dict[str, Candidate] = {}
        for argument, value in values:
            constants = self.sources.constants(argument, without=task)
            candidates = enumerate_candidates(context, argument, constants)
            text = ABSENT_TEXT if value is ABSENT_VALUE else plain_text(value)
            right = np.array([candidate.text == text for candidate in candidates], dtype=np.bool_)
            taken = next(
                (one for one in candidates if one.text == text),
                Candidate(value, text, ABSENT if value is ABSENT_VALUE else COPIED),
            )
            if len(candidates) > 1 and right.any():
                matrix = argument_matrix(context, argument, candidates, cues)
                matrix = link_columns(matrix, context, candidates, chosen)
                kept = right | (self._random.random(len(right)) < min(1.0, _NEGATIVES / len(right)))
                self._matrices.append(matrix[kept])
                self._right.append(right[kept])
            chosen = chosen.then(taken)
            filled[argument.name] = taken
        return filled

    def form_forest(self) -> Forest:
        if not self._form_rows:
            features = np.zeros((2, len(FORM_FEATURES)), dtype=np.float32)
            return train(features, np.array([0, 1]), _FORM_TREES, 1)
        rows, right = np.concatenate(self._form_rows), np.concatenate(self._form_right)
        return train(rows, right, _FORM_TREES, _FORM_ROUNDS)

    def tool_forest(self) -> Forest:
        count = len(self._class) + 1
        parameters = {**_TOOL_TREES, "num_class": count}
        rounds = _TOOL_ROUNDS if count <= _FEW_CLASSES else _TOOL_ROUNDS // 2
        classes, width = np.array(self._classes), self.features.width
        columns = telling_columns(
            self._vectors, classes, width,
            always=self.features.dense, least=HISTORY_TREES["min_data_in_leaf"],
        )  # fmt: skip
        vectors = dense_rows(self._vectors, columns, width)
        return train(vectors, classes, parameters, rounds).over(columns, width)

    def argument_forest(self) -> Forest:
        if not self._matrices:
            features = np.zeros((2, len(FEATURES)), dtype=np.float32)
            return train(features, np.array([0, 1]), _ARGUMENT_TREES, 1)
        features = np.concatenate(self._matrices)
        return train(features, np.concatenate(self._right), _ARGUMENT_TREES, _ARGUMENT_ROUNDS)
