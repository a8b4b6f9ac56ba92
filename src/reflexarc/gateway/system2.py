"""The gateway's side of System 2: deployments, accounts, the connection, and who drives them."""

import contextlib
import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from reflexarc.accounts.prices import Prices
from reflexarc.context.lines import Lines
from reflexarc.gateway.accounting import Accounting, open_desk
from reflexarc.gateway.cache_events import CacheEvents
from reflexarc.gateway.charging import Charging
from reflexarc.gateway.choosing import Chooser
from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.continuing import Continuing
from reflexarc.gateway.converted import PING_S
from reflexarc.gateway.converting import Converting
from reflexarc.gateway.doors import Door
from reflexarc.gateway.driving import Driver
from reflexarc.gateway.exchanging import Exchanging
from reflexarc.gateway.forwarding import Forwarder
from reflexarc.gateway.keep_warm import KeepWarm
from reflexarc.gateway.labels import RequestIds
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import Planner, asked_model
from reflexarc.gateway.polling import Polling
from reflexarc.gateway.pool import Pool
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.preparing import Preparing
from reflexarc.gateway.prompt_repair import PromptRepair
from reflexarc.gateway.pruning import PruneDesk
from reflexarc.gateway.state import State
from reflexarc.gateway.warming import warm_up
from reflexarc.steps.errors import InputError
from reflexarc.upstream import Transport
from reflexarc.upstream.fleet import Fleet
from reflexarc.upstream.ratios import Ratios
from reflexarc.upstream.retrying import RetryBudget
from reflexarc.wire.growing import Grown
from reflexarc.wire.price import Price

_RATIOS = "ratios.json"
_log = logging.getLogger("reflexarc.gateway")


class System2:
    """`start` and `close` it. `name` is the gateway's; `before` is whose place this one takes: what
    that measured goes on. Raises `ConfigError` for keys, prices or libraries that are not there."""

    def __init__(
        self,
        config: GatewayConfig,
        environment: Mapping[str, str],
        state: State,
        name: str,
        metrics: Metrics,
        clock_s: Callable[[], float],
        before: "System2 | None" = None,
    ) -> None:
        self._config = config
        self._state = state
        self._metrics = metrics
        self._clock_s = clock_s
        listed = config.accounts.prices
        prices = Prices.load(None if listed is None else Path(listed))
        self.pool = Pool(config, environment, prices)
        self.planner = Planner(self.pool, config.tier)
        self.fleet = Fleet()
        self.fleet.adopt(self.pool.deployments, None if before is None else before.fleet)
        self.ratios = _ratios(state) if before is None else before.ratios
        affinity = None if before is None else before.chooser.affinity
        self.chooser = Chooser(self.fleet, self.pool.price, self.ratios, affinity)
        self.repair = PromptRepair(state.secret) if before is None else before.repair
        self.prefixes = PrefixWatch(
            Lines() if before is None else before.prefixes.lines,
            self.chooser,
            lambda route, model: self.pool.listed(route.upstream, model),
            metrics,
            clock_s,
        )
        self.pruning = PruneDesk(
            config.route, state.directory, self._prompt_price, metrics, clock_s,
            None if before is None else before.pruning,
        )  # fmt: skip
        self._desk = open_desk(state, config, clock_s, None if before is None else before._desk)
        self.accounting = Accounting(
            config.accounts, self._desk, self.chooser, name, state.secret, time.time
        )
        self.converting = Converting(config.limits.json_depth)
        self.warm: KeepWarm | None = None
        self._transport: Transport | None = None
        self._polling: Polling | None = None
        self._events = CacheEvents(self.fleet, self.chooser.affinity, clock_s)

    def exchanging(self, continuing: Continuing) -> Exchanging:
        return Exchanging(self.converting, continuing, self.planner, self.repair, self.pruning)

    def _prompt_price(self, door: Door, grown: Grown) -> Price | None:
        """Of several deployments that may be asked, the first's."""
        route = door.route
        if route.price is not None:
            return route.price.of_tokens()
        try:
            model = asked_model(door, grown.members)
            if not route.pooled:
                return self.pool.listed(route.upstream, model)
            served = self.pool.served(
                self.pool.model_of(route, model), route.tier or "standard", local_only=False
            )
        except InputError:
            return None  # nobody will be asked
        return self.pool.price(served[0], "") if served else None

    async def start(
        self, tls: ssl.SSLContext | None, ids: RequestIds
    ) -> tuple[Transport, Driver, Forwarder]:
        """Inside a running event loop. `tls`: whom to believe over https. `ids` numbers what is
        asked beside the clients' requests."""
        if self._desk is not None:
            await self._desk.start()
        transport = Transport(self._config.timeouts, self._clock_s, tls)
        self._transport = transport
        await warm_up(transport, self._config)
        self._polling = Polling(self.fleet, self.chooser.affinity, transport, self._clock_s)
        self._polling.start()
        self._events.start()
        driver = Driver(
            transport,
            Preparing(self.converting, self._state.secret),
            self.chooser,
            RetryBudget(),
            self._metrics,
            self._clock_s,
            time.time,
            self._config.timeouts.total_s,
            Charging(self.chooser, self._metrics).finished,
            PING_S,
            self.prefixes,
        )
        forwarder = Forwarder(transport, self._metrics, self._clock_s, driver, self.prefixes)
        self.warm = KeepWarm(
            transport, self.accounting, self.prefixes, self._metrics, ids, self._clock_s
        )
        return transport, driver, forwarder

    def takes_over(self) -> None:
        """Once nothing can fail any more: until then what it shares with the one before is that
        one's."""
        self.fleet.resize()
        self.chooser.affinity.keep_only({one.name for one in self.pool.deployments})

    async def close(self) -> None:
        await self._events.close()
        if self.warm is not None:
            await self.warm.close()
        if self._polling is not None:
            await self._polling.close()
        if self._transport is not None:
            await self._transport.close()
        await self.accounting.close()
        if self._desk is not None:
            await self._desk.close()
        _keep_ratios(self._state, self.ratios)
        self.pruning.close()


def _ratios(state: State) -> Ratios:
    """What an earlier process learned of bytes and tokens."""
    ratios = Ratios()
    if state.directory is not None:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            ratios.restore(msgspec.json.decode((state.directory / _RATIOS).read_bytes()))
    return ratios


def _keep_ratios(state: State, ratios: Ratios) -> None:
    learned = ratios.snapshot()
    if state.directory is None or not any(learned.values()):
        return
    path = state.directory / _RATIOS
    try:
        whole = path.with_suffix(".new")
        whole.write_bytes(msgspec.json.encode(learned))
        os.replace(whole, path)
    except OSError as error:
        _log.warning("what was learned of tokens is not kept: %s", error)
