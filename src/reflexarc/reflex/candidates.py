"""The values one argument could take in a context: copied, listed, projected, constant, absent.

Bounded: at most `MAX_CANDIDATES` per argument, from at most the 32 newest values of a slot.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, cast

from reflexarc.provenance import Entry
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context, Objects
from reflexarc.reflex.made_values import KIND, made_entries
from reflexarc.reflex.sources import Argument, Constant, Kind, kind_of

MAX_CANDIDATES = 32
"""Twice as many choose no better (measured on the public sets) and take twice as long."""
_NEWEST = 32
_NEWEST_LISTS = 10
_NEWEST_OBJECTS = 40
_LONGEST_LIST = 12
_PAIRED = 5
_ACROSS = 5

# How a candidate was made. The order matters: trees split on it.
COPIED, WHOLE, USER_NAMED, AGENT_NAMED, SUBSET, ACROSS, PROJECTED, CONSTANT, ABSENT = range(9)


class Candidate:
    """One possible value. `slots` are positions in the argument's slots (-1: none);
    `entries` the places it stands in, `length` the number of items of a list (0: no list)."""

    __slots__ = ("entries", "length", "made", "objects", "share", "slots", "text", "value")

    def __init__(self, value: Any, text: str, made: int) -> None:
        self.value = value
        self.text = text
        self.made = made
        self.slots: list[int] = []
        self.entries: list[Entry] = []
        self.objects: Objects | None = None
        self.share = 0.0
        self.length = len(cast("list[Any]", value)) if isinstance(value, list) else 0


class Absent:
    """The value of a candidate that leaves the argument out."""


ABSENT_VALUE = Absent()
ABSENT_TEXT = "\0absent"


def enumerate_candidates(
    context: Context, argument: Argument, constants: Iterable[Constant]
) -> list[Candidate]:
    """Every candidate for one argument, best slots first."""
    pool = _Pool(argument)
    if argument.kind == "list":
        _lists(context, argument, pool)
    elif argument.kind in ("objects", "object"):
        _projections(context, argument, pool)
    else:
        _scalars(context, argument, pool)
    pool.finish(constants)
    return pool.candidates


class _Pool:
    def __init__(self, argument: Argument) -> None:
        self.argument = argument
        self.candidates: list[Candidate] = []
        self._by_text: dict[str, Candidate] = {}

    @property
    def full(self) -> bool:
        return len(self.candidates) >= MAX_CANDIDATES

    def add(
        self, value: Any, made: int, slot: int, entry: Entry | None, text: str | None = None
    ) -> Candidate | None:
        """`text`: of the value, where it is known already."""
        if text is None:
            text = plain_text(value)
        candidate = self._by_text.get(text)
        if candidate is None:
            if len(self.candidates) >= MAX_CANDIDATES:
                return None
            candidate = Candidate(value, text, made)
            self._by_text[text] = candidate
            self.candidates.append(candidate)
        candidate.slots.append(slot)
        if entry is not None:
            candidate.entries.append(entry)
        return candidate

    def finish(self, constants: Iterable[Constant]) -> None:
        """Constants and absence always fit: they are few."""
        for constant in constants:
            text = constant.text
            candidate = self._by_text.get(text)
            if candidate is None:
                candidate = Candidate(constant.value, text, CONSTANT)
                self._by_text[text] = candidate
                self.candidates.append(candidate)
            candidate.share = constant.share
        if self.argument.absent_share > 0.005:
            candidate = Candidate(ABSENT_VALUE, ABSENT_TEXT, ABSENT)
            candidate.share = self.argument.absent_share
            self.candidates.append(candidate)


def coerce(value: Any, kind: Kind) -> tuple[bool, Any]:
    """A value in the JSON kind an argument takes; (False, None) where it has no such form."""
    found = kind_of(value)
    if found == kind:
        return True, value
    if kind == "string" and found in ("integer", "number"):
        return True, plain_text(value)
    if kind == "number" and found == "integer":
        return True, value
    if kind == "integer" and found == "number" and value.is_integer():
        return True, int(value)
    if found == "string" and kind in ("integer", "number"):
        return _number(cast("str", value), kind)
    if found == "string" and kind == "boolean" and value in ("true", "false"):
        return True, value == "true"
    return False, None


def _number(text: str, kind: Kind) -> tuple[bool, Any]:
    text = text.strip().removeprefix("$").removesuffix("%")
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 16:
        return True, int(text)
    whole, dot, part = digits.partition(".")
    if kind == "number" and dot and (whole + part).isascii() and (whole + part).isdigit():
        return (True, float(text)) if len(digits) < 18 else (False, None)
    return False, None


def _entries(context: Context, slot: str) -> Sequence[Entry]:
    if slot.startswith(KIND):
        return made_entries(context, slot)
    return context.slots.get(slot, ())


def _scalars(context: Context, argument: Argument, pool: _Pool) -> None:
    kind = argument.kind
    for at, slot in enumerate(argument.slots):
        for entry in _entries(context, slot.name)[-_NEWEST:]:
            value: Any = entry.value
            if kind == "string" and type(value) is str:  # what most values are, and need
                pool.add(value, COPIED, at, entry, value)
                continue
            fits, value = coerce(value, kind)
            if fits:
                pool.add(value, COPIED, at, entry, entry.text if value is entry.value else None)


def _lists(context: Context, argument: Argument, pool: _Pool) -> None:
    for at, slot in enumerate(argument.slots):
        by_message: defaultdict[int, list[tuple[Any, Entry]]] = defaultdict(list)
        for entry in _entries(context, slot.name)[-_NEWEST:]:
            whole: Any = entry.value
            if isinstance(whole, list):
                pool.add(cast("list[Any]", whole), WHOLE, at, entry)
                continue
            fits, value = coerce(whole, argument.item_kind)
            if fits:
                pool.add([value], COPIED, at, entry)
                by_message[entry.origin.event].append((value, entry))
        for event in sorted(by_message, reverse=True):
            if pool.full:
                return
            for values, made, entry in _within(context, by_message[event]):
                pool.add(values, made, at, entry)
        for values, entry in _across(context, by_message):
            pool.add(values, ACROSS, at, entry)


def _within(
    context: Context, found: list[tuple[Any, Entry]]
) -> Iterator[tuple[list[Any], int, Entry]]:
    """Lists of values of one message: all, those the user or the agent named, pairs."""
    if not 2 <= len(found) <= _LONGEST_LIST:
        return
    yield [value for value, _ in found], WHOLE, found[0][1]
    named_by = ((context.user_words, USER_NAMED), (context.assistant.words, AGENT_NAMED))
    for words, made in named_by:
        named = [pair for pair in found if _named(pair[1], words)]
        if 1 <= len(named) < len(found):
            yield [value for value, _ in named], made, named[0][1]
    for size in (2, 3):
        for chosen in combinations(found[:_PAIRED], size):
            yield [value for value, _ in chosen], SUBSET, chosen[0][1]


def _named(entry: Entry, words: Iterable[str]) -> bool:
    record = entry.record.words
    return len(record.intersection(words)) >= max(1.0, 0.5 * len(record))


def _across(
    context: Context, by_message: dict[int, list[tuple[Any, Entry]]]
) -> Iterator[tuple[list[Any], Entry]]:
    """One value of each of several messages, those that the talk named best."""
    if not 2 <= len(by_message) <= 8:
        return
    talk = context.user_words | context.assistant.words
    best = [
        sorted(
            found,
            key=lambda pair: -len(pair[1].record.words & talk) / (len(pair[1].record.words) + 1),
        )[:2]
        for _, found in sorted(by_message.items())
    ][-_ACROSS:]
    for size in (2, 3):
        for group in combinations(best, size):
            for chosen in product(*group):
                yield [value for value, _ in chosen], chosen[0][1]


def _projections(context: Context, argument: Argument, pool: _Pool) -> None:
    for at, slot in enumerate(argument.slots):
        for entry in context.slots.get(slot.name, ())[-_NEWEST_LISTS:]:
            if kind_of(entry.value) == argument.kind:
                pool.add(entry.value, WHOLE, at, entry, entry.text)
    for keys in argument.projections:
        for objects in context.objects[-_NEWEST_OBJECTS:]:
            found = _cut(objects, keys)
            if found is None:
                continue
            rows, texts = found
            if argument.kind == "objects":
                candidate = pool.add(rows, PROJECTED, -1, None, texts[0])
            else:
                candidate = pool.add(rows[0], PROJECTED, -1, None, texts[1]) if texts[1] else None
            if candidate is not None:
                candidate.objects = objects


def _cut(
    objects: Objects, keys: tuple[str, ...]
) -> tuple[list[dict[str, Any]], tuple[str, str]] | None:
    """Objects cut to some keys, with the text of all and (of a single one) its own; None where one
    lacks a key. Worked out once: objects never change."""
    if keys in objects.cuts:
        return objects.cuts[keys]
    found = None
    if all(key in row for row in objects.rows for key in keys):
        rows = [{key: row[key] for key in keys} for row in objects.rows]
        found = (rows, (plain_text(rows), plain_text(rows[0]) if len(rows) == 1 else ""))
    objects.cuts[keys] = found
    return found
