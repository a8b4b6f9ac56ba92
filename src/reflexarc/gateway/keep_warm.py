"""Asks with a session's last prompt again before its cache ends, where a miss would be dearer than
that. In the tenant's name and on its account; on routes that ask for it, with one upstream."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from reflexarc.context.fitting import Line
from reflexarc.context.pings import ping_of
from reflexarc.context.warmth import MAX_PINGS, Gaps, worth_pinging
from reflexarc.gateway.accounting import Accounting
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.failing import place_of
from reflexarc.gateway.labels import RequestIds
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import AccountError, ReflexarcError
from reflexarc.upstream import Transport
from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage

MAX_WARM = 256
"""Sessions that may be kept warm at once, and bytes of their requests. Past these the one longest
unused is left to cool."""
MAX_BYTES = 32 * 1024 * 1024
MIN_TOKENS = 1_024
"""Shorter prompts are kept by no provider."""
_AT = 0.9
"""Of the time that a cache lasts, when the next ping is due."""
_MAX_COPY_BYTES = 1024 * 1024
_MAX_IDLE = 4_096
_log = logging.getLogger("reflexarc.gateway")


class _Warm(msgspec.Struct, eq=False):
    """A session that waits for its next request: what was sent last, for whom."""

    exchange: Exchange
    door: Door
    caller: Caller
    told: Told
    body: bytes
    since_s: float
    lasts_s: float
    pings: int = 0
    timer: asyncio.TimerHandle | None = None


class KeepWarm:
    """`ids` numbers pings among the requests of this process."""

    def __init__(
        self,
        transport: Transport,
        accounting: Accounting,
        prefixes: PrefixWatch,
        metrics: Metrics,
        ids: RequestIds,
        clock_s: Callable[[], float],
    ) -> None:
        self._transport = transport
        self._accounting = accounting
        self._prefixes = prefixes
        self._metrics = metrics
        self._ids = ids
        self._clock_s = clock_s
        self._gaps: dict[str, Gaps] = {}
        self._idle: OrderedDict[int, tuple[str, float]] = OrderedDict()
        self._warm: OrderedDict[int, _Warm] = OrderedDict()
        self._bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def came(self, exchange: Exchange) -> None:
        """A request that goes on from another: that one needs nothing more."""
        prefix = exchange.prefix
        if prefix is None or not prefix.route.repair.keep_warm:
            return
        before = prefix.found.before
        for line in (prefix.found.line, *(() if before is None else (before,))):
            known = self._idle.pop(line.number, None)
            if known is not None:
                self._gaps.setdefault(prefix.route.path, Gaps()).add(self._clock_s() - known[1])
            self._leave(line.number)

    def ended(self, exchange: Exchange, door: Door, caller: Caller, told: Told) -> None:
        """A request was answered: from now on its session is idle."""
        prefix = exchange.prefix
        if prefix is None or not prefix.route.repair.keep_warm or exchange.plan is not None:
            return
        line, now_s = prefix.found.line, self._clock_s()
        self._idle[line.number] = prefix.route.path, exchange.sent_s
        self._idle.move_to_end(line.number)
        if len(self._idle) > _MAX_IDLE:
            self._idle.popitem(last=False)
        body = ping_of(exchange.outgoing or b"", exchange.upstream)
        if body is None or len(body) > MAX_BYTES:
            return
        held = msgspec.structs.replace(
            exchange, body=b"", sent=None, copy=None, grown=None, prompt=None, forced=None,
            conversion=None,
        )  # fmt: skip
        warm = _Warm(held, door, caller, told, body, exchange.sent_s, prefix.lasts_s)
        self._warm[line.number] = warm
        self._bytes += len(body)
        while len(self._warm) > MAX_WARM or self._bytes > MAX_BYTES:
            self._leave(next(iter(self._warm)))
        self._wait(line, warm, now_s)

    async def close(self) -> None:
        for key in list(self._warm):
            self._leave(key)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _leave(self, key: int) -> None:
        warm = self._warm.pop(key, None)
        if warm is not None:
            self._bytes -= len(warm.body)
            if warm.timer is not None:
                warm.timer.cancel()

    def _wait(self, line: Line, warm: _Warm, now_s: float) -> None:
        due_s = warm.since_s + (warm.pings + 1) * _AT * warm.lasts_s
        loop = asyncio.get_running_loop()
        warm.timer = loop.call_later(max(0.0, due_s - now_s), self._due, line, warm)

    def _due(self, line: Line, warm: _Warm) -> None:
        if self._worth(warm) == 0:
            self._leave(line.number)
            return
        task = asyncio.get_running_loop().create_task(self._ping(line, warm))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _worth(self, warm: _Warm) -> int:
        """How many pings still are, this one among them."""
        prefix = warm.exchange.prefix
        assert prefix is not None  # else it would not wait
        price = self._prefixes.price(warm.exchange)
        tokens = self._prefixes.tokens(prefix)
        if price is None or tokens < MIN_TOKENS:
            return 0
        path, now_s = prefix.route.path, self._clock_s()
        idle = [now_s - since_s for of, since_s in self._idle.values() if of == path]
        return worth_pinging(
            self._gaps.get(path, Gaps()),
            now_s - warm.since_s,
            warm.lasts_s,
            _AT * warm.lasts_s,
            _miss(price, tokens),
            float(price.micro_usd(Usage(tokens, 1, tokens))),
            MAX_PINGS - warm.pings,
            idle,
        )

    async def _ping(self, line: Line, warm: _Warm) -> None:
        outcome = "failed"
        try:
            outcome = await self._asked(warm)
        except asyncio.CancelledError:
            raise
        except AccountError:
            outcome = "refused"  # a budget is spent: whose it is pays for no more
        except ReflexarcError as error:
            _log.info("a ping was not answered: %s", error)
        except Exception as error:  # nobody waits for it, and it must not end unheard
            _log.error("%s", place_of(error))
        self._metrics.ping(warm.exchange.route, outcome)
        if outcome != "sent" or self._warm.get(line.number) is not warm:
            if self._warm.get(line.number) is warm:
                self._leave(line.number)
            return
        line.last_s = self._clock_s()
        warm.pings += 1
        self._wait(line, warm, line.last_s)

    async def _asked(self, warm: _Warm) -> str:
        number = self._ids.next()
        exchange = msgspec.structs.replace(
            warm.exchange,
            body=warm.body,
            prefix=None,
            client=warm.exchange.upstream,
            copy=Copy(_MAX_COPY_BYTES, warm.exchange.upstream),
            number=number,
            request_id=self._ids.text(number, None),
            began_s=self._clock_s(),
            sent_s=0.0,
            head_s=0.0,
            ended_s=0.0,
            spent=[],
        )
        door = warm.door._replace(client=exchange.upstream)
        admission = await self._accounting.admit(warm.caller, door, exchange, warm.told)
        try:
            return await self._sent(exchange)
        finally:
            exchange.ended_s = self._clock_s()
            self._accounting.settle(
                admission, warm.caller, exchange, warm.door.route, warm.told.session or ""
            )

    async def _sent(self, exchange: Exchange) -> str:
        assert exchange.copy is not None
        exchange.sent_s = self._clock_s()
        answer = await self._transport.send(
            exchange.method, exchange.url, exchange.headers, exchange.body
        )
        try:
            exchange.copy.begin(answer)
            exchange.head_s = self._clock_s()
            async for chunk in answer.chunks():
                exchange.copy.add(chunk)
            exchange.copy.complete = True
        finally:
            answer.release()
        return "sent" if answer.status == 200 else "failed"


def _miss(price: Price, tokens: int) -> float:
    """What a prompt costs more that is read anew: it is written to the cache again as well."""
    anew = max(price.input, price.of_write)
    return float((anew - price.of_read) * tokens)
