"""The figures of a report by file, by model and by session: one row each."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec

from reflexarc.bench.waste_figures import Figures, figures, hit_rate
from reflexarc.bench.waste_prompts import Known
from reflexarc.bench.waste_time import Spent, Times, times
from reflexarc.traces.requests import Figure, FileReport, RecordedRequest


class Row(Figures, frozen=True, kw_only=True):
    """`turns` have a previous one in their conversation. Of those, `reused_previous` and
    `reused_earlier` are the median shares of the prompt that the previous turn's, and any earlier
    one, began with."""

    name: str
    time: Times
    hit_rate: float | None
    turns: int
    reused_previous: float | None
    reused_earlier: float | None


class FileRow(Row, frozen=True, kw_only=True):
    """`report`: what reading the file gave."""

    format: str
    report: FileReport


class Rows:
    """All requests with what is known of each, to be gathered by their places."""

    def __init__(
        self,
        requests: Sequence[RecordedRequest],
        cost: Sequence[Figure],
        time_of: Sequence[Spent],
        found: Sequence[Known],
    ) -> None:
        self._requests = requests
        self._cost = cost
        self._time_of = time_of
        self._found = found

    def by(self, name: Callable[[RecordedRequest], str]) -> list[Row]:
        """The costliest first: by money, then by prompt tokens."""
        made = [Row(**self._row(one, places)) for one, places in self._places(name).items()]
        made.sort(key=lambda one: (-(one.cost_usd or 0), -(one.prompt or 0)))
        return made

    def files(self, reports: Sequence[FileReport]) -> list[FileRow]:
        """One for each file that was read, in their order, those without a request too."""
        places = self._places(lambda one: one.file)
        return [
            FileRow(
                **self._row(report.file, places.get(report.file, [])),
                format=report.format,
                report=report,
            )
            for report in reports
        ]

    def _places(self, name: Callable[[RecordedRequest], str]) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for at, request in enumerate(self._requests):
            found[name(request)].append(at)
        return found

    def _row(self, name: str, places: list[int]) -> dict[str, Any]:
        made = figures((self._requests[at], self._cost[at]) for at in places)
        reused = [one for at in places if (one := self._found[at].reused) is not None]
        previous = [one.previous for one in reused if one.previous is not None]
        earlier = [one.earlier or 0.0 for one in reused if one.previous is not None]
        return {
            **msgspec.structs.asdict(made),
            "name": name,
            "time": times([self._time_of[at] for at in places]),
            "hit_rate": hit_rate(made),
            "turns": len(previous),
            "reused_previous": round(median(previous), 6) if previous else None,
            "reused_earlier": round(median(earlier), 6) if earlier else None,
        }
