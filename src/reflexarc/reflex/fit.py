"""Fits a predictor to recorded sessions: sources and vocabulary first, then the two forests."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.argument_features import FEATURES, Chosen, argument_matrix, link_columns
from reflexarc.reflex.boosting import train
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
from reflexarc.reflex.replay import replay
from reflexarc.reflex.schema_choices import common_choices
from reflexarc.reflex.source_learning import SourceLearner
from reflexarc.reflex.sources import Argument, Sources
from reflexarc.reflex.trail import OPEN, MoveLearner
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Session, ToolCall
from reflexarc.steps.errors import LearnError

_NEGATIVES = 40
MAX_ITEMS = 30_000
"""Items a predictor is trained on; of more, a random share (memory: about 6 kB an item). What
stands where, and which words occur, is still counted over all of them."""
_FEW_CLASSES = 20
_TOOL_TREES: dict[str, Any] = {
    "num_leaves": 16,
    "learning_rate": 0.08,
    "min_data_in_leaf": 10,
    # By node: to draw the columns of each tree, lightgbm copies them, which takes most of the time.
    "feature_fraction_bynode": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 2.0,
    "max_bin": 63,
}
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


def fit_predictor(
    sessions: Sequence[Session],
    thinking: Collection[str],
    private: Private,
) -> Predictor:
    """Learn which call comes next. `thinking` names the tools that only record a thought;
    `private` is what must not be kept."""
    return fits([sessions], thinking, private)[0].predictor()


def fits(
    groups: Sequence[Sequence[Session]], thinking: Collection[str], private: Private
) -> list["Fit"]:
    """One fit for each group of whole tasks, counted over its sessions. Groups share most sessions
    (all folds but one): every session is read once for all of them."""
    counts = ChoiceCounts()
    found = [Fit(sessions, thinking, private, counts) for sessions in groups]
    watching: dict[int, list[Fit]] = {}
    sessions = {id(session): session for group in groups for session in group}
    for fit in found:
        for session in fit.sessions:
            watching.setdefault(id(session), []).append(fit)
    for identity, session in sessions.items():
        for context, item in replay(session):
            call = item.recorded
            if call is not None and call.name in thinking:
                call = None
            if call is not None:
                counts.observe(context, call.name, session.task)
            for fit in watching[identity]:
                fit.observe(context, call, session.task)
    return found


class Fit:
    """What was counted over a group of sessions, and the predictor that it makes."""

    def __init__(
        self,
        sessions: Sequence[Session],
        thinking: Collection[str],
        private: Private,
        counts: ChoiceCounts,
    ) -> None:
        """`counts` are shared between fits: each takes those of its own tasks."""
        self.sessions = sessions
        self._thinking = thinking
        self._counts = counts
        self._specs = {tool.name: tool for session in sessions for tool in session.tools}
        forms = learn_forms(sessions, thinking, private)
        self._sources = SourceLearner(private, common_choices(sessions), forms)
        self._vocabulary = VocabularyLearner(private)
        self._cues = CueLearner()
        self._items = 0

    def observe(self, context: Context, call: ToolCall | None, task: str) -> None:
        """Count one item, `context` being what stood before it; `call` is None for a message."""
        self._items += 1
        if call is not None:
            self._sources.observe(context, call, task)
            self._cues.observe(context, call, task)
        self._vocabulary.observe(context, task)

    def predictor(self) -> Predictor:
        """Learned from all that was observed, and from the sessions once more. Raises LearnError
        where no tool was called often enough."""
        sources = self._sources.finish()
        if not sources.tools:
            raise LearnError(
                "no tool was called three times or more in these sessions: nothing can be learned"
            )
        vocabulary = self._vocabulary.finish(sources)
        features = HistoryFeatures(vocabulary, sources)
        names = tuple(tool.name for tool in sources.tools)
        tasks = {session.task for session in self.sessions}
        choice = ChoiceLearner(names, self._specs, self._counts.of(names, tasks))
        cues = self._cues.finish()
        rows = _Rows(sources, features, choice, self._sources.moves)
        drawn = np.random.default_rng(1)
        for session in self.sessions:
            allowed = offered_mask(names, {tool.name for tool in offered_tools(session)})
            without = self._cues.without(session.task, cues)
            for context, item in replay(session):
                if self._items > MAX_ITEMS and drawn.random() >= MAX_ITEMS / self._items:
                    continue
                call = item.recorded
                if call is not None and call.name in self._thinking:
                    call = None
                rows.add(context, call, session.task, allowed, without)
        return Predictor(
            sources, vocabulary, rows.tool_forest(), rows.argument_forest(), choice.finish(), cues,
            rows.form_forest(),
        )  # fmt: skip


class _Rows:
    """Training rows of both forests, gathered in one pass."""

    def __init__(
        self,
        sources: Sources,
        features: HistoryFeatures,
        choice: ChoiceLearner,
        moves: MoveLearner,
    ) -> None:
        self.sources = sources
        self.choice = choice
        self.features = features
        self._class = {tool.name: at + 1 for at, tool in enumerate(sources.tools)}
        self._vectors: list[NDArray[np.float32]] = []
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

    def add(
        self, context: Context, call: ToolCall | None, task: str, allowed: NDArray[np.bool_],
        cues: Cues,
    ) -> None:  # fmt: skip
        if call is not None and call.name not in self._class:
            return
        counts = self.features.counts(context)
        self._vectors.append(self.features.vector(context, counts))
        self._classes.append(self._class[call.name] if call is not None else 0)
        if call is not None:
            self.choice.add(context, call.name, task, allowed, counts)
            self._add_arguments(context, call, task, cues)

    def _add_arguments(self, context: Context, call: ToolCall, task: str, cues: Cues) -> None:
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
                self._add_values(
                    context, [(tool.holes[holes[at]], found[1][at]) for at in order], task, cues
                )
                return
        self._add_values(
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
    ) -> None:
        chosen = Chosen()
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

    def form_forest(self) -> Forest:
        if not self._form_rows:
            features = np.zeros((2, len(FORM_FEATURES)), dtype=np.float32)
            return train(features, np.array([0, 1]), _FORM_TREES, 1)
        rows, right = np.concatenate(self._form_rows), np.concatenate(self._form_right)
        return train(rows, right, _FORM_TREES, _FORM_ROUNDS)

    def tool_forest(self) -> Forest:
        count = len(self._class) + 1
        parameters = {**_TOOL_TREES, "objective": "multiclass", "num_class": count}
        rounds = 80 if count <= _FEW_CLASSES else 40
        return train(np.stack(self._vectors), np.array(self._classes), parameters, rounds)

    def argument_forest(self) -> Forest:
        if not self._matrices:
            features = np.zeros((2, len(FEATURES)), dtype=np.float32)
            return train(features, np.array([0, 1]), _ARGUMENT_TREES, 1)
        features = np.concatenate(self._matrices)
        return train(features, np.concatenate(self._right), _ARGUMENT_TREES, _ARGUMENT_ROUNDS)
