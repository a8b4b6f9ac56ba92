"""Expressions of numbers that stand in the conversation: `256.67 - 242.92`, `473.43 + 622.12`.

An expression is a slot like any other: `sum: - |A|B` holds what is written of a value of slot A,
" - " and a value of slot B, `sum: + |A` the sums of several values of slot A. So how often it hits
is learned and ranked like the rest. Which of the values: those that what was said points at. Only
sums, and differences of two; nothing is worked out. At most 16 differences and 24 sums of up to six
numbers.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from reflexarc.provenance import Entry, Origin, Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.reflex.slot_index import SlotIndex

KIND = "sum:"
LESS, PLUS = " - ", " + "
JOINS = (LESS, PLUS)
_BETWEEN = "|"
_NUMBER = r"\d{1,12}(?:\.\d{1,6})?"
_WRITTEN = re.compile(rf"{_NUMBER}(?: [+-] {_NUMBER}){{1,5}}")
_TERM = re.compile(_NUMBER)
_MOST_TERMS = 6
_NEWEST = 60
_BEST = 4
_MOST_SUMS = 24
_SLOTS_OF_TERM = 12
_KEPT = {LESS: 5, PLUS: 3}
_ENOUGH = 0.5
_SUPPOSED = 8
"""How many expressions a slot is taken to hold, where its precision is counted."""


def terms_of(value: Any) -> tuple[str, list[str]] | None:
    """(how they are joined, the numbers as JSON shows them) of a difference of two or a sum."""
    if not isinstance(value, str) or not _WRITTEN.fullmatch(value):
        return None
    terms = _TERM.findall(value)
    if "-" not in value:
        return PLUS, [_plain(term) for term in terms]
    return (LESS, [_plain(term) for term in terms]) if len(terms) == 2 else None


def _plain(term: str) -> str:
    """A number as JSON shows it: `3131.10` is 3131.1."""
    return plain_text(float(term)) if "." in term else term


def parts_of(slot: str) -> tuple[str, tuple[str, ...]]:
    """(how they are joined, the slots of the numbers) of an expression's slot; ("", ()) where its
    name is none that learning gives."""
    kind, _, rest = slot.partition(_BETWEEN)
    join = kind.removeprefix(KIND)
    slots = tuple(rest.split(_BETWEEN))
    if join not in JOINS or not all(slots) or len(slots) != (2 if join == LESS else 1):
        return "", ()
    return join, slots


def sum_entries(context: Context, slot: str) -> list[Entry]:
    """The expressions of a slot that what was said points at, best first."""
    join, slots = parts_of(slot)
    if not slots:
        return []
    values = [_told(context, one) for one in slots]
    made = _differences(*values) if join == LESS else _sums(values[0])
    entries: dict[str, Entry] = {}
    for position, terms in enumerate(made):
        text = join.join(term.text for term in terms)
        if text not in entries:
            newest = max((term.origin for term in terms), key=lambda origin: origin.event)
            record = Record(partial(_together, terms))
            entries[text] = Entry(slot, text, newest, position, record)
    return list(entries.values())


def _together(terms: Sequence[Entry]) -> str:
    return " ".join(term.record.text for term in terms)


_Scored = tuple[float, Entry]


def _told(context: Context, slot: str) -> list[_Scored]:
    """The numbers of a slot, each once, and how well their records fit what was said; the newest
    first where they have none."""
    by_origin: dict[Origin, list[Entry]] = {}
    for entry in context.slots.get(slot, ())[-_NEWEST:]:
        if isinstance(entry.value, (int, float)) or _TERM.fullmatch(entry.text):
            by_origin.setdefault(entry.origin, []).append(entry)
    said = context.said_now()
    best: dict[str, _Scored] = {}
    for origin, entries in by_origin.items():
        told = said.told(tuple(dict.fromkeys(entry.record for entry in entries)))
        for entry in entries:
            score = sum(told[entry.record]) if entry.record is not NO_RECORD else 0.0
            known = best.get(entry.text)
            if known is None or (score, origin.event) > (known[0], known[1].origin.event):
                best[entry.text] = (score, entry)
    return sorted(best.values(), key=lambda one: (-one[0], -one[1].origin.event, one[1].position))


def _differences(first: Sequence[_Scored], second: Sequence[_Scored]) -> Iterator[list[Entry]]:
    pairs = [
        (one[0] + other[0], one[1], other[1])
        for one in first[:_BEST]
        for other in second[:_BEST]
        if one[1].text != other[1].text
    ]
    pairs.sort(key=lambda pair: -pair[0])
    for _, one, other in pairs:
        yield [one, other]


def _sums(values: Sequence[_Scored]) -> Iterator[list[Entry]]:
    """Sums of those told best, as they stand and as well as they were told."""
    if len(values) < 2:
        return
    most = values[0][0]
    told = [entry for score, entry in values if score >= _ENOUGH * most][:_MOST_TERMS]
    groups: list[Sequence[Entry]] = [
        told,
        *([e for _, e in values[:size]] for size in (2, 3, 4, 5)),
    ]
    groups += combinations([entry for _, entry in values[:5]], 2)
    made = 0
    for group in groups:
        if 2 <= len(group) <= len(values) and made < _MOST_SUMS:
            made += 2
            yield sorted(group, key=lambda entry: (entry.origin.event, entry.position))
            yield list(group)


class _Counted:
    def __init__(self) -> None:
        self.hits = 0
        self.tasks: set[str] = set()


class SumCounts:
    """Counts which slots the numbers of an argument's expressions stand in."""

    __slots__ = ("_calls", "_found")

    def __init__(self) -> None:
        self._calls = 0
        self._found: dict[str, _Counted] = {}

    def observe(self, value: Any, task: str, index: SlotIndex) -> None:
        """Count one value of the argument."""
        found = terms_of(value)
        if found is None:
            return
        self._calls += 1
        join, terms = found
        places = [
            {slot for slot in index.by_text.get(term, ()) if _BETWEEN not in slot} for term in terms
        ]
        if join == LESS:
            first, second = (sorted(slots)[:_SLOTS_OF_TERM] for slots in places)
            slots = [f"{KIND}{LESS}|{one}|{other}" for one in first for other in second]
        else:
            slots = [f"{KIND}{PLUS}|{one}" for one in places[0].intersection(*places[1:])]
        for slot in slots:
            counted = self._found.setdefault(slot, _Counted())
            counted.hits += 1
            counted.tasks.add(task)

    def take(self, other: "SumCounts") -> None:
        """Count what another one counted over other tasks."""
        self._calls += other._calls
        for slot, counted in other._found.items():
            own = self._found.setdefault(slot, _Counted())
            own.hits += counted.hits
            own.tasks |= counted.tasks

    def slots(self) -> list[tuple[str, int, int, int]]:
        """(slot, hits, calls, values that stood in it), the most frequent first."""
        kept: list[tuple[str, int, int, int]] = []
        for join, most in _KEPT.items():
            found = [
                (slot, counted.hits, self._calls, self._calls * _SUPPOSED)
                for slot, counted in self._found.items()
                if slot.startswith(KIND + join) and len(counted.tasks) >= MIN_TASKS
            ]
            found.sort(key=lambda one: (-one[1], one[0]))
            kept += found[:most]
        return kept
