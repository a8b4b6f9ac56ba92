"""Prunes requests on their way to System 2, on routes that ask for it, and opens what was cut.
System 1 and what is recorded have the request as its client sent it."""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from reflexarc.context.horizon import Gaps, fit, fit_gaps
from reflexarc.context.pruning import Terms
from reflexarc.context.pruning_kept import KeptCuts
from reflexarc.context.pruning_memory import Pruned, Pruner
from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.config import Route
from reflexarc.gateway.config_prune import PruneConfig
from reflexarc.gateway.doors import Door
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import named_session
from reflexarc.gateway.pruning_learned import Learned
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import MalformedError
from reflexarc.store.kept import PURGED
from reflexarc.wire.growing import Grown
from reflexarc.wire.members import ELSEWHERE, gives_any
from reflexarc.wire.price import Price

HEADER = b"x-reflexarc-pruned"
_HOUR_S, _DAY_S = 3600.0, 24 * 3600.0
_SLOWLY_READ_ITEMS = 200
"""More new items than these are gone through beside the event loop."""
_USUAL = (0.1, 1.25)
"""Reading from and writing to a cache, in prices of input: as most charge it."""
_OWN_MACHINE = (0.0, 1.0)
"""What costs no money costs time: a token that is cached is not read again."""
_NOT_HERE = (*ELSEWHERE, "cachedContent", "cached_content", "context_management")
"""Where a part of the prompt is not in the request, or is changed elsewhere."""


class PruneDesk:
    """`price` says what a route's prompt costs, None where nobody knows. `before` is whose place
    this one takes: of routes that ask for the same it goes on with the conversations."""

    def __init__(
        self,
        routes: Sequence[Route],
        directory: Path | None,
        price: Callable[[Door, Grown], Price | None],
        metrics: Metrics,
        clock_s: Callable[[], float],
        before: "PruneDesk | None" = None,
    ) -> None:
        self._price = price
        self._metrics = metrics
        self._clock_s = clock_s
        self._learned = Learned(directory) if before is None else before._learned
        self._purged = None if directory is None else directory / PURGED
        self._purged_ns = self._last_purge_ns()
        self._kept = KeptCuts() if before is None else before._kept
        self._routes: dict[str, _Route] = {
            route.path: before._routes[route.path]
            if before is not None and before._asks_the_same(route)
            else self._route(route)
            for route in routes
            if route.prune
        }

    async def prune(
        self, door: Door, headers: Headers, told: Told, tenant: bytes, grown: Grown | None
    ) -> Pruned | None:
        """None where nothing is left out. Never raises for what a client sent."""
        path = door.route.path
        kept = self._routes.get(path)
        if kept is None or grown is None or told.off:
            return None
        pruner = kept.pruner
        if gives_any(grown.members, _NOT_HERE):
            return None
        session = told.session or named_session(headers, grown.members)
        ttl_s = _lasts_s(door.route, grown)
        terms = self._terms(door, grown, kept.gaps, ttl_s)
        client = door.client
        try:
            async with kept.lock:
                if pruner.new_items(tenant, session, client, grown) > _SLOWLY_READ_ITEMS:
                    pruned = await asyncio.to_thread(
                        pruner.prune, tenant, session, client, grown, terms, ttl_s, self._clock_s()
                    )
                else:
                    pruned = pruner.prune(
                        tenant, session, client, grown, terms, ttl_s, self._clock_s()
                    )
        except MalformedError:
            return None  # only some readers take it: who is asked judges
        if not pruned.cuts:
            return None
        self._look_for_purges()
        self._kept.keep(tenant, pruned.removed)
        self._metrics.pruned(path, pruned.new, pruned.saved_tokens)
        return pruned

    def open(self, tenant: bytes, identity: str) -> bytes | None:
        """The JSON text of what was cut of a conversation of this tenant's, as it stood there; None
        where it is not known, or no longer."""
        self._look_for_purges()
        return self._kept.open(tenant, identity)

    def close(self) -> None:
        self._learned.keep()

    def _asks_the_same(self, route: Route) -> bool:
        known = self._routes.get(route.path)
        return known is not None and known.config == route.prune

    def _route(self, route: Route) -> "_Route":
        config = route.prune
        assert config is not None  # only of routes that have it
        horizon = fit(self._learned.lengths(route.path), config.expected_turns)
        path = route.path
        learned = self._learned
        pruner = Pruner(
            config.rules(),
            horizon,
            on_ended=lambda turns: learned.ended(path, turns),
            on_gap=lambda gap_s: learned.gap(path, gap_s),
        )
        return _Route(config, pruner, fit_gaps(learned.gaps_s(path)), asyncio.Lock())

    def _terms(self, door: Door, grown: Grown, gaps: Gaps, ttl_s: float) -> Terms:
        price = self._price(door, grown)
        cold = gaps.cold(ttl_s)
        if price is None:
            return Terms(*_USUAL, cold)
        read, write = price.of_read, max(price.of_write, price.of_read)
        if write == Decimal(0):
            return Terms(*_OWN_MACHINE, cold)
        return Terms(float(read), float(write), cold)

    def _look_for_purges(self) -> None:
        """What is held in memory may be what a purge was meant for."""
        last_ns = self._last_purge_ns()
        if last_ns != self._purged_ns:
            self._purged_ns = last_ns
            self._kept.clear()

    def _last_purge_ns(self) -> int:
        try:
            return 0 if self._purged is None else self._purged.stat().st_mtime_ns
        except OSError:
            return 0


class _Route(NamedTuple):
    config: PruneConfig
    pruner: Pruner
    gaps: Gaps
    lock: asyncio.Lock


def pruned_header(pruned: Pruned | None) -> Headers:
    """Of an answer to a request that something was left out of."""
    if pruned is None:
        return []
    said = f"cuts={len(pruned.cuts)}; new={pruned.new}; saved_tokens={pruned.saved_tokens}"
    return [(HEADER, said.encode("ascii"))]


def _lasts_s(route: Route, grown: Grown) -> float:
    lasts_s = route.cache_s
    if bytes(grown.members.get("prompt_cache_retention", b"")) == b'"24h"':
        lasts_s = max(lasts_s, _DAY_S)
    if b'"ttl"' in grown.body and b'"1h"' in grown.body:
        lasts_s = max(lasts_s, _HOUR_S)
    return lasts_s
