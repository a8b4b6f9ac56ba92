"""The gateway's accounts: whose a request is, whether it may pass, and what it cost in the end."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any

import msgspec

from reflexarc.accounts.book import Book
from reflexarc.accounts.charge import Charge
from reflexarc.accounts.database import FILE
from reflexarc.accounts.desk import Admission, Desk
from reflexarc.accounts.keys import is_secret
from reflexarc.gateway.asgi import Headers, header
from reflexarc.gateway.callers import Caller
from reflexarc.gateway.choosing import Chooser
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.config_pool import AccountsConfig
from reflexarc.gateway.doors import Door
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.planning import asked_model, choices, max_output
from reflexarc.gateway.state import State
from reflexarc.gateway.tenancy import tenant_of
from reflexarc.gateway.told import Told
from reflexarc.steps.errors import ConfigError, InputError, KeyRefusedError
from reflexarc.store.records import AttemptMade
from reflexarc.upstream import KEY_NAMES
from reflexarc.wire.reckoning import reckoned
from reflexarc.wire.usage import Usage

_NOTHING = Usage(0, 0)
# An audit's attempts are not those of the request that it audits.
_AUDITS_FROM = 100


class Accounting:
    """`gateway` names this process. Without a `desk` there are no accounts, and nothing binds."""

    def __init__(
        self,
        config: AccountsConfig,
        desk: Desk | None,
        chooser: Chooser,
        gateway: str,
        tenant_key: bytes,
        unix_time: Callable[[], float],
    ) -> None:
        self._config = config
        self._desk = desk
        self._chooser = chooser
        self._gateway = gateway
        self._tenant_key = tenant_key
        self._unix_time = unix_time
        self._settling: set[asyncio.Task[Any]] = set()

    @property
    def charges(self) -> bool:
        """Whether what requests cost is written down."""
        return self._desk is not None

    async def caller(self, headers: Headers) -> Caller:
        """Raises an `AccountError` for a key that is refused, or where one must come and none
        does."""
        if self._config.keys == "off" or self._desk is None:
            return Caller(tenant_of(headers, self._tenant_key))
        key = await self._desk.identify(_secret(headers))
        if key is None:
            if self._config.keys == "required":
                raise KeyRefusedError(
                    "a key of this gateway is needed (rx-...): reflexarc keys create makes one"
                )
            return Caller(tenant_of(headers, self._tenant_key))
        named = hashlib.blake2b(
            key.tenant.encode(), key=self._tenant_key[:64], person=b"tenant of key", digest_size=16
        )
        return Caller(named.digest(), key)

    async def caller_of(self, tenant: str, key: str) -> Caller:
        """Who left a request here: `tenant` in hexadecimal, `key` the id of a virtual key, empty
        without one. Raises an `AccountError` for a key that may no longer ask."""
        if not key or self._desk is None:
            return Caller(bytes.fromhex(tenant))
        return Caller(bytes.fromhex(tenant), await self._desk.known(key))

    async def admit(
        self, caller: Caller, door: Door, exchange: Exchange, said: Told
    ) -> Admission | None:
        """Keeps back what the request can cost at most. None where nothing binds it. Raises an
        `AccountError`."""
        if caller.key is None or self._desk is None:
            return None
        model, limit, answers = _asked(door, exchange)
        output = (limit or self._config.max_output_tokens) * answers
        plan = exchange.plan
        if plan is not None:
            tokens = self._chooser.ratios.tokens(plan.served[0].kin, len(plan.body))
            costs = [self._chooser.expected(plan, one, output) for one in plan.served]
            known = [cost for cost in costs if cost is not None]
            micro_usd = max(known) if len(known) == len(costs) else None
            session, tier, model = plan.session, plan.tier, plan.model
        else:
            tokens = self._chooser.ratios.tokens(door.route.path, len(exchange.asked))
            price = None if door.route.price is None else door.route.price.of_tokens()
            micro_usd = None if price is None else price.most_micro_usd(tokens, output)
            session, tier = said.session or "", said.tier or caller.tier or "standard"
        return await self._desk.admit(
            caller.key,
            session=session,
            tier=tier,
            model=model,
            tokens=tokens + output,
            micro_usd=micro_usd,
        )

    def settle(
        self,
        admission: Admission | None,
        caller: Caller,
        exchange: Exchange,
        route: Route,
        session: str = "",
    ) -> None:
        """The request is over, whatever way. Waits for nothing."""
        if self._desk is None:
            return
        if exchange.plan is None:
            exchange.spent = self._spent_directly(exchange, route)
        if admission is None and not exchange.spent:
            return
        charges = [
            self._charge(at, made, caller, exchange, session)
            for at, made in enumerate(exchange.spent, 1)
        ]
        used = sum(made.usage.input + made.usage.output for made in exchange.spent)
        self._soon(admission, charges, used)

    def audited(self, exchange: Exchange) -> None:
        """What an audit cost: nobody's budget pays for it."""
        plan = exchange.plan
        if plan is None or self._desk is None:
            return
        caller = Caller(bytes.fromhex(plan.tenant))
        charges: list[Charge] = []
        for at, made in enumerate(exchange.spent, 1 + _AUDITS_FROM):
            charge = self._charge(at, made, caller, exchange)
            charges.append(msgspec.structs.replace(charge, outcome="audit"))
        if charges:
            self._soon(None, charges, 0)

    async def close(self) -> None:
        """Waits for what is on its way to the book."""
        await asyncio.gather(*self._settling, return_exceptions=True)

    def _soon(self, admission: Admission | None, charges: list[Charge], used: int) -> None:
        assert self._desk is not None
        task = asyncio.get_running_loop().create_task(self._desk.settle(admission, charges, used))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    def _charge(
        self,
        attempt: int,
        made: AttemptMade,
        caller: Caller,
        exchange: Exchange,
        session: str = "",
    ) -> Charge:
        plan = exchange.plan
        return Charge(
            request_id=exchange.request_id.decode("latin-1"),
            number=exchange.number,
            gateway=self._gateway,
            at_unix_s=self._unix_time(),
            key=caller.key.id if caller.key is not None else "",
            tenant=caller.tenant.hex(),
            session=plan.session if plan is not None else session,
            tier=made.tier,
            route=exchange.route,
            provider=made.provider,
            model=made.model,
            service_tier=made.service_tier,
            usage=made.usage,
            micro_usd=made.micro_usd,
            status=made.status,
            outcome=made.outcome,
            partial=made.partial,
            estimated=made.estimated,
            attempt=attempt,
        )

    def _spent_directly(self, exchange: Exchange, route: Route) -> list[AttemptMade]:
        """Of a route with one upstream: its one attempt."""
        copy = exchange.copy
        if copy is None or not exchange.sent_s:
            return []
        now_s = exchange.ended_s or exchange.head_s
        told = reckoned(
            copy.kept, copy.content_type, copy.content_encoding, exchange.upstream,
            complete=copy.complete,
        )  # fmt: skip
        answered = 200 <= copy.status < 300
        whole = answered and told.usage is not None and told.told_whole
        ratios = self._chooser.ratios
        usage = told.usage if whole and told.usage is not None else _NOTHING
        if answered and not whole:
            prompt = ratios.tokens(route.path, len(exchange.asked))
            size = told.generated_bytes or copy.overflown  # too long to keep, and yet generated
            usage = Usage(prompt, ratios.tokens(route.path, size, generated=True))
        if whole:
            ratios.learn(route.path, len(exchange.asked), usage.input)
        price = None if route.price is None else route.price.of_tokens()
        micro_usd = 0 if usage == _NOTHING else None if price is None else price.micro_usd(usage)
        return [
            AttemptMade(
                provider=exchange.url.host or "",
                model="",
                service_tier=told.service_tier or "",
                tier=route.tier or "",
                outcome="answered" if copy.complete else "cut" if answered else "failed",
                status=copy.status,
                code="",
                first_token_ms=None,
                total_ms=max(0.0, now_s - exchange.sent_s) * 1e3,
                usage=usage,
                micro_usd=micro_usd,
                partial=answered and not copy.complete,
                estimated=answered and not whole,
            )
        ]


def _asked(door: Door, exchange: Exchange) -> tuple[str, int | None, int]:
    """The model asked for, the tokens each answer is bounded to, and how many answers."""
    try:
        plan = exchange.plan
        members = plan.members if plan is not None else exchange.members
        return asked_model(door, members), max_output(door, members), choices(door, members)
    except InputError:
        return "", None, 1


def _secret(headers: Headers) -> str:
    """Of several keys the one that is of ours, wherever it stands: then none goes on."""
    given = [_plain(found) for name in KEY_NAMES if (found := header(headers, name))]
    return next((one for one in given if is_secret(one)), given[0] if given else "")


def _plain(given: bytes) -> str:
    text = given.decode("latin-1").strip()
    scheme, space, rest = text.partition(" ")
    return rest.strip() if space and scheme.lower() == "bearer" else text


def open_desk(
    state: State,
    config: GatewayConfig,
    clock_s: Callable[[], float],
    before: Desk | None = None,
) -> Desk | None:
    """The accounts in a state directory; None where nothing is to be accounted for, or there is no
    directory. `before` is the desk whose place this one takes. Raises `ConfigError` where keys are
    wanted and there is nowhere to keep them."""
    wanted = config.accounts.keys != "off"
    priced = any(route.pooled or route.price is not None for route in config.route)
    directory = state.directory
    if directory is None:
        if wanted:
            raise ConfigError("accounts.keys needs a state directory that can be written")
        return None
    if not (wanted or priced):
        return None
    path = directory / FILE
    return Desk(
        lambda: Book.open(path, time.time),
        state.secret,
        time.time,
        clock_s,
        retention_days=config.store.retention_days,
        limits=None if before is None else before.limits,
    )
