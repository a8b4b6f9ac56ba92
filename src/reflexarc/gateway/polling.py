"""Asks model servers of one's own for their load, again and again: those whose provider says
`metrics = true`. Bounded in time and size; what is not told is not known, and stops nothing."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable

import yarl

from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Reach, Timeouts, Transport
from reflexarc.upstream.affinity import Affinity
from reflexarc.upstream.deployments import Deployment
from reflexarc.upstream.fleet import POLL_S, Fleet, Watched
from reflexarc.upstream.readings import MAX_BYTES, Reading, read_metrics, read_slots, together

_log = logging.getLogger("reflexarc.gateway")
LIMIT_S = 1.0
"""For one server's answers."""
_LIMITS = Timeouts(connect_s=LIMIT_S, first_byte_s=LIMIT_S, idle_s=LIMIT_S, total_s=LIMIT_S)
_SLOTS_OF = "llamacpp"


class Polling:
    """`start` it in a running event loop, `close` it there."""

    def __init__(
        self, fleet: Fleet, affinity: Affinity, transport: Transport, clock_s: Callable[[], float]
    ) -> None:
        self._fleet = fleet
        self._affinity = affinity
        self._transport = transport
        self._clock_s = clock_s
        self._task: asyncio.Task[None] | None = None
        self._silent: set[str] = set()

    def start(self) -> None:
        """Nothing runs where nobody is to be asked."""
        if any(one.deployment.metrics for one in self._fleet.all()):
            self._task = asyncio.create_task(self._run(), name="polling")

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def poll(self) -> None:
        """Every server once, all at the same time."""
        servers: dict[str, list[Watched]] = defaultdict(list)
        for one in self._fleet.all():
            if one.deployment.metrics:
                servers[one.deployment.base].append(one)
        await asyncio.gather(*(self._one(base, served) for base, served in servers.items()))

    async def _run(self) -> None:
        while True:
            await self.poll()
            await asyncio.sleep(POLL_S)

    async def _one(self, base: str, served: list[Watched]) -> None:
        deployment = served[0].deployment
        busy = [one.slots.busy for one in served]
        reading = await self._reading(deployment)
        now_s = self._clock_s()
        if reading is None:
            if base not in self._silent:
                _log.warning("%s tells nothing of its load: see docs/placement.md", base)
            self._silent.add(base)
            return
        self._silent.discard(base)
        for one, at_work in zip(served, busy, strict=True):
            before = one.reading
            one.told(reading, at_work, now_s)
            if before is not None and reading.began_anew(before):
                self._affinity.emptied(one.deployment.name, now_s)

    async def _reading(self, deployment: Deployment) -> Reading | None:
        metrics = await self._asked(deployment, "/metrics")
        reading = None if metrics is None else read_metrics(metrics)
        if deployment.kind == _SLOTS_OF:
            slots = await self._asked(deployment, "/slots")
            reading = together(reading, None if slots is None else read_slots(slots))
        return reading

    async def _asked(self, deployment: Deployment, path: str) -> bytes | None:
        """An answer's body; None where there is none, or it is too long."""
        base = deployment.base.rstrip("/").removesuffix("/v1")
        key = deployment.key(deployment.dialects[0])
        headers = [("accept", "*/*"), ("accept-encoding", "identity")]
        if key is not None:
            headers.append((key.name, key.value))
        reach = Reach(deployment.private, _LIMITS, not deployment.local)
        try:
            async with asyncio.timeout(LIMIT_S):
                answer = await self._transport.send(
                    "GET", yarl.URL(f"{base}{path}", encoded=True), headers, None, reach
                )
                with contextlib.ExitStack() as stack:
                    stack.callback(answer.release)
                    if answer.status != 200:
                        return None
                    body = bytearray()
                    while chunk := await answer.next_chunk():
                        body += chunk
                        if len(body) > MAX_BYTES:
                            return None
                    return bytes(body)
        except (UpstreamError, TimeoutError):
            return None
