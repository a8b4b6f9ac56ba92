"""What a gateway looks at a few times a second, beside its requests: the switch, its artifacts,
and whether its event loop still comes on time."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from reflexarc.gateway.health import Health
from reflexarc.gateway.state import Tested
from reflexarc.gateway.switch import Switch
from reflexarc.gateway.system1 import System1

_EVERY_S = 0.2
_ARTIFACTS_EVERY = 5


class Watch:
    """`on_reload` hears whether changed artifacts were taken over."""

    def __init__(
        self,
        switch: Switch,
        health: Health,
        system1: System1,
        tested: Tested,
        artifacts: Sequence[str],
        clock_s: Callable[[], float],
        on_reload: Callable[[bool], None],
    ) -> None:
        self._switch = switch
        self._health = health
        self._system1 = system1
        self._tested = tested
        self._paths = [Path(artifact) for artifact in artifacts]
        self._clock_s = clock_s
        self._on_reload = on_reload
        self._seen = self._look_at_artifacts()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._switch.look()
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        turn = 0
        while True:
            due_s = self._clock_s() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self._health.late(self._clock_s() - due_s)
            self._switch.look()
            turn += 1
            if turn % _ARTIFACTS_EVERY == 0:
                self._tested.look()
                await self._take_over_artifacts()

    async def _take_over_artifacts(self) -> None:
        now = self._look_at_artifacts()
        if now == self._seen or self._system1.state != "up":
            return
        self._seen = now
        self._on_reload(await self._system1.reload())

    def _look_at_artifacts(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for path in self._paths:
            try:
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append(None)
        return found
