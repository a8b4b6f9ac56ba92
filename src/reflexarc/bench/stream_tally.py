"""Counts over a stream so far: calls, exact guesses, what was answered at each error level."""

from collections.abc import Sequence

import msgspec

from reflexarc.reflex import Outcome
from reflexarc.reflex.evaluation import level_name
from reflexarc.reflex.intervals import clustered_upper
from reflexarc.reflex.learning import LEVELS


class StreamLevel(msgspec.Struct, frozen=True):
    """What was answered at one error level so far. `error_upper95`: an upper bound at 95% that
    takes tasks, not answers, as independent."""

    answered: int
    errors: int
    error: float
    error_upper95: float
    coverage_calls: float


class Sofar(msgspec.Struct, frozen=True):
    """Over all blocks so far: sessions, their calls that do not only think, the share whose best
    guess was exact (a call before anything was learned counts as not), and each error level."""

    sessions: int
    calls: int
    exact: float
    levels: dict[str, StreamLevel]


class Tally:
    """Counts of one kind of tasks, over the stream so far."""

    def __init__(self, levels: Sequence[str]) -> None:
        self.sessions = self.calls = self.exact = 0
        self.answered: dict[str, list[tuple[str, bool]]] = {level: [] for level in levels}

    def unlearned(self, calls: int) -> None:
        """Count a session that came before anything was learned."""
        self.sessions += 1
        self.calls += calls

    def add(self, found: Sequence[Outcome], acting: bool) -> None:
        """Count a judged session; `acting`: whether certificates count yet."""
        self.sessions += 1
        for one in found:
            self.calls += one.is_call
            self.exact += one.is_call and one.exact
            for level, answered in self.answered.items():
                if acting and one.acted[level]:
                    answered.append((one.task, not one.exact))

    def so_far(self) -> Sofar:
        """The figures over everything counted."""
        return Sofar(
            self.sessions, self.calls, share(self.exact, self.calls),
            {level: self._level(answered) for level, answered in self.answered.items()},
        )  # fmt: skip

    def _level(self, answered: Sequence[tuple[str, bool]]) -> StreamLevel:
        errors = sum(wrong for _, wrong in answered)
        return StreamLevel(
            len(answered), errors, share(errors, len(answered)),
            round(clustered_upper(answered), 6) if answered else 1.0,
            share(len(answered), self.calls),
        )  # fmt: skip


def levels_within(max_error: float) -> list[str]:
    """The levels of error a stream is looked at under, as keys: the usual ones and the asked."""
    return [level_name(level) for level in sorted({*LEVELS, max_error})]


def share(part: int, whole: int) -> float:
    """A part of a whole, to six places; 0 of nothing."""
    return round(part / whole, 6) if whole else 0.0
