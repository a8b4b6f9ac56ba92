"""Requests to a model in any dialect: off passes on, shadow compares, live lets System 1 act."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import yarl

from reflexarc.gateway.accounting import Accounting
from reflexarc.gateway.acting import Acting
from reflexarc.gateway.asgi import Arrival, header, send_whole
from reflexarc.gateway.auditing import Auditor
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.checking import Reading
from reflexarc.gateway.comparing import Comparing
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.continuing import Continued
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.exchanging import Exchanging
from reflexarc.gateway.forwarding import Forwarder
from reflexarc.gateway.frames import Decide, Decided
from reflexarc.gateway.keep_warm import KeepWarm
from reflexarc.gateway.keeping import Keeper
from reflexarc.gateway.labels import cost_label, decision_label, escalation_label, own_headers
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.shadow import Shadow
from reflexarc.gateway.system1 import System1
from reflexarc.gateway.told import Told, told
from reflexarc.wire.tool_choice import with_tool_choice

_HAND_OVER_AFTER_S = 0.002
_IN_DOUBT = frozenset({"audits_unanswered", "in_doubt", "audits_busy"})
"""Reasons of an escalation that is as good as an audit: System 2 shows whether it was right."""


class Asked(NamedTuple):
    """One request to a model with what is known of it before System 1 is."""

    route: Route
    door: Door
    exchange: Exchange
    told: Told
    caller: Caller
    number: int
    continued: Continued | None = None

    @property
    def tenant(self) -> bytes:
        return self.caller.tenant


class AskDesk:
    """Handles requests to models, of every route. `tested` tells the models of a route whose
    provider passed the replay test."""

    def __init__(
        self,
        config: GatewayConfig,
        forwarder: Forwarder,
        auditor_of: Callable[[Callable[[int, Copy | None], None]], Auditor],
        system1: System1,
        acting: Acting,
        keeper: Keeper,
        metrics: Metrics,
        clock_s: Callable[[], float],
        accounting: Accounting,
        tested: Callable[[Route], tuple[str, ...]],
        exchanging: Exchanging,
        prefixes: PrefixWatch,
        warm: KeepWarm | None,
    ) -> None:
        self._limits = config.limits
        self._forwarder = forwarder
        self._system1 = system1
        self._acting = acting
        self._keeper = keeper
        self._metrics = metrics
        self._clock_s = clock_s
        self._accounting = accounting
        self._tested = tested
        self._exchanging = exchanging
        self._prefixes = prefixes
        self._warm = warm
        self._bodies = Reading()
        self.comparing = Comparing(system1, keeper, metrics, acting.standings)
        self.auditor = auditor_of(self.comparing.audit_answered)
        # Upstreams that refused a forced tool_choice: they are not asked again.
        self._not_forcible: set[str] = set()

    async def answer(
        self,
        door: Door,
        url: yarl.URL,
        arrival: Arrival,
        body: bytes,
        caller: Caller | None = None,
    ) -> int:
        """Answers one request and returns the status the client saw. Raises `InputError` for a
        body that is not one JSON object, before anything was sent anywhere. `url` is the door's
        with the client's query. `caller`: who asks, where that is known already."""
        route = door.route
        encoded = header(arrival.headers, b"content-encoding") is not None
        grown = None if encoded else await self._bodies.read(door.client, arrival.headers, body)
        said = told(arrival.headers)
        if caller is None:
            caller = await self._accounting.caller(arrival.headers)
        exchange, continued = await self._exchanging.begin(
            door, url, arrival, body, caller, _fixed(route.mode.encode()), said, grown
        )
        asked = Asked(route, door, exchange, said, caller, arrival.number, continued)
        admission = await self._accounting.admit(caller, door, exchange, said)
        try:
            status = await self._answered(asked, arrival, encoded=encoded)
        finally:
            exchange.ended_s = self._clock_s()
            self._accounting.settle(admission, caller, exchange, route, said.session or "")
            self._prefixes.ended(exchange)
        if status == 200 and self._warm is not None:
            self._warm.ended(exchange, door, caller, said)
        return status

    async def _answered(self, asked: Asked, arrival: Arrival, *, encoded: bool) -> int:
        route, exchange = asked.route, asked.exchange
        if route.mode == "off":
            return await self._pass_on(asked, arrival)
        refusal = "no_reflex" if route.reflex is None else "encoded_body" if encoded else None
        if refusal is None and not asked.caller.may_use_reflex(route.path):
            refusal = "not_allowed"
        if refusal is not None:
            self._escalate(route, exchange, refusal)
            return await self._pass_on(asked, arrival, refusal)
        if route.mode == "shadow":
            return await self._look_on(asked, arrival)
        obstacle = "off:header" if asked.told.off else self._acting.why_not(route)
        if obstacle is not None:
            self._escalate(route, exchange, obstacle)
            return await self._look_on(asked, arrival, obstacle)
        return await self._live(asked, arrival)

    async def _pass_on(self, asked: Asked, arrival: Arrival, reason: str = "") -> int:
        """To System 2, without System 1."""
        exchange = asked.exchange
        if asked.route.record != "none" or self._accounting.charges:
            exchange.copy = self._copy(asked)
        status = await self._sent(asked, arrival)
        self._keep(asked, status, None, reason)
        return status

    async def _look_on(self, asked: Asked, arrival: Arrival, obstacle: str = "") -> int:
        """To System 2, System 1 looking on. `obstacle` is why it may not act in live mode."""
        route, exchange = asked.route, asked.exchange
        shadow = Shadow(self._copy(asked), self.without_decision)
        request = self._request(asked, respond=False)

        def hand_over() -> None:
            shadow.decision = self._system1.ask(request, exchange.body or b"", exchange.grown)
            shadow.decision.add_done_callback(decided)

        def decided(done: "asyncio.Future[tuple[Decided, bytes] | None]") -> None:
            got = done.result()
            if not obstacle:
                self._count(route, got)
            without = self.without_decision() if got is None else ""
            self._keeper.decided(asked.number, got[0] if got is not None else None, without)

        # An LLM takes its time; whatever answers sooner than this should not find System 1 at work
        # on the core it needs.
        handing = asyncio.get_running_loop().call_later(_HAND_OVER_AFTER_S, hand_over)
        if not obstacle:
            exchange.label = shadow.label
        exchange.copy = shadow.copy
        try:
            status = await self._sent(asked, arrival)
        finally:
            handing.cancel()
        if shadow.decision is None:
            hand_over()
        reason = obstacle
        if shadow.is_decided and shadow.decided is None:
            reason = reason or self.without_decision()
        self._keep(asked, status, shadow.decided, reason, hold=not shadow.is_decided)
        if shadow.may_come:
            self.comparing.show(asked.number, route.path, status, exchange.copy)
        return status

    async def _sent(self, asked: Asked, arrival: Arrival) -> int:
        """To System 2, its prompt looked at."""
        self._prefixes.look(asked.door, arrival.headers, asked.told, asked.tenant, asked.exchange)
        if self._warm is not None:
            self._warm.came(asked.exchange)
        return await self._forwarder.forward(asked.exchange, arrival)

    async def _live(self, asked: Asked, arrival: Arrival) -> int:
        route, exchange = asked.route, asked.exchange
        decided, answer, reason = await self._decide_in_time(asked)
        in_doubt: Decided | None = None
        if decided is not None:
            self._acting.standings.decided(route, asked.tenant, decided)
        if decided is not None and decided.action == "act" and answer:
            # What was switched off or demoted since it was asked is off.
            obstacle = self._acting.why_not_this(route, decided)
            share = self._acting.standings.share(route, decided) if obstacle is None else 0.0
            audited = decided.draw < share
            if audited and self.auditor.is_full:
                obstacle = "audits_busy"
            if obstacle is None:
                decided = msgspec.structs.replace(decided, audit=audited)
                return await self._act(asked, decided, answer, arrival, share)
            in_doubt = decided if obstacle in _IN_DOUBT else None
            decided = msgspec.structs.replace(decided, action="escalate", reason=obstacle)
        if decided is not None and decided.action == "partial":
            forced = None
            if asked.door.client == asked.door.upstream == "chat":
                forced = with_tool_choice(exchange.outgoing or b"", decided.tool)
            obstacle = self._acting.why_not_this(route, decided)
            if obstacle is None and (forced is None or route.upstream in self._not_forcible):
                obstacle = "partial_refused"
            if obstacle is None and forced is not None:
                return await self._force(asked, decided, forced, arrival)
            decided = msgspec.structs.replace(decided, action="escalate", reason=str(obstacle))
        if decided is None:
            self._escalate(route, exchange, reason)
        else:
            self._count(route, (decided, answer))
            exchange.label = _fixed(decision_label(route.mode, decided))
        exchange.copy = self._copy(asked)
        status = await self._sent(asked, arrival)
        self._keep(asked, status, decided, reason)
        if decided is not None:
            self.comparing.show(asked.number, route.path, status, exchange.copy, in_doubt=in_doubt)
        return status

    async def _act(
        self, asked: Asked, decided: Decided, answer: bytes, arrival: Arrival, share: float
    ) -> int:
        """`share`: the probability with which it had to be audited."""
        route, exchange = asked.route, asked.exchange
        self._count(route, (decided, answer))
        exchange.label = _fixed(decision_label(route.mode, decided))
        self._acting.acted(route.path, decided, asked.tenant.hex(), exchange.request_id, share)
        self._acting.standings.acted(route, decided, share)
        total_ms = (self._clock_s() - exchange.began_s) * 1e3
        own = own_headers(
            exchange.request_id,
            exchange.label(),
            exchange.client,
            reflexarc=total_ms,
            system1=decided.decide_ms,
        )
        own.append((b"x-reflexarc-cost", cost_label(decided.prompt_tokens, decided.audit)))
        if decided.stream:
            own.append((b"cache-control", b"no-cache"))
        kind = "text/event-stream; charset=utf-8" if decided.stream else "application/json"
        if asked.continued is not None:
            # Before the client can go on from it.
            self._exchanging.continuing.acted(asked.tenant.hex(), asked.continued, answer, kind)
        await send_whole(arrival.send, 200, own, answer, kind.encode())
        self._keeper.ended(
            route, exchange, asked.number, asked.tenant.hex(), asked.told,
            by="system1", status=200, answer=answer, content_type=kind, decided=decided,
        )  # fmt: skip
        if decided.audit:
            taken = self.auditor.ask(asked.number, exchange)
            self.comparing.audit(asked.number, route.path, decided.tool, taken=taken)
        return 200

    async def _force(self, asked: Asked, decided: Decided, forced: bytes, arrival: Arrival) -> int:
        """To System 2, told which tool to call. What it then does says nothing of what it would
        have done by itself, and is compared with nothing."""
        route, exchange = asked.route, asked.exchange
        refused = msgspec.structs.replace(decided, action="escalate", reason="partial_refused")
        exchange.forced = forced
        exchange.copy = self._copy(asked)
        exchange.label = lambda: decision_label(
            route.mode, refused if exchange.forced_refused else decided
        )
        self._acting.acted(route.path, decided, asked.tenant.hex(), exchange.request_id)
        status = await self._sent(asked, arrival)
        if exchange.forced_refused:
            decided = refused
            self._acting.note("partial_refused", "upstream", {"number": asked.number})
            if status < 400:  # else it was the request itself that was wrong
                self._not_forcible.add(route.upstream)
        self._count(route, (decided, b""))
        self._keep(asked, status, decided, "")
        return status

    def _keep(
        self, asked: Asked, status: int, decided: Decided | None, reason: str, *, hold: bool = False
    ) -> None:
        copy = asked.exchange.copy
        continued = asked.continued
        converted = asked.exchange.conversion is not None
        if copy is not None and continued is not None and status == 200 and not converted:
            self._exchanging.continuing.answered(
                asked.tenant.hex(), continued, copy.kept, copy.content_type, copy.content_encoding
            )
        self._keeper.ended(
            asked.route, asked.exchange, asked.number, asked.tenant.hex(), asked.told,
            by="system2" if asked.exchange.head_s else "gateway",
            status=status,
            answer=copy.kept if copy is not None else b"",
            content_type=copy.content_type if copy is not None else "",
            decided=decided, reason=reason, hold=hold,
        )  # fmt: skip

    def _request(self, asked: Asked, *, respond: bool) -> Decide:
        route = asked.route
        return Decide(
            id=asked.number,
            reflex=self._acting.standings.source(route),
            tenant=asked.tenant,
            respond=respond,
            max_error=route.max_error,
            expires_s=asked.exchange.began_s + route.deadline_ms / 1e3 if respond else 0.0,
            session=asked.told.session,
            canary=route.canary,
            writes=self._acting.standings.writes(route) if respond else (),
            tested=self._tested(route),
            thinking=self.comparing.thinking(route.path),
            partial=respond and route.partial == "force_tool_choice",
            dialect=asked.door.client,
            model=asked.door.where.model,
            stream=asked.door.where.stream,
        )

    async def _decide_in_time(self, asked: Asked) -> tuple[Decided | None, bytes, str]:
        """The decision, or None and the reason to escalate."""
        route, exchange = asked.route, asked.exchange
        waiting = self._system1.ask(
            self._request(asked, respond=True), exchange.body or b"", exchange.grown
        )
        left_s = route.deadline_ms / 1e3 - (self._clock_s() - exchange.began_s)
        try:
            got = await asyncio.wait_for(waiting, max(left_s, 0.0))
        except TimeoutError:
            self._metrics.trouble("deadline")
            self._acting.health.decision(failed=True)
            return None, b"", "deadline"
        failed = got is not None and (got[0].failed or got[0].reason == "deadline")
        self._acting.health.decision(failed=failed)
        if got is None:
            return None, b"", self.without_decision()
        return got[0], got[1], ""

    def _copy(self, asked: Asked) -> Copy:
        return Copy(self._limits.observed_bytes, asked.exchange.upstream)

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


def _fixed(label: bytes) -> Callable[[], bytes]:
    return lambda: label
