"""Works off the batch queue: each entry is asked as its client's request would be, for nobody."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from reflexarc.accounts.owners import Owner, is_gone
from reflexarc.gateway.asgi import Message
from reflexarc.gateway.queue_desk import QueueDesk
from reflexarc.steps.errors import ReflexarcError, StoreError
from reflexarc.store.queued_entries import Entry

OWNERS = "queue.owners"
_AGAIN = frozenset({408, 429, 498, 500, 502, 503, 504, 529})
"""Statuses of a failure that may pass."""
_LOOK_S = 1.0
_RECOVER_S = 60.0
_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 300.0
_seconds = re.compile(rb"\d{1,9}(\.\d+)?")
_log = logging.getLogger("reflexarc.gateway")

Asker = Callable[[Entry, "Collected"], Awaitable[None]]


class Collected:
    """What an answer's messages come to."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = list(message["headers"])
        else:
            self._parts.append(message.get("body", b""))

    @property
    def retry_after_s(self) -> float | None:
        given = {name.lower(): value for name, value in self.headers}
        text = given.get(b"retry-after", b"").strip()
        return float(text) if _seconds.fullmatch(text) else None


class QueueWorkers:
    """`ask` answers an entry. `parallel` are at work at once; in a pause that providers asked for
    none begins."""

    def __init__(self, desk: QueueDesk, directory: Path, parallel: int, ask: Asker) -> None:
        self._desk = desk
        self._owners = directory / OWNERS
        self._parallel = parallel
        self._ask = ask
        self._owner: Owner | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._pause_until_s = 0.0

    async def start(self) -> None:
        """Without a queue that can be opened nothing is worked off; putting says why."""
        try:
            self._owner = Owner(self._owners)
        except OSError as error:
            _log.warning("the batch queue is not worked off: %s", error)
            return
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._recover())]
        self._tasks += [loop.create_task(self._work()) for _ in range(self._parallel)]

    async def close(self) -> None:
        """What is being worked on goes back to its place."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._owner is not None:
            self._owner.close()

    async def _recover(self) -> None:
        """Entries of gateways that are gone wait again."""
        while True:
            try:
                count = await self._desk.run(
                    lambda queue: queue.recover(lambda name: not is_gone(self._owners, name))
                )
                if count:
                    _log.warning("%d queued requests of a gateway that ended wait again", count)
                    self._desk.came.set()
            except ReflexarcError as error:
                _log.warning("the batch queue cannot be looked at: %s", error)
            await asyncio.sleep(_RECOVER_S)

    async def _work(self) -> None:
        assert self._owner is not None
        name = self._owner.name
        loop = asyncio.get_running_loop()
        while True:
            pause_s = self._pause_until_s - loop.time()
            if pause_s > 0:
                await asyncio.sleep(pause_s)
                continue
            try:
                entry = await self._desk.run(lambda queue: queue.take(name))
            except StoreError as error:
                _log.warning("the batch queue cannot be taken from: %s", error)
                entry = None
            if entry is None:
                self._desk.came.clear()
                with contextlib.suppress(TimeoutError):
                    # Another gateway may have left something, too.
                    await asyncio.wait_for(self._desk.came.wait(), _LOOK_S)
                continue
            await self._one(entry)

    async def _one(self, entry: Entry) -> None:
        collected = Collected()
        try:
            await self._ask(entry, collected)
        except asyncio.CancelledError:
            await asyncio.shield(self._desk.run(lambda queue: queue.again(entry.id)))
            raise
        except Exception:  # whatever it was: the entry must not stay as if it ran
            _log.exception("a queued request failed")
        loop = asyncio.get_running_loop()
        try:
            if collected.status in _AGAIN and await self._desk.run(
                lambda queue: queue.again(entry.id)
            ):
                wait_s = collected.retry_after_s or _PAUSE_S
                self._pause_until_s = loop.time() + min(wait_s, _LONGEST_PAUSE_S)
                return
            headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in collected.headers]
            await self._desk.run(
                lambda queue: queue.done(entry.id, collected.status, headers, collected.body)
            )
        except StoreError as error:
            _log.error("a queued request's answer is not kept: %s", error)
