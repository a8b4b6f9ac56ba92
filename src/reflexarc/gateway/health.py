"""Whether this process is fit to act: where it is not, System 1 is off by itself, for a while.

Signs: the event loop comes late to its own appointments; System 1's process had to be replaced
again and again; too many of the last decisions failed or came too late.
"""

from collections import deque
from collections.abc import Callable

_LATE_S = 0.5
_LATE_OFF_S = 10.0
_MANY_REPLACED = 3
_REPLACED_WITHIN_S = 60.0
_REPLACED_OFF_S = 300.0
_LAST_DECISIONS = 200
_FEWEST_DECISIONS = 20
_FAILED_SHARE = 0.2
_FAILED_OFF_S = 60.0


class Health:
    """`on_change` hears "" or why System 1 is off, each time that changes."""

    def __init__(self, clock_s: Callable[[], float], on_change: Callable[[str], None]) -> None:
        self._clock_s = clock_s
        self._on_change = on_change
        self._off_until_s = 0.0
        self._why = ""
        self._replaced_s: deque[float] = deque(maxlen=_MANY_REPLACED)
        self._failed: deque[bool] = deque(maxlen=_LAST_DECISIONS)
        self._failures = 0

    @property
    def why_off(self) -> str:
        """Empty while it is fit."""
        if self._why and self._clock_s() >= self._off_until_s:
            self._why = ""
            self._on_change("")
        return self._why

    def late(self, seconds: float) -> None:
        """The event loop came this much later than it meant to."""
        if seconds >= _LATE_S:
            self._off(f"the event loop was {seconds:.1f} s late", _LATE_OFF_S)

    def blind(self, why: str) -> None:
        """What is switched off cannot be told."""
        self._off(why, _LATE_OFF_S)

    def replaced(self) -> None:
        """System 1's process died or hung."""
        now_s = self._clock_s()
        self._replaced_s.append(now_s)
        many = len(self._replaced_s) == _MANY_REPLACED
        if many and now_s - self._replaced_s[0] <= _REPLACED_WITHIN_S:
            self._off(
                f"System 1's process was replaced {_MANY_REPLACED} times in a minute",
                _REPLACED_OFF_S,
            )

    def decision(self, failed: bool) -> None:
        """One decision that was waited for; `failed`: an error, or none in time."""
        if len(self._failed) == _LAST_DECISIONS:
            self._failures -= self._failed[0]
        self._failed.append(failed)
        self._failures += failed
        share = self._failures / len(self._failed)
        if failed and len(self._failed) >= _FEWEST_DECISIONS and share > _FAILED_SHARE:
            self._failed.clear()
            self._failures = 0
            self._off(f"{share:.0%} of the last decisions failed or came too late", _FAILED_OFF_S)

    def _off(self, why: str, for_s: float) -> None:
        self._off_until_s = max(self._off_until_s, self._clock_s() + for_s)
        if not self._why:
            self._why = why
            self._on_change(why)
