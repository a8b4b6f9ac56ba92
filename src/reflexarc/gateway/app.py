"""The ASGI application: finds a request's handler, and gives every answer its headers.

Hot routes are raw ASGI; the cold ones (`/healthz`, `/readyz`, `/metrics`) are a Starlette
application of their own.
"""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yarl

from reflexarc.gateway.acting import Acting
from reflexarc.gateway.admin import admin_routes
from reflexarc.gateway.asgi import (
    Arrival,
    ClientGoneError,
    Headers,
    Receive,
    Scope,
    Send,
    header,
    headers_of,
    read_body,
    send_whole,
)
from reflexarc.gateway.ask_route import AskDesk
from reflexarc.gateway.auditing import Auditor
from reflexarc.gateway.chains import Chains
from reflexarc.gateway.cold import cold_routes
from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.continuing import Continuing
from reflexarc.gateway.converted import retry_headers
from reflexarc.gateway.cuts_door import CUTS_PATH, opened
from reflexarc.gateway.doors import ASKS, Door, Doors
from reflexarc.gateway.failing import place_of
from reflexarc.gateway.frames import Observed
from reflexarc.gateway.heads import Head, check_headers, closing
from reflexarc.gateway.keeping import Keeper
from reflexarc.gateway.labels import RequestIds, own_headers
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.modes import modes_of
from reflexarc.gateway.native_door import NativeDoor
from reflexarc.gateway.pool_desk import PoolDesk
from reflexarc.gateway.queued import Queued
from reflexarc.gateway.recorder import Recorder, RecorderLimits
from reflexarc.gateway.relearner import Relearner
from reflexarc.gateway.setting_up import recorder_setup, system1_setup
from reflexarc.gateway.side_doors import SideDesk
from reflexarc.gateway.standings import StandingDesk
from reflexarc.gateway.state import Tested, open_state
from reflexarc.gateway.switch import Switch
from reflexarc.gateway.system1 import System1
from reflexarc.gateway.system2 import System2
from reflexarc.gateway.tenancy import key_in_header
from reflexarc.gateway.tls import upstream_context
from reflexarc.gateway.watching import Watch
from reflexarc.steps.errors import (
    AccountError,
    InputError,
    QueueFullError,
    RateLimitError,
    ReflexarcError,
)
from reflexarc.wire.errors import error_body, error_face, error_of

_log = logging.getLogger("reflexarc.gateway")

NATIVE_PATH = "/api/v1/reflex"
# A first start makes the database; without it System 1 would not act yet.
_RECORDER_READY_S = 10.0
_NONE = b"none"
_ALLOWED = {
    NATIVE_PATH: "POST",
    "/admin/off": "POST",
    "/admin/on": "POST",
    "/admin/state": "GET, HEAD",
    **dict.fromkeys(("/healthz", "/readyz", "/metrics"), "GET, HEAD"),
}
"""The gateway's own paths, and the methods they take."""


class Gateway:
    """The whole gateway. `start` and `close` it around serving; `self` is the ASGI callable.

    `loader` replaces how reflexes are loaded (`module:name`), for tests of broken ones. `before`
    is the gateway that this one takes the place of: what it counted and measured goes on.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        environment: Mapping[str, str] | None = None,
        clock_s: Callable[[], float] = time.perf_counter,
        loader: str | None = None,
        before: "Gateway | None" = None,
    ) -> None:
        self.config = config
        self.metrics = Metrics() if before is None else before.metrics
        self._clock_s = clock_s
        variables = os.environ if environment is None else environment
        self._doors = Doors(config, variables)
        name = secrets.token_hex(4)
        self._ids = RequestIds(name)
        self.state = open_state(config.state, variables)
        self.system2 = System2(
            config, variables, self.state, name, self.metrics, clock_s,
            None if before is None else before.system2,
        )  # fmt: skip
        routes_keys = (route.api_key_env for route in config.route if route.api_key_env)
        hidden = (*routes_keys, *self.system2.pool.secrets)
        self.system1 = System1(
            lambda: system1_setup(
                config, loader, self.state.secret, self.acting.standings.standby()
            ),
            config.system1,
            clock_s,
            self._system1_trouble,
            self._observed,
            hidden,
        )
        self.recorder = Recorder(
            recorder_setup(config, self.state, name),
            RecorderLimits(config.store.max_waiting_bytes, config.store.silent_s),
            clock_s,
            self.metrics.recorder_trouble,
            hidden,
        )
        self.acting = Acting(
            name,
            self.recorder,
            clock_s,
            lambda on_change: Switch(self.state.directory, time.time, on_change),
            self.state.secret,
            lambda on_demotion: StandingDesk(
                self.state.directory, config.route, clock_s, on_demotion
            ),
        )
        self._tested = Tested(self.state.directory)
        self._watch = Watch(
            self.acting.switch,
            self.acting.health,
            self.system1,
            self._tested,
            self.recorder,
            [route.reflex for route in config.route if route.reflex is not None],
            clock_s,
            self.acting.standings,
            self._reloaded,
        )
        self.metrics.watch_system1(lambda: self.system1.state == "up")
        self.metrics.watch_acting(
            lambda: self.recorder.well,
            lambda: len(self.acting.switch.off.entries) + bool(self.acting.health.why_off),
            lambda: self.acting.demotions,
            self.acting.standings.count,
        )
        self._cold = cold_routes(
            self.system1,
            self.recorder,
            self.metrics,
            admin_routes(
                self.acting,
                self.state.token,
                self._modes,
                lambda: self.system2.fleet.shown(clock_s()),
            ),
        )
        self._queued = Queued(
            config, self.state, self._doors, self.system2.planner, self.system2.accounting,
            self._ids, clock_s, time.time,
        )  # fmt: skip
        self._relearner = Relearner(
            self.state.directory,
            config.route,
            config.lifecycle,
            self.acting.note,
            self.metrics.relearned,
        )
        self._keeper = Keeper(name, self.recorder, clock_s)
        self._chains = Chains(self.state.directory, config.store.retention_days, time.time)
        self._upstream_tls = upstream_context(config.tls)
        self._side: SideDesk | None = None
        self._asks: AskDesk | None = None

    async def start(self) -> None:
        """Opens the transport, starts System 1 and the recorder. What of these fails is done
        without: requests go to System 2."""
        await self.recorder.start()
        self.acting.standings.look()
        await self.system1.start()
        await self.acting.standings.adopt(self.system1.digests)
        await self.recorder.heard(_RECORDER_READY_S)
        system2 = self.system2
        transport, driver, forwarder = await system2.start(self._upstream_tls, self._ids)
        self._side = SideDesk(
            self.config.limits,
            forwarder,
            transport,
            self._chains,
            system2.accounting,
            PoolDesk(system2.pool, system2.ratios, transport),
            self._clock_s,
        )
        self._asks = AskDesk(
            self.config,
            forwarder,
            lambda on_answer: Auditor(
                transport, self.config.limits.observed_bytes, on_answer, driver,
                system2.accounting.audited,
            ),
            self.system1,
            self.acting,
            self._keeper,
            self.metrics,
            self._clock_s,
            system2.accounting,
            lambda route: self._tested.of(route.upstream),
            system2.exchanging(Continuing(self._chains)),
            system2.prefixes,
            system2.warm,
        )  # fmt: skip
        await self._queued.start(self._asks)
        system2.takes_over()
        self._watch.start()
        self._relearner.start()
        self.acting.note("start", "reflexarc", {"routes": self._modes(), "pid": os.getpid()})

    async def close(self) -> None:
        await self._queued.close()
        await self._relearner.close()
        await self._watch.close()
        if self._asks is not None:
            await self._asks.auditor.close()
        await self.system1.close()
        await self.system2.close()
        self._keeper.close()
        await self._chains.close()
        await self.acting.standings.close()
        self.acting.note("stop", "reflexarc", {"pid": os.getpid()})
        await self.recorder.close()

    def _modes(self) -> list[dict[str, Any]]:
        return modes_of(self.config.route, self.acting)

    async def _reloaded(self, taken: bool) -> None:
        if taken:
            await self.acting.standings.adopt(self.system1.digests)
        self.acting.note("reload", "reflexarc", {"taken_over": taken})

    def _system1_trouble(self, kind: str) -> None:
        self.metrics.trouble(kind)
        if kind in ("died", "hang"):
            self.acting.health.replaced()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began_s = self._clock_s()
        path: str = scope["path"]
        method: str = scope["method"]
        headers = headers_of(scope)
        number = self._ids.next()
        request_id = self._ids.text(number, header(headers, b"x-request-id"))
        head = Head(send)
        door = self._doors.of(scope)
        client = door.client if door is not None else "chat"
        arrival = Arrival(number, request_id, headers, began_s, receive, head.send, client)
        route_path, kind = (door.route.path, door.kind) if door else ("", "other")
        try:
            if door is not None and door.takes(method):
                check_headers(headers, self.config.limits.header_bytes)
                status = await self._open(door, scope, arrival)
            elif path == NATIVE_PATH and method == "POST":
                kind = "native"
                check_headers(headers, self.config.limits.header_bytes)
                status = await self._native(arrival)
            elif path.startswith(CUTS_PATH) and method == "GET":
                check_headers(headers, self.config.limits.header_bytes)
                status, body = await opened(self.system2, arrival, path)
                await self._answer(arrival, status, body)
            elif method in _ALLOWED.get(path, "").split(", ") and path != NATIVE_PATH:
                await self._cold(scope, receive, self._labelled(head.send, request_id, began_s))
                return
            else:
                allowed = door.methods if door is not None else _ALLOWED.get(path)
                status, text = (405, "method not allowed") if allowed else (404, "no such path")
                said, code = f"{method} {path}: {text}", f"http_{status}"
                _, body = error_of(status, said, code, client, request_id)
                more = [(b"allow", allowed.encode())] if allowed else []
                await self._answer(arrival, status, body, [*more, *closing(headers)])
        except ClientGoneError:
            self.metrics.client_gone(route_path)
            return
        except InputError as error:
            status, body = error_face(error, client, request_id)
            # Only these come before the body is read through.
            unread = status in (413, 431)
            await self._answer(arrival, status, body, closing(headers) if unread else [])
        except (AccountError, QueueFullError) as error:
            status, body = error_face(error, client, request_id)
            limited = isinstance(error, RateLimitError | QueueFullError)
            hint = retry_headers(error.retry_after_s, []) if limited else []
            await self._answer(arrival, status, body, hint)
        except asyncio.CancelledError:
            if not head.is_out:
                said = "the gateway is stopping"
                status, body = error_of(503, said, "gateway_stopped", client, request_id)
                await self._answer(arrival, status, body)
            raise
        except Exception as error:  # the last resort: a fault of ours is answered, and said aloud
            status = 500
            _log.error("%s", place_of(error))
            if not head.is_out:
                said = "the gateway failed; its log says where"
                _, body = error_of(500, said, "internal", client, request_id)
                await self._answer(arrival, 500, body)
        self.metrics.request(route_path, kind, status)

    def refusal(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        """Headers and body for what is not HTTP, or too much of it: no request was made of it."""
        self.metrics.request("", "other", status)
        request_id = self._ids.text(self._ids.next(), None)
        headers = own_headers(request_id, _NONE, reflexarc=0.0)
        headers.append((b"content-type", b"application/json"))
        return headers, error_body(status, message, code=code)

    async def _open(
        self,
        door: Door,
        scope: Scope,
        arrival: Arrival,
    ) -> int:
        if self._asks is None:
            raise ReflexarcError("the gateway is asked before it was started")
        query: bytes = scope["query_string"]
        if door.client == "gemini" or door.kind in ("models", "model"):
            replaced = door.key is not None
            query, headers = key_in_header(query, arrival.headers, replaced=replaced)
            arrival = arrival._replace(headers=headers)
        url = yarl.URL(f"{door.url}?{query.decode('latin-1')}", encoded=True) if query else door.url
        if (left := await self._queued.left(door, scope, arrival)) is not None:
            status, more, reply = left
            await self._answer(arrival, status, reply, more)
            return status
        if door.kind in ASKS and not door.is_listed(query):
            body = await read_body(arrival.headers, arrival.receive, self.config.limits.body_bytes)
            return await self._asks.answer(door, url, arrival, body)
        if self._side is None:
            raise ReflexarcError("the gateway is asked before it was started")
        return await self._side.answer(door, url, arrival, scope["method"])

    async def _native(self, arrival: Arrival) -> int:
        if self._asks is None:
            raise ReflexarcError("the gateway is asked before it was started")
        body = await read_body(arrival.headers, arrival.receive, self.config.limits.body_bytes)
        door = NativeDoor(
            self.config,
            self.system1,
            self.acting,
            self.metrics,
            self._asks,
            self.system2.accounting,
            self._clock_s,
        )
        status, reply = await door.answer(arrival, body)
        await self._answer(arrival, status, reply)
        return status

    async def _answer(
        self, arrival: Arrival, status: int, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """An answer of our own, with the headers every answer carries."""
        since_ms = self._since_ms(arrival.began_s)
        headers = own_headers(arrival.request_id, _NONE, arrival.client, reflexarc=since_ms)
        headers.extend(more)
        await send_whole(arrival.send, status, headers, body, b"application/json")

    def _observed(self, number: int, observed: Observed) -> None:
        if self._asks is not None:
            # After what waits for the decision itself: both may have come in one read.
            asyncio.get_running_loop().call_soon(self._asks.comparing.observed, number, observed)

    def _since_ms(self, began_s: float) -> float:
        return (self._clock_s() - began_s) * 1e3

    def _labelled(self, send: Send, request_id: bytes, began_s: float) -> Send:
        async def labelled(message: Scope) -> None:
            if message["type"] == "http.response.start":
                own = own_headers(request_id, _NONE, reflexarc=self._since_ms(began_s))
                message["headers"] = [*message["headers"], *own]
            await send(message)

        return labelled
