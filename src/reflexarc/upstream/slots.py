"""Who may be at work at a deployment at once: so many slots, given out by tier.

Whoever waits for an answer goes before whoever does not: interactive before standard before batch,
and within a tier first come, first served. Batch leaves a share of the slots free and takes none
while another tier waits, so that an interactive request finds one.
"""

import asyncio
import math
from collections import deque

TIERS = ("interactive", "standard", "batch")
"""In the order in which they are served."""
_YIELDS = "batch"


class Slots:
    """Of one deployment, in one event loop. `busy` may pass `max_parallel` after it was lowered,
    until enough are given back."""

    def __init__(self, max_parallel: int | None, kept_free: float = 0.25) -> None:
        """`max_parallel` None: there is no limit, and nobody waits. `kept_free`: the share of the
        slots, rounded up, that batch takes none of; one slot is always left for it. Raises
        `ValueError` for fewer than one slot or a share outside [0, 1)."""
        if not 0 <= kept_free < 1:
            raise ValueError(f"a share of {kept_free} of the slots cannot be kept free")
        self._kept_free = kept_free
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {tier: deque() for tier in TIERS}
        self._busy = 0
        self._most = self._for_batch = math.inf
        self.resize(max_parallel)

    @property
    def busy(self) -> int:
        """Slots that are taken, whether or not there is a limit."""
        return self._busy

    @property
    def room(self) -> float:
        """Slots that are free to an interactive request; infinite without a limit."""
        return max(0.0, self._most - self._busy)

    def waiting(self, tier: str) -> int:
        """Requests of this tier that wait for a slot."""
        return len(self._waiting[tier])

    def free(self, tier: str) -> bool:
        """Whether `take` would not wait now. While another tier waits, all are taken."""
        return self._busy < (self._for_batch if tier == _YIELDS else self._most)

    async def take(self, tier: str) -> None:
        """Takes a slot, when it is this one's turn. Cancelled while it waits, it has none. Give
        each back once, by `give`."""
        if self.free(tier):
            self._busy += 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[tier].append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._busy -= 1  # given to one that had just left
            elif mine in self._waiting[tier]:  # else it was passed over before it noticed
                self._waiting[tier].remove(mine)
            self._serve()
            raise

    def give(self, tier: str) -> None:
        """Gives a slot back. Raises `ValueError` where none is taken."""
        if tier not in self._waiting or self._busy <= 0:
            raise ValueError(f"no slot of tier {tier} is taken that could be given back")
        self._busy -= 1
        self._serve()

    def resize(self, max_parallel: int | None) -> None:
        """Another number of slots, from now on; those at work stay so."""
        if max_parallel is not None and max_parallel < 1:
            raise ValueError(f"a deployment with {max_parallel} slots could serve nobody")
        if max_parallel is None:
            self._most = self._for_batch = math.inf
        else:
            kept = math.ceil(round(max_parallel * self._kept_free, 9))
            self._most, self._for_batch = max_parallel, max(1, max_parallel - kept)
        self._serve()

    def _serve(self) -> None:
        """Slots go to whoever is first. Nobody overtakes: where one still waits, none is free."""
        for tier in TIERS:
            queue = self._waiting[tier]
            while queue and self.free(tier):
                first = queue.popleft()
                if not first.done():
                    self._busy += 1
                    first.set_result(None)
