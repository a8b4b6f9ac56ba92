"""What stands in the record of the value that an argument takes, and in those of others: the word
"pending" speaks for an order to cancel, "delivered" against it.

Kept are hashes of (argument, word) with a weight: how much likelier a word is in the record of the
value taken than in the records of values that stood in the same places and were not taken. Counted
over tasks; what fewer than three showed is not kept. Words with digits are ids and amounts: none.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, cast

from reflexarc.provenance import Entry
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.associations import sign
from reflexarc.reflex.context import Context
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.steps import ToolCall

MAX_RECORD_CUES = 8_000
_PRIOR = 2.0
_OTHERS = 12
_SLOTS = 4
_PARTS = 4
_LONGEST_WORD = 20
_LEAST = 0.4
"""Weights nearer to nothing are not kept: half as likely again is the least that tells."""
_COMMON = 0.4
"""The share of tasks in which a word has to stand: what things are like, not what they are."""

Key = tuple[str, str]


def telling(words: Iterable[str]) -> list[str]:
    """The words of a record that may tell what it is like."""
    return [word for word in words if tells(word)]


def tells(word: str) -> bool:
    """Whether a word may tell what a record is like."""
    return len(word) <= _LONGEST_WORD and word.isalpha()


def record_sign(tool: str, argument: str, word: str) -> int:
    """The hash a word of a record is known by."""
    return sign(f"record|{tool}\x1f{argument}|{word}")


class RecordLearner:
    """Counts words of records over calls. While learning, `without` leaves a task's own out."""

    def __init__(self) -> None:
        # By task: in how many choices the record taken has the word, and which share of the others.
        self._counts: dict[tuple[Key, str], dict[str, list[float]]] = {}
        self._choices: defaultdict[Key, Counter[str]] = defaultdict(Counter)
        self._context: Context | None = None
        self._read = 0
        self._slots_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._by_slot: defaultdict[str, dict[str, Entry]] = defaultdict(dict)
        self._of_task: dict[str, list[tuple[Key, str]]] | None = None

    def observe(self, context: Context, call: ToolCall, task: str) -> None:
        """Count one recorded call, `context` being what stood before it."""
        self._update(context)
        for name, value in call.arguments.items():
            parts = cast("list[Any]", value)[:_PARTS] if isinstance(value, list) else [value]
            taken = {plain_text(part) for part in parts}
            for text in taken:
                for slot in list(self._slots_of.get(text, ()))[-_SLOTS:]:
                    here = self._by_slot[slot]
                    others = [entry for other, entry in here.items() if other not in taken]
                    if others:
                        self._count((call.name, name), here[text], others[-_OTHERS:], task)

    def _count(self, key: Key, taken: Entry, others: list[Entry], task: str) -> None:
        self._choices[key][task] += 1
        share = 1.0 / len(others)
        for word in telling(taken.record.words):
            self._counts.setdefault((key, word), {}).setdefault(task, [0.0, 0.0])[0] += 1.0
        for entry in others:
            for word in telling(entry.record.words):
                self._counts.setdefault((key, word), {}).setdefault(task, [0.0, 0.0])[1] += share

    def _update(self, context: Context) -> None:
        if self._context is not context:
            self._context, self._read = context, 0
            self._slots_of = defaultdict(dict)
            self._by_slot = defaultdict(dict)
        for entry in context.entries[self._read :]:
            if entry.record is not NO_RECORD:
                self._slots_of[entry.text][entry.slot] = None
                here = self._by_slot[entry.slot]
                here.pop(entry.text, None)
                here[entry.text] = entry
        self._read = len(context.entries)

    def take(self, other: "RecordLearner") -> None:
        """Count what another one counted over other tasks."""
        for known, tasks in other._counts.items():
            self._counts.setdefault(known, {}).update(tasks)
        for key, choices in other._choices.items():
            self._choices[key].update(choices)

    def finish(self) -> dict[int, float]:
        """The weights over all tasks, the strongest where there are too many."""
        found: list[tuple[float, str, str, str, float]] = []
        for (key, word), tasks in self._counts.items():
            weight = self._weight(key, tasks, None) if len(tasks) >= MIN_TASKS else None
            if weight is not None:
                found.append((-abs(weight), *key, word, weight))
        found.sort()
        return {
            record_sign(tool, argument, word): weight
            for _, tool, argument, word, weight in found[:MAX_RECORD_CUES]
        }

    def without(self, task: str, weights: Mapping[int, float]) -> dict[int, float | None]:
        """The weights that a task's own counts change; None: not kept without them."""
        if self._of_task is None:
            self._of_task = defaultdict(list)
            for known, tasks in self._counts.items():
                for one in tasks:
                    self._of_task[one].append(known)
        changed: dict[int, float | None] = {}
        for key, word in self._of_task.get(task, ()):
            where = record_sign(*key, word)
            if where in weights:
                changed[where] = self._weight(key, self._counts[key, word], task)
        return changed

    def _weight(
        self, key: Key, tasks: Mapping[str, list[float]], without: str | None
    ) -> float | None:
        """The logarithm of how much likelier a word is in the record taken; None: it tells too
        little, or too few tasks showed it."""
        choices = self._choices[key]
        shown, every = len(tasks) - (without in tasks), len(choices) - (without in choices)
        if shown < max(MIN_TASKS, _COMMON * every):
            return None
        right = wrong = _PRIOR
        for task, (taken, others) in tasks.items():
            if task != without:
                right += taken / choices[task]
                wrong += others / choices[task]
        weight = math.log(right / wrong)
        return weight if abs(weight) >= _LEAST else None
