"""`POST …/chat/completions`: off passes on, shadow also compares, live lets System 1 act."""

import asyncio
import hashlib
import json
from collections.abc import Callable

import msgspec
import yarl

from reflexarc.gateway.asgi import Arrival, Headers, header, send_whole
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.forwarding import Copy, Exchange, Forwarder
from reflexarc.gateway.frames import Decide, Decided, Observe
from reflexarc.gateway.labels import decision_label, escalation_label, own_headers
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.system1 import System1
from reflexarc.steps.errors import MalformedError
from reflexarc.upstream import forwarded_request_headers

_HAND_OVER_AFTER_S = 0.002
# Beyond this a body that only some readers accept is checked beside the event loop.
_SLOWLY_CHECKED_BYTES = 1024 * 1024


class _AnyObject(msgspec.Struct):
    """Reads nothing: decoding into it only proves that a body is one JSON object."""


_object = msgspec.json.Decoder(_AnyObject)


class ChatDesk:
    """Handles chat requests of every route. `tenant_key` makes tenants' names unguessable."""

    def __init__(
        self,
        config: GatewayConfig,
        forwarder: Forwarder,
        system1: System1,
        metrics: Metrics,
        clock_s: Callable[[], float],
        tenant_key: bytes,
    ) -> None:
        self._limits = config.limits
        self._forwarder = forwarder
        self._system1 = system1
        self._metrics = metrics
        self._clock_s = clock_s
        self._tenant_key = tenant_key
        # Which route's comparison an id belongs to, for the counters.
        self._observing: dict[int, str] = {}

    async def answer(
        self,
        route: Route,
        url: yarl.URL,
        authorization: str | None,
        arrival: Arrival,
        body: bytes,
    ) -> int:
        """Answers one request and returns the status the client saw. Raises `InputError` for a
        body that is not one JSON object, before anything was sent anywhere."""
        encoded = header(arrival.headers, b"content-encoding") is not None
        if not encoded:
            await check_object(body)
        exchange = Exchange(
            route=route.path,
            method="POST",
            url=url,
            headers=forwarded_request_headers(arrival.headers, authorization),
            body=body,
            began_s=arrival.began_s,
            request_id=arrival.request_id,
            label=_fixed(route.mode.encode()),
        )
        if route.mode == "off":
            return await self._forwarder.forward(exchange, arrival)
        refusal = "no_reflex" if route.reflex is None else "encoded_body" if encoded else None
        if refusal is not None:
            self._escalate(route, exchange, refusal)
            return await self._forwarder.forward(exchange, arrival)
        request = Decide(
            id=arrival.number,
            reflex=route.path,
            tenant=self.tenant(arrival.headers),
            respond=route.mode == "live",
            max_error=route.max_error,
            expires_s=arrival.began_s + route.deadline_ms / 1e3 if route.mode == "live" else 0.0,
        )
        if route.mode == "shadow":
            return await self._shadow(route, exchange, request, arrival)
        return await self._live(route, exchange, request, arrival)

    def tenant(self, headers: Headers) -> bytes:
        """Stands for the client's key; contexts are never shared between keys."""
        key = header(headers, b"authorization") or header(headers, b"api-key") or b""
        return hashlib.blake2b(key, key=self._tenant_key, digest_size=16).digest()

    def observed(self, number: int, tool: str, outcome: str) -> None:
        route = self._observing.pop(number, None)
        if route is not None:
            self._metrics.shadow(route, tool, outcome)

    async def _shadow(
        self, route: Route, exchange: Exchange, request: Decide, arrival: Arrival
    ) -> int:
        shadow = _Shadow(self._limits.observed_bytes, self.without_decision)
        body = exchange.body or b""

        def hand_over() -> None:
            shadow.decision = self._system1.ask(request, body)
            shadow.decision.add_done_callback(lambda done: self._count(route, done.result()))

        # An LLM takes its time; whatever answers sooner than this should not find System 1 at work
        # on the core it needs.
        handing = asyncio.get_running_loop().call_later(_HAND_OVER_AFTER_S, hand_over)
        exchange.label = shadow.label
        exchange.copy = shadow.copy
        try:
            status = await self._forwarder.forward(exchange, arrival)
        finally:
            handing.cancel()
        if shadow.decision is None:
            hand_over()
        answer = shadow.copy.body
        if answer is not None and shadow.may_come:
            self._observing[request.id] = route.path
            self._system1.observe(
                Observe(
                    id=request.id,
                    status=status,
                    content_type=shadow.copy.content_type,
                    content_encoding=shadow.copy.content_encoding,
                ),
                answer,
            )
            while len(self._observing) > 4096:  # comparisons a lost process never answered
                del self._observing[next(iter(self._observing))]
        return status

    async def _live(
        self, route: Route, exchange: Exchange, request: Decide, arrival: Arrival
    ) -> int:
        decided, answer, reason = await self._decide_in_time(route, exchange, request)
        if decided is None:
            self._escalate(route, exchange, reason)
        else:
            self._count(route, (decided, answer))
            exchange.label = _fixed(decision_label("live", decided))
            if decided.action == "act" and answer:
                total_ms = (self._clock_s() - exchange.began_s) * 1e3
                own = own_headers(
                    exchange.request_id,
                    exchange.label(),
                    reflexarc=total_ms,
                    system1=decided.decide_ms,
                )
                if decided.stream:
                    own.append((b"cache-control", b"no-cache"))
                kind = (
                    b"text/event-stream; charset=utf-8" if decided.stream else b"application/json"
                )
                await send_whole(arrival.send, 200, own, answer, kind)
                return 200
        return await self._forwarder.forward(exchange, arrival)

    async def _decide_in_time(
        self, route: Route, exchange: Exchange, request: Decide
    ) -> tuple[Decided | None, bytes, str]:
        """The decision, or None and the reason to escalate."""
        asked = self._system1.ask(request, exchange.body or b"")
        left_s = route.deadline_ms / 1e3 - (self._clock_s() - exchange.began_s)
        try:
            got = await asyncio.wait_for(asked, max(left_s, 0.0))
        except TimeoutError:
            self._metrics.trouble("deadline")
            return None, b"", "deadline"
        if got is None:
            return None, b"", self.without_decision()
        return got[0], got[1], ""

    def _count(self, route: Route, got: tuple[Decided, bytes] | None) -> None:
        if got is None:
            reason = self.without_decision()
            self._metrics.decision(route.path, route.mode, "escalate", reason, 0.0)
            return
        decided = got[0]
        if decided.failed:
            self._metrics.trouble("error")
        self._metrics.decision(
            route.path, route.mode, decided.action, decided.reason, decided.decide_ms
        )

    def without_decision(self) -> str:
        """Why System 1 said nothing at all: its queue is full (counted there), or it is down."""
        return "system1_busy" if self._system1.state == "up" else "system1_down"

    def _escalate(self, route: Route, exchange: Exchange, reason: str) -> None:
        exchange.label = _fixed(escalation_label(route.mode, reason))
        self._metrics.decision(route.path, route.mode, "escalate", reason, 0.0)


class _Shadow:
    """The decision on a request that is already on its way, and a copy of its answer."""

    def __init__(self, observed_bytes: int, without: Callable[[], str]) -> None:
        self.without = without
        self.decision: asyncio.Future[tuple[Decided, bytes] | None] | None = None
        self.copy = Copy(observed_bytes)

    @property
    def may_come(self) -> bool:
        """Whether there is, or still may be, a decision to compare with."""
        decision = self.decision
        return decision is not None and not (decision.done() and decision.result() is None)

    def label(self) -> bytes:
        if self.decision is None or not self.decision.done():
            return decision_label("shadow", None)
        got = self.decision.result()
        if got is None:
            return escalation_label("shadow", self.without())
        return decision_label("shadow", got[0])


async def check_object(body: bytes) -> None:
    """Raises `MalformedError` unless the body is one JSON object. Nothing of it is kept; what only
    some readers accept (half a surrogate pair, deep nesting) is left to the upstream to judge."""
    try:
        _object.decode(body)
    except msgspec.ValidationError as error:
        raise MalformedError("the body must be a JSON object") from error
    except RecursionError:
        return
    except msgspec.DecodeError as error:
        if len(body) <= _SLOWLY_CHECKED_BYTES:
            _check_leniently(body, error)
        else:
            await asyncio.to_thread(_check_leniently, body, error)


def _check_leniently(body: bytes, error: msgspec.DecodeError) -> None:
    """Slow. Its hooks make nothing, and give other threads their turns."""
    try:
        value = json.loads(body, object_pairs_hook=_no_object, parse_int=_no_number)
    except (ValueError, RecursionError):
        raise MalformedError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedError("the body must be a JSON object") from error


def _no_object(_: list[tuple[str, object]]) -> dict[str, object]:
    return {}


def _no_number(_: str) -> int:
    return 0


def _fixed(label: bytes) -> Callable[[], bytes]:
    return lambda: label
