"""Learns the reflexes of a gateway again from time to time, in a process beside it."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.exc import DatabaseError

from reflexarc.gateway.config import Lifecycle, Route
from reflexarc.lifecycle.from_store import Learning
from reflexarc.lifecycle.relearning import (
    Limits,
    Relearned,
    evidence_of,
    options_of,
    relearn,
)
from reflexarc.lifecycle.standing_file import name_of, read_standings
from reflexarc.steps.errors import ReflexarcError

_log = logging.getLogger("reflexarc.lifecycle")
_PERIODS_S = {"hourly": 3600.0, "daily": 86_400.0, "weekly": 7 * 86_400.0}
_LOOK_S = 10.0

Note = Callable[[str, str, dict[str, Any]], None]


class Relearner:
    """One attempt at a time. `note` writes the trail, `on_outcome` counts. When the last one was
    stands in the state directory, so that two gateways do not learn the same."""

    def __init__(
        self,
        directory: Path | None,
        routes: Sequence[Route],
        how: Lifecycle,
        note: Note,
        on_outcome: Callable[[str], None],
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._routes = [
            route for route in routes if route.reflex is not None and route.record == "full"
        ]
        self._how = how
        self._note = note
        self._on_outcome = on_outcome
        self._unix_time = unix_time
        self._tried_unix_s: dict[str, float] = {}
        self._stop = threading.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._how.relearn != "off" and self._directory is not None and self._routes:
            self._task = asyncio.get_running_loop().create_task(self._watch(self._directory))

    async def close(self) -> None:
        """Ends an attempt under way, and waits for its process to be gone."""
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self, directory: Path) -> None:
        period_s = _PERIODS_S[self._how.relearn]
        while True:
            for route in self._routes:
                if self._is_due(directory, route, period_s):
                    await self._attempt(directory, route)
            await asyncio.sleep(_LOOK_S)

    def _is_due(self, directory: Path, route: Route, period_s: float) -> bool:
        state = read_standings(directory).of(name_of(route.reflex or ""))
        if state is None:
            return False
        # An attempt that failed before it began stands nowhere else.
        tried_unix_s = max(state.tried_unix_s, self._tried_unix_s.get(route.path, 0.0))
        last_unix_s = max(tried_unix_s, state.current.since_unix_s)
        return self._unix_time() - last_unix_s >= period_s

    async def _attempt(self, directory: Path, route: Route) -> None:
        self._tried_unix_s[route.path] = self._unix_time()
        attempt = asyncio.create_task(asyncio.to_thread(self._relearn, directory, route))
        try:
            found = await asyncio.shield(attempt)
        except asyncio.CancelledError:
            await asyncio.gather(attempt, return_exceptions=True)
            raise
        except (ReflexarcError, OSError, DatabaseError) as error:
            _log.error("%s cannot be learned again: %s", route.reflex, error)
            self._on_outcome("failed")
            return
        outcome = "took_over" if found.took_over else "waits" if found.version else "refused"
        self._on_outcome(outcome)
        self._note("relearn", "reflexarc", evidence_of(found))

    def _relearn(self, directory: Path, route: Route) -> Relearned:
        artifact = Path(route.reflex or "")
        return relearn(
            directory,
            artifact,
            how_again(directory, route),
            promote=route.promote,
            limits=Limits(self._how.learn_cpu_s, self._how.learn_memory_bytes),
            stop=self._stop,
        )


def how_again(directory: Path, route: Route) -> Learning:
    """As its reflex was learned, class and confidence of its certificates included, for what the
    route says now. Raises `ArtifactError`, `StoreError`."""
    how = options_of(directory, Path(route.reflex or ""), route.path)
    return msgspec.structs.replace(
        how, max_error=route.max_error, effects={**how.effects, **route.effects}
    )
