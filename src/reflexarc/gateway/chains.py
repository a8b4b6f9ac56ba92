"""Answers that a client may go on from by id, as this gateway knows them: in memory, and in a file
behind it, so that a restart breaks no conversation that System 1 had a part in."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reflexarc.steps.errors import ConfigError, StoreError
from reflexarc.store.kept import MAX_TURNS, PURGED, KeptAnswer, KeptAnswers

_log = logging.getLogger("reflexarc.gateway")
MAX_HELD_BYTES = 64 * 1024 * 1024
_RETAIN_EVERY = 512
"""Answers between two looks at what is past its time."""


class Chains:
    """`directory` None: in memory alone. Never raises: what cannot be written is said aloud, and
    stays in memory as long as there is room."""

    def __init__(
        self, directory: Path | None, retention_days: float, unix_time: Callable[[], float]
    ) -> None:
        self._directory = directory
        self._retention_s = retention_days * 86_400.0
        self._unix_time = unix_time
        self._held: OrderedDict[tuple[str, str], KeptAnswer] = OrderedDict()
        self._bytes = 0
        self._file: KeptAnswers | None = None
        self._failed = False
        self._written = 0
        self._thread: ThreadPoolExecutor | None = None
        self._purged_ns = self._last_purge_ns()

    def keep(self, answer: KeptAnswer) -> None:
        """From now on the client may go on from it."""
        self._hold(answer)
        self._behind(self._put, answer)

    async def chain(self, tenant: str, identity: str) -> list[KeptAnswer] | None:
        """The answer of this id and all before it, the first one first; None where one of them is
        not known: part of a conversation is never given for all of it."""
        found: list[KeptAnswer] = []
        seen: set[str] = set()
        wanted: str | None = identity
        while wanted is not None:
            if wanted in seen or len(found) == MAX_TURNS:
                # An upstream that gives one id twice has taken an answer's place; or too long.
                return None
            seen.add(wanted)
            one = await self.one(tenant, wanted)
            if one is None:
                return None
            found.append(one)
            wanted = one.parent
        return found[::-1]

    async def one(self, tenant: str, identity: str) -> KeptAnswer | None:
        purged_ns = self._last_purge_ns()
        if purged_ns != self._purged_ns:
            self._purged_ns = purged_ns
            self._held.clear()
            self._bytes = 0
        known = self._held.get((tenant, identity))
        if known is not None:
            self._held.move_to_end((tenant, identity))
            return known
        if self._directory is None:
            return None
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor(), self._get, tenant, identity)
        if found is not None:
            self._hold(found)
        return found

    def forget(self, tenant: str, identity: str) -> None:
        gone = self._held.pop((tenant, identity), None)
        if gone is not None:
            self._bytes -= _weight(gone)
        self._behind(self._delete, tenant, identity)

    async def close(self) -> None:
        """What is on its way to the file gets there."""
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()
            self._thread = None

    def _last_purge_ns(self) -> int:
        if self._directory is None:
            return 0
        try:
            return (self._directory / PURGED).stat().st_mtime_ns
        except OSError:
            return 0

    def _hold(self, answer: KeptAnswer) -> None:
        key = answer.tenant, answer.id
        before = self._held.pop(key, None)
        if before is not None:
            self._bytes -= _weight(before)
        self._held[key] = answer
        self._bytes += _weight(answer)
        while self._bytes > MAX_HELD_BYTES and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= _weight(dropped)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "reflexarc-chains")
        return self._thread

    def _behind(self, work: Callable[..., object], *given: object) -> None:
        if self._directory is not None:
            self._executor().submit(work, *given)

    # --- in the thread ------------------------------------------------------------------------

    def _opened(self) -> KeptAnswers | None:
        if self._file is None and self._directory is not None and not self._failed:
            try:
                self._file = KeptAnswers.open(self._directory)
            except (StoreError, ConfigError, OSError) as error:
                self._failed = True
                _log.error("answers to go on from are kept in memory alone: %s", error)
        return self._file

    def _put(self, answer: KeptAnswer) -> None:
        self._trying(lambda file: file.put(answer))
        if self._written % _RETAIN_EVERY == 0:
            before_s = self._unix_time() - self._retention_s
            self._trying(lambda file: file.retain(before_s))
        self._written += 1

    def _delete(self, tenant: str, identity: str) -> None:
        self._trying(lambda file: file.delete(tenant, identity))

    def _get(self, tenant: str, identity: str) -> KeptAnswer | None:
        found: list[KeptAnswer | None] = []
        self._trying(lambda file: found.append(file.get(tenant, identity)))
        return found[0] if found else None

    def _trying(self, work: Callable[[KeptAnswers], object]) -> None:
        file = self._opened()
        if file is None:
            return
        try:
            work(file)
        except StoreError as error:
            _log.error("answers to go on from: %s", error)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _weight(answer: KeptAnswer) -> int:
    return len(answer.items) + len(answer.body) + 512
