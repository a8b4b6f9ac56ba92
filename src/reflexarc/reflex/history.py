"""What decides which tool comes next, as numbers: recent events, words, values not used yet."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.context import Context
from reflexarc.reflex.private import Private
from reflexarc.reflex.sources import Sources

_LAGS = 5
_MAX_WORDS = 600
_MIN_TASKS = 4
_MIN_TASK_SHARE = 0.02
_MAX_SHARE = 0.95
_COUNTED_TOOLS = 30
_PRIMARY_SLOTS = 3
_YES = ("yes", "yes,", "yes.", "yep", "sure", "yeah", "please", "correct")
_RECENT = (
    "names_in_output", "names_mentioned", "words_mentioned", "calls_since_user", "user_turns",
    "user_length", "assistant_length", "output_length", "events_so_far", "user_agrees",
    "assistant_asks", "assistant_confirms", "assistant_yes", "tools_called",
)  # fmt: skip
"""The columns of `HistoryFeatures._recent` after the lags."""
FIELDS = ("user", "assistant", "output", "events")


def event_grams(symbols: list[str]) -> list[str]:
    """The last events as words: each by its lag, and the last two and three together."""
    recent = symbols[-_LAGS:][::-1]
    grams = [f"{lag}:{symbol}" for lag, symbol in enumerate(recent[:3])]
    if len(recent) >= 2:
        grams.append("2>" + "|".join(recent[:2]))
    if len(recent) >= 3:
        grams.append("3>" + "|".join(recent[:3]))
    return grams


def field_words(context: Context) -> tuple[Iterable[str], ...]:
    """The words of each field of the vocabulary."""
    return (
        context.user.words,
        context.assistant.words,
        context.output_words,
        event_grams(context.symbols),
    )


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words and events that are features, and the tools whose counts are."""

    symbols: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    tools: tuple[str, ...]


class VocabularyLearner:
    """Collects words by task; `finish()` keeps those of enough tasks that are not everywhere, and
    not what is personal or a secret."""

    def __init__(self, private: Private) -> None:
        self._private = private
        self._tasks: tuple[defaultdict[str, set[str]], ...] = tuple(
            defaultdict[str, set[str]](set) for _ in FIELDS
        )
        self._counts: tuple[Counter[str], ...] = tuple(Counter[str]() for _ in FIELDS)
        self._symbols: set[str] = set()
        self._all_tasks: set[str] = set()
        self._items = 0

    def observe(self, context: Context, task: str) -> None:
        self._items += 1
        self._all_tasks.add(task)
        self._symbols.update(context.symbols[-_LAGS:])
        for words, tasks, counts in zip(
            field_words(context), self._tasks, self._counts, strict=True
        ):
            for word in words:
                tasks[word].add(task)
                counts[word] += 1

    def take(self, other: "VocabularyLearner") -> None:
        """Count what another one counted over other tasks."""
        self._items += other._items
        self._all_tasks |= other._all_tasks
        self._symbols |= other._symbols
        for tasks, others in zip(self._tasks, other._tasks, strict=True):
            for word, of_word in others.items():
                tasks[word] |= of_word
        for counts, others in zip(self._counts, other._counts, strict=True):
            counts.update(others)

    def finish(self, sources: Sources) -> Vocabulary:
        enough = max(_MIN_TASKS, _MIN_TASK_SHARE * len(self._all_tasks))
        kept: list[tuple[str, ...]] = []
        for tasks, counts in zip(self._tasks, self._counts, strict=True):
            ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            frequent = [
                word
                for word, count in ranked
                if len(tasks[word]) >= enough
                and count < _MAX_SHARE * self._items
                and not self._private.word(word, len(tasks[word]))
            ]
            kept.append(tuple(frequent[:_MAX_WORDS]))
        tools = tuple(tool.name for tool in sources.tools[:_COUNTED_TOOLS])
        symbols = sorted(
            symbol
            for symbol in self._symbols
            if not (tool := symbol.partition(":")[2]) or not self._private.tool(tool)
        )
        return Vocabulary(tuple(symbols), tuple(kept), tools)


class HistoryFeatures:
    """Turns a context into the vector the tool forest reads."""

    def __init__(self, vocabulary: Vocabulary, sources: Sources) -> None:
        self.vocabulary = vocabulary
        self._symbols = {symbol: at for at, symbol in enumerate(vocabulary.symbols)}
        self._tools = tuple(
            (
                name,
                tool.arguments[0].name if (tool := sources.by_name[name]).arguments else None,
                tuple(
                    slot.name
                    for slot in (tool.arguments[0].slots[:_PRIMARY_SLOTS] if tool.arguments else ())
                    if slot.name.startswith(("out:", "kv:"))
                ),
            )
            for name in vocabulary.tools
        )
        self.dense = _LAGS + len(_RECENT) + 3 * len(self._tools)
        # So many columns come first that are no words.
        offset = self.dense
        self._columns: list[dict[str, int]] = []
        for words in vocabulary.words:
            self._columns.append({word: offset + at for at, word in enumerate(words)})
            offset += len(words)
        self.width = offset

    def vector(
        self, context: Context, counts: Sequence[tuple[int, int]] | None = None
    ) -> NDArray[np.float32]:
        """(width,) features of what would be decided now; `counts`: what `counts()` gives, where
        it was asked already."""
        if counts is None:
            counts = self.counts(context)
        dense = self._recent(context)
        for (name, _, _), (known, unused) in zip(self._tools, counts, strict=True):
            dense += [context.tool_counts.get(name, 0), known, unused]
        vector = np.zeros(self.width, dtype=np.float32)
        vector[: len(dense)] = dense
        hot = [
            column
            for words, columns in zip(field_words(context), self._columns, strict=True)
            for word in words
            if (column := columns.get(word)) is not None
        ]
        vector[hot] = 1.0
        return vector

    def names(self) -> tuple[str, ...]:
        """What stands in each column of `vector`, in its order (`feature_words.py` says it in the
        words of people)."""
        dense = [f"lag:{lag}" for lag in range(_LAGS)] + list(_RECENT)
        for name, _, _ in self._tools:
            dense += [f"{what}:{name}" for what in ("called", "known", "unused")]
        words = [
            f"{field}:{word}"
            for field, of_field in zip(FIELDS, self.vocabulary.words, strict=True)
            for word in of_field
        ]
        return (*dense, *words)

    def counts(self, context: Context) -> list[tuple[int, int]]:
        """Known and unused values of the first argument of each counted tool."""
        return [
            (0, 0) if argument is None or not slots else context.available(name, argument, slots)
            for name, argument, slots in self._tools
        ]

    def _recent(self, context: Context) -> list[float]:
        recent: list[float] = [
            self._symbols.get(symbol, -1) for symbol in context.symbols[-_LAGS:][::-1]
        ]
        recent += [-2.0] * (_LAGS - len(recent))
        user, assistant = context.user, context.assistant
        first = user.lower.split(maxsplit=1)[:1]
        tail = assistant.lower[-300:]
        recent += [
            context.names_in_output,
            context.names_mentioned,
            context.words_mentioned,
            context.calls_since_user,
            context.user_turns,
            math.log1p(len(user.text)),
            math.log1p(len(assistant.text)),
            math.log1p(len(context.output_text)),
            len(context.symbols),
            bool(first) and first[0].rstrip("!") in _YES,
            "?" in tail,
            "confirm" in tail,
            "(yes" in assistant.lower,
            len(context.tool_counts),
        ]
        return recent
