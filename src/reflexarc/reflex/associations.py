"""What a word, an event or a result speaks for: weights of signs for each tool, counted over tasks.

A sign is a hash; nothing that was said is kept. A sign is kept if three tasks showed it. Its weight
for a tool is the logarithm of how much likelier the tool is where the sign stands than anywhere,
drawn towards nothing by `_PRIOR` tasks in which it would say nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
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
        return self.rows[[at for one in signs if (at := known.get(one)) is not None]]


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
        self._counts: dict[int, NDArray[np.float64]] = {}
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
        self._counts = {one: np.zeros(self._tools) for one in kept}
        for of_task in self._of_task.values():
            for one, tools in of_task.items():
                counts = self._counts.get(one)
                if counts is not None:
                    counts[list(tools)] += 1
        for tools in self._called.values():
            self._total[list(tools)] += 1
        share = self._share(None)
        weights = {
            one: _weights(counts, self._tasks_with[one], share)
            for one, counts in self._counts.items()
        }
        return table_of(weights, self._tools)

    def prior(self) -> Weights:
        """(tools,) the logarithm of the share of tasks that call each."""
        return np.log(self._share(None)).astype(np.float32)

    def found(self, signs: Iterable[int], without: str) -> Weights:
        """What `Table.found` gives, a task's own counts left out."""
        of_task = self._of_task.get(without, dict[int, set[int]]())
        share = self._share(without)
        rows: list[Weights] = []
        for one in signs:
            counts = self._counts.get(one)
            if counts is None:
                continue
            tasks = self._tasks_with[one]
            own = of_task.get(one)
            if own:
                counts = counts.copy()
                counts[list(own)] -= 1
                tasks -= 1
            if tasks >= MIN_TASKS - 1:
                rows.append(_weights(counts, tasks, share))
        return np.stack(rows) if rows else np.zeros((0, self._tools), dtype=np.float32)

    def _share(self, without: str | None) -> NDArray[np.float64]:
        total, tasks = self._total, len(self._called)
        own = self._called.get(without) if without is not None else None
        if own:
            total = total.copy()
            total[list(own)] -= 1
            tasks -= 1
        return (total + 0.5) / (tasks + 1)


def _weights(counts: NDArray[np.float64], tasks: int, share: NDArray[np.float64]) -> Weights:
    return np.log((counts + _PRIOR * share) / ((tasks + _PRIOR) * share)).astype(np.float32)
