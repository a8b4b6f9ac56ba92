"""What a gateway looks at a few times a second, beside its requests: switch, standings, artifacts,
and whether its event loop still comes on time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from reflexarc.gateway.health import Health
from reflexarc.gateway.recorder import Recorder
from reflexarc.gateway.standings import StandingDesk
from reflexarc.gateway.state import Tested
from reflexarc.gateway.switch import Switch
from reflexarc.gateway.system1 import System1

_EVERY_S = 0.2
_ARTIFACTS_EVERY = 5
_FAILED_PAUSE = 60  # seconds, as artifacts are looked at once in one
_Artifacts = list[tuple[int, int, int] | None]
_log = logging.getLogger("reflexarc.gateway")


class Watch:
    """`on_reload` hears whether changed artifacts, or other versions to hold ready, were taken
    over."""

    def __init__(
        self,
        switch: Switch,
        health: Health,
        system1: System1,
        tested: Tested,
        recorder: Recorder,
        artifacts: Sequence[str],
        clock_s: Callable[[], float],
        standings: StandingDesk,
        on_reload: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._switch = switch
        self._health = health
        self._system1 = system1
        self._tested = tested
        self._recorder = recorder
        self._paths = [Path(artifact) for artifact in artifacts]
        self._clock_s = clock_s
        self._standings = standings
        self._on_reload = on_reload
        self._standby: frozenset[str] = frozenset()
        self._seen: _Artifacts = self._look_at_artifacts()
        self._failed: _Artifacts | None = None
        self._task: asyncio.Task[None] | None = None
        self._reload: asyncio.Task[None] | None = None
        self._pause = 0

    def start(self) -> None:
        self._switch.look()
        # What became the version before only as this process began is not loaded yet.
        self._standby = frozenset(self._standings.standby()) & self._system1.digests.keys()
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        tasks = [task for task in (self._task, self._reload) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        turn = 0
        while True:
            due_s = self._clock_s() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            turn += 1
            try:
                self._look(turn, self._clock_s() - due_s)
            except Exception as error:  # whatever it was: who cannot look for off is off
                _log.exception("the switch cannot be looked at: System 1 is off")
                self._health.blind(f"{type(error).__name__} while looking at the switch")

    def _look(self, turn: int, late_s: float) -> None:
        self._health.late(late_s)
        self._switch.look()
        self._standings.look()
        self._recorder.look()
        if turn % _ARTIFACTS_EVERY:
            return
        self._tested.look()
        if self._pause:
            self._pause -= 1
        elif self._reload is None or self._reload.done():
            # Beside this, since it takes long, and off must not wait for it.
            self._reload = asyncio.get_running_loop().create_task(self._take_over_artifacts())

    async def _take_over_artifacts(self) -> None:
        now = self._look_at_artifacts()
        standby = frozenset(self._standings.standby())
        if (now == self._seen and standby == self._standby) or self._system1.state != "up":
            return
        taken = await self._system1.reload()
        if taken:
            self._seen = now
            self._standby = standby
            self._failed = None
        elif self._failed != now:
            self._failed = now
        else:
            self._pause = _FAILED_PAUSE  # it was tried twice: rarely, then
        await self._on_reload(taken)

    def _look_at_artifacts(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for path in self._paths:
            try:
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append(None)
        return found
