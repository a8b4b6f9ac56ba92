"""Names that results fill from a few values only (a status, a list, a board): what an argument of
that name may take, though no call has taken it yet and no schema lists it.

Kept are values that three tasks showed, of names with at most `MAX_VALUES` of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from reflexarc.provenance import Entry
from reflexarc.reflex.keyed import key_of
from reflexarc.reflex.sensitive import MIN_TASKS

MAX_VALUES = 12
_MOST_SEEN = 24
"""A name with more values than this is no closed set; it is forgotten at once."""
_LONGEST = 40
_LEAST_TIMES = 2.0
"""How often each value must have stood in results, in the mean over tasks' first sights: names of
things are as many as there are tasks."""


class ClosedSets:
    """Counts over the entries of results; `of` gives the values of a name."""

    def __init__(self, names: Collection[str]) -> None:
        """`names`: of the arguments there are; others are not counted."""
        self._names = frozenset(names)
        self._tasks: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
        self._open: set[str] = set()

    def observe(self, entries: Iterable[Entry], task: str) -> None:
        """Count the values of one task's results."""
        for entry in entries:
            name = key_of(entry.slot)
            if not name or name not in self._names or name in self._open:
                continue
            value = entry.value
            if type(value) is not str:
                continue
            values = self._tasks[name]
            tasks = values.get(value)
            if tasks is not None:
                tasks.add(task)
            elif len(value) > _LONGEST or len(values) >= _MOST_SEEN:
                self._open.add(name)
                del self._tasks[name]
            elif value:
                values[value] = {task}

    def take(self, other: "ClosedSets") -> None:
        """Count what another one counted over other tasks."""
        self._open |= other._open
        for name in self._open & self._tasks.keys():
            del self._tasks[name]
        for name, values in other._tasks.items():
            if name in self._open:
                continue
            own = self._tasks[name]
            for value, tasks in values.items():
                own.setdefault(value, set()).update(tasks)
            if len(own) > _MOST_SEEN:
                self._open.add(name)
                del self._tasks[name]

    def of(self, name: str) -> list[tuple[Any, set[str]]]:
        """The values of a name and the tasks that showed each, the commonest first."""
        values = self._tasks.get(name, {})
        every = set[str]().union(*values.values())
        if len(values) > MAX_VALUES or len(every) < _LEAST_TIMES * len(values):
            return []
        found = [(value, tasks) for value, tasks in values.items() if len(tasks) >= MIN_TASKS]
        return sorted(found, key=lambda pair: (-len(pair[1]), str(pair[0])))
