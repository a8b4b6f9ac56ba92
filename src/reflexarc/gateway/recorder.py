"""The gateway's end of the recorder: hands over what is to be kept, and knows whether it is kept.

Nothing here raises into a request or waits for a disk. Steps are dropped, and counted, where the
recorder does not keep up; entries of the audit trail are held until they are durable, and while
they are not, `well` is false and System 1 does not act.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Literal

import msgspec

from reflexarc.gateway.child import Child
from reflexarc.gateway.frames import frame_of
from reflexarc.gateway.shortening import is_long
from reflexarc.store.records import Audited, Judged, StepEnded, TrailEntry, Written
from reflexarc.wire.growing import Grown

_log = logging.getLogger("reflexarc.recorder")

RecorderTrouble = Literal["died", "restart", "fault", "silent", "dropped"]
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_MAX_UNWRITTEN = 10_000
# Only where much waits to be written does closing take long.
_CLOSING_S = 30.0


class RecorderSetup(msgspec.Struct, frozen=True, tag=True):
    """First frame to the process. It writes after `flush_s`, or when asked to end."""

    database: str
    gateway: str
    flush_s: float = 0.2
    retention_days: float = 30.0
    max_bytes: int = 2 * 1024**3
    artifacts: list[str] = []


ToRecorder = RecorderSetup | StepEnded | Judged | Audited | TrailEntry


class RecorderLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`max_waiting_bytes`: what may wait to be handed over; steps beyond are dropped. `silent_s`:
    without a sign of life for so long, the recorder counts as unwell."""

    max_waiting_bytes: int = 64 * 1024 * 1024
    silent_s: float = 10.0


class Recorder:
    """`on_trouble` hears of every failure. With `setup` None nothing is kept and nothing acts."""

    def __init__(
        self,
        setup: RecorderSetup | None,
        limits: RecorderLimits,
        clock_s: Callable[[], float],
        on_trouble: Callable[[RecorderTrouble], None],
        hidden_variables: tuple[str, ...] = (),
    ) -> None:
        self.fault = "" if setup is not None else "no store"
        self.dropped = 0
        self.steps = 0
        self._setup = setup
        self._limits = limits
        self._clock_s = clock_s
        self._on_trouble = on_trouble
        self._hidden_variables = hidden_variables
        self._child: Child | None = None
        self._unwritten: dict[str, TrailEntry] = {}
        self._last_sign_s = clock_s()
        self._restarting: asyncio.Task[None] | None = None
        self._closing = False
        self._dropped_there = 0
        self._first_sign: asyncio.Future[None] | None = None

    @property
    def well(self) -> bool:
        """Whether an act now would be in the trail."""
        return not self.why_unwell

    @property
    def why_unwell(self) -> str:
        if self.fault:
            return self.fault
        if self._child is None:
            return "the recorder is not running"
        if len(self._unwritten) >= _MAX_UNWRITTEN:
            return "too many entries of the trail wait to be written"
        if self._clock_s() - self._last_sign_s > self._limits.silent_s:
            return "the recorder gives no sign of life"
        return ""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    @property
    def unwritten(self) -> int:
        """Entries of the trail that are not durable yet."""
        return len(self._unwritten)

    async def start(self) -> None:
        """Never fails: what cannot be recorded is counted, and requests go on."""
        if self._setup is None:
            return
        try:
            await self._launch()
        except OSError as error:
            self._unwell("died", f"the recorder cannot be started: {error}")
            self._restarting = asyncio.get_running_loop().create_task(self._restart())

    async def heard(self, within_s: float) -> bool:
        """Waits for its first sign of life. Whether there was one in time."""
        if self._first_sign is None:
            return False
        done, _ = await asyncio.wait([self._first_sign], timeout=within_s)
        return bool(done)

    def look(self) -> None:
        """A recorder that hangs is counted and replaced. Called a few times a second."""
        child = self._child
        if child is None or self._clock_s() - self._last_sign_s <= self._limits.silent_s:
            return
        self._unwell("silent", "the recorder gave no sign of life")
        self._child = None
        self._restarting = asyncio.get_running_loop().create_task(self._restart(child))

    async def close(self) -> None:
        """Lets the recorder write what it has, for some seconds at most."""
        self._closing = True
        if self._restarting is not None:
            self._restarting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._restarting
        child, self._child = self._child, None
        if child is not None:
            await child.left(_CLOSING_S)
            await child.end()
        elif self._unwritten:
            _log.error("%d entries of the audit trail are lost", len(self._unwritten))

    def step(
        self, ended: StepEnded, request: bytes, answer: bytes, grown: Grown | None = None
    ) -> None:
        """`grown`: the request taken apart, where it could be."""
        child = self._child
        if grown is None or not is_long(grown, request) or child is None or self._setup is None:
            self._hand_over(ended, request, answer)
        elif self._has_room(child, len(request) + len(answer)):
            child.write_grown(ended, grown, answer)

    def judged(self, judged: Judged) -> None:
        self._hand_over(judged)

    def audited(self, audited: Audited) -> None:
        self._hand_over(audited)

    def trail(self, entry: TrailEntry) -> None:
        """Held until it is durable, whatever happens to the process; of more than the limit the
        oldest is given up, which is counted."""
        if self._setup is None:
            return
        if len(self._unwritten) >= _MAX_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]
            self._drop()
        self._unwritten[entry.id] = entry
        if self._child is not None:
            self._child.write(frame_of(entry))

    def _hand_over(self, record: StepEnded | Judged | Audited, *bodies: bytes) -> None:
        child = self._child
        if self._setup is None:
            return
        if self._has_room(child, sum(map(len, bodies))) and child is not None:
            child.write(frame_of(record, *bodies))

    def _has_room(self, child: Child | None, size: int) -> bool:
        """Whether so much more may wait for the recorder; else it is counted as dropped."""
        if child is None or child.unsent_bytes + size > self._limits.max_waiting_bytes:
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        self.dropped += 1
        self._on_trouble("dropped")

    async def _launch(self) -> None:
        if self._setup is None:
            return
        child = Child(
            "reflexarc.gateway.recorder_process", self._received, self._lost, self._hidden_variables
        )
        self._first_sign = asyncio.get_running_loop().create_future()
        await child.launch()
        self._child = child
        self._last_sign_s = self._clock_s()
        child.write(frame_of(self._setup))
        for entry in self._unwritten.values():
            child.write(frame_of(entry))

    def _received(self, head: bytes, _body: bytes) -> None:
        written = _written.decode(head)
        self._last_sign_s = self._clock_s()
        if self._first_sign is not None and not self._first_sign.done():
            self._first_sign.set_result(None)
        for identity in written.trail:
            self._unwritten.pop(identity, None)
        self.steps += written.steps
        lost = written.dropped - self._dropped_there
        self._dropped_there = written.dropped
        for _number in range(max(0, lost)):
            self._drop()
        if written.fault:
            self._unwell("fault", written.fault)
        elif self.fault:
            _log.warning("the store can be written again")
            self.fault = ""

    def _unwell(self, trouble: RecorderTrouble, fault: str) -> None:
        self._on_trouble(trouble)
        if fault != self.fault:
            _log.warning("nothing is recorded, System 1 does not act: %s", fault)
        self.fault = fault

    def _lost(self, child: Child) -> None:
        if child is not self._child or self._closing:
            return
        self._unwell("died", "the recorder's process ended")
        self._child = None
        self._restarting = asyncio.get_running_loop().create_task(self._restart(child))

    async def _restart(self, lost: Child | None = None) -> None:
        pause_s = _FIRST_PAUSE_S
        if lost is not None:
            await lost.end()
        while not self._closing:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            self._on_trouble("restart")
            self._dropped_there = 0
            try:
                await self._launch()
            except OSError as error:
                self._unwell("died", f"the recorder cannot be started: {error}")
                continue
            return


_written: msgspec.msgpack.Decoder[Written] = msgspec.msgpack.Decoder(Written)
