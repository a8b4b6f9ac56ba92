"""How many turns a session still has, and how likely its cache is gone by the next one: empirical,
with a prior for where there is little data. Pure figures; knows no conversation."""

import bisect
from collections.abc import Iterable

import msgspec

PRIOR_TURNS = 10.0
PRIOR_SESSIONS = 4.0
PRIOR_COLD = 0.05
PRIOR_GAPS = 20.0


class Horizon:
    """Expected turns that are left, given how many there were.

    Of the sessions seen that came at least so far, the mean of what they still had; beside them
    `prior_sessions` that have `prior_turns` left however long they are (a geometric length, which
    has no memory).
    """

    def __init__(
        self,
        lengths: Iterable[int],
        prior_turns: float = PRIOR_TURNS,
        prior_sessions: float = PRIOR_SESSIONS,
    ) -> None:
        if prior_turns < 0 or prior_sessions <= 0:
            raise ValueError("prior_turns must not be negative, prior_sessions must be positive")
        self._lengths = sorted(lengths)
        self._prior = (prior_turns, prior_sessions)
        # Sums of the longest, so that a question costs one search.
        self._sums = [0] * (len(self._lengths) + 1)
        for at in range(len(self._lengths) - 1, -1, -1):
            self._sums[at] = self._sums[at + 1] + self._lengths[at]

    def remaining(self, turns: int) -> float:
        """After so many turns, the next one not counted among those that were: 0 or more."""
        at = bisect.bisect_left(self._lengths, turns)
        alive = len(self._lengths) - at
        left = self._sums[at] - alive * turns
        prior_turns, weight = self._prior
        return (left + weight * prior_turns) / (alive + weight)


class Gaps(msgspec.Struct, frozen=True):
    """Times between a request and the next one of its session, in seconds, sorted."""

    seconds: tuple[float, ...] = ()
    prior_cold: float = PRIOR_COLD
    prior_gaps: float = PRIOR_GAPS

    def cold(self, ttl_s: float) -> float:
        """The chance that a cache that holds for `ttl_s` is gone at the next turn."""
        over = len(self.seconds) - bisect.bisect_right(self.seconds, ttl_s)
        weight = self.prior_gaps
        return (over + weight * self.prior_cold) / (len(self.seconds) + weight)


def fit(lengths: Iterable[int], prior_turns: float = PRIOR_TURNS) -> Horizon:
    """`lengths`: turns of whole sessions."""
    return Horizon(lengths, prior_turns)


def fit_gaps(seconds: Iterable[float]) -> Gaps:
    """Negative ones (clocks that were set) count as none at all."""
    return Gaps(tuple(sorted(max(0.0, one) for one in seconds)))
