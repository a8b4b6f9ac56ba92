"""What a word, an event or a result speaks for: weights of signs for each tool, counted over tasks.

A sign is a hash; nothing that was said is kept. A sign is kept if three tasks showed it. Its weight
for a tool is the logarithm of how much likelier the tool is where the sign stands than anywhere,
drawn towards nothing by `_PRIOR` tasks in which it would say nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
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
        found: list[int] = []
        starts: list[int] = []
        filled: list[int] = []
        sizes: list[int] = []
        for group, signs in enumerate(groups):
            here = [at for one in signs if (at := known.get(one)) is not None]
            sizes.append(len(here))
            if here:
                starts.append(len(found))
                filled.append(group)
                found += here
        sums = np.zeros((len(groups), self.rows.shape[1]), dtype=np.float32)
        if found:
            rows = self.rows.take(np.array(found, np.intp), axis=0)
            sums[filled] = np.add.reduceat(rows, starts, axis=0)
        return sums, sizes


def table_of(weights: dict[int, Weights], tools: int) -> Table:
    """A table of these weights by sign."""
    keys = sorted(weights)
    rows = np.stack([weights[key] for key in keys]) if keys else np.zeros((0, tools))
    return Table(np.array(keys, dtype=np.uint64), rows.astype(np.float32))


class Associations:
    """Counts, over tasks, which signs stood where which tool was called. While learning, `found`
    leaves a task's own counts out."""

    def __init__(self, tools: int) -> None:
        self._tools = tools
        self._of_task: defaultdict[str, defaultdict[int, set[int]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self._called: defaultdict[str, set[int]] = defaultdict(set)
        self._counts = np.zeros((0, tools))
        self._with = np.zeros(0)
        self._row: dict[int, int] = {}
        self._share_without: tuple[str, NDArray[np.float64]] | None = None
        self._tasks_with: Counter[int] = Counter()
        self._total = np.zeros(tools)

    def observe(self, signs: Collection[int], tool: int, task: str) -> None:
        """These signs stood where a task called a tool."""
        of_task = self._of_task[task]
        for one in signs:
            of_task[one].add(tool)
        self._called[task].add(tool)

    def finish(self) -> Table:
        """The weights; what fewer than three tasks showed is forgotten."""
        for of_task in self._of_task.values():
            self._tasks_with.update(of_task.keys())
        most = max(1, min(MAX_SIGNS, MAX_WEIGHTS // max(1, self._tools)))
        ranked = sorted(self._tasks_with.items(), key=lambda pair: (-pair[1], pair[0]))
        kept = [one for one, tasks in ranked[:most] if tasks >= MIN_TASKS]
        self._row = {one: at for at, one in enumerate(kept)}
        self._counts = np.zeros((len(kept), self._tools))
        self._with = np.array([float(self._tasks_with[one]) for one in kept])
        for of_task in self._of_task.values():
            for one, tools in of_task.items():
                at = self._row.get(one)
                if at is not None:
                    self._counts[at, list(tools)] += 1
        for tools in self._called.values():
            self._total[list(tools)] += 1
        weights = _weights(self._counts, self._with, self._share(None))
        return table_of(dict(zip(kept, weights, strict=True)), self._tools)

    def prior(self) -> Weights:
        """(tools,) the logarithm of the share of tasks that call each."""
        return np.log(self._share(None)).astype(np.float32)

    def found(self, signs: Iterable[int], without: str) -> Weights:
        """What `Table.found` gives, a task's own counts left out."""
        of_task = self._of_task.get(without, dict[int, set[int]]())
        if self._share_without is None or self._share_without[0] != without:
            self._share_without = (without, self._share(without))
        known = [one for one in signs if one in self._row]
        at = np.array([self._row[one] for one in known], np.intp)
        counts, tasks = self._counts.take(at, axis=0), self._with.take(at)
        for row, one in enumerate(known):
            own = of_task.get(one)
            if own:
                counts[row, list(own)] -= 1
                tasks[row] -= 1
        enough = tasks >= MIN_TASKS - 1
        return _weights(counts[enough], tasks[enough], self._share_without[1])

    def _share(self, without: str | None) -> NDArray[np.float64]:
        total, tasks = self._total, len(self._called)
        own = self._called.get(without) if without is not None else None
        if own:
            total = total.copy()
            total[list(own)] -= 1
            tasks -= 1
        return (total + 0.5) / (tasks + 1)


def _weights(
    counts: NDArray[np.float64], tasks: NDArray[np.float64], share: NDArray[np.float64]
) -> Weights:
    """(signs, tools) from the tasks in which each sign stood where each tool was called, (signs,
    tools), and those in which it stood at all, (signs,)."""
    odds = (counts + _PRIOR * share) / ((tasks[:, None] + _PRIOR) * share)
    return np.log(odds).astype(np.float32)
