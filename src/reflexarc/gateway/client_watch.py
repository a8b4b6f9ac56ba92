"""Cancels what is done for a client when that client leaves."""

import asyncio
from typing import Any

from reflexarc.gateway.asgi import Receive

# A client that leaves is noticed after this long at the latest. Answers that are faster never pay
# for the watching.
_WATCH_AFTER_S = 0.2


class ClientWatch:
    """Cancels the current task when its client disconnects."""

    def __init__(self, receive: Receive) -> None:
        self.gone = False
        self._receive = receive
        self._task = asyncio.current_task()
        self._listening: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(
            _WATCH_AFTER_S, self._listen
        )

    def _listen(self) -> None:
        self._timer = None
        self._listening = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        # A body that is read through gives no message but the disconnect.
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()

    def absorb_cancellation(self) -> None:
        if self._task is not None:
            self._task.uncancel()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listening is not None:
            self._listening.cancel()
