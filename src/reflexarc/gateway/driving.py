"""System 2, driven: of the deployments that serve a request, asks the best, and the next where that
does not answer. Nothing is asked again once the client has output."""

import asyncio
from collections.abc import Callable

import msgspec

from reflexarc.gateway.asgi import Message, Send
from reflexarc.gateway.attempting import Attempt, Content, Outcome, Refused
from reflexarc.gateway.choosing import Chooser
from reflexarc.gateway.client_watch import ClientWatch
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.exchange import Exchange
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.planning import Plan
from reflexarc.gateway.prefix_watch import PrefixWatch
from reflexarc.gateway.preparing import Asking, Preparing
from reflexarc.gateway.repairing import repaired_content
from reflexarc.gateway.telling import Teller
from reflexarc.steps.errors import InputError
from reflexarc.upstream import Transport
from reflexarc.upstream.fleet import Watched
from reflexarc.upstream.retrying import RetryBudget
from reflexarc.wire.faults import Fault

_MAX_COPY_BYTES = 8 * 1024 * 1024
_OF_A_KEY = frozenset({401, 402, 403, 429})
"""Statuses of what a key may not, or has used up."""


class Driver:
    """`total_s` bounds a request with all its attempts."""

    def __init__(
        self,
        transport: Transport,
        preparing: Preparing,
        chooser: Chooser,
        retries: RetryBudget,
        metrics: Metrics,
        clock_s: Callable[[], float],
        unix_time: Callable[[], float],
        total_s: float,
        on_finished: Callable[[Exchange, Attempt], None],
        ping_s: float,
        prefixes: PrefixWatch,
    ) -> None:
        """`on_finished` hears of each attempt once it is over, whatever way."""
        self.transport = transport
        self.preparing = preparing
        self.chooser = chooser
        self.retries = retries
        self.metrics = metrics
        self.clock_s = clock_s
        self.unix_time = unix_time
        self.total_s = total_s
        self.on_finished = on_finished
        self.ping_s = ping_s
        self.prefixes = prefixes

    async def drive(self, exchange: Exchange, plan: Plan, send: Send, watch: ClientWatch) -> int:
        """Answers, and returns the HTTP status the client saw."""
        assert exchange.asking is not None  # it comes with the plan
        one = _Drive(self, exchange, plan, exchange.asking, send)
        try:
            async with asyncio.timeout(self.total_s):
                return await one.go()
        except TimeoutError:
            one.end_attempts()  # before a client that reads slowly has heard of it
            said = f"no deployment of {plan.model} answered within {self.total_s:g} s"
            return await one.teller.fault(Fault("timeout", said, 504, code="upstream_timeout"))
        except asyncio.CancelledError:
            one.ends_as = "client_gone" if watch.gone else "stopped"
            if not watch.gone:
                said = "the gateway was stopped inside this answer"
                fault = Fault("overloaded", said, 503, code="gateway_stopped")
                await one.teller.cut(fault)
            raise
        finally:
            one.close()

    async def audit(self, exchange: Exchange, on_driven: Callable[[Exchange], None]) -> Exchange:
        """Asks the same once more, for nobody: the exchange as it then stands, of which `on_driven`
        hears whatever way it ends. Nobody goes on from what is answered."""
        plan, asking = exchange.plan, exchange.asking
        assert plan is not None
        assert asking is not None
        own = msgspec.structs.replace(exchange, attempts=[], spent=[], copy=None)
        asking = msgspec.structs.replace(asking, on_reply=None)
        one = _Drive(self, own, plan, asking, _to_nobody)
        try:
            async with asyncio.timeout(self.total_s):
                await one.go()
        finally:
            one.close()
            on_driven(own)
        return own


async def _to_nobody(message: Message) -> None:
    del message


class _Drive:
    """One request while it is driven."""

    def __init__(
        self, driver: Driver, exchange: Exchange, plan: Plan, asking: Asking, send: Send
    ) -> None:
        self.ends_as: Outcome = "stopped"
        self.driver = driver
        self.exchange = exchange
        self.plan = plan
        self.asking = asking
        self.teller = Teller(
            exchange, plan, send, driver.clock_s, driver.metrics, driver.ping_s, driver.prefixes
        )
        self.tasks: dict[asyncio.Task[Content | Refused], Attempt] = {}
        self.tried: list[str] = []
        self.again: set[str] = set()
        self.asked_again: set[str] = set()
        self.unfit: InputError | None = None
        exchange.attempts = []
        driver.retries.request()

    async def go(self) -> int:
        last: Refused | None = None
        last_attempt: Attempt | None = None
        while len(self.exchange.attempts) < self.plan.limits.attempts:
            if last is not None and not self.driver.retries.retry():
                self.driver.metrics.upstream_error(self.exchange.route, "retries_spent")
                self.teller.final = True
                break
            watched = await self._next()
            if watched is None:
                break
            attempt = await self._begin(watched)
            if attempt is None:
                continue
            attempt, opened = await self._opened(attempt)
            if isinstance(opened, Content):
                return await self._pass(attempt, opened)
            last, last_attempt = opened, attempt
            repaired = await repaired_content(self.driver.preparing, self.plan, self.asking, last)
            if repaired is not None:
                self._finish(attempt, "repaired")
                return await self.teller.answer(attempt, repaired)
            self._refuse(attempt, last)
            if last.verdict == "answer":
                break
            name = attempt.watched.deployment.name
            if last.verdict == "again" and name not in self.asked_again:
                self.asked_again.add(name)
                self.again.add(name)
        if last is not None and last_attempt is not None:
            return await self.teller.refused(last_attempt, last)
        if self.unfit is not None and len(set(self.tried)) == len(self.plan.served):
            raise self.unfit
        return await self.teller.fault(self._all_closed())

    def close(self) -> None:
        """Whatever way it ended: nothing goes on, and every attempt is accounted for."""
        self.teller.stop()
        self.end_attempts()

    def end_attempts(self) -> None:
        """Those on their way are cut, and accounted for."""
        for task, attempt in self.tasks.items():
            task.cancel()
            self._finish(attempt, self.ends_as)
        for attempt in self.exchange.attempts:
            self._finish(attempt, self.ends_as)

    # --- choosing and asking

    async def _next(self) -> Watched | None:
        """The best deployment that was not asked, once it has a slot for this request."""
        exclude = [name for name in self.tried if name not in self.again]
        watched = self.driver.chooser.next(self.plan, exclude, self.driver.clock_s())
        if watched is None:
            return None
        await watched.slots.take(self.plan.tier)
        return watched

    async def _begin(self, watched: Watched) -> Attempt | None:
        """An attempt with its slot; None where this deployment cannot be asked such a thing, or may
        not be asked any more: waiting for a slot can take long."""
        name = watched.deployment.name
        try:
            prepared = await self.driver.preparing.prepared(
                self.plan, self.asking, watched.deployment
            )
        except InputError as error:
            watched.slots.give(self.plan.tier)
            self.tried.append(name)
            self.unfit = error
            return None
        except BaseException:
            watched.slots.give(self.plan.tier)
            raise
        if not self.driver.chooser.allows(self.plan, watched, self.driver.clock_s()):
            watched.slots.give(self.plan.tier)
            return None
        self.again.discard(name)
        self.tried.append(name)
        limit = _MAX_COPY_BYTES if self.exchange.copy is None else self.exchange.copy.max_bytes
        attempt = Attempt(
            len(self.exchange.attempts) + 1,
            watched,
            prepared,
            Copy(limit, prepared.dialect),
            self.driver.clock_s,
        )
        attempt.trial = watched.circuit.begin(attempt.began_s)
        tokens, share = self.driver.chooser.prompt(self.plan, watched, attempt.began_s)
        watched.measures.began(id(attempt), attempt.began_s, tokens, share)
        self.exchange.attempts.append(attempt)
        if not self.exchange.sent_s:
            self.exchange.sent_s = attempt.began_s
        return attempt

    def _open(self, attempt: Attempt) -> "asyncio.Task[Content | Refused]":
        task = asyncio.get_running_loop().create_task(
            attempt.open(
                self.driver.transport,
                self.exchange.request_id,
                self.plan.limits.first_token_s,
                self.driver.unix_time,
                stream=self.plan.stream,
            )
        )
        self.tasks[task] = attempt
        return task

    async def _opened(self, attempt: Attempt) -> tuple[Attempt, Content | Refused]:
        """The attempt that counts, with what came of it."""
        self._open(attempt)
        hedge_s = self._hedge_after_s(attempt)
        if hedge_s is not None:
            done, _ = await asyncio.wait(self.tasks, timeout=hedge_s)
            if not done:
                await self._hedge()
        while True:
            done, pending = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            # Of two at once, the one with content.
            for task in sorted(done, key=lambda one: isinstance(one.result(), Content)):
                won = self.tasks.pop(task)
                opened = task.result()
                if isinstance(opened, Content) or not self.tasks:
                    await self._drop_losers()
                    return won, opened
                self._refuse(won, opened)
            assert pending  # else the last of those done was returned

    def _hedge_after_s(self, attempt: Attempt) -> float | None:
        if not (self.plan.limits.hedge and self.plan.stream):
            return None
        now_s = attempt.began_s
        prompt_tokens, share = self.driver.chooser.prompt(self.plan, attempt.watched, now_s)
        p95_ms = attempt.watched.measures.first_token_ms(0.95, prompt_tokens, share, now_s)
        return None if p95_ms is None else p95_ms / 1e3

    async def _hedge(self) -> None:
        """A second deployment is asked beside the first, if one is free."""
        if len(self.exchange.attempts) >= self.plan.limits.attempts:
            return
        watched = self.driver.chooser.next(self.plan, self.tried, self.driver.clock_s())
        if watched is None or not watched.slots.free(self.plan.tier):
            return
        if not self.driver.retries.retry():
            return
        await watched.slots.take(self.plan.tier)
        second = await self._begin(watched)
        if second is not None:
            self._open(second)

    async def _drop_losers(self) -> None:
        for task, attempt in list(self.tasks.items()):
            task.cancel()
            await asyncio.wait({task})  # its own end; ours would be raised here
            self.tasks.pop(task, None)
            self._finish(attempt, "hedge_lost")

    async def _pass(self, attempt: Attempt, content: Content) -> int:
        """The answer goes to the client."""
        prompt_tokens, share = self.driver.chooser.prompt(
            self.plan, attempt.watched, attempt.began_s
        )
        if self.plan.stream:
            first_ms = (attempt.first_s - attempt.began_s) * 1e3
            attempt.watched.measures.first_token(prompt_tokens, share, first_ms, attempt.first_s)
        attempt.watched.measures.heard(id(attempt))
        status = await self.teller.answer(attempt, content)
        cut = content.relay is not None and content.relay.fault is not None
        self._finish(attempt, "cut" if cut else "answered")
        return status

    def _all_closed(self) -> Fault:
        wait_s = self.driver.chooser.opens_in_s(self.plan, self.driver.clock_s())
        said = (
            f"every deployment of {self.plan.model} in the tier {self.plan.tier} failed or asked "
            "for a pause"
        )
        return Fault("overloaded", said, 503, code="no_deployment", retry_after_s=wait_s)

    # --- the end of an attempt

    def _refuse(self, attempt: Attempt, refused: Refused) -> None:
        now_s = self.driver.clock_s()
        watched = attempt.watched
        # What is said of one client's key says nothing of others'.
        of_key = watched.deployment.passes_key and refused.status in _OF_A_KEY
        if refused.cool_s is not None and refused.verdict != "answer":
            if of_key:
                self.driver.chooser.pause(self.plan, watched, now_s, refused.cool_s)
            else:
                watched.circuit.cool(now_s, refused.cool_s)
        self._finish(
            attempt,
            "refused" if refused.error is None else "failed",
            # A pause that was asked for is no failure; nor is what the client has to mend.
            blames=refused.verdict == "elsewhere" and refused.cool_s is None and not of_key,
        )

    def _finish(self, attempt: Attempt, outcome: Outcome, *, blames: bool = True) -> None:
        """Once for each attempt. `blames`: whether a refusal speaks against the deployment."""
        if attempt.outcome is not None:
            return
        attempt.outcome = outcome
        attempt.ended_s = now_s = self.driver.clock_s()
        attempt.release()
        watched = attempt.watched
        watched.slots.give(self.plan.tier)
        watched.measures.heard(id(attempt))
        if outcome in ("answered", "repaired"):
            watched.circuit.succeeded(now_s, attempt.trial)
            watched.measures.outcome(True, now_s)
        elif outcome in ("failed", "refused", "cut") and blames:
            watched.circuit.failed(now_s, attempt.trial)
            watched.measures.outcome(False, now_s)
        else:
            watched.circuit.abandoned(now_s, attempt.trial)
        self.driver.on_finished(self.exchange, attempt)
