"""Batch requests that nobody waits for: taken in, shown while they wait, their answers given out.

`Prefer: respond-async` (RFC 7240) leaves a request here. One thread owns the queue's file, so that
nothing of it is on the event loop.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from reflexarc.gateway.asgi import Headers, header
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.config_pool import QueueConfig
from reflexarc.gateway.doors import Door
from reflexarc.gateway.planning import Plan, Planner
from reflexarc.gateway.told import told
from reflexarc.steps.errors import InputError, RequestError, StoreError
from reflexarc.store.queued import FILE, Queue
from reflexarc.store.queued_entries import Entry
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.errors import error_of

_T = TypeVar("_T")
_MAX_LISTED = 100
_OF_THIS_ANSWER = frozenset({"content-type", "request-id", "server-timing", "x-request-id"})
_APPLIED = (b"preference-applied", b"respond-async")
Told = tuple[int, Headers, bytes]
"""Status, headers, and the body of an answer."""


class NoQueueError(InputError):
    """There is no queue to leave a request in."""

    code = "no_queue"
    status = 503


def prefers_async(headers: Headers) -> bool:
    """Whether a client does not want to wait for the answer."""
    for name, value in headers:
        if name == b"prefer":
            words = [word.split(b";")[0].strip().lower() for word in value.split(b",")]
            if b"respond-async" in words:
                return True
    return False


class QueueDesk:
    """`directory` is the state directory, None where there is none."""

    def __init__(
        self,
        directory: Path | None,
        config: QueueConfig,
        planner: Planner,
        unix_time: Callable[[], float],
    ) -> None:
        self._directory = directory
        self._config = config
        self._planner = planner
        self._unix_time = unix_time
        self._thread: ThreadPoolExecutor | None = None
        self._queue: Queue | None = None
        self.came = asyncio.Event()
        """Set whenever a request was left here."""

    async def run(self, work: Callable[[Queue], _T]) -> _T:
        """Does something to the queue in its thread. Raises `NoQueueError`, `StoreError`."""
        if self._directory is None:
            raise NoQueueError("without a state directory nothing can wait here")
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "queue")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: work(self._opened()))

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown, wait=True)
        if self._queue is not None:
            self._queue.close()

    async def put(
        self, door: Door, path: str, headers: Headers, body: bytes, caller: Caller
    ) -> Told:
        """Takes a request in: 202, with its place. Raises `InputError`, an `AccountError` and
        `QueueFullError`."""
        if not door.route.pooled:
            raise RequestError(
                'Prefer: respond-async is for routes with upstream = "models": ask without it'
            )
        encoding = (header(headers, b"content-encoding") or b"").decode("latin-1")
        plain = plain_bytes(body, encoding)
        plan = self._planner.plan(
            door, headers, told(headers), plain, caller.tenant.hex(), caller.tier,
            local_only=caller.local_only,
        )  # fmt: skip
        _check(plan, caller)
        kept = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in headers
            if name != b"content-encoding"
        ]
        entry = Entry(
            id="",
            tenant=caller.tenant.hex(),
            key=caller.key.id if caller.key is not None else "",
            route=door.route.path,
            path=path,
            headers=(*kept, ("x-reflexarc-tier", "batch")),
            body=plain,
        )
        made = await self.run(lambda queue: queue.put(entry))
        self.came.set()
        state = await self._state(made, door)
        location = state["url"].encode()
        return 202, [(b"location", location), _APPLIED], msgspec.json.encode(state)

    async def answer(self, door: Door, caller: Caller, method: str) -> Told:
        """At `/queued` and `/queued/ID`."""
        tenant = caller.tenant.hex()
        if not door.rest:
            found = await self.run(lambda queue: queue.listed(tenant, _MAX_LISTED))
            listed = [await self._state(one, door) for one in found]
            return 200, [], msgspec.json.encode({"object": "list", "data": listed})
        entry = await self.run(lambda queue: queue.of(door.rest, tenant))
        if entry is None:
            status, body = error_of(404, f"there is no request {door.rest!r} here", "not_found")
            return status, [], body
        if method == "DELETE":
            if await self.run(lambda queue: queue.cancel(entry.id, tenant)):
                state = {"id": entry.id, "object": "queued_request", "status": "cancelled"}
                return 200, [], msgspec.json.encode(state)
            status, body = error_of(409, "it is over already", "conflict")
            return status, [], body
        if entry.state in ("waiting", "running"):
            return 202, [], msgspec.json.encode(await self._state(entry, door))
        if entry.state == "cancelled":
            status, body = error_of(410, "it was cancelled", "cancelled")
            return status, [], body
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in entry.answer_headers
            if name.lower() not in _OF_THIS_ANSWER
        ]
        if not entry.answer:
            said = "it was tried as often as it may be, and its gateway ended each time"
            status, body = error_of(entry.status, said, "gave_up")
            return status, headers, body
        return entry.status, headers, entry.answer

    async def _state(self, entry: Entry, door: Door) -> dict[str, Any]:
        place, starts_s = await self.run(
            lambda queue: (queue.place(entry.id), queue.starts_in_s(entry.id, self._unix_time()))
        )
        return {
            "id": entry.id,
            "object": "queued_request",
            "status": entry.state,
            "place": place,
            "expected_start_s": None if starts_s is None else round(starts_s, 1),
            "put_unix_s": round(entry.put_unix_s, 3),
            "url": f"{door.route.path}/queued/{entry.id}",
        }

    def _opened(self) -> Queue:
        if self._queue is None:
            if self._directory is None:
                raise StoreError("there is no state directory")
            self._queue = Queue.open(
                self._directory / FILE,
                self._unix_time,
                self._config.max_entries,
                self._config.max_bytes,
                self._config.retention_hours * 3600.0,
            )
        return self._queue


def _check(plan: Plan, caller: Caller) -> None:
    if plan.tier != "batch":
        raise RequestError(
            f"only requests of the tier batch may be left here, and this one is {plan.tier}: send "
            "x-reflexarc-tier: batch, or ask without Prefer: respond-async"
        )
    if plan.stream:
        raise RequestError("nobody would read the stream: ask with stream false", "stream")
    if not caller.virtual and any(one.passes_key for one in plan.served):
        raise RequestError(
            "no client's key is kept, and a deployment of this model takes yours: ask without "
            "Prefer: respond-async, or with a key of this gateway"
        )
    if caller.key is not None:
        caller.key.check(plan.model, plan.tier)
