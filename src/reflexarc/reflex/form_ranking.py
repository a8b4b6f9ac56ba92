"""Which form the next call of a tool has: what speaks for each, as numbers."""

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
_KNOWN, _AFTER, _OFTEN = _COLUMN["known"], _COLUMN["after_0"], _COLUMN["often_0"]
_BEST_AFTER = _COLUMN["best_after_0"]
_COMPARED = [_COLUMN[name] for name in ("names_in_results", "names_in_newest", "missing")]
_COMPARISON = [
    _COLUMN[f"best_{name}"] for name in ("names_in_results", "names_in_newest", "missing")
]
_SMOOTHING = 0.5
_LONG_AGO = 99
_KINDS = {"U": 0, "C": 1, "O": 2, "X": 3, "M": 4}
_SLOTS = 3

After = Callable[[int], Counter[int] | None]


class FormFeatures:
    """Describes the forms of one tool in a context: the open one (-1) stands last. What is the same
    in every context is laid out once."""

    def __init__(self, tool: Tool, sources: Sources) -> None:
        self._tool = tool
        self._index = sources.forms
        forms, count = tool.forms, len(tool.forms) + 1
        names: list[frozenset[str]] = [*literal_names(forms), frozenset[str]()]
        together = max(1, tool.calls)
        shares = [form.calls / together for form in forms]
        shares.append(max(0.0, 1 - sum(form.calls for form in forms) / together))
        self._shares = np.array(shares)
        first = sum(
            len(one.forms) + 1 for one in sources.tools[: sources.tools.index(tool)] if one.forms
        )
        self._plain = np.zeros((count, len(FEATURES)), dtype=np.float32)
        self._plain[:, _COLUMN["share"]] = self._shares
        self._plain[:, _COLUMN["form"]] = [*(first + at for at in range(len(forms))), first + OPEN]
        self._plain[:, _COLUMN["leaves"]] = [*(len(form.leaves) for form in forms), 0]
        self._plain[:, _COLUMN["holes"]] = [*(len(form.holes) for form in forms), 0]
        self._plain[:, _COLUMN["since"]] = _LONG_AGO
        self._plain[:, _COLUMN["names"]] = [len(one) for one in names]
        self._alike = np.array([[_overlap(one, other) for other in names] for one in names])
        self._name_rows: dict[str, int] = {
            name: at for at, name in enumerate(sorted(frozenset[str]().union(*names)))
        }
        self._says = np.array(
            [[name in one for one in names] for name in self._name_rows] or [[0] * count]
        )
        weights = np.log(count / np.maximum(1, self._says.sum(axis=1)))
        self._weighs = self._says * weights[:, None]
        self._per_name = 1.0 / np.maximum(1, self._plain[:, _COLUMN["names"]])
        self._all_weigh = self._weighs.sum(axis=0)
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}
        self._holes = np.zeros(
            (count, max([1, *(len(form.holes) for form in forms)])), dtype=np.intp
        )
        for at, form in enumerate(forms):
            for column, hole in enumerate(form.holes):
                slots = tuple(slot.name for slot in tool.holes[hole].slots[:_SLOTS])
                place = (tool.holes[hole].name, slots)
                self._holes[at, column] = self._places.setdefault(place, len(self._places) + 1)
        # In the order of the places: what `available` is asked, slot by slot.
        self._asked = [(name, tuple((slot,) for slot in slots)) for name, slots in self._places]
        self._no_holes = np.array([*(not form.holes for form in forms), True])

    def matrix(
        self, context: Context, numbers: Sequence[int] | None, after: After
    ) -> NDArray[np.float32]:
        """(numbers, features): a row for each of these forms; None: all of them, then the open
        one."""
        trail = Trail.of(context, self._index)
        trail.read_names(context.log)
        matrix = self._plain.copy()
        self._say_what_was_called(matrix, context, trail)
        self._say_what_is_named(matrix, trail)
        matrix[:, _KNOWN : _KNOWN + 2] = self._available(context)
        matrix[:, _AFTER : _AFTER + GRAMS], often = self._followed(trail, after)
        matrix[:, _OFTEN : _OFTEN + GRAMS] = often
        if numbers is not None:
            matrix = matrix[list(numbers)]
        column = matrix[:, _AFTER : _AFTER + GRAMS]
        matrix[:, _BEST_AFTER : _BEST_AFTER + GRAMS] = column - column.max(axis=0)
        column = matrix[:, _COMPARED]
        matrix[:, _COMPARISON] = column - column.max(axis=0)
        return matrix

    def _say_what_was_called(
        self, matrix: NDArray[np.float32], context: Context, trail: Trail
    ) -> None:
        tool, here = self._tool.name, len(trail.calls)
        for at, times in trail.used.items():
            if at[0] == tool:
                matrix[at[1], _COLUMN["used"]] = times
                matrix[at[1], _COLUMN["since"]] = here - trail.last_use[at]
        for at in trail.calls[-3:]:
            if at[0] == tool:
                matrix[at[1], _COLUMN["siblings"]] += 1
        if trail.calls and trail.calls[-1][0] == tool:
            last = trail.calls[-1][1]
            matrix[last, _COLUMN["in_last"]] = 1
            matrix[:, _COLUMN["same_names"]] = self._alike[last]
        if trail.failed is not None:
            matrix[:, _COLUMN["last_failed"]] = 1
            if trail.failed[0] == tool:
                matrix[:, _COLUMN["failed_names"]] = self._alike[trail.failed[1]]
        matrix[:, _COLUMN["calls"]] = here
        matrix[:, _COLUMN["calls_since_user"]] = context.calls_since_user
        matrix[:, _COLUMN["different"]] = len(trail.used)
        event = _KINDS[trail.symbols[-1][0]] if trail.symbols else 5
        matrix[:, _COLUMN["last_event"]] = event

    def _say_what_is_named(self, matrix: NDArray[np.float32], trail: Trail) -> None:
        rows = self._name_rows
        said = [rows[name] for name in rows.keys() & trail.names]
        by_user = [rows[name] for name in rows.keys() & trail.user_names]
        newest = [rows[name] for name in rows.keys() & trail.new_names]
        for column, found in (
            ("names_in_results", said), ("names_in_newest", newest), ("names_in_user", by_user)
        ):  # fmt: skip
            if found:
                matrix[:, _COLUMN[column]] = self._says[found].sum(axis=0) * self._per_name
        anywhere = [*{*said, *by_user}]
        missing = self._all_weigh - self._weighs[anywhere].sum(axis=0)
        matrix[:, _COLUMN["missing"]] = missing

    def _followed(
        self, trail: Trail, after: After
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(forms, grams) shares of each form after the last events, smoothed by its own; and how
        often these were seen at all, as a logarithm."""
        counts = np.zeros((len(self._shares), GRAMS))
        for column, key in enumerate(move_keys(self._tool.name, trail.grams())):
            move = after(key)
            if move:
                counts[list(move), column] = list(move.values())
        totals = counts.sum(axis=0)
        shares = (counts + _SMOOTHING * self._shares[:, None]) / (totals + _SMOOTHING)
        return shares, np.log1p(totals)

    def _available(self, context: Context) -> NDArray[np.float64]:
        """(forms, 2): the fewest values that any hole of a form could take, and the fewest not used
        there; -1 where there are no holes."""
        most = [(99, 99)]
        tool, available, slots_at = self._tool.name, context.available, context.slots
        for name, slots in self._asked:
            known = unused = 0
            for slot in slots:
                if slot[0] not in slots_at:
                    continue
                here = available(tool, name, slot)
                known, unused = max(known, here[0]), max(unused, here[1])
            most.append((known, unused))
        fewest = np.array(most, dtype=np.float64)[self._holes].min(axis=1)
        fewest[self._no_holes] = -1.0
        return fewest


def _overlap(names: frozenset[str], others: frozenset[str]) -> float:
    return len(names & others) / len(names | others) if names and others else 0.0
