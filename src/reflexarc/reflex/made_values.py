"""Values made of a user's words by a pattern an agent always uses: kofi -> kofi@example.com.

A pattern is a way to write the words (as they are, small, joined by dots) with a text before and a
text after. It is a slot like any other (`made:small.:{}@example.com`), so that how often it hits is
learned and ranked like the rest. Its texts are kept if three tasks and three different words show
them, and nothing in them is private.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from reflexarc.provenance import Entry
from reflexarc.reflex.context import Context
from reflexarc.reflex.private import Private
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.steps import ToolCall

KIND = "made:"
_BASES = ("usr:name+", "usr:owner+", "usr:a", "usr:Aa")
_NEWEST = 40
_SHORTEST = 3
_LONGEST_VALUE = 120
_LONGEST_AFFIX = 60
_MAX_PATTERNS = 3
_HOLE = "{}"
_LONGEST_PATTERN = 2 * _LONGEST_AFFIX + len(_HOLE)
_SPACE = re.compile(r"\s+")
_JOINS = {"small": None, "small.": ".", "small_": "_", "small-": "-", "small~": "", "as is": None}
"""Ways to write words, and what joins several."""


def spelt(words: str, way: str) -> str:
    """Words in one of the ways."""
    joined = words if _JOINS[way] is None else _SPACE.sub(_JOINS[way] or "", words)
    return joined if way == "as is" else joined.lower()


def _fits(words: str, way: str) -> bool:
    """Several words are joined by something; a single one is not."""
    return (" " in words) == (_JOINS[way] is not None)


def _bases(context: Context) -> Iterator[Entry]:
    for slot in _BASES:
        for entry in context.slots.get(slot, ())[-_NEWEST:]:
            if len(entry.text) >= _SHORTEST:
                yield entry


def made_entries(context: Context, slot: str) -> list[Entry]:
    """The values of a pattern's slot, made once while the user says nothing new."""
    known = context.made.get(slot)
    if known is not None and known[0] == context.user_turns:
        return known[1]
    way, _, pattern = slot.removeprefix(KIND).partition(":")
    found: dict[str, Entry] = {}
    if way in _JOINS and pattern.count(_HOLE) == 1 and len(pattern) <= _LONGEST_PATTERN:
        for position, base in enumerate(_bases(context)):
            if not _fits(base.text, way):
                continue
            value = pattern.replace(_HOLE, spelt(base.text, way))
            at = base.at if base.at >= 0 else base.origin.lower.find(base.text.lower())
            found.setdefault(value, Entry(slot, value, base.origin, position, at=at))
    context.made[slot] = (context.user_turns, list(found.values()))
    return context.made[slot][1]


class _Pattern:
    def __init__(self) -> None:
        self.hits = 0
        self.tasks: set[str] = set()
        self.words: set[str] = set()


class PatternLearner:
    """Counts patterns over calls; `slots` are those that are frequent enough."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], defaultdict[str, _Pattern]] = defaultdict(
            lambda: defaultdict(_Pattern)
        )
        self._calls: Counter[tuple[str, str]] = Counter()
        self._sizes: Counter[tuple[str, str]] = Counter()

    def observe(self, context: Context, call: ToolCall, task: str) -> None:
        """Count one recorded call, `context` being what stood before it."""
        texts = {name: value for name, value in call.arguments.items() if _may_be_made(value)}
        if not texts:
            return
        bases = {entry.text for entry in _bases(context)}
        for name, value in texts.items():
            where = (call.name, name)
            self._calls[where] += 1
            self._sizes[where] += len(bases)
            small = value.lower()
            seen: set[str] = set()
            for words in bases:
                for way in [way for way in _JOINS if _fits(words, way)]:
                    part = spelt(words, way)
                    at = (value if way == "as is" else small).find(part)
                    if at < 0 or part == value:
                        continue
                    before, after = value[:at], value[at + len(part) :]
                    if value[at : at + len(part)] != part or _cut(before, after):
                        continue
                    slot = f"{KIND}{way}:{before}{_HOLE}{after}"
                    found = self._found[where][slot]
                    found.tasks.add(task)
                    found.words.add(words)
                    found.hits += slot not in seen
                    seen.add(slot)

    def take(self, other: "PatternLearner") -> None:
        """Count what another one counted over other tasks."""
        for where, patterns in other._found.items():
            own = self._found[where]
            for slot, found in patterns.items():
                known = own[slot]
                known.hits += found.hits
                known.tasks |= found.tasks
                known.words |= found.words
        self._calls.update(other._calls)
        self._sizes.update(other._sizes)

    def slots(self, tool: str, argument: str, private: Private) -> list[tuple[str, int, int, int]]:
        """(slot, hits, calls, values that stood in it), the most frequent first."""
        where = (tool, argument)
        kept = [
            (slot, found.hits, self._calls[where], self._sizes[where])
            for slot, found in self._found[where].items()
            if len(found.tasks) >= MIN_TASKS
            and len(found.words) >= MIN_TASKS
            and not any(private.name(part) for part in slot.split(":", 2)[2].split(_HOLE))
        ]
        kept.sort(key=lambda one: (-one[1], one[0]))
        return kept[:_MAX_PATTERNS]


def _may_be_made(value: Any) -> bool:
    return isinstance(value, str) and _SHORTEST < len(value) <= _LONGEST_VALUE


def _cut(before: str, after: str) -> bool:
    """Whether a pattern would cut a word, or holds too much that is fixed."""
    if len(before) > _LONGEST_AFFIX or len(after) > _LONGEST_AFFIX or _HOLE in before + after:
        return True
    return before[-1:].isalnum() or after[:1].isalnum()
