"""What a word, an event or a result speaks for: weights of signs for each tool, counted over tasks.

A sign is a hash; nothing that was said is kept. A sign is kept if three tasks showed it. Its weight
for a tool is the logarithm of how much likelier the tool is where the sign stands than anywhere,
drawn towards nothing by `_PRIOR` tasks in which it would say nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from reflexarc.reflex.sensitive import MIN_TASKS

MAX_SIGNS = 2_000
MAX_WEIGHTS = 1 << 21
"""Of one table: signs times tools."""
_PRIOR = 3.0

Weights = NDArray[np.float32]


@lru_cache(maxsize=32768)  # of short words and names of events: a few megabytes at most
def sign(text: str) -> int:
    """The hash a word or an event is known by."""
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


class Table:
    """Weights by sign: `keys` sorted, `rows` of shape (signs, tools). Immutable."""

    __slots__ = ("_row", "keys", "rows")

    def __init__(self, keys: NDArray[np.uint64], rows: Weights) -> None:
        self.keys = keys
        self.rows = rows
        self._row = {int(key): at for at, key in enumerate(keys.tolist())}

    def found(self, signs: Iterable[int]) -> Weights:
        """(signs that are known, tools)."""
        known = self._row
        return self.rows.take(
            np.array([at for one in signs if (at := known.get(one)) is not None], np.intp), axis=0
        )

    def sums(self, groups: Sequence[Iterable[int]]) -> tuple[Weights, list[int]]:
        """For each group of signs the sum of its rows, (groups, tools), and how many of its signs
        are known: all of them in a few calls, whatever their number."""
        known = self._row
        places = [[at for one in signs if (at := known.get(one)) is not None] for signs in groups]
        return _sums(self.rows, places), [len(here) for here in places]


def _sums(rows: Weights, groups: Sequence[Sequence[int]]) -> Weights:
    """(groups, tools) the sums of the rows at the places of each group."""
    found: list[int] = []
    starts: list[int] = []
    filled: list[int] = []
    for group, here in enumerate(groups):
        if here:
            starts.append(len(found))
            filled.append(group)
            found += here
    sums = np.zeros((len(groups), rows.shape[1]), dtype=np.float32)
    if found:
        taken = rows.take(np.array(found, np.intp), axis=0)
        sums[filled] = np.add.reduceat(taken, starts, axis=0)
    return sums


def table_of(weights: dict[int, Weights], tools: int) -> Table:
    """A table of these weights by sign."""
    keys = sorted(weights)
    rows = np.stack([weights[key] for key in keys]) if keys else np.zeros((0, tools))
    return Table(np.array(keys, dtype=np.uint64), rows.astype(np.float32))


class Associations:
    """Which signs stood where which tool was called, by task."""

    def __init__(self) -> None:
        self._of_task: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self._called: defaultdict[str, set[str]] = defaultdict(set)

    def observe(self, signs: Collection[int], tool: str, task: str) -> None:
        """These signs stood where a task called a tool."""
        of_task = self._of_task[task]
        for one in signs:
            of_task[one].add(tool)
        self._called[task].add(tool)

    def weighed(self, tools: Sequence[str], tasks: Collection[str]) -> "Weighed":
        """The weights over some of the tasks, other tools left aside."""
        at = {name: place for place, name in enumerate(tools)}
        of_task: dict[str, dict[int, list[int]]] = {}
        called: dict[str, list[int]] = {}
        for task in tasks:
            here = [at[name] for name in self._called.get(task, ()) if name in at]
            if not here:
                continue
            called[task] = here
            kept = of_task[task] = dict[int, list[int]]()
            for one, names in self._of_task[task].items():
                places = [at[name] for name in names if name in at]
                if places:
                    kept[one] = places
        return Weighed(len(tools), of_task, called)


class Weighed:
    """The weights of signs for tools over some tasks. While learning, `found` leaves a task's own
    counts out."""

    def __init__(
        self, tools: int, of_task: dict[str, dict[int, list[int]]], called: dict[str, list[int]]
    ) -> None:
        """By task the tools each sign stood for, and those that were called at all. What fewer than
        three tasks showed is forgotten."""
        self._tools = tools
        self._of_task = of_task
        self._called = called
        self._left: _LeftOut | None = None
        tasks_with: Counter[int] = Counter()
        for signs in of_task.values():
            tasks_with.update(signs.keys())
        most = max(1, min(MAX_SIGNS, MAX_WEIGHTS // max(1, tools)))
        ranked = sorted(tasks_with.items(), key=lambda pair: (-pair[1], pair[0]))
        kept = [one for one, tasks in ranked[:most] if tasks >= MIN_TASKS]
        self._row = {one: at for at, one in enumerate(kept)}
        self._counts = np.zeros((len(kept), tools))
        self._with = np.array([float(tasks_with[one]) for one in kept])
        self._total = np.zeros(tools)
        for signs in of_task.values():
            for one, places in signs.items():
                at = self._row.get(one)
                if at is not None:
                    self._counts[at, places] += 1
        for places in called.values():
            self._total[places] += 1
        weights = _weights(self._counts, self._with, self._share(None))
        self.table = table_of(dict(zip(kept, weights, strict=True)), tools)

    def prior(self) -> Weights:
        """(tools,) the logarithm of the share of tasks that call each."""
        return np.log(self._share(None)).astype(np.float32)

    def found(self, signs: Iterable[int], without: str) -> Weights:
        """What `Table.found` gives, a task's own counts left out."""
        left = self._left_out(without)
        return left.rows.take(np.array(left.places(self._row, signs), np.intp), axis=0)

    def sums(self, groups: Sequence[Iterable[int]], without: str) -> tuple[Weights, list[int]]:
        """What `Table.sums` gives, a task's own counts left out."""
        left = self._left_out(without)
        places = [left.places(self._row, signs) for signs in groups]
        return _sums(left.rows, places), [len(here) for here in places]

    def _left_out(self, task: str) -> "_LeftOut":
        if self._left is None or self._left.task != task:
            own = {
                at: places
                for one, places in self._of_task.get(task, dict[int, list[int]]()).items()
                if (at := self._row.get(one)) is not None
            }
            self._left = _LeftOut(task, own, self._counts, self._with, self._share(task))
        return self._left

    def _share(self, without: str | None) -> NDArray[np.float64]:
        total, tasks = self._total, len(self._called)
        own = self._called.get(without) if without is not None else None
        if own:
            total = total.copy()
            total[own] -= 1
            tasks -= 1
        return (total + 0.5) / (tasks + 1)


class _LeftOut:
    """The weights without a task's own counts, each worked out when it is first asked for."""

    def __init__(
        self, task: str, own: dict[int, list[int]], counts: NDArray[np.float64],
        tasks: NDArray[np.float64], share: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """`own`: by the place of a sign the tools it stood for in the task."""
        self.task = task
        self.rows = np.zeros(counts.shape, dtype=np.float32)
        self._own = own
        self._counts = counts
        self._tasks = tasks.copy()
        self._tasks[list(own)] -= 1
        self._share = share
        self._enough: list[bool] = (self._tasks >= MIN_TASKS - 1).tolist()
        self._known = [False] * len(counts)

    def places(self, rows: Mapping[int, int], signs: Iterable[int]) -> list[int]:
        """The places of the signs that enough tasks show, their `rows` worked out."""
        enough, known = self._enough, self._known
        found = [at for one in signs if (at := rows.get(one)) is not None and enough[at]]
        new = [at for at in found if not known[at]]
        if new:
            counts = self._counts.take(new, axis=0)
            for row, at in enumerate(new):
                known[at] = True
                own = self._own.get(at)
                if own:
                    counts[row, own] -= 1
            self.rows[new] = _weights(counts, self._tasks.take(new), self._share)
        return found


def _weights(
    counts: NDArray[np.float64], tasks: NDArray[np.float64], share: NDArray[np.float64]
) -> Weights:
    """(signs, tools) from the tasks in which each sign stood where each tool was called, (signs,
    tools), and those in which it stood at all, (signs,)."""
    odds = (counts + _PRIOR * share) / ((tasks[:, None] + _PRIOR) * share)
    return np.log(odds).astype(np.float32)
