"""What an argument that was seen a few times takes over from its kin: arguments of other tools that
have its name, or take values of its kind (days, addresses).

A tool that was called three times has learned next to nothing of where its arguments come from;
a sister of it, called two hundred times, has. What is taken over counts as `_BELIEVED` calls: an
argument that was seen often goes by what it showed itself. What may be named is asked by the same
rules as for an argument's own (`source_learning.py`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from reflexarc.provenance.stems import name_stems
from reflexarc.reflex.keyed import KEYED, key_of
from reflexarc.reflex.sources import Kind, Slot

MAX_BORROWED = 10
_BELIEVED = 3.0
_OF_KIND = 0.5
"""How much less is believed of what only takes values of the same kind."""
_LEAST = 0.03
_MIN_HITS = 2
_MIN_PRECISION = 0.002
_MOST = 0.8
_KINDS = {
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "day": re.compile(r"\d{4}-\d\d-\d\d"),
    "time": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?"),
    "url": re.compile(r"https?://\S+"),
}

Where = tuple[str, str]


class Counted(Protocol):
    """What was counted of one argument of one tool."""

    hits: Counter[str]
    seen: Counter[str]
    size: Counter[str]
    kinds: Counter[Kind]
    constants: dict[str, tuple[Any, set[str]]]


class _Pool:
    """The counts of several arguments together."""

    def __init__(self) -> None:
        self.hits = Counter[str]()
        self.seen = Counter[str]()
        self.size = Counter[str]()

    def add(self, counts: Counted) -> None:
        self.hits.update(counts.hits)
        self.seen.update(counts.seen)
        self.size.update(counts.size)


class Kin:
    """All arguments of all tools; asked what one of them may take over."""

    def __init__(self, counted: Mapping[Where, Counted]) -> None:
        self._counted = counted
        self._kinds = {where: _kind(counts) for where, counts in counted.items()}
        self._named: defaultdict[tuple[str, str], _Pool] = defaultdict(_Pool)
        self._of_kind: defaultdict[str, _Pool] = defaultdict(_Pool)
        self._keyed = _Pool()
        for where, counts in counted.items():
            self._named[where[1], _json(counts)].add(counts)
            kind = self._kinds[where]
            if kind:
                self._of_kind[kind].add(counts)
            key = f"{KEYED}{where[1]}"
            if counts.seen[key]:
                self._keyed.hits[""] += counts.hits[key]
                self._keyed.seen[""] += counts.seen[key]
                self._keyed.size[""] += counts.size[key]

    def slots(self, where: Where, known: Iterable[str], kept: Callable[[str], bool]) -> list[Slot]:
        """Slots beside those that are known, the likeliest first."""
        own = self._counted[where]
        taken = set(known)
        if any(key_of(slot) == where[1] for slot in taken):
            taken.add(f"{KEYED}{where[1]}")  # which result says it is known
        found: dict[str, Slot] = {}
        for pool, part in self._pools(where, own):
            for slot, hits in pool.hits.items():
                name = slot or f"{KEYED}{where[1]}"
                if name in taken or name in found or _keyed_otherwise(name, where[1]):
                    continue
                mine = (own.hits[name], own.seen[name], own.size[name])
                theirs = (hits, pool.seen[slot], pool.size[slot])
                one = _believed(name, theirs, mine, part)
                if one is not None and kept(name):
                    found[name] = one
        ranked = sorted(found.values(), key=lambda slot: (-slot.hit_rate, slot.name))
        return ranked[:MAX_BORROWED]

    def _pools(self, where: Where, own: Counted) -> Iterator[tuple[_Pool, float]]:
        yield self._named[where[1], _json(own)], 1.0
        yield self._keyed, 1.0
        kind = self._kinds[where]
        if kind:
            yield self._of_kind[kind], _OF_KIND


def _keyed_otherwise(slot: str, argument: str) -> bool:
    """Whether a slot is of the values that results have under another argument's name."""
    return slot.startswith(KEYED) and slot != f"{KEYED}{argument}"


def _believed(
    name: str, theirs: tuple[int, int, int], mine: tuple[int, int, int], part: float
) -> Slot | None:
    """A slot of the kin as an argument may believe it, from (hits, calls, values), its own being
    among those of the kin."""
    hits, calls, values = (all_of - own for all_of, own in zip(theirs, mine, strict=True))
    if hits < _MIN_HITS or calls <= 0:
        return None
    precision = min(1.0, hits / max(1, values))
    rate = part * hits / (calls + 2.0)
    rate = (mine[0] + _BELIEVED * rate) / (mine[1] + _BELIEVED)
    if rate < _LEAST or precision < _MIN_PRECISION:
        return None
    return Slot(name, min(1.0, rate), precision)


def _json(counts: Counted) -> Kind:
    return counts.kinds.most_common(1)[0][0] if counts.kinds else "string"


def _kind(counts: Counted) -> str:
    """What kind of values an argument takes, where most are of one."""
    texts = list(counts.constants)
    for kind, pattern in _KINDS.items():
        fitting = sum(pattern.fullmatch(text) is not None for text in texts)
        if texts and fitting >= _MOST * len(texts):
            return kind
    return ""


def choices_of_kin(
    tool: str, name: str, choices: Mapping[str, Mapping[str, Sequence[Any]]]
) -> Sequence[Any]:
    """What the schemas of related tools list for an argument of this name: those of the tool
    whose name shares most words with this one's."""
    own = set(name_stems(tool))
    best: tuple[int, str] = (0, "")
    for other, listed in choices.items():
        if other != tool and listed.get(name):
            shared = len(own.intersection(name_stems(other)))
            if shared > best[0] or (shared == best[0] > 0 and other < best[1]):
                best = (shared, other)
    return choices[best[1]][name] if best[0] else ()
