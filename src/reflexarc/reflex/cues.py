"""The words a user's value stands between, and which argument they speak for: "from SFO to LAX".

Kept are hashes of (argument, word) with a weight: how much likelier the word stands there before
(or after) the argument's value than before any word of a user. Counted over tasks; what fewer than
three showed is not kept.
"""

import math
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from reflexarc.provenance import Entry, Origin, Record
from reflexarc.provenance.stems import name_stems, stem
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.associations import sign
from reflexarc.reflex.context import Context
from reflexarc.reflex.record_cues import RecordLearner, record_sign, tells
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.steps import ToolCall

MAX_CUES = 20_000
MAX_WORDS = 4_000
_LONGEST_WORD = 30
NONE = -9.0
"""Of a value that stands in no message of a user."""
_PRIOR = 3.0
_LEFT, _RIGHT = 60, 30
_TRIES = 4
_WORD = re.compile(r"\w+")
_MAX_TOKENS = 200
_MOST_KNOWN = 2_000
"""Words an argument remembers the weights of."""

Key = tuple[str, str]


class Place:
    """The words around a value: `left` of one and of two words, `right` of one; the stems of the
    last words before it."""

    __slots__ = ("before", "cues")

    def __init__(self, cues: tuple[str, str, str], before: frozenset[str]) -> None:
        self.cues = cues
        self.before = before


_NOWHERE = Place(("", "", ""), frozenset())


def place_of(entry: Entry) -> Place:
    """Where a value stands in the message it came from, worked out once."""
    origin = entry.origin
    text = entry.text
    key = (text, entry.at)
    found = origin.places.get(key)
    if found is None:
        at = entry.at
        end = 0
        if at < 0:
            at = _find(origin, text)
            end = at + len(text)
        found = _NOWHERE if at < 0 else _around(origin.lower, at, end)
        origin.places[key] = found
    return cast(Place, found)


def _find(origin: Origin, text: str) -> int:
    """The first place where a text stands as whole words, -1 where it does not."""
    whole, text = origin.lower, text.lower()
    at = whole.find(text) if text else -1
    for _ in range(_TRIES):
        if at < 0:
            return -1
        end = at + len(text)
        if not whole[max(0, at - 1) : at].isalnum() and not whole[end : end + 1].isalnum():
            return at
        at = whole.find(text, at + 1)
    return -1


def _around(lower: str, at: int, end: int) -> Place:
    left = _WORD.findall(lower, max(0, at - _LEFT), at)[-4:]
    right = _WORD.findall(lower, end, end + _RIGHT)[:1] if end else []
    one = left[-1] if left else "^"
    two = f"{left[-2]} {one}" if len(left) > 1 else f"^ {one}"
    return Place((f"1 {one}", f"2 {two}", f"r {right[0] if right else '$'}" if end else ""),
                 frozenset(stem(word) for word in left))  # fmt: skip


def _keys(tool: str, argument: str) -> tuple[str, str]:
    """What cues of an argument are counted under: its name, whatever the tool, and itself."""
    return argument, f"{tool}\x1f{argument}"


class Cues:
    """Weights by hash of (argument, cue). Immutable."""

    __slots__ = ("_of_words", "_weights")

    def __init__(self, weights: Mapping[int, float]) -> None:
        self._weights = dict(weights)
        # What words of records say of an argument, as it was looked up.
        self._of_words: dict[tuple[str, str], dict[str, float]] = {}

    @property
    def weights(self) -> dict[int, float]:
        return self._weights

    def commonness(self, text: str) -> float:
        """How often users say a word or text: the logarithm of the share of tasks; of what fewer
        than three said, a little less than of what three did."""
        known = self._weights.get(sign(f"said|{text.lower()}"))
        return known if known is not None else self._weights.get(sign("said|"), 0.0)

    def of_record(self, tool: str, argument: str, record: Record) -> tuple[float, float]:
        """What the words of a value's record say most for it, and most against it, as an
        argument."""
        known = self._of_words.setdefault((tool, argument), {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        best = worst = 0.0
        for word in record.words:
            weight = known.get(word)
            if weight is None:
                weight = 0.0
                if tells(word):
                    weight = self._weights.get(record_sign(tool, argument, word), 0.0)
                known[word] = weight
            if weight > best:
                best = weight
            elif weight < worst:
                worst = weight
        return best, worst

    def scores(self, tool: str, argument: str, entry: Entry) -> tuple[float, float, float]:
        """How much the words before it speak for a value as any argument of this name, as this
        argument, and how much the word after it does."""
        cues = place_of(entry).cues
        found: list[float] = []
        for key in _keys(tool, argument):
            floor = self._weights.get(sign(f"{key}|"), 0.0)
            found.append(
                self._weights.get(sign(f"{key}|{cues[0]}"), floor)
                + self._weights.get(sign(f"{key}|{cues[1]}"), floor)
            )
        floor = self._weights.get(sign(f"{argument}|"), 0.0)
        after = self._weights.get(sign(f"{argument}|{cues[2]}"), floor) if cues[2] else 0.0
        return found[0], found[1], after


def named_before(argument: str, entry: Entry) -> float:
    """The share of an argument's name that is said just before a value."""
    parts = _name(argument)
    return len(parts & place_of(entry).before) / len(parts) if parts else 0.0


@lru_cache(maxsize=4096)  # of the names of arguments
def _name(argument: str) -> frozenset[str]:
    return frozenset(name_stems(argument))


class CueLearner:
    """Counts cues over calls. While learning, `without` leaves a task's own counts out."""

    def __init__(self) -> None:
        self._tasks: defaultdict[Key, set[str]] = defaultdict(set)
        self._filled: defaultdict[str, set[str]] = defaultdict(set)
        self._anywhere: Counter[str] = Counter()
        self._tokens = 0
        self._said_in: defaultdict[str, set[str]] = defaultdict(set)
        self._all_tasks: set[str] = set()
        self._context: Context | None = None
        self._read = 0
        self._by_text: dict[str, Entry] = {}
        self._keys_of: defaultdict[str, list[Key]] | None = None
        self._records = RecordLearner()

    def observe(self, context: Context, call: ToolCall, task: str) -> None:
        """Count one recorded call, `context` being what stood before it."""
        self._update(context, task)
        self._records.observe(context, call, task)
        for name, value in call.arguments.items():
            parts = cast("list[Any]", value)[:8] if isinstance(value, list) else [value]
            for part in parts:
                entry = self._by_text.get(plain_text(part))
                if entry is None:
                    continue
                for key in _keys(call.name, name):
                    self._filled[key].add(task)
                    for cue in place_of(entry).cues:
                        if cue:
                            self._tasks[key, cue].add(task)

    def _update(self, context: Context, task: str) -> None:
        self._all_tasks.add(task)
        if self._context is not context:
            self._context, self._read = context, 0
            self._by_text = {}
        messages: dict[int, int] = {}
        for entry in context.entries[self._read :]:
            if entry.origin.kind != "user_message":
                continue
            self._by_text[entry.text] = entry
            count = messages[id(entry.origin)] = messages.get(id(entry.origin), 0) + 1
            if entry.at < 0 and count <= _MAX_TOKENS:
                self._tokens += 1
                self._anywhere.update(place_of(entry).cues)
                if len(entry.text) <= _LONGEST_WORD:
                    self._said_in[entry.text.lower()].add(task)
        self._read = len(context.entries)

    def take(self, other: "CueLearner") -> None:
        """Count what another one counted over other tasks."""
        for key, tasks in other._tasks.items():
            self._tasks[key] |= tasks
        for argument, tasks in other._filled.items():
            self._filled[argument] |= tasks
        for word, tasks in other._said_in.items():
            self._said_in[word] |= tasks
        self._anywhere.update(other._anywhere)
        self._tokens += other._tokens
        self._all_tasks |= other._all_tasks
        self._records.take(other._records)

    def finish(self) -> Cues:
        """The weights over all tasks."""
        ranked = sorted(self._tasks.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        weights: dict[int, float] = {}
        every = len(self._all_tasks) or 1
        weights[sign("said|")] = math.log((MIN_TASKS - 1) / (every + MIN_TASKS))
        common = sorted(self._said_in.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        for word, tasks in common[:MAX_WORDS]:
            if len(tasks) >= MIN_TASKS:
                weights[sign(f"said|{word}")] = math.log(len(tasks) / every)
        for key, tasks in list(self._filled.items())[:MAX_CUES]:
            if len(tasks) >= MIN_TASKS:
                weights[sign(f"{key}|")] = _floor(len(tasks))
        for (key, cue), tasks in ranked[:MAX_CUES]:
            if len(tasks) >= MIN_TASKS:
                weights[sign(f"{key}|{cue}")] = self._weight(
                    cue, len(tasks), len(self._filled[key])
                )
        weights.update(self._records.finish())
        return Cues({one: _stored(weight) for one, weight in weights.items()})

    def without(self, task: str, cues: Cues) -> Cues:
        """The weights over all tasks but one."""
        weights = dict(cues.weights)
        for key, cue in self._of_task(task):
            others = len(self._tasks[key, cue]) - 1
            filled = len(self._filled[key]) - 1
            where = sign(f"{key}|{cue}")
            if others >= MIN_TASKS:
                weights[where] = self._weight(cue, others, filled)
            else:
                weights.pop(where, None)
        for where, weight in self._records.without(task, weights).items():
            if weight is None:
                del weights[where]
            else:
                weights[where] = weight
        return Cues(weights)

    def _of_task(self, task: str) -> list[Key]:
        if self._keys_of is None:
            self._keys_of = defaultdict(list)
            for key, tasks in self._tasks.items():
                for one in tasks:
                    self._keys_of[one].append(key)
        return self._keys_of.get(task, [])

    def _weight(self, cue: str, tasks: int, filled: int) -> float:
        share = (self._anywhere[cue] + 1) / (self._tokens + 1)
        return math.log((tasks + _PRIOR * share) / ((filled + _PRIOR) * share))


def _stored(weight: float) -> float:
    """As it will be read from an artifact: what was judged is what acts."""
    return struct.unpack("f", struct.pack("f", weight))[0]


def _floor(filled: int) -> float:
    return math.log(_PRIOR / (filled + _PRIOR))
