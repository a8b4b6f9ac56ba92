"""Which form the next call of a tool has: what speaks for each, as numbers."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.context import Context
from reflexarc.reflex.sources import Sources, Tool
from reflexarc.reflex.trail import GRAMS, OPEN, Trail, literal_names, move_keys

FEATURES = (
    "share", "form", "leaves", "holes", "used", "since", "in_last", "same_names", "failed_names",
    "names", "names_in_results", "names_in_newest", "names_in_user", "known", "unused",
    "calls", "calls_since_user", "different", "last_event", "last_failed", "siblings",
    *(f"after_{at}" for at in range(GRAMS)),
    *(f"often_{at}" for at in range(GRAMS)),
    *(f"best_after_{at}" for at in range(GRAMS)),
    "best_names_in_results", "best_names_in_newest", "missing", "best_missing",
)  # fmt: skip
_COLUMN = {name: at for at, name in enumerate(FEATURES)}
_SMOOTHING = 0.5
_LONG_AGO = 99
_KINDS = {"U": 0, "C": 1, "O": 2, "X": 3, "M": 4}
_SLOTS = 3

After = Callable[[int], Counter[int] | None]


class FormFeatures:
    """Describes the forms of one tool in a context."""

    def __init__(self, tool: Tool, sources: Sources) -> None:
        self._tool = tool
        self._sources = sources
        self._names = [*literal_names(tool.forms), frozenset[str]()]
        counts = Counter(name for names in self._names for name in names)
        self._weights = {name: math.log(len(self._names) / count) for name, count in counts.items()}
        seen = sum(form.calls for form in tool.forms)
        together = max(1, tool.calls)
        self._shares = [form.calls / together for form in tool.forms]
        self._shares.append(max(0.0, 1 - seen / together))
        self._first = sum(
            len(one.forms) + 1 for one in sources.tools[: sources.tools.index(tool)] if one.forms
        )
        self._slots = [
            [
                (tool.holes[at].name, [slot.name for slot in tool.holes[at].slots[:_SLOTS]])
                for at in form.holes
            ]
            for form in tool.forms
        ]

    def matrix(self, context: Context, numbers: Sequence[int], after: After) -> NDArray[np.float32]:
        """(numbers, features): a row for each of these forms, the open one (-1) among them."""
        tool = self._tool.name
        trail = Trail.of(context, self._sources.forms)
        trail.read_names(context.log)
        moves = [after(key) for key in move_keys(tool, trail.grams())]
        totals = [sum(move.values()) if move else 0 for move in moves]
        often = [math.log1p(total) for total in totals]
        last = trail.calls[-1] if trail.calls else ("", OPEN)
        last_names = self._names_of(last)
        failed_names = self._names_of(trail.failed) if trail.failed else frozenset[str]()
        here = len(trail.calls)
        event = _KINDS[trail.symbols[-1][0]] if trail.symbols else 5
        recent = trail.calls[-3:]
        availability: dict[str, tuple[int, int]] = {}
        rows: list[tuple[float, ...]] = []
        for number in numbers:
            at = (tool, number)
            names = self._names[number]
            count = len(names) or 1
            share = self._shares[number]
            known, unused = self._available(context, number, availability)
            form = self._tool.forms[number] if number != OPEN else None
            rows.append((
                share, self._first + number, len(form.leaves) if form else 0,
                len(form.holes) if form else 0, trail.used.get(at, 0),
                here - trail.last_use[at] if at in trail.last_use else _LONG_AGO,
                last == at, _overlap(names, last_names), _overlap(names, failed_names),
                len(names), len(names & trail.names) / count,
                len(names & trail.new_names) / count, len(names & trail.user_names) / count,
                known, unused, here, context.calls_since_user, len(trail.used), event,
                trail.failed is not None, sum(one == at for one in recent),
                *(
                    ((move.get(number, 0) if move else 0) + _SMOOTHING * share)
                    / (total + _SMOOTHING)
                    for move, total in zip(moves, totals, strict=True)
                ),
                *often,
                *([0.0] * (GRAMS + 2)), self._weight(names - trail.names - trail.user_names), 0.0,
            ))  # fmt: skip
        matrix = np.array(rows, dtype=np.float32)
        first, best = _COLUMN["after_0"], _COLUMN["best_after_0"]
        column = matrix[:, first : first + GRAMS]
        matrix[:, best : best + GRAMS] = column - column.max(axis=0)
        for source in ("names_in_results", "names_in_newest", "missing"):
            column = matrix[:, _COLUMN[source]]
            matrix[:, _COLUMN[f"best_{source}"]] = column - column.max()
        return matrix

    def _weight(self, names: frozenset[str]) -> float:
        return sum(self._weights[name] for name in names)

    def _names_of(self, at: tuple[str, int]) -> frozenset[str]:
        return self._names[at[1]] if at[0] == self._tool.name else frozenset()

    def _available(
        self, context: Context, number: int, found: dict[str, tuple[int, int]]
    ) -> tuple[int, int]:
        """The fewest values that any hole of a form could take, and the fewest unused."""
        if number == OPEN or not self._slots[number]:
            return -1, -1
        known = unused = 99
        for name, slots in self._slots[number]:
            pair = found.get(name)
            if pair is None:
                values: set[str] = set()
                for slot in slots:
                    values |= context.distinct(slot)
                used = context.used.get((self._tool.name, name))
                pair = (len(values), len(values - used) if used else len(values))
                found[name] = pair
            known, unused = min(known, pair[0]), min(unused, pair[1])
        return known, unused


def _overlap(names: frozenset[str], others: frozenset[str]) -> float:
    return len(names & others) / len(names | others) if names and others else 0.0
