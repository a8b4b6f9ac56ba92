"""The batch queue as the gateway has it: requests left, answers given out, who works it off."""

import asyncio
from collections.abc import Callable

import yarl

from reflexarc.gateway.accounting import Accounting
from reflexarc.gateway.asgi import Arrival, Message, Scope, header, read_body
from reflexarc.gateway.ask_route import AskDesk
from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.converted import retry_headers
from reflexarc.gateway.doors import Door, Doors
from reflexarc.gateway.labels import RequestIds
from reflexarc.gateway.planning import Planner
from reflexarc.gateway.queue_desk import QueueDesk, Told, prefers_async
from reflexarc.gateway.queue_workers import Collected, QueueWorkers
from reflexarc.gateway.state import State
from reflexarc.steps.errors import AccountError, InputError, RateLimitError, ReflexarcError
from reflexarc.store.queued_entries import Counts, Entry
from reflexarc.wire.errors import error_face


class Queued:
    """`start` and `close` it with the gateway. `ids` numbers requests."""

    def __init__(
        self,
        config: GatewayConfig,
        state: State,
        doors: Doors,
        planner: Planner,
        accounting: Accounting,
        ids: RequestIds,
        clock_s: Callable[[], float],
        unix_time: Callable[[], float],
    ) -> None:
        self._config = config
        self._doors = doors
        self._accounting = accounting
        self._ids = ids
        self._clock_s = clock_s
        self._asks: AskDesk | None = None
        self._desk = QueueDesk(state.directory, config.queue, planner, unix_time)
        self._workers: QueueWorkers | None = None
        if state.directory is not None and any(route.pooled for route in config.route):
            parallel = config.queue.parallel
            self._workers = QueueWorkers(self._desk, state.directory, parallel, self._ask)

    async def start(self, asks: AskDesk) -> None:
        self._asks = asks
        if self._workers is not None:
            await self._workers.start()

    async def close(self) -> None:
        if self._workers is not None:
            await self._workers.close()
        await self._desk.close()

    async def counts(self) -> Counts:
        """Of what is there. Raises `StoreError`."""
        return await self._desk.run(lambda queue: queue.counts())

    async def left(self, door: Door, scope: Scope, arrival: Arrival) -> Told | None:
        """A request that nobody waits for is taken in, or asked about; None for all others."""
        if door.kind == "queued":
            caller = await self._accounting.caller(arrival.headers)
            return await self._desk.answer(door, caller, scope["method"])
        if scope["method"] != "POST" or not prefers_async(arrival.headers):
            return None
        caller = await self._accounting.caller(arrival.headers)
        body = await read_body(arrival.headers, arrival.receive, self._config.limits.body_bytes)
        raw = bytes(scope["raw_path"]).decode("latin-1")
        return await self._desk.put(door, raw, arrival.headers, body, caller)

    async def _ask(self, entry: Entry, collected: Collected) -> None:
        """As its client's request, with the key it was left under."""
        assert self._asks is not None  # workers start with it
        path = entry.path.partition("?")[0]
        door = self._doors.of(
            {"path": yarl.URL(path, encoded=True).path, "raw_path": path.encode()}
        )
        headers = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in entry.headers]
        number = self._ids.next()
        request_id = self._ids.text(number, header(headers, b"x-request-id"))
        client = door.client if door is not None else "chat"
        arrival = Arrival(
            number, request_id, headers, self._clock_s(), _never, collected.send, client
        )
        try:
            if door is None or not door.route.pooled:
                raise InputError(f"there is no route for {path} any more")
            caller = await self._accounting.caller_of(entry.tenant, entry.key)
            await self._asks.answer(door, door.url, arrival, entry.body, caller)
        except (InputError, AccountError) as error:
            await self._tell(error, client, request_id, collected)

    async def _tell(
        self, error: ReflexarcError, client: str, request_id: bytes, collected: Collected
    ) -> None:
        status, body = error_face(error, client, request_id)
        headers = [(b"content-type", b"application/json")]
        if isinstance(error, RateLimitError):
            headers += retry_headers(error.retry_after_s, [])
        await collected.send({"type": "http.response.start", "status": status, "headers": headers})
        await collected.send({"type": "http.response.body", "body": body, "more_body": False})


async def _never() -> Message:
    """Nobody is there who could leave."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
