"""Audits: of the acts drawn for it, the same request goes to System 2 as well, behind the client's
back and without delay for it. What it would have done tells whether the certificate still holds."""

import asyncio
from collections.abc import Callable
from typing import Any

from reflexarc.gateway.forwarding import Copy, Exchange
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Transport

_MAX_AT_ONCE = 16


class Auditor:
    """`on_answer` gets a request's number and the copy of what System 2 answered, None where it
    did not; `on_skipped` hears of an audit that found too many at work already."""

    def __init__(
        self,
        transport: Transport,
        max_bytes: int,
        on_answer: Callable[[int, Copy | None], None],
        on_skipped: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._max_bytes = max_bytes
        self._on_answer = on_answer
        self._on_skipped = on_skipped
        self._tasks: set[asyncio.Task[Any]] = set()

    def ask(self, number: int, exchange: Exchange) -> None:
        if len(self._tasks) >= _MAX_AT_ONCE:
            self._on_skipped()
            return
        task = asyncio.get_running_loop().create_task(self._ask(number, exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Audits under way are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, number: int, exchange: Exchange) -> None:
        copy = Copy(self._max_bytes)
        try:
            answer = await self._transport.send(
                exchange.method, exchange.url, exchange.headers, exchange.body
            )
            try:
                copy.begin(answer)
                async for chunk in answer.chunks():
                    copy.add(chunk)
                copy.complete = True
            finally:
                answer.release()
        except UpstreamError:
            self._on_answer(number, None)
            return
        self._on_answer(number, copy if copy.status == 200 else None)
