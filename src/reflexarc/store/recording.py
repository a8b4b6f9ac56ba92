"""Writes what a gateway hands over: buffered, then all in one transaction. One thread, one process.

A store that is locked, full, read-only or broken is a `fault` of the next `Written`, never an
exception: the trail waits for it, steps wait as long as there is room.
"""

import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects.sqlite import insert as insert_or
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from reflexarc.steps.errors import ConfigError, InputError, StoreError
from reflexarc.store import retention, tombs, trail
from reflexarc.store.artifacts import note_used
from reflexarc.store.lineage import Keyed, Lineage
from reflexarc.store.place import secret
from reflexarc.store.placing import Placing
from reflexarc.store.predictions import decision_row
from reflexarc.store.reading_step import Memory, Read, read_step
from reflexarc.store.records import Audited, Judged, StepEnded, TrailEntry, Written
from reflexarc.store.schema import audits, decisions, steps
from reflexarc.store.store import Store, said

_log = logging.getLogger("reflexarc.recorder")

MAX_WAITING_BYTES = 64 * 1024 * 1024
MAX_WAITING_ENTRIES = 50_000
_RECORD_BYTES = 1024
"""What a record weighs beside its bodies, roughly."""
_RETENTION_EVERY_S = 3600.0
REMEMBERED_BYTES = 32 * 1024 * 1024

_Record = tuple[StepEnded, Read] | Judged | Audited


class Recording:
    """`path` is the database; `unix_time` the clock for retention.

    At most `MAX_WAITING_BYTES` of steps and `MAX_WAITING_ENTRIES` of the trail wait for a store
    that cannot be written; steps beyond are dropped and counted, the newest first.
    """

    def __init__(
        self,
        path: Path,
        unix_time: Callable[[], float],
        *,
        retention_days: float = 30.0,
        max_bytes: int = 2 * 1024**3,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._path = path
        self._unix_time = unix_time
        self._retention_s = retention_days * 86_400.0
        self._max_bytes = max_bytes
        self._max_waiting_bytes = max_waiting_bytes
        self._open: _Open | None = None
        self._memory = Memory(REMEMBERED_BYTES)
        self._records: deque[tuple[_Record, int]] = deque()
        self._waiting_bytes = 0
        self._trail: dict[str, TrailEntry] = {}
        self._artifacts: list[str] = []
        self._dropped = 0
        self._clean_at_s = 0.0

    @classmethod
    def at(
        cls,
        path: Path,
        unix_time: Callable[[], float],
        *,
        retention_days: float = 30.0,
        max_bytes: int = 2 * 1024**3,
    ) -> "Recording":
        """Never raises: what is wrong with the store, `flush` says."""
        return cls(path, unix_time, retention_days=retention_days, max_bytes=max_bytes)

    def step(self, step: StepEnded, request: bytes, answer: bytes) -> None:
        """Takes a step; one that is not to be recorded, or no conversation, is let go."""
        if step.record == "none":
            return
        read = read_step(step, request, answer, self._memory)
        if read is not None:
            self._take((step, read), len(request) + len(answer))

    def judged(self, judged: Judged) -> None:
        self._take(judged, len(judged.predictions) * _RECORD_BYTES)

    def audited(self, audited: Audited) -> None:
        self._take(audited, 0)

    def trail(self, entry: TrailEntry) -> None:
        """Kept until it is written; an id that waits already is the same entry."""
        if len(self._trail) < MAX_WAITING_ENTRIES:
            self._trail.setdefault(entry.id, entry)

    def note_artifacts(self, paths: Sequence[str]) -> None:
        """Artifacts that a gateway uses, so that a purge knows where to look."""
        self._artifacts = [*self._artifacts, *paths]

    def flush(self) -> Written:
        """Writes all that waits, in one transaction. Never raises for what a store can do."""
        durable: list[str] = []
        number = 0
        try:
            if not self._same_file():
                self._forget()
            if self._open is None:
                self._open = _Open.at(self._path)
            entries = list(self._trail.values())
            count = len(self._records)
            with self._open.store.writing(durable=bool(entries)) as connection:
                appended = trail.append(connection, entries)
                written = self._write(connection, self._open)
            durable, number = appended, written
            for _ in range(count):
                _, size = self._records.popleft()
                self._waiting_bytes -= size
            self._artifacts = []
            for identity in durable:
                del self._trail[identity]
            self._retain(self._open.store)
        except (SQLAlchemyError, StoreError, ConfigError, OSError) as error:
            self._forget()
            return Written(durable, _fault(self._path, error), self._dropped, number)
        return Written(durable, "", self._dropped, number)

    def close(self) -> None:
        self._forget()

    def _take(self, record: _Record, size: int) -> None:
        size += _RECORD_BYTES
        if self._waiting_bytes + size > self._max_waiting_bytes:
            self._dropped += 1
            return
        self._records.append((record, size))
        self._waiting_bytes += size

    def _write(self, connection: Connection, open_: "_Open") -> int:
        number = 0
        began = [one[0].began_unix_s for one, _ in self._records if isinstance(one, tuple)]
        purged = tombs.since(connection, min(began)) if began else []
        for record, _ in self._records:
            if isinstance(record, Judged):
                _write_judged(connection, open_.keyed, record)
            elif isinstance(record, Audited):
                _write_audited(connection, record)
            else:
                # A message that its dialect has not: no conversation could be read from it.
                with contextlib.suppress(InputError):
                    number += open_.placing.place(connection, *record, purged)
        for path in self._artifacts:
            note_used(connection, Path(path), self._unix_time())
        return number

    def _retain(self, store: Store) -> None:
        now_s = self._unix_time()
        if now_s >= self._clean_at_s:
            self._clean_at_s = now_s + _RETENTION_EVERY_S
            gone = retention.retain(store, now_s - self._retention_s, self._max_bytes)
            if gone:
                _log.info("%d sessions are past their retention and gone", gone)

    def _same_file(self) -> bool:
        """Whether the open database is still the one at its path: it may have been removed."""
        if self._open is None:
            return True
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            return (found.st_dev, found.st_ino) == self._open.file
        return False

    def _forget(self) -> None:
        if self._open is not None:
            self._open.store.close()
            self._open = None


class _Open(msgspec.Struct):
    store: Store
    file: tuple[int, int]
    keyed: Keyed
    placing: Placing

    @classmethod
    def at(cls, path: Path) -> "_Open":
        store = Store.open(path, keep=True)
        keyed = Keyed(secret(path.parent))
        found = os.stat(path)
        placing = Placing(keyed, Lineage(keyed))
        return cls(store, (found.st_dev, found.st_ino), keyed, placing)


def _fault(path: Path, error: Exception) -> str:
    if isinstance(error, DatabaseError):
        return f"{path}: {said(error)}"
    return str(error)


def _write_judged(connection: Connection, keyed: Keyed, judged: Judged) -> None:
    step = connection.execute(
        select(steps.c.id, steps.c.record)
        .where(steps.c.gateway == judged.gateway, steps.c.number == judged.number)
        .order_by(steps.c.id.desc())
    ).first()
    if step is None:
        return
    for prediction in judged.predictions:
        row = decision_row(keyed, step.id, prediction, step.record == "full")
        connection.execute(insert_or(decisions).values(**row).on_conflict_do_nothing())


def _write_audited(connection: Connection, audited: Audited) -> None:
    step = connection.execute(
        select(steps.c.id)
        .where(steps.c.gateway == audited.gateway, steps.c.number == audited.number)
        .order_by(steps.c.id.desc())
    ).scalar()
    connection.execute(
        insert(audits).values(
            step=step, gateway=audited.gateway, number=audited.number, route=audited.route,
            tool=audited.tool, outcome=audited.outcome, at_s=audited.at_unix_s,
        )
    )  # fmt: skip
