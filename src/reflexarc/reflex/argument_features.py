"""What distinguishes the right value among an argument's candidates, as numbers."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Entry, Origin, Record
from reflexarc.reflex.candidates import ABSENT, Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.sources import Argument

FEATURES = (
    "hit_rate", "precision", "slots", "age_newest", "age_oldest", "used", "used_as",
    "position", "in_slot", "unused_in_slot", "ordinal_unused", "in_user", "in_assistant",
    "record_in_user", "record_in_talk", "record_in_assistant", "constant_share", "made",
    "linked", "linked_record", "argument", "length", "length_difference", "best_in_user",
    "best_in_talk", "best_in_assistant", "newest_output", "best_slot", "candidates",
    "chosen_before", "step",
)  # fmt: skip
_COLUMN = {name: at for at, name in enumerate(FEATURES)}
_LINKED = _COLUMN["linked"]
_LINKED_RECORD = _COLUMN["linked_record"]
_LENGTH_DIFFERENCE = _COLUMN["length_difference"]
_CHOSEN_BEFORE = _COLUMN["chosen_before"]
_STEP = _COLUMN["step"]
_FAR = 9.0
_NO_AGE = 99.0
_LONGEST_LINKED = 20_000
_SHORTEST_LINKED = 3


def argument_matrix(
    context: Context, argument: Argument, candidates: list[Candidate]
) -> NDArray[np.float32]:
    """(candidates, features); the columns that depend on earlier arguments are left at their
    neutral value, see `link_columns`."""
    used = context.used.get((argument.tool, argument.name), frozenset[str]())
    used_as = context.used_as.get(argument.name, frozenset[str]())
    # The last entry answers for slot -1: none.
    hit_rates = [*(slot.hit_rate for slot in argument.slots), 0.0]
    precisions = [*(slot.precision for slot in argument.slots), 0.0]
    user, assistant = context.user, context.assistant
    talk = context.user_words
    newest_event = context.event
    in_slot: dict[int, int] = {}
    unused_in_slot: dict[int, int] = {}
    best_slots: list[int] = []
    for candidate in candidates:
        slots = candidate.slots
        unused = candidate.text not in used
        for slot in slots if len(slots) == 1 else set(slots):
            in_slot[slot] = in_slot.get(slot, 0) + 1
            if unused:
                unused_in_slot[slot] = unused_in_slot.get(slot, 0) + 1
        # Slots are added in the order of their hit rates: the first is the best.
        best_slots.append(slots[0] if slots else -1)
    ordinal: dict[int, int] = {}
    # Fields of one object share a record: what it has in common with the talk is found once.
    overlaps: dict[int, tuple[float, float, float]] = {}
    rows: list[tuple[float, ...]] = []
    for candidate, best in zip(candidates, best_slots, strict=True):
        text = candidate.text
        unused = text not in used
        if unused:
            ordinal[best] = ordinal.get(best, 0) + 1
        events = [entry.origin.event for entry in candidate.entries]
        if candidate.objects is not None:
            events.append(candidate.objects.origin.event)
        newest = newest_event - max(events) if events else _NO_AGE
        oldest = newest_event - min(events) if events else _NO_AGE
        in_user = in_talk = in_assistant = 0.0
        for record in _records(candidate):
            found = overlaps.get(id(record))
            if found is None:
                words = record.words
                weight = 1.0 / (len(words) + 1)
                found = (
                    len(words & user.words) * weight,
                    len(words & talk) * weight,
                    len(words & assistant.words) * weight,
                )
                overlaps[id(record)] = found
            if found[0] > in_user:
                in_user = found[0]
            if found[1] > in_talk:
                in_talk = found[1]
            if found[2] > in_assistant:
                in_assistant = found[2]
        lower = text.lower() if 1 < len(text) <= 200 else ""
        position = candidate.entries[0].position if candidate.entries else -1
        rows.append((
            hit_rates[best],
            max([precisions[slot] for slot in candidate.slots], default=0.0),
            len(set(candidate.slots)), newest, oldest, not unused, text in used_as,
            position, in_slot.get(best, 0), unused_in_slot.get(best, 0),
            ordinal[best] if unused else 0,
            bool(lower) and lower in user.lower, bool(lower) and lower in assistant.lower,
            in_user, in_talk, in_assistant, candidate.share, candidate.made,
            -1.0, -1.0, argument.index, candidate.length, 9.0, 0.0, 0.0, 0.0,
            newest == 0, best, len(candidates), 0.0, _FAR,
        ))  # fmt: skip
    matrix = np.array(rows, dtype=np.float32)
    _relative(matrix)
    return matrix


def _records(candidate: Candidate) -> list[Record]:
    if candidate.objects is not None:
        return [candidate.objects.record]
    return [entry.record for entry in candidate.entries[:4] if entry.record.text]


def _relative(matrix: NDArray[np.float32]) -> None:
    """How far each candidate's record stands behind the one the talk names best."""
    for source, target in (
        ("record_in_user", "best_in_user"),
        ("record_in_talk", "best_in_talk"),
        ("record_in_assistant", "best_in_assistant"),
    ):
        column = matrix[:, _COLUMN[source]]
        matrix[:, _COLUMN[target]] = column - column.max()


class Chosen:
    """The arguments already filled: their texts, where the last one stands, and the length of the
    last list among them."""

    __slots__ = ("entry", "length", "texts")

    def __init__(
        self, texts: tuple[str, ...] = (), length: int = 0, entry: Entry | None = None
    ) -> None:
        self.texts = texts
        self.length = length
        self.entry = entry

    def then(self, candidate: Candidate) -> "Chosen":
        text = candidate.text
        if candidate.length:
            return Chosen(self.texts, candidate.length, self.entry)
        if candidate.made == ABSENT or isinstance(candidate.value, (dict, list)):
            return self
        entry = candidate.entries[-1] if candidate.entries else self.entry
        if len(text) <= _SHORTEST_LINKED:
            return Chosen(self.texts, self.length, entry)
        return Chosen((*self.texts, text), self.length, entry)


def link_columns(
    matrix: NDArray[np.float32], candidates: list[Candidate], chosen: Chosen
) -> NDArray[np.float32]:
    """A copy of the matrix that knows the arguments chosen before: whether a candidate's message,
    and its very record, holds them too; whether it is one of them; how far behind the last of
    them it stands in the same message."""
    linked = matrix.copy()
    if chosen.length:
        for at, candidate in enumerate(candidates):
            if candidate.length:
                linked[at, _LENGTH_DIFFERENCE] = candidate.length - chosen.length
    if chosen.entry is not None:
        _link_position(linked, candidates, chosen.entry)
    if chosen.texts:
        _link_texts(linked, candidates, chosen.texts)
    return linked


def _link_position(linked: NDArray[np.float32], candidates: list[Candidate], last: Entry) -> None:
    for at, candidate in enumerate(candidates):
        steps = [
            entry.position - last.position
            for entry in candidate.entries[-4:]
            if entry.origin is last.origin
        ]
        if steps:
            linked[at, _STEP] = min(steps, key=lambda step: abs(step - 1))


def _link_texts(
    linked: NDArray[np.float32], candidates: list[Candidate], texts: tuple[str, ...]
) -> None:
    shares: dict[int, float] = {}
    count = len(texts)

    def share_of(holder: Origin | Record) -> float:
        """The share of the chosen texts that a message or a record holds, found once for each."""
        share = shares.get(id(holder))
        if share is None:
            text = holder.text[:_LONGEST_LINKED]
            share = sum([part in text for part in texts]) / count
            shares[id(holder)] = share
        return share

    for at, candidate in enumerate(candidates):
        if candidate.made == ABSENT:
            continue
        best = best_record = -1.0
        for entry in candidate.entries[:6]:
            best = max(best, share_of(entry.origin))
            if entry.record.text:
                best_record = max(best_record, share_of(entry.record))
        linked[at, _LINKED] = best
        linked[at, _LINKED_RECORD] = best_record
        linked[at, _CHOSEN_BEFORE] = candidate.text in texts
