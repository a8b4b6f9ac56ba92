"""The native endpoint on the gateway's side: what its reflexes may do now, and what is written down
before an answer that acts leaves."""

from collections.abc import Callable

from reflexarc.gateway.accounting import Accounting
from reflexarc.gateway.acting import Acting
from reflexarc.gateway.asgi import Arrival
from reflexarc.gateway.ask_route import AskDesk
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.frames import Native, NativeReply
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.system1 import System1
from reflexarc.gateway.told import told
from reflexarc.gateway.unanswered import plain_escalation


class NativeDoor:
    """Answers bodies of `POST /api/v1/reflex` by asking System 1."""

    def __init__(
        self,
        config: GatewayConfig,
        system1: System1,
        acting: Acting,
        metrics: Metrics,
        chat: AskDesk,
        accounting: Accounting,
        clock_s: Callable[[], float],
    ) -> None:
        self._config = config
        self._system1 = system1
        self._acting = acting
        self._metrics = metrics
        self._chat = chat
        self._accounting = accounting
        self._clock_s = clock_s

    async def answer(self, arrival: Arrival, body: bytes) -> tuple[int, bytes]:
        """Status and body. Raises `InputError` for headers that are not understood, `AccountError`
        for a key that is refused."""
        caller = await self._accounting.caller(arrival.headers)
        off = told(arrival.headers).off
        routes = self._config.route
        request = Native(
            arrival.number,
            caller.tenant,
            {route.path: route.max_error for route in routes},
            {
                route.path: reason
                for route in routes
                if (reason := self._why_not(route, caller, off=off)) is not None
            },
            self._acting.switch.off.tools,
            {route.path: self._acting.standings.source(route) for route in routes},
        )
        got = await self._system1.ask_native(request, body)
        if got is None:
            return self._without(arrival, body, self._chat.without_decision())
        said, reply = got
        if said.failed:
            self._metrics.trouble("error")
            return self._without(arrival, body, said.reason)
        if said.acted is not None:
            return self._acted(arrival, request, said, body, reply)
        return said.status, reply

    def _why_not(self, route: Route, caller: Caller, *, off: bool) -> str | None:
        if off:
            return "off:header"
        if not caller.may_use_reflex(route.path):
            return "not_allowed"
        return self._acting.why_not(route)

    def _acted(
        self, arrival: Arrival, request: Native, said: NativeReply, body: bytes, reply: bytes
    ) -> tuple[int, bytes]:
        """What was switched off since it was asked is off; else it is written down first."""
        acted = said.acted
        route = next(route for route in self._config.route if route.path == said.reflex)
        reason = None if acted is None else self._acting.why_not_this(route, acted)
        if reason is not None or acted is None:
            return self._without(arrival, body, str(reason))
        self._acting.acted(route.path, acted, request.tenant.hex(), arrival.request_id)
        return said.status, reply

    def _without(self, arrival: Arrival, body: bytes, reason: str) -> tuple[int, bytes]:
        since_ms = (self._clock_s() - arrival.began_s) * 1e3
        return plain_escalation(body, reason, since_ms)
