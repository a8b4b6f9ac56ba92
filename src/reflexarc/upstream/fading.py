"""A distribution of what was seen lately: weights in buckets that fade with time and with number.

For times in ms the buckets are logarithmic, eight to an octave; for outcomes there are two. Adding
is O(1), memory is constant. Clock readings are passed in and never go back by much.
"""

import math
from array import array
from collections import deque
from collections.abc import Sequence

HALF_LIFE_S = 60.0
"""A sample counts half as much after so long."""
LAST = 200
"""And 1/e as much after so many others."""
FEW = 2.9
"""Fewer samples than these say nothing: three at once are a little less than three, as faded."""
HOLD_S = 60.0
"""What became known stays so for at least this long after the last sample, and for twice as long
each time that a sample after a silence bears it out, up to `LONGEST_HOLD_S`."""
LONGEST_HOLD_S = 480.0
SHIFT_OF, SHIFT_LOOKS = 3, 5
"""So many of the last so many far above what nineteen of twenty were below: it got slower."""
SHIFT_DOWN = 8
"""So many in a row far below the middle: it got faster."""

_PER_OCTAVE = 8
_LEAST_MS = 0.1
_TOP = 23 * _PER_OCTAVE  # 0.1 ms to 14 minutes
BUCKETS = _TOP + 2
_SCALE_LIMIT = 1e100
_MOST_HALVINGS = 300.0  # past these nothing is left that any number could tell
_FAR = 3  # buckets: a factor of 1.3, for several samples together
_FAR_ALONE = _PER_OCTAVE  # a factor of 2, for one alone
_TAIL = 0.95
_ABOVE = 1.5
"""Samples above a quantile that make it more than an accident."""


def bucket_of(value_ms: float) -> int:
    """The bucket that a time in ms falls into; those outside the range in the outermost."""
    if not value_ms > _LEAST_MS:
        return 0
    return min(_TOP + 1, 1 + int(_PER_OCTAVE * math.log2(value_ms / _LEAST_MS)))


def middle_of(bucket: int) -> float:
    """The time in ms that stands for a bucket: within 4.5% of all that it holds."""
    return _LEAST_MS * 2.0 ** ((bucket - 0.5) / _PER_OCTAVE)


class Fading:
    """Known from `FEW` samples on. After a silence it is known no longer; then the next sample
    either bears out what was known, or is far better, and what was known is forgotten."""

    def __init__(
        self, buckets: int = BUCKETS, far: int = _FAR, far_alone: int = _FAR_ALONE
    ) -> None:
        """How many buckets off samples speak of another state of affairs: several together, and
        one alone."""
        self._far = far
        self._far_alone = far_alone
        self._weights = array("d", bytes(8 * buckets))
        self._total = 0.0
        self._scale = 1.0  # what a sample that comes now weighs; all others are fractions of it
        self._last_s = -math.inf
        self._known = False
        self._hold_s = HOLD_S
        self._recent: deque[int] = deque(maxlen=SHIFT_DOWN)

    def add(self, bucket: int, now_s: float) -> None:
        if self._known:
            before = self.samples(now_s)
            if before >= FEW:
                self._hold_s = HOLD_S
            elif now_s >= self._last_s + self._hold_s:
                self._come_back(bucket)
        elif now_s - self._last_s > LONGEST_HOLD_S:
            self._forget()
        self._put(bucket, now_s)
        self._recent.append(bucket)
        if self._shifted():
            kept = list(self._recent)[-SHIFT_LOOKS:]
            self._forget()
            for one in kept:
                self._put(one, now_s)
            self._recent.extend(kept)
        if self._seen_now() >= FEW:
            self._known = True

    def samples(self, now_s: float) -> float:
        """How many samples that were seen just now those that were seen are worth."""
        if not self._total:
            return 0.0
        # What is not known yet waits for more without fading.
        faded = self._halvings(now_s) if self._known else 0.0
        return self._total / self._scale * 2.0**-faded

    def known(self, now_s: float) -> bool:
        return self._known and (self.samples(now_s) >= FEW or now_s < self._last_s + self._hold_s)

    def was_known(self) -> bool:
        """Whether it ever was since it last began anew: then `quantile` tells what was known."""
        return self._known

    def quantile(self, share: float, at_least: Sequence[int] = (), now_s: float = 0.0) -> int:
        """The bucket that `share` of the weight is at or below. `at_least`: the buckets that
        samples still on their way have already reached, each counted as a sample."""
        base = self._quantile(share, (), now_s)
        over = sorted((one for one in at_least if one > base), reverse=True)
        if not over:
            return base
        found = self._quantile(share, over, now_s)
        if share >= 0.5:
            # A shift shows in the last few long before it shows in the weight of the many.
            looks = over[:SHIFT_LOOKS]
            fill = SHIFT_LOOKS - len(looks)
            looks.extend(list(self._recent)[-fill:] if fill else [])
            looks.sort(reverse=True)
            if len(looks) >= SHIFT_OF and looks[SHIFT_OF - 1] > base + self._far:
                found = max(found, looks[SHIFT_OF - 1])
        return found

    def sure(self, share: float) -> float:
        """The share to ask `quantile` for where one sample alone shall not speak for a tail: lower
        where few were seen."""
        return min(share, max(0.5, 1 - _ABOVE / max(self._seen_now(), _ABOVE)))

    def share_of(self, bucket: int, *, sure: bool = False) -> float:
        """Of the weight, what this bucket holds; `sure`: but for one sample."""
        held = self._weights[bucket] - (self._scale if sure else 0.0)
        return max(0.0, held) / self._total if self._total else 0.0

    def _quantile(self, share: float, over: Sequence[int], now_s: float) -> int:
        unit = self._scale * (2.0 ** self._halvings(now_s) if over and self._known else 1.0)
        more = [0.0] * len(self._weights) if over else None
        total = self._total
        for one in over:
            if more is not None:
                more[one] += unit
                total += unit
        wanted = share * total
        seen, last = 0.0, 0
        for bucket, held in enumerate(self._weights):
            weight = held + more[bucket] if more is not None else held
            if weight:
                seen += weight
                last = bucket
                if seen >= wanted * (1 - 1e-12):
                    return bucket
        return last

    def _put(self, bucket: int, now_s: float) -> None:
        if self._total:
            halvings = self._halvings(now_s) if self._known else 0.0
            self._scale *= 2.0**halvings * (1 + 1 / LAST)
            if self._scale > _SCALE_LIMIT:
                self._rescale()
        self._last_s = max(self._last_s, now_s)
        self._weights[bucket] += self._scale
        self._total += self._scale

    def _come_back(self, bucket: int) -> None:
        """A sample after a silence: does it bear out what was known?"""
        if bucket + self._far_alone < self._quantile(0.5, (), 0.0):
            self._forget()
        else:
            self._hold_s = min(2 * self._hold_s, LONGEST_HOLD_S)

    def _shifted(self) -> bool:
        recent = list(self._recent)
        if len(recent) < SHIFT_DOWN or self._seen_now() < 2 * SHIFT_DOWN:
            return False
        tail = self._quantile(_TAIL, (), 0.0)
        looks = recent[-SHIFT_LOOKS:]
        # The looks are in the weight already; where they are a twentieth of it, it says so itself.
        if sum(one > tail + self._far for one in looks) >= SHIFT_OF:
            return True
        middle = self._quantile(0.5, (), 0.0)
        return all(one < middle - self._far for one in recent)

    def _seen_now(self) -> float:
        return self._total / self._scale

    def _halvings(self, now_s: float) -> float:
        return min(max(0.0, now_s - self._last_s) / HALF_LIFE_S, _MOST_HALVINGS)

    def _rescale(self) -> None:
        for bucket, held in enumerate(self._weights):
            self._weights[bucket] = held / self._scale
        self._total = math.fsum(self._weights)
        self._scale = 1.0

    def _forget(self) -> None:
        for bucket in range(len(self._weights)):
            self._weights[bucket] = 0.0
        self._total, self._scale = 0.0, 1.0
        self._known = False
        self._hold_s = HOLD_S
        self._recent.clear()
