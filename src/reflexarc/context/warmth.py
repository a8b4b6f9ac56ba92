"""Whether a prompt's cache is worth keeping warm: pings against the miss that is to be expected.

Pure: gaps between the requests of sessions in, a number of pings out. Times in seconds, prices in
one and the same unit.
"""

import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence

MAX_GAPS = 512
"""The latest so many gaps count."""
FEWEST = 10
"""With fewer sessions known that were idle for so long, nothing is expected of one."""
MAX_PINGS = 12


class Gaps:
    """How long sessions were idle before they went on. Those that are idle still have not gone on
    so far (they are censored): whoever asks says how long they have been."""

    def __init__(self) -> None:
        self._order: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, gap_s: float) -> None:
        if not math.isfinite(gap_s) or gap_s < 0:
            return
        if len(self._order) == MAX_GAPS:
            del self._sorted[bisect_right(self._sorted, self._order.popleft()) - 1]
        self._order.append(gap_s)
        insort(self._sorted, gap_s)

    def __len__(self) -> int:
        return len(self._order)

    def returns(self, idle_s: float, until_s: float, still_idle_s: Sequence[float] = ()) -> float:
        """Of sessions that were idle for `idle_s`, the share that went on before `until_s`, one
        that did not added: an estimate from below. 0 with fewer than `FEWEST` of them."""
        past = len(self._sorted) - bisect_right(self._sorted, idle_s)
        came = bisect_right(self._sorted, until_s) - bisect_right(self._sorted, idle_s)
        waiting = sum(one > idle_s for one in still_idle_s)
        if past + waiting < FEWEST:
            return 0.0
        return max(0, came) / (past + waiting + 1)


def worth_pinging(
    gaps: Gaps,
    idle_s: float,
    lasts_s: float,
    every_s: float,
    miss: float,
    ping: float,
    most: int = MAX_PINGS,
    still_idle_s: Sequence[float] = (),
) -> int:
    """How many pings, the first now and each `every_s` after the one before, are worth most; 0
    where none is. `miss`: what reading the prompt anew costs more than from its cache, which
    `lasts_s` after each ping; `ping`: what one costs."""
    best, best_worth = 0, 0.0
    spent = 0.0
    for count in range(1, most + 1):
        began_s = idle_s + (count - 1) * every_s
        spent += ping * (1 - gaps.returns(idle_s, began_s, still_idle_s))
        saved = miss * (
            gaps.returns(idle_s, began_s + lasts_s, still_idle_s)
            - gaps.returns(idle_s, max(idle_s, lasts_s), still_idle_s)
        )
        if saved - spent > best_worth:
            best, best_worth = count, saved - spent
    return best
