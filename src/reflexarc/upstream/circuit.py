"""The circuit of one deployment: whether it may be asked now. A clock's readings are passed in.

Closed, all may ask. It opens after failures in a row, or where more than half of the last ones
failed, and for a pause nobody asks. Then one attempt alone may (a trial): its success closes the
circuit, its failure opens it for twice as long. Beside that a deployment may be cooled down for
as long as it asked for, which counts as no failure.
"""

import math
from collections import deque
from typing import Literal

import msgspec

WINDOW = 20
"""So many last outcomes are looked at; more than half of them failed opens the circuit."""


class CircuitLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`failures` in a row that open a circuit; its first pause and the longest, in seconds."""

    failures: int = 5
    pause_s: float = 1.0
    longest_pause_s: float = 60.0


class Circuit:
    """Tell it of each attempt: `begin`, and then one of `succeeded`, `failed`, `abandoned`.

    `begin` says whether the attempt is a trial. Given back as `trial`, outcomes of attempts from
    before the circuit opened are told from the trial's; without it (None), an outcome that comes
    while a trial is on its way is taken for the trial's.
    """

    def __init__(self, limits: CircuitLimits) -> None:
        self._limits = limits
        self._in_a_row = 0
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._tripped = False
        self._open_until_s = -math.inf
        self._cool_until_s = -math.inf
        self._pause_s = limits.pause_s
        self._trial = False

    def state(self, now_s: float) -> Literal["closed", "open", "half_open"]:
        """`open` while it cools down, too."""
        if now_s < self._cool_until_s or (self._tripped and now_s < self._open_until_s):
            return "open"
        return "half_open" if self._tripped else "closed"

    def allows(self, now_s: float) -> bool:
        """Whether an attempt may begin: closed, or half open without a trial on its way."""
        state = self.state(now_s)
        return state == "closed" or (state == "half_open" and not self._trial)

    def opens_in_s(self, now_s: float) -> float:
        """How long nobody may ask yet; 0 where it allows, or only waits for a trial's end."""
        until_s = self._cool_until_s
        if self._tripped:
            until_s = max(until_s, self._open_until_s)
        return max(0.0, until_s - now_s)

    def begin(self, now_s: float) -> bool:
        """An attempt begins. Whether it is the trial of a half open circuit."""
        if self.state(now_s) != "half_open" or self._trial:
            return False
        self._trial = True
        return True

    def succeeded(self, now_s: float, trial: bool | None = None) -> None:
        """An attempt was answered as it should be."""
        del now_s  # for the sake of one shape with `failed`
        if self._is_trials(trial):
            self._trial = self._tripped = False
            self._pause_s = self._limits.pause_s
            self._in_a_row = 0
            self._last.clear()
        elif not self._tripped:
            self._in_a_row = 0
            self._last.append(True)

    def failed(self, now_s: float, trial: bool | None = None) -> None:
        """An attempt failed in a way that speaks against the deployment."""
        if self._is_trials(trial):
            self._trial = False
            self._pause_s = min(self._pause_s * 2, self._limits.longest_pause_s)
            self._open_until_s = now_s + self._pause_s
        elif not self._tripped:
            self._in_a_row += 1
            self._last.append(False)
            if self._in_a_row >= self._limits.failures or 2 * self._last.count(False) > WINDOW:
                self._tripped = True
                self._open_until_s = now_s + self._pause_s

    def abandoned(self, now_s: float, trial: bool | None = None) -> None:
        """An attempt ended without a word on the deployment: the client left, say. Another may
        be the trial in its place."""
        del now_s
        if self._is_trials(trial):
            self._trial = False

    def cool(self, now_s: float, for_s: float) -> None:
        """Nobody asks for exactly so many seconds; of several cool-downs the one that ends last
        counts."""
        if for_s > 0:
            self._cool_until_s = max(self._cool_until_s, now_s + for_s)

    def _is_trials(self, trial: bool | None) -> bool:
        return self._trial if trial is None else trial and self._trial
