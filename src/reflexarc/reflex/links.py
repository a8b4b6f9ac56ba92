"""How the candidates of an argument stand to the arguments that were chosen before it.

Where candidates stand is laid out once for an argument, and asked after each choice: a beam has
three of them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance import Entry, Origin, Record
from reflexarc.provenance.entries import NO_RECORD
from reflexarc.reflex.candidates import ABSENT, Candidate
from reflexarc.reflex.context import Context

FAR = 9.0
UNLINKED = (-1.0, -1.0, FAR, 0.0, FAR, -1.0, 0.0)
"""The columns of `Links.values` where nothing was chosen."""
_LONGEST_LINKED = 20_000
_LINKED_ENTRIES = 6
_STEPPED_ENTRIES = 4
_SHORTEST_LINKED = 3

Holder = Origin | Record


class Chosen:
    """The arguments already filled: their texts, where the last one stands, and the length and the
    items of the last list among them."""

    __slots__ = ("entry", "length", "parts", "texts")

    def __init__(
        self,
        texts: tuple[str, ...] = (),
        length: int = 0,
        entry: Entry | None = None,
        parts: tuple[str, ...] = (),
    ) -> None:
        self.texts = texts
        self.length = length
        self.entry = entry
        self.parts = parts

    @property
    def nothing(self) -> bool:
        """Whether nothing was chosen that others could be linked with."""
        return not self.texts and self.entry is None and not self.length

    def then(self, candidate: Candidate) -> "Chosen":
        text = candidate.text
        if candidate.length:
            parts = tuple([entry.text for entry in candidate.parts])
            return Chosen(self.texts, candidate.length, self.entry, parts)
        if candidate.made == ABSENT or isinstance(candidate.value, (dict, list)):
            return self
        entry = candidate.entries[-1] if candidate.entries else self.entry
        if len(text) <= _SHORTEST_LINKED:
            return Chosen(self.texts, self.length, entry, self.parts)
        return Chosen((*self.texts, text), self.length, entry, self.parts)


class _Held:
    """For each candidate that has any the messages (or the records) it stands in: `at` are their
    places among the holders, those of one candidate side by side."""

    __slots__ = ("at", "candidates", "holders", "starts")

    def __init__(self) -> None:
        self.holders: list[Holder] = []
        self.at: list[int] = []
        self.candidates: list[int] = []
        self.starts: list[int] = []

    def say(
        self, column: NDArray[np.float32], holds: dict[tuple[Holder, str], bool],
        texts: tuple[str, ...],
    ) -> None:  # fmt: skip
        """Write the largest share of the texts that any of a candidate's holders holds."""
        shares = [_share_of(holds, one, texts) for one in self.holders]
        if len(self.at) == len(self.candidates):  # each stands in one
            column[self.candidates] = [shares[at] for at in self.at]
        elif self.at:
            found = np.array([shares[at] for at in self.at])
            column[self.candidates] = np.maximum.reduceat(found, self.starts)


class Links:
    """Where the candidates of one argument stand."""

    __slots__ = ("_candidates", "_holds", "_messages", "_records", "_steps")

    def __init__(self, context: Context, candidates: Sequence[Candidate]) -> None:
        self._holds = context.holds
        self._candidates = candidates
        self._messages, self._records = messages, records = _Held(), _Held()
        self._steps: dict[int, list[tuple[int, int]]] | None = None
        places: dict[int, int] = {}
        for at, candidate in enumerate(candidates):
            entries = candidate.entries
            if not entries or candidate.made == ABSENT:
                continue
            messages.candidates.append(at)
            messages.starts.append(len(messages.at))
            first = len(records.at)
            for entry in entries if len(entries) <= _LINKED_ENTRIES else entries[:_LINKED_ENTRIES]:
                origin, record = entry.origin, entry.record
                place = places.get(id(origin))
                if place is None:
                    place = places[id(origin)] = len(messages.holders)
                    messages.holders.append(origin)
                messages.at.append(place)
                if record is not NO_RECORD:
                    place = places.get(id(record))
                    if place is None:
                        place = places[id(record)] = len(records.holders)
                        records.holders.append(record)
                    records.at.append(place)
            if len(records.at) > first:
                records.candidates.append(at)
                records.starts.append(first)

    def values(self, chosen: Chosen) -> NDArray[np.float32] | None:
        """(candidates, 7): whether its message, and its very record, holds the arguments chosen
        before too; how much longer a list it is; whether it is one of them; how far behind the last
        of them it stands in the same message; and of a list beside a list, item by item, the share
        of items that stand in a message with their counterpart, and that are it. None where nothing
        was chosen."""
        texts, last, length = chosen.texts, chosen.entry, chosen.length
        if chosen.nothing:
            return None
        values = np.empty((len(self._candidates), len(UNLINKED)), dtype=np.float32)
        values[:] = UNLINKED
        if texts:
            self._messages.say(values[:, 0], self._holds, texts)
            self._records.say(values[:, 1], self._holds, texts)
            for at, candidate in enumerate(self._candidates):
                if candidate.text in texts and candidate.made != ABSENT:
                    values[at, 3] = 1.0
        if last is not None:
            self._say_steps(values, last)
        if length:
            count = len(chosen.parts)
            for at, candidate in enumerate(self._candidates):
                if candidate.length:
                    values[at, 2] = candidate.length - length
                if count and len(candidate.parts) == count:
                    values[at, 5:] = self._beside(candidate, chosen.parts)
        return values

    def _say_steps(self, values: NDArray[np.float32], last: Entry) -> None:
        if self._steps is None:
            self._steps = {}
            for at, candidate in enumerate(self._candidates):
                entries = candidate.entries
                for entry in entries[-_STEPPED_ENTRIES:]:
                    self._steps.setdefault(id(entry.origin), []).append((at, entry.position))
        steps: dict[int, int] = {}
        for at, position in self._steps.get(id(last.origin), ()):
            here = position - last.position
            if at not in steps or abs(here - 1) < abs(steps[at] - 1):
                steps[at] = here
        for at, step in steps.items():
            values[at, 4] = step

    def _beside(self, candidate: Candidate, chosen: tuple[str, ...]) -> tuple[float, float]:
        pairs = list(zip(candidate.parts, chosen, strict=True))
        linked = sum([_share_of(self._holds, entry.origin, (text,)) for entry, text in pairs])
        again = sum([entry.text == text for entry, text in pairs])
        return linked / len(pairs), again / len(pairs)


def _share_of(
    holds: dict[tuple[Holder, str], bool], holder: Holder, texts: tuple[str, ...]
) -> float:
    """The share of texts that a message or a record holds; what it holds never changes. -1 where
    there is nothing that could hold any."""
    whole = holder.text
    if not whole:
        return 0.0 if isinstance(holder, Origin) else -1.0
    count = 0
    for part in texts:
        held = holds.get((holder, part))
        if held is None:
            held = holds[holder, part] = part in whole[:_LONGEST_LINKED]
        count += held
    return count / len(texts)
