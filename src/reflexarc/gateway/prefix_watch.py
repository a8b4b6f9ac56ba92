"""Watches the prefix of every prompt on its way to System 2: what a cache can give of it, what
broke it, and what that costs. Nothing waits for it, and no request fails because of it."""

from collections.abc import Callable

import msgspec

from reflexarc.context.lines import Lines
from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.choosing import Chooser
from reflexarc.gateway.config import EMBEDDED, Route
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import named_session
from reflexarc.gateway.prefix import Outcome, Prefix, Prices, label, outcome
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import MalformedError
from reflexarc.upstream.fleet import Watched
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Grown, take_apart
from reflexarc.wire.members import ELSEWHERE, gives_any
from reflexarc.wire.price import Price

HEADER = b"x-reflexarc-prefix"
_DAY_S = 24 * 3600.0
_KEPT_WHILE_ROOM = frozenset({EMBEDDED, "vllm", "sglang", "llamacpp"})
"""Kinds whose caches forget by room, not by time."""


class PrefixWatch:
    """`listed` knows the price of a model at a route's one upstream."""

    def __init__(
        self,
        lines: Lines,
        chooser: Chooser,
        listed: Callable[[Route, str], Price | None],
        metrics: Metrics,
        clock_s: Callable[[], float],
    ) -> None:
        self.lines = lines
        self._chooser = chooser
        self._listed = listed
        self._metrics = metrics
        self._clock_s = clock_s

    def look(
        self, door: Door, headers: Headers, told: Told, tenant: bytes, exchange: Exchange
    ) -> None:
        """At a request that is about to be sent."""
        try:
            grown = _grown(door, exchange)
        except MalformedError:
            return  # only some readers take it: who is asked judges
        if grown is None or gives_any(grown.members, ELSEWHERE):
            return
        members, now_s = grown.members, self._clock_s()
        session = told.session or named_session(headers, members)
        key = (tenant, door.route.path, door.client, session)
        found = self.lines.take(key, door.client, grown, now_s, door.where.model)
        before = found.before
        lasts_s = door.route.cache_s
        if before is not None and before.lasts_s:
            lasts_s = max(lasts_s, before.lasts_s)
        if bytes(members.get("prompt_cache_retention", b"")) == b'"24h"':
            lasts_s = max(lasts_s, _DAY_S)
        exchange.prefix = Prefix(
            found,
            0.0 if before is None else now_s - before.last_s,
            lasts_s,
            found.line.size,
            door.route,
            door.where.model or _model_of(grown),
            exchange.repaired,
        )

    def header(self, exchange: Exchange, watched: Watched | None = None) -> Headers:
        """`watched`: the deployment whose answer it is, of several."""
        prefix = exchange.prefix
        if prefix is None:
            return []
        told, prices = self._told(exchange, prefix, watched)
        return [(HEADER, label(told, prices, prefix.repaired))]

    def ended(self, exchange: Exchange) -> None:
        """The request is over: it counts, and what was told of its tokens is remembered."""
        prefix = exchange.prefix
        if prefix is None or not exchange.sent_s:
            return
        answered = [one.watched for one in exchange.attempts if one.outcome == "answered"]
        watched = answered[-1] if answered else None
        told, prices = self._told(exchange, prefix, watched)
        self._metrics.prefix(
            prefix.route.path,
            None if told.cause is None else str(told.cause),
            prices.kept_tokens,
            prices.lost_tokens,
            prices.micro_usd or 0,
        )
        line = prefix.found.line
        if watched is not None:
            line.where = watched.deployment.name
        made = exchange.spent[-1] if exchange.spent else None
        if made is not None and made.outcome == "answered" and not made.estimated and prefix.size:
            line.bytes_of_token = prefix.size / max(1, made.usage.input)

    def price(self, exchange: Exchange) -> Price | None:
        """Of what was asked at a route's one upstream."""
        prefix = exchange.prefix
        return None if prefix is None else self._price(exchange, prefix, None)

    def tokens(self, prefix: Prefix) -> int:
        """Of a prompt at a route's one upstream."""
        ratio = prefix.found.line.bytes_of_token
        if ratio:
            return round(prefix.size / ratio)
        return self._chooser.ratios.tokens(prefix.route.path, prefix.size)

    def _told(
        self, exchange: Exchange, prefix: Prefix, watched: Watched | None
    ) -> tuple[Outcome, Prices]:
        found, before = prefix.found, prefix.found.before
        lasts_s, moved = prefix.lasts_s, False
        if watched is not None:
            if watched.deployment.kind in _KEPT_WHILE_ROOM:
                lasts_s = float("inf")
            moved = before is not None and before.where not in ("", watched.deployment.name)
        told = outcome(found, prefix.idle_s, lasts_s, moved=moved)
        name = prefix.route.path if watched is None else watched.deployment.name
        ratio = 0.0 if before is None else before.bytes_of_token

        def tokens(size: int) -> int:
            return round(size / ratio) if ratio else self._chooser.ratios.tokens(name, size)

        lost = tokens(told.again_bytes)
        whole = tokens(prefix.size)
        micro_usd = _micro_usd(self._price(exchange, prefix, watched), lost, whole)
        ms = None if watched is None else _read_ms(watched, lost, whole, self._clock_s())
        return told, Prices(tokens(told.kept_bytes), lost, micro_usd, ms)

    def _price(self, exchange: Exchange, prefix: Prefix, watched: Watched | None) -> Price | None:
        if watched is not None and exchange.plan is not None:
            return self._chooser.price(watched.deployment, exchange.plan.service_tier)
        if exchange.plan is not None:
            return None
        if prefix.route.price is not None:
            return prefix.route.price.of_tokens()
        return self._listed(prefix.route, prefix.model)


def _grown(door: Door, exchange: Exchange) -> Grown | None:
    grown = exchange.grown if exchange.prompt is None else exchange.prompt
    if grown is None or (exchange.prompt is None and grown.body is not exchange.body):
        grown = take_apart(exchange.body or b"", dialect(door.client).conversation)
    if grown.crowded:
        return None
    if grown.listed:
        return grown
    spoken = dialect(door.client).conversation
    given = grown.members.get(spoken)
    if given is None:
        return None
    return take_apart(b'{"%s":[%s]}' % (spoken.encode(), bytes(given)), spoken)


def _model_of(grown: Grown) -> str:
    try:
        model = msgspec.json.decode(grown.members.get("model", msgspec.Raw(b'""')))
    except msgspec.MsgspecError:
        return ""
    return model if isinstance(model, str) else ""


def _micro_usd(price: Price | None, lost_tokens: int, prompt_tokens: int) -> int | None:
    if price is None:
        return None
    if price.long is not None and price.long_from is not None and prompt_tokens > price.long_from:
        price = price.long
    return max(0, round((price.input - price.of_read) * lost_tokens))


def _read_ms(watched: Watched, lost: int, whole: int, now_s: float) -> float | None:
    """From the first tokens of prompts of this size that nothing, and nearly all, was cached of."""
    measures = watched.measures
    cold_ms = measures.first_token_ms(0.5, whole, 0.0, now_s)
    warm_ms = measures.first_token_ms(0.5, whole, 0.9, now_s)
    if cold_ms is None or warm_ms is None or cold_ms <= warm_ms or not whole:
        return None
    return (cold_ms - warm_ms) * min(1.0, lost / whole)
