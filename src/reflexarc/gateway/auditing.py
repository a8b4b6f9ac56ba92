"""Audits: of the acts drawn for it, the same request goes to System 2 as well, behind the client's
back and without delay for it. What it would have done tells whether the certificate still holds."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from reflexarc.gateway.copying import Copy
from reflexarc.gateway.driving import Driver
from reflexarc.gateway.exchange import Exchange
from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream import Transport

_MAX_AT_ONCE = 64
_log = logging.getLogger("reflexarc.gateway")


class Auditor:
    """`on_answer` gets a request's number and the copy of what System 2 answered, None where it
    did not."""

    def __init__(
        self,
        transport: Transport,
        max_bytes: int,
        on_answer: Callable[[int, Copy | None], None],
        driver: Driver,
        on_driven: Callable[[Exchange], None],
    ) -> None:
        """`driver` asks for exchanges that have a plan; `on_driven` hears what that cost."""
        self._driver = driver
        self._on_driven = on_driven
        self._transport = transport
        self._max_bytes = max_bytes
        self._on_answer = on_answer
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_full(self) -> bool:
        """Whether no further audit can begin now."""
        return len(self._tasks) >= _MAX_AT_ONCE

    def ask(self, number: int, exchange: Exchange) -> bool:
        """False where too many are at work already."""
        if self.is_full:
            return False
        task = asyncio.get_running_loop().create_task(self._ask(number, exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def close(self) -> None:
        """Audits under way are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, number: int, exchange: Exchange) -> None:
        copy = Copy(self._max_bytes, exchange.upstream)
        try:
            if exchange.plan is not None:
                driven = await self._driver.audit(exchange, self._on_driven)
                whole = driven.copy is not None and driven.copy.status == 200
                self._on_answer(number, driven.copy if whole else None)
                return
            answer = await self._transport.send(
                exchange.method, exchange.url, exchange.headers, exchange.outgoing
            )
            try:
                copy.begin(answer)
                async for chunk in answer.chunks():
                    copy.add(chunk)
                copy.complete = True
            finally:
                answer.release()
        except (UpstreamError, InputError, TimeoutError):
            self._on_answer(number, None)
            return
        except Exception:
            _log.exception("an audit failed")
            self._on_answer(number, None)
            return
        self._on_answer(number, copy if copy.status == 200 else None)
