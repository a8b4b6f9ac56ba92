"""How fast and how sound one deployment is now: first tokens, gaps between tokens, faults.

First tokens by the size of the prompt and by how much of it was cached. An attempt that still waits
for its first token counts too, as one that takes at least as long as it has waited: a deployment
that hangs is seen before its answers end, if they ever do.
"""

import math
from itertools import islice
from typing import Any

from reflexarc.upstream.fading import Fading, bucket_of, middle_of

PROMPT_SIZES = (1_000, 4_000, 16_000, 64_000)
"""Tokens of a prompt that bound its size classes."""
CACHED_SHARES = (0.25, 0.75)
"""Shares of a prompt that bound its classes of what was cached."""
CLASS_FEW = 4.9
"""A class with fewer samples than these (five, a little faded) is told by all together."""
MAX_WAITING = 10_000
"""Attempts whose first token is waited for; past so many the oldest are forgotten."""
TRIAL_S = 30.0
"""For so long an attempt that began may still tell what it was tried for, at its end."""
_LOOKED_AT = 64
_OK, _BAD = 0, 1


class Measures:
    """Times in ms, clock readings in seconds. Quantiles are within a bucket's width (9%) of what
    they are of, None where too little is known."""

    def __init__(self) -> None:
        self._first = Fading()
        self._by_class: dict[int, Fading] = {}
        self._gaps = Fading()
        self._outcomes = Fading(buckets=2, far=0, far_alone=0)
        self._waiting: dict[int, tuple[float, int | None]] = {}
        self._began_s = -math.inf

    def began(
        self,
        number: int,
        now_s: float,
        prompt_tokens: int | None = None,
        cached_share: float = 0.0,
    ) -> None:
        """An attempt with this number waits for its first token. Told the size of its prompt, it
        is compared with its like alone."""
        known = None if prompt_tokens is None else _class_of(prompt_tokens, cached_share)
        self._waiting[number] = (now_s, known)
        self._began_s = now_s
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def heard(self, number: int) -> None:
        """It has its first token, or is over."""
        self._waiting.pop(number, None)

    @property
    def waiting(self) -> int:
        """Attempts that wait for their first token."""
        return len(self._waiting)

    def trying(self, now_s: float) -> bool:
        """Whether an attempt is on its way, or began so lately that it may be."""
        return bool(self._waiting) or now_s < self._began_s + TRIAL_S

    def late(self, over_ms: float, now_s: float) -> int:
        """Of those, the ones that wait for longer than this; counted to 64."""
        return sum(
            (now_s - since_s) * 1_000 > over_ms
            for since_s, _ in islice(self._waiting.values(), _LOOKED_AT)
        )

    def first_token(
        self, prompt_tokens: int, cached_share: float, first_ms: float, now_s: float
    ) -> None:
        """A first token came so long after its request was sent."""
        if math.isfinite(first_ms) and first_ms >= 0:
            bucket = bucket_of(first_ms)
            self._first.add(bucket, now_s)
            known = _class_of(prompt_tokens, cached_share)
            self._by_class.setdefault(known, Fading()).add(bucket, now_s)

    def gap(self, ms_per_token: float, now_s: float) -> None:
        """Of one answer: the time from its first token to its last over the tokens between."""
        if math.isfinite(ms_per_token) and ms_per_token >= 0:
            self._gaps.add(bucket_of(ms_per_token), now_s)

    def outcome(self, ok: bool, now_s: float) -> None:
        """An attempt ended: answered as it should be, or with a fault of the deployment's."""
        self._outcomes.add(_OK if ok else _BAD, now_s)

    def first_token_ms(
        self,
        quantile: float,
        prompt_tokens: int,
        cached_share: float,
        now_s: float,
        *,
        sure: bool = False,
    ) -> float | None:
        """Of its class, or where that has few samples, of all. `sure`: of few samples one alone
        does not speak for a tail; a lower quantile is told."""
        known = _class_of(prompt_tokens, cached_share)
        seen = self._by_class.get(known)
        if seen is None or not seen.known(now_s) or seen.samples(now_s) < CLASS_FEW:
            seen = self._first
            if not seen.known(now_s):
                return None
        late = self._late(None if seen is self._first else known, now_s)
        share = seen.sure(quantile) if sure else quantile
        return middle_of(seen.quantile(share, late, now_s))

    def token_ms(self, quantile: float, now_s: float, *, sure: bool = False) -> float | None:
        """The gap between tokens. `sure`: as above."""
        if not self._gaps.known(now_s):
            return None
        return middle_of(self._gaps.quantile(self._gaps.sure(quantile) if sure else quantile))

    def error_rate(self, now_s: float, *, sure: bool = False) -> float | None:
        """The share of attempts that failed by the deployment's fault; `sure`: but for one."""
        if not self._outcomes.known(now_s):
            return None
        return self._outcomes.share_of(_BAD, sure=sure)

    def remembered(
        self, quantile: float, prompt_tokens: int, cached_share: float
    ) -> tuple[float | None, float | None, float | None]:
        """First token, gap and error rate as they were when they were last known, however long
        ago: `sure` ones."""
        seen = self._by_class.get(_class_of(prompt_tokens, cached_share))
        if seen is None or not seen.was_known():
            seen = self._first
        return (
            _sure(seen, quantile),
            _sure(self._gaps, quantile),
            self._outcomes.share_of(_BAD, sure=True) if self._outcomes.was_known() else None,
        )

    def samples(self, now_s: float) -> float:
        """First tokens seen, faded: what they are worth in such as came just now."""
        return self._first.samples(now_s)

    def snapshot(self, now_s: float) -> dict[str, Any]:
        """For people: what is known, by class. Times in ms, rounded."""
        shown: dict[str, Any] = {
            "waiting": len(self._waiting),
            "error_rate": _rounded(self.error_rate(now_s)),
            "first_token": _shown(self._first, now_s),
            "token": _shown(self._gaps, now_s),
            "by_prompt": {},
        }
        for known in sorted(self._by_class):
            shown["by_prompt"][_class_name(known)] = _shown(self._by_class[known], now_s)
        return shown

    def _late(self, known: int | None, now_s: float) -> list[int]:
        """How long those that wait have waited, the oldest first. Of one class where one is asked
        for, with those whose class nobody told."""
        return [
            bucket_of((now_s - since_s) * 1_000)
            for since_s, its in islice(self._waiting.values(), _LOOKED_AT)
            if known is None or its is None or its == known
        ]


def _sure(seen: Fading, quantile: float) -> float | None:
    return middle_of(seen.quantile(seen.sure(quantile))) if seen.was_known() else None


def _class_of(prompt_tokens: int, cached_share: float) -> int:
    size = sum(prompt_tokens >= bound for bound in PROMPT_SIZES)
    return size * (len(CACHED_SHARES) + 1) + sum(cached_share >= bound for bound in CACHED_SHARES)


def _class_name(known: int) -> str:
    size, share = divmod(known, len(CACHED_SHARES) + 1)
    sizes = [*(f"under {bound // 1_000}k" for bound in PROMPT_SIZES), "64k and more"]
    shares = ["under 25% cached", "25% to 75% cached", "75% and more cached"]
    return f"{sizes[size]}, {shares[share]}"


def _shown(seen: Fading, now_s: float) -> dict[str, float | None]:
    known = seen.known(now_s)
    return {
        "samples": _rounded(seen.samples(now_s)),
        "p50_ms": _rounded(middle_of(seen.quantile(0.5))) if known else None,
        "p95_ms": _rounded(middle_of(seen.quantile(0.95))) if known else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
