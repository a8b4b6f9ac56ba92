"""The thread that owns the book: what it is asked, in order, and what waits for the book."""

import asyncio
import contextlib
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reflexarc.accounts.book import Book, Settlement
from reflexarc.accounts.charge import Charge, Reservation
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey
from reflexarc.steps.errors import BookError, ConfigError, StoreError

_log = logging.getLogger("reflexarc.accounts")
_RETAIN_EVERY_S = 3600.0
_TOGETHER = 64
"""Settlements in one transaction, at most."""


class Counts(msgspec.Struct):
    """`fault` says why the book cannot be used (empty: it can), `refused` how many requests were
    turned away for it, `waiting` how many charges wait to be written, `dropped` how many were lost
    since the process began."""

    fault: str = ""
    refused: int = 0
    waiting: int = 0
    dropped: int = 0


class _Job:
    """`run` gives what `future`, which belongs to `loop`, waits for. `undo` takes a result back
    that nobody waits for any more. With a `settlement` that is the job, and `run` does nothing."""

    def __init__(
        self,
        run: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
        undo: Callable[[Any], None] | None = None,
        settlement: Settlement | None = None,
    ) -> None:
        self.run = run
        self.settlement = settlement
        self.loop = loop
        self.undo = undo
        self.future: asyncio.Future[Any] = loop.create_future()


class Clerk:
    """Public methods are for the event loop; those that begin with `_do` run in the thread."""

    def __init__(
        self,
        open_book: Callable[[], Book],
        state_secret: bytes,
        unix_time: Callable[[], float],
        clock_s: Callable[[], float],
        *,
        retention_s: float,
        max_waiting: int,
        tick_s: float,
    ) -> None:
        self.counts = Counts()
        self._open_book = open_book
        self._state_secret = state_secret
        self._unix_time = unix_time
        self._clock_s = clock_s
        self._retention_s = retention_s
        self._max_waiting = max_waiting
        self._tick_s = tick_s
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._keys: dict[str, VirtualKey] | None = None
        # What follows is the thread's alone.
        self._book: Book | None = None
        self._owed: deque[Settlement] = deque()
        self._version = -1
        self._looked_s = float("-inf")
        self._retain_s = float("-inf")
        self._again_s = float("-inf")

    async def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="accounts", daemon=True)
            self._thread.start()
            with contextlib.suppress(BookError):  # it stands in `counts`
                await self._ask(self._do_look)

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    def key(self, hashed: str) -> VirtualKey | None:
        return self._keys.get(hashed) if self._keys is not None else None

    def key_of(self, identity: str) -> VirtualKey | None:
        """By its id."""
        known = self._keys.values() if self._keys is not None else ()
        return next((key for key in known if key.id == identity), None)

    async def look_again(self) -> None:
        """Reads the keys anew, if anybody wrote since. Raises `BookError`."""
        await self._ask(self._do_look_again)

    async def reserve(
        self, key: VirtualKey, session: str, tier: str, micro_usd: int
    ) -> Reservation:
        return await self._ask(
            lambda: self._do_reserve(key, session, tier, micro_usd),
            undo=lambda made: self._do_settle(made, ()),
        )

    async def settle(self, reservation: Reservation | None, charges: Sequence[Charge]) -> None:
        await self._ask(lambda: None, settlement=(reservation, charges))

    async def _ask(
        self,
        run: Callable[[], Any],
        undo: Callable[[Any], None] | None = None,
        settlement: Settlement | None = None,
    ) -> Any:
        """Handed over before anything is waited for."""
        if self._thread is None:
            raise BookError("the accounts of this gateway are closed: it is stopping")
        job = _Job(run, asyncio.get_running_loop(), undo, settlement)
        self._jobs.put(job)
        return await job.future

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._tick_s)
            except queue.Empty:
                self._tick()
                continue
            if job is None:
                break
            if job.settlement is None:
                self._answer(job)
            elif not self._settle_in_turn(job):
                break
            if self._clock_s() - self._looked_s >= self._tick_s:
                self._tick()
        self._again_s = float("-inf")
        self._do_pay()
        if self._owed:
            _log.error("%d settlements could not be written at the end", len(self._owed))
        if self._book is not None:
            self._book.close()

    def _settle_in_turn(self, first: _Job) -> bool:
        """Writes settlements that wait in a row in one transaction, then does the job that comes
        after them. False where that is the end."""
        together = [first]
        after: _Job | None = None
        ended = False
        while len(together) < _TOGETHER:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None or job.settlement is None:
                after, ended = job, job is None
                break
            together.append(job)
        self._do_settle_all([job.settlement for job in together if job.settlement is not None])
        for job in (*together, *([after] if after is not None else [])):
            self._answer(job)
        return not ended

    def _answer(self, job: _Job) -> None:
        result: Any = None
        fault: BaseException | None = None
        try:
            result = job.run()
        except BaseException as error:  # it is raised again where it is waited for
            fault = error
        try:
            job.loop.call_soon_threadsafe(self._deliver, job, result, fault)
        except RuntimeError:  # the loop is gone, and who waited with it
            if fault is None and job.undo is not None:
                job.undo(result)

    def _deliver(self, job: _Job, result: Any, fault: BaseException | None) -> None:
        if job.future.cancelled():
            if fault is None and job.undo is not None:
                undo = job.undo
                taken_back = _Job(lambda: undo(result), job.loop)
                self._jobs.put(taken_back)
        elif fault is not None:
            job.future.set_exception(fault)
        else:
            job.future.set_result(result)

    def _tick(self) -> None:
        try:
            self._do_pay()
            self._do_look()
            now_s = self._clock_s()
            if now_s >= self._retain_s:
                self._retain_s = now_s + _RETAIN_EVERY_S
                self._do_book().retain(self._unix_time() - self._retention_s)
        except BookError as error:
            self._failed(error)
        except Exception:  # the thread must live: without it every request of a key would hang
            _log.exception("accounts: looking after the book failed")

    def _do_book(self) -> Book:
        """Not asked again before a pause after it failed, so that nobody waits for it in turn."""
        if self._clock_s() < self._again_s:
            raise BookError(self.counts.fault)
        if self._book is None:
            try:
                self._book = self._open_book()
            except (StoreError, ConfigError) as error:
                raise BookError(str(error)) from error
        return self._book

    def _do_reserve(self, key: VirtualKey, session: str, tier: str, micro_usd: int) -> Reservation:
        try:
            return self._do_book().reserve(key, session, tier, micro_usd)
        except BookError as error:
            self._failed(error)
            self.counts.refused += 1
            raise

    def _do_look(self) -> None:
        """Reads the keys anew where anybody wrote since."""
        self._looked_s = self._clock_s()
        try:
            book = self._do_book()
            version = book.database.version()
            if self._keys is None or version != self._version:
                ring = Keyring(book.database, self._state_secret, self._unix_time)
                self._keys = ring.by_hash()
                self._version = version
        except BookError as error:
            self._failed(error)
            raise
        if not self._owed:
            self.counts.fault = ""

    def _do_look_again(self) -> None:
        """However soon after the last look: a key may be used in the moment it is made. What it
        costs where nobody wrote is one read of the file's version."""
        self._do_look()

    def _do_settle(self, reservation: Reservation | None, charges: Sequence[Charge]) -> None:
        self._do_settle_all([(reservation, charges)])

    def _do_settle_all(self, settlements: Sequence[Settlement]) -> None:
        self._do_pay()
        if self._owed:
            for one in settlements:
                self._owe(one)
            return
        try:
            self._do_book().settle_all(settlements)
        except BookError as error:
            self._failed(error)
            for one in settlements:
                self._owe(one)
        except Exception:  # one of them is wrong, and must not take the others with it
            for one in settlements:
                self._owe(one)
            self._do_pay()

    def _owe(self, settlement: Settlement) -> None:
        count = len(settlement[1])
        if self.counts.waiting + count > self._max_waiting:
            # Its reservation stays: the money is spent, whether or not it can be written down.
            self.counts.dropped += count
            return
        self.counts.waiting += count
        self._owed.append(settlement)

    def _do_pay(self) -> None:
        """Writes what waits, one by one, as far as the book lets it."""
        while self._owed:
            reservation, charges = self._owed[0]
            try:
                self._do_book().settle(reservation, charges)
            except BookError as error:
                self._failed(error)
                return
            except Exception:  # it would never be written, and those behind it neither
                _log.exception("accounts: a charge that cannot be written was dropped")
                self.counts.dropped += len(charges)
                self.counts.waiting -= len(charges)
                self._owed[0] = (reservation, ())
                continue
            self._owed.popleft()
            self.counts.waiting -= len(charges)

    def _failed(self, error: BookError) -> None:
        now_s = self._clock_s()
        if now_s < self._again_s:
            return
        said = str(error)
        if said != self.counts.fault:
            _log.error("accounts: %s", said)
        self.counts.fault = said
        self._again_s = now_s + self._tick_s
