"""Which slot a session has: its own as long as others leave it, else the one longest unused. Pure
but for waiting."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from typing import NamedTuple

import msgspec

from reflexarc.upstream.embedded.owners import Owner


class Pin(msgspec.Struct, eq=False):
    """A slot of llama.cpp. `owner`: the session that it is pinned to. `holds`: the one whose state
    is in it, which lags behind while a session moves in. `prompt`: the last that it read.
    `tokens`: how many it holds, None where that is not known; `changed`: since it was saved."""

    slot: int
    owner: Owner | None = None
    holds: Owner | None = None
    prompt: str = ""
    tokens: int | None = 0
    changed: bool = False
    at_work: bool = False
    used_s: float = 0.0


class _Waiter(NamedTuple):
    owner: Owner
    prompt: str
    given: asyncio.Future[Pin]


class Pins:
    """`clock_s` is a monotonic clock. As many sessions are pinned as there are slots; a further
    one takes the slot longest unused. What goes on from what a slot of the same tenant holds takes
    that slot, whatever its session is called: some clients name each request anew."""

    def __init__(self, slots: int, clock_s: Callable[[], float]) -> None:
        self.all = tuple(Pin(slot) for slot in range(slots))
        self._clock_s = clock_s
        self._waiters: list[_Waiter] = []

    @contextlib.asynccontextmanager
    async def taken(self, owner: Owner, prompt: str) -> AsyncGenerator[Pin]:
        """The session's slot, for one at a time; others wait, first come first served."""
        pin = await self._take(owner, prompt)
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
        unused = [pin for pin in free if pin.owner is None]
        return unused[0] if unused else min(free, key=lambda pin: pin.used_s, default=None)

    def _assigned(self, pin: Pin, owner: Owner, prompt: str) -> Pin:
        if _goes_on(pin, owner, prompt):
            pin.holds = owner
        pin.owner = owner
        pin.at_work = True
        return pin


def _goes_on(pin: Pin, owner: Owner, prompt: str) -> bool:
    """Whether the slot holds what this prompt begins with, and may be told so."""
    is_own = pin.holds is not None and pin.holds.tenant == owner.tenant
    return is_own and pin.holds == pin.owner and bool(pin.prompt) and prompt.startswith(pin.prompt)
