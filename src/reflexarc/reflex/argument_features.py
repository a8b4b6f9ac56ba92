"""What distinguishes the right value among an argument's candidates, as numbers."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.reflex.candidates import Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.cues import Cues
from reflexarc.reflex.links import UNLINKED, Links
from reflexarc.reflex.links import Chosen as Chosen
from reflexarc.reflex.record_features import RECORD_FEATURES, record_columns
from reflexarc.reflex.said_features import SAID_FEATURES, said_columns
from reflexarc.reflex.sources import Argument
from reflexarc.reflex.told_features import TOLD_FEATURES, told_columns

FEATURES = (
    "hit_rate", "precision", "slots", "age_newest", "age_oldest", "used", "used_as",
    "position", "in_slot", "unused_in_slot", "ordinal_unused", "in_user", "in_assistant",
    "record_in_user", "record_in_talk", "record_in_assistant", "constant_share", "made",
    "linked", "linked_record", "argument", "length", "length_difference", "best_in_user",
    "best_in_talk", "best_in_assistant", "newest_output", "best_slot", "candidates",
    "chosen_before", "step", "named_record", "named_slot", "best_named", *TOLD_FEATURES,
    "parts_linked", "parts_again", *RECORD_FEATURES, *SAID_FEATURES,
)  # fmt: skip
_COLUMN = {name: at for at, name in enumerate(FEATURES)}
_LINKED = _COLUMN["linked"]
_LINKED_RECORD = _COLUMN["linked_record"]
_LENGTH_DIFFERENCE = _COLUMN["length_difference"]
_CHOSEN_BEFORE = _COLUMN["chosen_before"]
_STEP = _COLUMN["step"]
_VARIED = (
    "hit_rate", "precision", "slots", "age_newest", "age_oldest", "used", "used_as", "position",
    "in_slot", "unused_in_slot", "ordinal_unused", "in_user", "in_assistant", "record_in_user",
    "record_in_talk", "record_in_assistant", "constant_share", "made", "length", "newest_output",
    "best_slot", "named_record", "named_slot",
)  # fmt: skip
"""The columns that differ between the candidates of one argument."""
_VARIED_COLUMNS = np.array([_COLUMN[name] for name in _VARIED])
_FIRST_SAID = len(FEATURES) - len(SAID_FEATURES)
_NOTHING: frozenset[str] = frozenset()
_NO_OVERLAP = (0.0, 0.0, 0.0)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LINK_COLUMNS = np.array([
    _LINKED, _LINKED_RECORD, _LENGTH_DIFFERENCE, _CHOSEN_BEFORE, _STEP, _COLUMN["parts_linked"],
    _COLUMN["parts_again"],
])  # fmt: skip
_RECORD_COLUMNS = slice(_COLUMN[RECORD_FEATURES[0]], _COLUMN[RECORD_FEATURES[-1]] + 1)
_TOLD_COLUMNS = slice(_COLUMN[TOLD_FEATURES[0]], _COLUMN[TOLD_FEATURES[-1]] + 1)
_NEUTRAL = np.zeros(len(FEATURES), dtype=np.float32)
_NEUTRAL[_LINK_COLUMNS] = UNLINKED
_NO_AGE = 99.0


def argument_matrix(
    context: Context, argument: Argument, candidates: list[Candidate], cues: Cues
) -> NDArray[np.float32]:
    """(candidates, features); the columns that depend on earlier arguments are left at their
    neutral value, see `links.py`."""
    matrix = np.empty((len(candidates), len(FEATURES)), dtype=np.float32)
    matrix[:] = _NEUTRAL
    matrix[:, _COLUMN["argument"]] = argument.index
    matrix[:, _COLUMN["candidates"]] = len(candidates)
    matrix[:, _VARIED_COLUMNS] = _varied(context, argument, candidates)
    matrix[:, _FIRST_SAID:] = said_columns(context, argument, candidates, cues)
    matrix[:, _RECORD_COLUMNS] = record_columns(context, argument, candidates, cues)
    _relative(matrix)
    told = told_columns(context, candidates)
    if told is not None:
        matrix[:, _TOLD_COLUMNS] = told
    return matrix


def _varied(
    context: Context, argument: Argument, candidates: list[Candidate]
) -> list[tuple[float, ...]]:
    """The columns `_VARIED` of every candidate. Most of a decision's time is spent here: what a
    text or a record has in common with the talk is found once while the talk is the same."""
    used = context.used.get((argument.tool, argument.name), _NOTHING)
    used_as = context.used_as.get(argument.name, _NOTHING)
    hit_rates, precisions = argument.hit_rates, argument.precisions
    said = context.said_now()
    now = context.event
    in_slot: dict[int, int] = {}
    unused_in_slot: dict[int, int] = {}
    for candidate in candidates:
        slots = candidate.slots
        unused = candidate.text not in used
        for slot in slots if len(slots) < 2 else set(slots):
            in_slot[slot] = in_slot.get(slot, 0) + 1
            if unused:
                unused_in_slot[slot] = unused_in_slot.get(slot, 0) + 1
    ordinal: dict[int, int] = {}
    name = _name_words(argument.name)
    weight = 1.0 / (len(name) or 1)
    alike = _alike(argument.name, argument.slot_names)
    named_records: dict[int, float] = {id(NO_RECORD): 0.0}
    rows: list[tuple[float, ...]] = []
    for candidate in candidates:
        text, slots, entries = candidate.text, candidate.slots, candidate.entries
        # Slots are added in the order of their hit rates: the first is the best.
        best = slots[0] if slots else -1
        unused = text not in used
        if unused:
            ordinal[best] = ordinal.get(best, 0) + 1
        if len(slots) < 2:
            precision, distinct, named_slot = precisions[best], len(slots), alike[best]
        else:
            precision, distinct = max([precisions[slot] for slot in slots]), len(set(slots))
            named_slot = max([alike[slot] for slot in slots])
        objects = candidate.objects
        if objects is None and len(entries) == 1:
            entry = entries[0]
            newest = oldest = now - entry.origin.event
            record = entry.record
            overlap = said.overlap(record)
            named = named_records.get(id(record))
            if named is None:
                named = named_records[id(record)] = len(record.words & name) * weight
        else:
            events = [entry.origin.event for entry in entries]
            if objects is not None:
                events.append(objects.origin.event)
            newest = now - max(events) if events else _NO_AGE
            oldest = now - min(events) if events else _NO_AGE
            overlap, named = _NO_OVERLAP, 0.0
            for record in _records(candidate):
                overlap = tuple(map(max, overlap, said.overlap(record)))
                named = max(named, len(record.words & name) * weight)
        in_user, in_assistant = said.named(text)
        rows.append((
            hit_rates[best], precision, distinct, newest, oldest, not unused, text in used_as,
            entries[0].position if entries else -1, in_slot.get(best, 0),
            unused_in_slot.get(best, 0), ordinal[best] if unused else 0, in_user, in_assistant,
            *overlap, candidate.share, candidate.made, candidate.length, newest == 0, best,
            named, named_slot,
        ))  # fmt: skip
    return rows


@lru_cache(maxsize=4096)  # of arguments, which are few
def _alike(name: str, slots: tuple[str, ...]) -> tuple[float, ...]:
    """The share of an argument's name that each slot's name has; 0 for slot -1, none."""
    words = _name_words(name)
    weight = 1.0 / (len(words) or 1)
    return (*[len(words & _name_words(slot)) * weight for slot in slots], 0.0)


@lru_cache(maxsize=4096)  # names of arguments and slots, which are few
def _name_words(name: str) -> frozenset[str]:
    """The words of the last part of a name: `body.client_id` is about a client's id."""
    last = re.split(r"[.:~]", name.rstrip("~"))[-1]
    return frozenset(word.lower() for word in _NAME_WORD.findall(last))


def _records(candidate: Candidate) -> list[Record]:
    if candidate.objects is not None:
        return [candidate.objects.record]
    return [
        entry.record
        for entry in candidate.entries[:4]
        if entry.record is not NO_RECORD and entry.record.text
    ]


def _relative(matrix: NDArray[np.float32]) -> None:
    """How far each candidate's record stands behind the one the talk names best."""
    for source, target in (
        ("record_in_user", "best_in_user"),
        ("record_in_talk", "best_in_talk"),
        ("record_in_assistant", "best_in_assistant"),
        ("named_record", "best_named"),
    ):
        column = matrix[:, _COLUMN[source]]
        matrix[:, _COLUMN[target]] = column - column.max()


def link_columns(
    matrix: NDArray[np.float32], context: Context, candidates: list[Candidate], chosen: Chosen
) -> NDArray[np.float32]:
    """A copy of the matrix that knows the arguments chosen before."""
    linked = matrix.copy()
    values = Links(context, candidates).values(chosen)
    if values is not None:
        linked[:, _LINK_COLUMNS] = values
    return linked


def linked_rows(
    matrix: NDArray[np.float32],
    context: Context,
    candidates: list[Candidate],
    several: Sequence[Chosen],
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """The distinct rows of `link_columns` of several choices, and for each choice the places of
    its candidates' rows, (choices, candidates): most candidates look alike after either choice."""
    count = len(candidates)
    if len(several) == 1 and several[0].nothing:
        return matrix, np.arange(count)[None]
    links = Links(context, candidates)
    first = matrix.copy()
    base = links.values(several[0])
    if base is None:
        base = np.full((count, len(UNLINKED)), UNLINKED, dtype=np.float32)
    else:
        first[:, _LINK_COLUMNS] = base
    places = np.empty((len(several), count), dtype=np.intp)
    places[0] = np.arange(count)
    parts, total = [first], count
    for at, chosen in enumerate(several[1:], 1):
        values = links.values(chosen)
        if values is None:
            values = np.full((count, len(UNLINKED)), UNLINKED, dtype=np.float32)
        differ = (values != base).any(axis=1).nonzero()[0]
        places[at] = places[0]
        if len(differ):
            part = first[differ]
            part[:, _LINK_COLUMNS] = values[differ]
            parts.append(part)
            places[at, differ] = np.arange(total, total + len(differ))
            total += len(differ)
    return (np.concatenate(parts) if len(parts) > 1 else first), places
