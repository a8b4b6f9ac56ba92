"""Notices that a stream is silent, without cost for those that are not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Silence:
    """Calls `ping` after each `every_s` in which nothing was `heard`; `stop` it at the end. Use it
    inside a running loop."""

    def __init__(self, every_s: float, ping: Callable[[], Awaitable[None]]) -> None:
        self._every_s = every_s
        self._ping = ping
        self._loop = asyncio.get_running_loop()
        self._heard_s = self._loop.time()
        self._pinging: asyncio.Task[Any] | None = None
        self._timer = self._loop.call_later(every_s, self._look)

    def heard(self) -> None:
        self._heard_s = self._loop.time()

    async def settled(self) -> None:
        """A ping that is on its way gets there first."""
        if self._pinging is not None and not self._pinging.done():
            await self._pinging

    def stop(self) -> None:
        self._timer.cancel()
        if self._pinging is not None:
            self._pinging.cancel()

    def _look(self) -> None:
        left_s = self._heard_s + self._every_s - self._loop.time()
        if left_s <= 0:
            self.heard()
            left_s = self._every_s
            if self._pinging is None or self._pinging.done():
                self._pinging = self._loop.create_task(self._one())
        self._timer = self._loop.call_later(left_s, self._look)

    async def _one(self) -> None:
        await self._ping()
