"""The values one argument could take in a context: copied, listed, projected, constant, absent.

Bounded: at most `MAX_CANDIDATES` per argument from the 32 newest values of a slot, or `MAX_LISTS`
from the 60 newest.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

from reflexarc.provenance import Entry, Origin
from reflexarc.provenance.words import plain_text
from reflexarc.reflex.context import Context, Objects
from reflexarc.reflex.keyed import KEYED, keyed_entries
from reflexarc.reflex.list_candidates import ABSENT as ABSENT
from reflexarc.reflex.list_candidates import ACROSS as ACROSS
from reflexarc.reflex.list_candidates import AGENT_NAMED as AGENT_NAMED
from reflexarc.reflex.list_candidates import CONSTANT as CONSTANT
from reflexarc.reflex.list_candidates import COPIED as COPIED
from reflexarc.reflex.list_candidates import PROJECTED as PROJECTED
from reflexarc.reflex.list_candidates import SUBSET as SUBSET
from reflexarc.reflex.list_candidates import USER_NAMED as USER_NAMED
from reflexarc.reflex.list_candidates import WHOLE as WHOLE
from reflexarc.reflex.list_candidates import Part, lists_told, told_parts
from reflexarc.reflex.made_values import KIND, made_entries
from reflexarc.reflex.said_words import said_words
from reflexarc.reflex.shortlist import rooms, tried
from reflexarc.reflex.sources import Argument, Constant, Kind, kind_of
from reflexarc.reflex.sums import KIND as SUM
from reflexarc.reflex.sums import sum_entries
from reflexarc.reflex.written import Written, form_under, write_list

MAX_CANDIDATES = 32
"""Of single values; twice as many choose no better (measured on the public sets)."""
MAX_LISTS = 64
"""Of lists and objects, which are put together in many ways: fewer choose worse."""
_MOST_TOGETHER = 44
"""Of lists of several values; the other places are for lists of one."""
_NEWEST_ITEMS = 60
_NEWEST_LISTS = 10
_NEWEST_OBJECTS = 40


class Candidate:
    """One possible value. `slots` are positions in the argument's slots (-1: none);
    `entries` the places it stands in, `length` the number of items of a list (0: no list), `parts`
    the places of each item of a list put together."""

    __slots__ = ("entries", "length", "made", "objects", "parts", "share", "slots", "text", "value")

    def __init__(self, value: Any, text: str, made: int) -> None:
        self.value = value
        self.text = text
        self.made = made
        self.slots: list[int] = []
        self.entries: list[Entry] = []
        self.parts: list[Entry] = []
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
    for text in argument.examples:
        words = said_words(text)
        if words and words <= said_words(context.user.text):
            pool.add(text, CONSTANT, -1, None, text)
    pool.finish(constants)
    if argument.written:
        _write(pool.candidates, form_under(argument.written, context.prompt_hash))
    return pool.candidates


def _write(candidates: Iterable[Candidate], form: Written) -> None:
    """Lists as the text that this agent makes of them."""
    for candidate in candidates:
        value: Any = candidate.value
        if isinstance(value, list):
            candidate.value = write_list(cast("list[Any]", value), form)
            candidate.text = plain_text(candidate.value)


class _Pool:
    def __init__(self, argument: Argument) -> None:
        self.argument = argument
        several = argument.kind in ("list", "objects", "object")
        self.limit = MAX_LISTS if several else MAX_CANDIDATES
        self.candidates: list[Candidate] = []
        self.by_text: dict[str, Candidate] = {}

    def add(
        self, value: Any, made: int, slot: int, entry: Entry | None, text: str | None = None
    ) -> Candidate | None:
        """`text`: of the value, where it is known already."""
        if text is None:
            text = plain_text(value)
        candidate = self.by_text.get(text)
        if candidate is None:
            if len(self.candidates) >= self.limit:
                return None
            candidate = Candidate(value, text, made)
            self.by_text[text] = candidate
            self.candidates.append(candidate)
        candidate.slots.append(slot)
        if entry is not None:
            candidate.entries.append(entry)
        return candidate

    def add_list(self, text: str, parts: Sequence[Part], made: int, slot: int) -> None:
        """A list made of values that stand apart, and its text."""
        candidate = self.by_text.get(text)
        if candidate is None:
            if len(self.candidates) >= self.limit:
                return  # most are one too many: hundreds of lists can be made of a few values
            candidate = self.add([value for value, _ in parts], made, slot, parts[0][1], text)
        else:
            candidate.slots.append(slot)
            candidate.entries.append(parts[0][1])
        if candidate is not None and not candidate.parts:
            candidate.parts = [entry for _, entry in parts]

    def finish(self, constants: Iterable[Constant]) -> None:
        """Constants and absence always fit: they are few."""
        for constant in constants:
            text = constant.text
            candidate = self.by_text.get(text)
            if candidate is None:
                candidate = Candidate(constant.value, text, CONSTANT)
                self.by_text[text] = candidate
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
    if slot.startswith(KEYED):
        return keyed_entries(context, slot)
    if slot.startswith(SUM):
        return sum_entries(context, slot)
    return context.slots.get(slot, ())


def _scalars(context: Context, argument: Argument, pool: _Pool) -> None:
    kind = argument.kind
    by_text, candidates = pool.by_text, pool.candidates
    found = [tried(context, _entries(context, slot.name)) for slot in argument.slots]
    for at, room in enumerate(rooms([len(entries) for entries in found], pool.limit)):
        pool.limit = room
        for entry in found[at]:
            value: Any = entry.value
            if type(value) is str and kind == "string":  # what most values are, and need
                candidate = by_text.get(value)
                if candidate is None:
                    if len(candidates) >= pool.limit:
                        continue
                    candidate = by_text[value] = Candidate(value, value, COPIED)
                    candidates.append(candidate)
                candidate.slots.append(at)
                candidate.entries.append(entry)
                continue
            fits, value = coerce(value, kind)
            if fits:
                pool.add(value, COPIED, at, entry, entry.text if value is entry.value else None)


def _lists(context: Context, argument: Argument, pool: _Pool) -> None:
    """Lists that what was said points at first, then single values, those that were told best
    first: of both there may be many."""
    found = [_items(context, slot.name, argument.item_kind) for slot in argument.slots]
    most, pool.limit = pool.limit, _MOST_TOGETHER
    for at, items in enumerate(found):
        for entry in items.wholes:
            pool.add(entry.value, WHOLE, at, entry, entry.text)
        for text, parts, made in items.told:
            pool.add_list(text, parts, made, at)
    pool.limit = most
    singles = [(told, at, text, parts) for at, items in enumerate(found)
               for told, text, parts in items.singles]  # fmt: skip
    singles.sort(key=lambda one: -one[0])
    for _, at, text, parts in singles:
        pool.add_list(text, parts, COPIED, at)


class _Items:
    """The lists that a slot gives: those that stand in it, those made of its values, each value
    alone and how well it was told; the latter two with their texts."""

    __slots__ = ("count", "said", "singles", "told", "wholes")

    def __init__(self, context: Context, entries: Sequence[Entry], kind: Kind) -> None:
        self.count = len(entries)
        self.said = context.said_now()
        self.wholes: list[Entry] = []
        by_message: defaultdict[Origin, list[Part]] = defaultdict(list)
        texts: dict[Entry, str] = {}
        for entry in entries[-_NEWEST_ITEMS:]:
            if isinstance(entry.value, list):
                self.wholes.append(entry)
                continue
            fits, value = coerce(entry.value, kind)
            if fits:
                texts[entry] = entry.text if value is entry.value else plain_text(value)
                by_message[entry.origin].append((value, entry))
        scores = told_parts(context, by_message)
        self.told = [
            ("[" + "\x1f".join([texts[entry] for _, entry in parts]), parts, made)
            for parts, made in lists_told(by_message, scores)
        ]
        self.singles = [
            (sum(told), f"[{texts[part[1]]}", (part,))
            for origin, parts in by_message.items()
            for part, told in zip(parts, scores[origin], strict=True)
        ]


def _items(context: Context, slot: str, kind: Kind) -> _Items:
    """Made once while nobody speaks and nothing is added to the slot: several tools and arguments
    take their lists from the same ones."""
    entries = _entries(context, slot)
    found = context.items.get((slot, kind))
    if (
        isinstance(found, _Items)
        and found.count == len(entries)
        and found.said is context.said_now()
    ):
        return found
    found = context.items[slot, kind] = _Items(context, entries, kind)
    return found


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
