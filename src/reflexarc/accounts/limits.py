"""How fast and how many at once: limits of virtual keys, in memory, for this process alone.

A key gets in a minute at most what it may, and as much again only as time passes (a bucket that
fills at a steady rate).
"""

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from reflexarc.accounts.keys import VirtualKey
from reflexarc.steps.errors import RateLimitError

MAX_KEYS = 10_000
"""Of how many keys that have nothing on its way is remembered what they used."""
_BUSY_RETRY_S = 1.0
"""When another request of one's own may have ended nobody knows."""


class Pass(msgspec.Struct):
    """A request that was let in; `over` once it has left."""

    key: str
    tokens: int
    over: bool = False


class KeyLimits:
    """`clock_s` is a monotonic clock."""

    def __init__(self, clock_s: Callable[[], float], max_keys: int = MAX_KEYS) -> None:
        self._clock_s = clock_s
        self._max_keys = max_keys
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    def enter(self, key: VirtualKey, tokens: int = 0) -> Pass:
        """Lets a request in that will use about so many tokens. One that is larger than a whole
        minute's passes when the minute is unused. Raises `RateLimitError`; then nothing is used."""
        now_s = self._clock_s()
        use = self._uses.setdefault(key.id, _Use())
        self._uses.move_to_end(key.id)
        use.requests.fill(key.requests_per_minute, now_s)
        use.tokens.fill(key.tokens_per_minute, now_s)
        if key.max_parallel is not None and use.inside >= key.max_parallel:
            raise RateLimitError(
                f"the key {key.name} has {use.inside} requests on their way; {key.max_parallel} "
                "may be at once: wait for one to end",
                _BUSY_RETRY_S,
            )
        for bucket, wanted, what in (
            (use.requests, 1, "requests"),
            (use.tokens, tokens, "tokens"),
        ):
            wait_s = bucket.wait_s(wanted)
            if wait_s > 0:
                raise RateLimitError(
                    f"the key {key.name} may use {bucket.size:g} {what} a minute, and has: try "
                    f"again in {wait_s:.1f} seconds",
                    wait_s,
                )
        use.requests.level -= 1
        use.tokens.level -= tokens
        use.inside += 1
        self._forget()
        return Pass(key.id, tokens)

    def leave(self, entered: Pass, tokens: int | None = None) -> None:
        """It is over; `tokens`: what it really used, where that is known. A second time does
        nothing."""
        if entered.over:
            return
        entered.over = True
        use = self._uses.get(entered.key)
        if use is None:
            return
        use.inside -= 1
        if tokens is not None:
            use.tokens.level -= tokens - entered.tokens

    def inside(self, key: str) -> int:
        """Requests of a key, by its id, that are on their way."""
        use = self._uses.get(key)
        return use.inside if use is not None else 0

    def _forget(self) -> None:
        if len(self._uses) <= self._max_keys:
            return
        for key, use in self._uses.items():
            if not use.inside:
                del self._uses[key]
                return


class _Bucket:
    """`size` units a minute; `level` of them are unused, less than none where more was used than
    was asked for."""

    def __init__(self) -> None:
        self.size = float("inf")
        self.level = float("inf")
        self._at_s = 0.0

    def fill(self, size: int | None, now_s: float) -> None:
        wanted = float("inf") if size is None else float(size)
        if wanted != self.size:
            used = 0.0 if self.size == float("inf") else self.size - self.level
            self.size, self.level = wanted, wanted - used
        elif wanted != float("inf"):
            self.level += (now_s - self._at_s) * wanted / 60
        self.level = min(self.level, self.size)
        self._at_s = now_s

    def wait_s(self, wanted: float) -> float:
        if self.size == float("inf"):
            return 0.0
        if not self.size:
            return 60.0
        missing = min(wanted, self.size) - self.level
        return missing * 60 / self.size if wanted > 0 and missing > 1e-9 else 0.0


class _Use:
    def __init__(self) -> None:
        self.requests = _Bucket()
        self.tokens = _Bucket()
        self.inside = 0
