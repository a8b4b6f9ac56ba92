"""The calls of a conversation by their forms, and the moves from there to the next form.

A *move* is a form called after certain events: the last one, two or three, the last calls, all the
forms called so far. Moves are counted while learning and kept as hashes of what three tasks showed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

import msgspec
import xxhash

from reflexarc.reflex.context import Context, Event
from reflexarc.reflex.forms import Form, FormIndex
from reflexarc.reflex.sensitive import MIN_TASKS

MAX_MOVES = 20_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{2,40}")
_READ_CHARS = 60_000
OPEN = -1
"""The form of a call that has none."""


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After the events of this hash, how often each form was called: (form, calls)."""

    key: int
    forms: tuple[tuple[int, int], ...]


class Trail:
    """What of a conversation the ranking of forms looks at; brought up to date by `of`."""

    def __init__(self, index: Mapping[str, FormIndex]) -> None:
        self._index = index
        self._read = 0
        self.symbols: list[str] = []
        self.calls: list[tuple[str, int]] = []
        self.failed: tuple[str, int] | None = None
        self.used: Counter[tuple[str, int]] = Counter()
        self.last_use: dict[tuple[str, int], int] = {}
        self.names: set[str] = set()
        self.new_names: set[str] = set()
        self.user_names: set[str] = set()
        self.outcome = ""
        self._called = False
        self._newest_from = 0
        self._names_from = 0
        self._forms: dict[int, int] = {}

    @classmethod
    def of(cls, context: Context, index: Mapping[str, FormIndex]) -> "Trail":
        """The trail of a context, read on from where it was left."""
        kept = context.trails.get(id(index))
        if kept is not None and kept[0] is index and isinstance(kept[1], Trail):
            trail = kept[1]
        else:
            trail = cls(index)
            context.trails[id(index)] = (index, trail)
        trail.read(context.log)
        return trail

    def read(self, log: list[Event]) -> None:
        """Take in the events that are new."""
        for event in log[self._read :]:
            self._event(event)
        self._read = len(log)

    def _event(self, event: Event) -> None:
        if event.kind == "C":
            at = self._form(event)
            self.calls.append(at)
            self.used[at] += 1
            self.last_use[at] = len(self.calls)
            self.symbols.append(f"C{at[0]}#{at[1]}")
            self._called = True
            return
        if event.kind in ("O", "X"):
            if self._called:
                self._newest_from = len(self.symbols)
                self._called = False
            at = self._form(event) if event.call is not None else ("", OPEN)
            self.outcome = event.outcome
            bad = event.kind == "X" or event.outcome[:1] in ("4", "5")
            self.failed = at if bad else None
            self.symbols.append(f"{event.kind}{at[0]}#{at[1]}:{event.outcome}")
            return
        self.symbols.append(event.kind)

    def read_names(self, log: list[Event]) -> None:
        """Take in the names in texts that are new, which only the ranking of forms needs."""
        if self._names_from < self._newest_from:
            self.new_names = set()
        for at in range(self._names_from, len(log)):
            event = log[at]
            if event.kind == "U":
                self.user_names.update(_NAME.findall(event.text[:_READ_CHARS]))
            elif event.text:
                found = _NAME.findall(event.text[:_READ_CHARS])
                self.names.update(found)
                if at >= self._newest_from:
                    self.new_names.update(found)
        self._names_from = len(log)

    def _form(self, event: Event) -> tuple[str, int]:
        call = event.call
        if call is None:
            return "", OPEN
        index = self._index.get(call.name)
        if index is None:
            return call.name, OPEN
        form = self._forms.get(id(call))
        if form is None:
            found = index.find(call.arguments) if call.well_formed else None
            form = found[0] if found is not None else OPEN
            self._forms[id(call)] = form
        return call.name, form

    def grams(self) -> tuple[str, ...]:
        """What the next form may follow from, from the plainest to the most special."""
        recent = self.symbols[-4:][::-1]
        called = [f"{tool}#{form}" for tool, form in self.calls[-3:][::-1]]
        return (
            "|".join(recent[:1]),
            "|".join(recent[:2]),
            "|".join(recent[:3]),
            "|".join(called[:2]),
            f"{self.outcome}|{'|'.join(called[:1])}",
            "|".join(called[:3]),
            "|".join(sorted(f"{tool}#{form}" for tool, form in self.used)),
        )


GRAMS = 7


def move_keys(tool: str, grams: Iterable[str]) -> list[int]:
    """The hashes under which the moves to a tool's forms are kept."""
    return [
        xxhash.xxh3_64_intdigest(f"{tool}\x1f{at}\x1f{gram}".encode("utf-8", "replace")) >> 1
        for at, gram in enumerate(grams)
    ]


class MoveLearner:
    """Counts moves by task."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, dict[int, dict[str, Counter[int]]]] = defaultdict(dict)
        self._whole: dict[tuple[str, int], Counter[int]] = {}

    def observe(self, tool: str, form: int, trail: Trail, task: str) -> None:
        for key in move_keys(tool, trail.grams()):
            by_task = self._counts[tool].setdefault(key, {})
            by_task.setdefault(task, Counter())[form] += 1

    def finish(self, tool: str) -> tuple[Move, ...]:
        """The moves to a tool's forms that enough tasks showed."""
        moves: list[Move] = []
        for key, by_task in sorted(self._counts[tool].items()):
            if len(by_task) < MIN_TASKS:
                continue
            counts: Counter[int] = Counter()
            for of_task in by_task.values():
                counts.update(of_task)
            moves.append(Move(key, tuple(sorted(counts.items()))))
        moves.sort(key=lambda move: -sum(count for _, count in move.forms))
        return tuple(moves[:MAX_MOVES])

    def after(self, tool: str, key: int, without: str) -> Counter[int] | None:
        """What `finish` would keep of a hash had it not seen a task."""
        by_task = self._counts[tool].get(key)
        if by_task is None or len(by_task) - (without in by_task) < MIN_TASKS:
            return None
        whole = self._whole.get((tool, key))
        if whole is None:
            whole = Counter[int]()
            for of_task in by_task.values():
                whole.update(of_task)
            self._whole[tool, key] = whole
        return whole - by_task[without] if without in by_task else whole


class Moves:
    """The moves to the forms of one tool, as they are looked up."""

    def __init__(self, moves: Iterable[Move]) -> None:
        self._after = {move.key: Counter(dict(move.forms)) for move in moves}

    def after(self, key: int) -> Counter[int] | None:
        return self._after.get(key)


def literal_names(forms: Collection[Form]) -> list[frozenset[str]]:
    """The names that each form says of itself, those that most forms say left out."""
    said = [frozenset(_literals(form)) for form in forms]
    counts = Counter(name for names in said for name in names)
    common = {name for name, count in counts.items() if count > 0.5 * len(said)}
    return [names - common for names in said]


def _literals(form: Form) -> Iterable[str]:
    for leaf in form.leaves:
        yield from _NAME.findall(leaf.path[-1])
        if isinstance(leaf.value, str):
            yield from _NAME.findall(leaf.value)
        for part in leaf.parts:
            if part is not None:
                yield from _NAME.findall(part)
