"""Learning which tool fits what was said: words of schemas, counts over tasks, then the forest."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance.stems import name_stems, stems
from reflexarc.reflex.associations import (
    MAX_SIGNS,
    MAX_WEIGHTS,
    Associations,
    Table,
    Weighed,
    Weights,
    sign,
    table_of,
)
from reflexarc.reflex.boosting import train
from reflexarc.reflex.choice import (
    FEATURES,
    Evidence,
    ToolChoice,
    ToolFit,
    events_of,
    shown_of,
    words_of,
)
from reflexarc.reflex.context import Context
from reflexarc.reflex.trees import Forest
from reflexarc.steps import ToolSpec

_COUNTED = ("said", "events", "shown")
_NEGATIVES = 12
_DESCRIPTION_CHARS = 600
_ARGUMENT_CHARS = 200
_TREES: dict[str, Any] = {
    "objective": "binary",
    "num_leaves": 16,
    "learning_rate": 0.08,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.7,
    "lambda_l2": 3.0,
}
_ROUNDS = 100


class _Without(Evidence):
    """What other tasks than one say."""

    def __init__(
        self, tables: Mapping[str, Table], counted: Mapping[str, Weighed], task: str
    ) -> None:
        super().__init__(tables)
        self._counted = counted
        self._task = task

    def found(self, name: str, signs: Sequence[int]) -> Weights:
        return self._counted[name].found(signs, self._task)

    def sums(self, name: str, groups: Sequence[Sequence[int]]) -> tuple[Weights, list[int]]:
        counted = self._counted.get(name)
        return super().sums(name, groups) if counted is None else counted.sums(groups, self._task)


class ChoiceCounts:
    """What was said and done where each tool was called, by task: counted once for all learners,
    each of which takes some of the tasks."""

    def __init__(self) -> None:
        self._counted = {name: Associations() for name in _COUNTED}

    def observe(self, context: Context, tool: str, task: str) -> None:
        """Count one recorded call, `context` being what stood before it."""
        self._counted["said"].observe(words_of(context.user.text), tool, task)
        self._counted["events"].observe(events_of(context), tool, task)
        shown = shown_of(context)
        if shown:
            self._counted["shown"].observe(shown, tool, task)

    def of(self, tools: Sequence[str], tasks: Collection[str]) -> dict[str, Weighed]:
        """The counts of these tools in these tasks."""
        return {name: counted.weighed(tools, tasks) for name, counted in self._counted.items()}


class ChoiceLearner:
    """`add` over items, then `finish`."""

    def __init__(
        self, tools: Sequence[str], specs: Mapping[str, ToolSpec], counted: Mapping[str, Weighed]
    ) -> None:
        self._at = {name: at for at, name in enumerate(tools)}
        self._counted = counted
        named, described = _schema_tables(tools, specs)
        tables = {name: weighed.table for name, weighed in counted.items()}
        self._fit = ToolFit(
            tools, {"name": named, "text": described, **tables}, counted["events"].prior()
        )
        self._random = np.random.default_rng(3)
        self._rows: list[Weights] = []
        self._right: list[NDArray[np.bool_]] = []
        self._evidence: Evidence | None = None
        self._task: str | None = None

    def add(
        self, context: Context, tool: str, task: str, allowed: NDArray[np.bool_],
        counts: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        """Rows of one recorded call: its tool, the likeliest others, some at random."""
        if task != self._task or self._evidence is None:
            self._task = task
            self._evidence = _Without(self._fit.tables, self._counted, task)
        at = self._at[tool]
        allowed = allowed.copy()
        allowed[at] = True
        rows = self._fit.rows(context, allowed, counts, self._evidence)
        kept = self._random.random(len(rows)) < min(1.0, _NEGATIVES / len(rows))
        kept[self._fit.shortlist(rows, allowed)] = True
        kept &= allowed
        kept[at] = True
        right = np.zeros(len(rows), dtype=np.bool_)
        right[at] = True
        self._rows.append(rows[kept])
        self._right.append(right[kept])

    def finish(self) -> ToolChoice:
        """The score, with a forest over all rows added."""
        return ToolChoice(self._fit, self._forest())

    def _forest(self) -> Forest:
        """One that knows nothing where there are no rows."""
        if not self._rows:
            rows = np.zeros((2, len(FEATURES)), dtype=np.float32)
            return train(rows, np.array([0, 1]), _TREES, 1)
        return train(np.concatenate(self._rows), np.concatenate(self._right), _TREES, _ROUNDS)


def _schema_tables(tools: Sequence[str], specs: Mapping[str, ToolSpec]) -> tuple[Table, Table]:
    """Words of the tools' names; those and words of descriptions, arguments and enumerations. A
    word weighs the less the more tools have it."""
    names = [set(name_stems(name)) for name in tools]
    texts = [
        named | (_described(specs[name]) if name in specs else set[str]())
        for name, named in zip(tools, names, strict=True)
    ]
    shared = Counter(word for words in texts for word in words)
    rare = {word: math.log(1 + len(tools) / tools_with) for word, tools_with in shared.items()}
    return _by_word(names, rare), _by_word(texts, rare)


def _by_word(words_of_tools: Sequence[set[str]], rare: Mapping[str, float]) -> Table:
    weights: defaultdict[int, Weights] = defaultdict(
        lambda: np.zeros(len(words_of_tools), dtype=np.float32)
    )
    most = max(1, min(MAX_SIGNS, MAX_WEIGHTS // len(words_of_tools)))
    kept = set(sorted(rare, key=lambda word: (-rare[word], word))[:most])
    for at, words in enumerate(words_of_tools):
        length = math.sqrt(sum(rare[word] ** 2 for word in words)) or 1.0
        for word in words & kept:
            weights[sign(word)][at] = rare[word] ** 2 / length
    return table_of(dict(weights), len(words_of_tools))


def _described(spec: ToolSpec) -> set[str]:
    words = set(stems(spec.description[:_DESCRIPTION_CHARS], 80))
    properties = spec.parameters.get("properties")
    if not isinstance(properties, dict):
        return words
    for name, value in cast("dict[str, Any]", properties).items():
        words.update(name_stems(name))
        if isinstance(value, dict):
            schema = cast("dict[str, Any]", value)
            words.update(stems(str(schema.get("description", ""))[:_ARGUMENT_CHARS], 30))
            enumerated = schema.get("enum")
            for one in cast("list[Any]", enumerated)[:50] if isinstance(enumerated, list) else ():
                words.update(stems(str(one), 6))
    return words
