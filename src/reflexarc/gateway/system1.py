"""The gateway's end of System 1: starts its process, asks it, and does without it when it fails.

Nothing here raises into a request. A decision that does not come is None: the process is down, its
queue is full, or it died over the question. A process that gives no sign of life for `hang_s` while
it has work is killed and started anew, with growing pauses.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from reflexarc.gateway.child import Child
from reflexarc.gateway.frames import (
    Decide,
    Decided,
    Native,
    NativeReply,
    Observe,
    Observed,
    Ready,
    Setup,
    frame,
    from_worker,
)
from reflexarc.gateway.shortening import is_long
from reflexarc.steps.errors import ArtifactError, ReflexarcError
from reflexarc.wire.growing import Grown

_log = logging.getLogger("reflexarc.system1")

State = Literal["starting", "up", "restarting", "off"]
Trouble = Literal["hang", "died", "restart", "busy", "down", "artifact"]

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_HEALTHY_AFTER_S = 30.0


class System1Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`hang_s`: silence, with work waiting, after which the process is replaced. `start_s`: time
    to load its reflexes. At most `max_waiting` requests and `max_waiting_bytes` wait in its queue;
    what comes beyond goes without a decision."""

    hang_s: float = 2.0
    start_s: float = 60.0
    max_waiting: int = 256
    max_waiting_bytes: int = 128 * 1024 * 1024


class System1:
    """`setup` says what a process is to load, each time one starts. `on_trouble` hears of every
    failure, `on_observed` of every comparison."""

    def __init__(
        self,
        setup: Callable[[], Setup],
        limits: System1Limits,
        clock_s: Callable[[], float],
        on_trouble: Callable[[Trouble], None],
        on_observed: Callable[[int, Observed], None],
        hidden_variables: tuple[str, ...] = (),
    ) -> None:
        self.state: State = "off"
        self.restarts = 0
        self.unusable: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        self._setup = setup
        self._limits = limits
        self._clock_s = clock_s
        self._on_trouble = on_trouble
        self._on_observed = on_observed
        self._hidden_variables = hidden_variables
        self._waiting: dict[int, tuple[asyncio.Future[Any], int, Child]] = {}
        self._waiting_bytes = 0
        self._last_sign_s = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._child: Child | None = None
        self._up_since_s = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._restarting: asyncio.Task[None] | None = None
        self._reloading = False
        self._closing = False

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    async def start(self) -> None:
        """Starts the process and waits until it is ready. Where that fails requests go without it,
        and it is tried again; `unusable` tells of reflexes that could not be loaded."""
        self.state = "starting"
        try:
            self._child = await self._launch()
        except (ReflexarcError, OSError) as error:
            _log.error("System 1 does not start: %s", error)
            self._replace("died")
            return
        self.state = "up"
        self._up_since_s = self._clock_s()
        if not self._child.is_connected:
            self._replace("died")

    async def close(self) -> None:
        """Ends the process. Decisions still awaited become None."""
        self._closing = True
        self.state = "off"
        if self._restarting is not None:
            self._restarting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._restarting
        self._forget_waiting()
        await self._end_process()

    def ask(
        self, request: Decide, body: bytes, grown: Grown | None = None
    ) -> "asyncio.Future[tuple[Decided, bytes] | None]":
        """A decision, some time; None where there will be none. `grown`: the body taken apart."""
        return self._ask(request, body, grown)

    def ask_native(
        self, request: Native, body: bytes
    ) -> "asyncio.Future[tuple[NativeReply, bytes] | None]":
        return self._ask(request, body)

    def observe(self, request: Observe, body: bytes) -> None:
        """Shows what System 2 answered. Lost where the process is down or does not keep up: it is
        statistics."""
        child = self._child
        if self.state != "up" or child is None:
            return
        if child.unsent_bytes + len(body) > self._limits.max_waiting_bytes:
            self._on_trouble("busy")
            return
        child.write(frame(request, body))

    def _ask(
        self, request: Decide | Native, body: bytes, grown: Grown | None = None
    ) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(request, Decide) and request.reflex in self.unusable:
            future.set_result((Decided(request.id, "escalate", "artifact_unusable"), b""))
            return future
        if self.state != "up" or self._child is None:
            self._on_trouble("down")
            future.set_result(None)
            return future
        if (
            len(self._waiting) >= self._limits.max_waiting
            or self._waiting_bytes + len(body) > self._limits.max_waiting_bytes
        ):
            self._on_trouble("busy")
            future.set_result(None)
            return future
        if not self._waiting:
            self._last_sign_s = self._clock_s()
        self._waiting[request.id] = (future, len(body), self._child)
        self._waiting_bytes += len(body)
        if self._watch is None:
            self._watch_again(self._limits.hang_s)
        if grown is not None and is_long(grown, body):
            self._child.write_grown(request, grown)
        else:
            self._child.write(frame(request, body))
        return future

    async def _launch(self) -> Child:
        """A process with its reflexes loaded. Raises `ArtifactError` where it does not get so far,
        `OSError` where there can be none."""
        ready: asyncio.Future[Ready | None] = asyncio.get_running_loop().create_future()

        def received(head: bytes, body: bytes) -> None:
            message = from_worker(head)
            if not isinstance(message, Ready):
                self._received(message, body)
            elif not ready.done():
                ready.set_result(message)

        def lost(child: Child) -> None:
            if not ready.done():
                ready.set_result(None)
            elif child is self._child and self.state == "up":
                self._replace("died")

        child = Child("reflexarc.gateway.worker", received, lost, self._hidden_variables)
        try:
            await child.launch()
            setup = self._setup()
            child.write(frame(setup))
            said = await asyncio.wait_for(ready, self._limits.start_s)
            if said is None:
                raise ArtifactError("System 1's process ended before it was ready")
        except BaseException as error:
            await child.end()
            if isinstance(error, TimeoutError):
                raise ArtifactError(
                    f"System 1 was not ready within {self._limits.start_s:g} s"
                ) from error
            raise
        worse = {name: why for name, why in said.unusable.items() if name not in self.unusable}
        if worse:
            self._on_trouble("artifact")
            for name, why in worse.items():
                _log.error("route %s goes without System 1: %s", name, why)
        # A file that was taken away is not to be used any longer; a broken one is a mishap.
        gone = {one.name for one in setup.reflexes if not Path(one.path).exists()}
        if worse.keys() - gone and self.state == "up":
            await child.end()
            raise ArtifactError("; ".join(worse.values()))
        self.unusable = said.unusable
        self.digests = said.digests
        return child

    async def reload(self) -> bool:
        """Loads every reflex anew, in a process that takes over once it is ready; until then, and
        where one that could be used no longer can, the old one goes on. Whether it took over."""
        if self.state != "up" or self._reloading:
            return False
        self._reloading = True
        try:
            child = await self._launch()
            if self.state != "up":  # it died, or all was closed, in the meantime
                await child.end()
                return False
            old, self._child = self._child, child
            if not child.is_connected:
                self._replace("died")
            if old is not None:
                await self._retire(old)
        except (ReflexarcError, OSError):
            return False
        finally:
            self._reloading = False
        return True

    async def _retire(self, old: Child) -> None:
        """What the old process was asked it still answers, or nobody does."""
        try:
            asked = [future for future, _, child in self._waiting.values() if child is old]
            if asked:
                await asyncio.wait(asked, timeout=self._limits.hang_s)
        finally:
            for number, (future, size, child) in list(self._waiting.items()):
                if child is old:
                    del self._waiting[number]
                    self._waiting_bytes -= size
                    if not future.done():
                        future.set_result(None)
            await old.end()

    async def _end_process(self) -> None:
        child, self._child = self._child, None
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if child is not None:
            await child.end()

    def _received(self, message: Decided | Observed | NativeReply, body: bytes) -> None:
        self._last_sign_s = self._clock_s()
        if isinstance(message, Observed):
            self._on_observed(message.id, message)
            return
        waiting = self._waiting.pop(message.id, None)
        if waiting is not None:
            future, size, _ = waiting
            self._waiting_bytes -= size
            if not future.done():
                future.set_result((message, body))

    def _watch_again(self, in_s: float) -> None:
        self._watch = asyncio.get_running_loop().call_later(in_s, self._look)

    def _look(self) -> None:
        self._watch = None
        if not self._waiting or self.state != "up":
            return
        silent_s = self._clock_s() - self._last_sign_s
        if silent_s >= self._limits.hang_s:
            self._replace("hang")
        else:
            self._watch_again(self._limits.hang_s - silent_s)

    def _replace(self, trouble: Trouble) -> None:
        self.state = "restarting"
        self._on_trouble(trouble)
        self._forget_waiting()
        if self._clock_s() - self._up_since_s > _HEALTHY_AFTER_S:
            self._pause_s = _FIRST_PAUSE_S
        self._restarting = asyncio.get_running_loop().create_task(self._restart())

    async def _restart(self) -> None:
        while not self._closing:
            await self._end_process()
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            self.restarts += 1
            self._on_trouble("restart")
            with contextlib.suppress(ReflexarcError, OSError):  # tried again after a longer pause
                self._child = await self._launch()
                if not self._child.is_connected:
                    continue
                self.state = "up"
                self._up_since_s = self._clock_s()
                return

    def _forget_waiting(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for future, _, _ in waiting.values():
            if not future.done():
                future.set_result(None)
