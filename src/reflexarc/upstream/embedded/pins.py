"""Which slot a session has: its own as long as others leave it, else the one where least is lost.
Pure but for waiting."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from typing import NamedTuple

import msgspec

from reflexarc.upstream.embedded.beginnings import in_common
from reflexarc.upstream.embedded.owners import Owner

MAX_SESSIONS = 1024
"""Of which it is known how often they come."""
_SOON_S = 1e-3


class Pin(msgspec.Struct, eq=False):
    """A slot of llama.cpp. `owner`: the session that it is pinned to. `holds`: the one whose state
    is in it, which lags behind while a session moves in. `prompt`: the last that it read.
    `tokens`: how many it holds, None where that is not known; `changed`: since it was saved.
    `lost`: the share of it that has to be read again once another session was here."""

    slot: int
    owner: Owner | None = None
    holds: Owner | None = None
    prompt: str = ""
    tokens: int | None = 0
    changed: bool = False
    at_work: bool = False
    used_s: float = 0.0
    lost: float = 1.0


class _Waiter(NamedTuple):
    owner: Owner
    prompt: str
    given: asyncio.Future[Pin]


class Pins:
    """`clock_s` is a monotonic clock. As many sessions are pinned as there are slots; a further one
    takes the slot where least is lost: of the sessions there the one that returns latest, as its
    turns came so far, or brings back most of what it held; less what the slot holds of the further
    one's own beginning, beyond what it `brings` from where states are saved. What goes on from what
    a slot of the same tenant holds takes that slot, whatever its session is called: some clients
    name each request anew."""

    def __init__(self, slots: int, clock_s: Callable[[], float]) -> None:
        self.all = tuple(Pin(slot) for slot in range(slots))
        self.brings: Callable[[Owner, str], int] = _nothing
        self._clock_s = clock_s
        self._waiters: list[_Waiter] = []
        self._turns = Turns()

    @contextlib.asynccontextmanager
    async def taken(self, owner: Owner, prompt: str) -> AsyncGenerator[Pin]:
        """The session's slot, for one at a time; others wait, first come first served."""
        pin = await self._take(owner, prompt)
        self._turns.began(owner, self._clock_s())
        try:
            yield pin
        finally:
            pin.used_s = self._clock_s()
            self._give(pin)

    @contextlib.contextmanager
    def kept(self, pin: Pin) -> Generator[None]:
        """A slot in which nobody works, kept from others meanwhile."""
        assert not pin.at_work
        pin.at_work = True
        try:
            yield
        finally:
            self._give(pin)

    async def _take(self, owner: Owner, prompt: str) -> Pin:
        pin = self._fitting(owner, prompt)
        if pin is not None:
            return self._assigned(pin, owner, prompt)
        waiter = _Waiter(owner, prompt, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            return await waiter.given
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif not waiter.given.cancelled():  # given in the very moment that the client left
                self._give(waiter.given.result())
            raise

    def _give(self, pin: Pin) -> None:
        pin.at_work = False
        for waiter in list(self._waiters):
            if waiter.given.done():  # cancelled: it takes itself off the list
                continue
            fitting = self._fitting(waiter.owner, waiter.prompt)
            if fitting is not None:
                self._waiters.remove(waiter)
                waiter.given.set_result(self._assigned(fitting, waiter.owner, waiter.prompt))

    def _fitting(self, owner: Owner, prompt: str) -> Pin | None:
        own = next((pin for pin in self.all if pin.owner == owner), None)
        if own is not None:
            return None if own.at_work else own
        free = [pin for pin in self.all if not pin.at_work]
        before = [pin for pin in free if _goes_on(pin, owner, prompt)]
        if before:
            return max(before, key=lambda pin: len(pin.prompt))
        return self._least_lost(free, owner, prompt) if free else None

    def _least_lost(self, free: list[Pin], owner: Owner, prompt: str) -> Pin:
        now_s = self._clock_s()
        in_s = {pin.slot: self._turns.next_in_s(pin.owner, pin.used_s, now_s) for pin in free}
        soonest_s = min(in_s.values())
        brought = self.brings(owner, prompt)

        def loss(pin: Pin) -> tuple[float, float]:
            # Who returns later is likelier to be driven out by another before that.
            likely = soonest_s / in_s[pin.slot]
            lost = 0.0 if pin.owner is None else likely * pin.lost * len(pin.prompt)
            gained = max(0, _shared(pin, owner, prompt) - brought)
            return (lost - gained, pin.used_s)

        return min(free, key=loss)

    def _assigned(self, pin: Pin, owner: Owner, prompt: str) -> Pin:
        if _goes_on(pin, owner, prompt):
            pin.holds = owner
        pin.owner = owner
        pin.at_work = True
        return pin


def _nothing(owner: Owner, prompt: str) -> int:
    del owner, prompt
    return 0


class Turns:
    """How long after one turn of a session the next one comes, for the last `MAX_SESSIONS`."""

    def __init__(self) -> None:
        self._known: OrderedDict[Owner, tuple[float, float | None]] = OrderedDict()

    def began(self, owner: Owner, now_s: float) -> None:
        last_s, gap_s = self._known.get(owner, (None, None))
        if last_s is not None:
            took_s = now_s - last_s
            gap_s = took_s if gap_s is None else (gap_s + took_s) / 2
        self._known[owner] = now_s, gap_s
        self._known.move_to_end(owner)
        if len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)

    def next_in_s(self, owner: Owner | None, used_s: float, now_s: float) -> float:
        """When the next turn is to be expected; over 0. Who had one turn only, or is late, is
        expected as much later as was waited already."""
        last_s, gap_s = (used_s, None) if owner is None else self._known.get(owner, (used_s, None))
        if gap_s is None:
            return max(_SOON_S, now_s - used_s)
        return max(_SOON_S, abs(last_s + gap_s - now_s))


def _shared(pin: Pin, owner: Owner, prompt: str) -> int:
    """How much of a prompt's beginning the slot holds, and may be told so."""
    is_own = pin.holds is not None and pin.holds.tenant == owner.tenant
    return in_common(pin.prompt, prompt) if is_own else 0


def _goes_on(pin: Pin, owner: Owner, prompt: str) -> bool:
    """Whether the slot holds what this prompt begins with, and may be told so."""
    is_own = pin.holds is not None and pin.holds.tenant == owner.tenant
    return is_own and pin.holds == pin.owner and bool(pin.prompt) and prompt.startswith(pin.prompt)
