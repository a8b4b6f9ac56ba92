"""The batch queue: requests that wait for their turn, in a file that outlives its gateways.

At least once: an entry whose process dies is worked on again, up to `MAX_TRIES` times, so System 2
may be asked twice for it; the first answer that comes is the one that is kept. Tenants take turns,
each with its oldest entry. Several processes share the file; in one, one thread at a time.
"""

import secrets
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from reflexarc.steps.errors import QueueFullError, StoreError, TooLargeError
from reflexarc.store.kept import holds
from reflexarc.store.queued_entries import (
    GIVEN_UP,
    Counts,
    Entry,
    Headers,
    headers_text,
    safe,
    safe_answer,
    size_of,
)
from reflexarc.store.queued_file import QueueFile, entries, entry_of, row_of, turns
from reflexarc.store.queued_order import drained_per_s, line, place

FILE = "queue.db"
MAX_ENTRIES = 10_000
MAX_BYTES = 1024**3
RETENTION_S = 7 * 86_400.0
TENANT_SHARE = 0.5
MAX_TRIES = 5
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 1.0, 3600.0
_UNFINISHED = ("waiting", "running")


class Bounds(msgspec.Struct, frozen=True):
    """`max_entries` of those that are not finished, `max_bytes` of all that is kept, finished ones
    too; one tenant has at most `tenant_share` of either. Finished entries stay `retention_s`."""

    max_entries: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES
    retention_s: float = RETENTION_S
    tenant_share: float = TENANT_SHARE


class Queue:
    """The queue of a state directory. Every method raises `StoreError` where the file cannot be
    used."""

    def __init__(
        self,
        file: QueueFile,
        unix_time: Callable[[], float],
        bounds: Bounds,
        new_id: Callable[[], str],
    ) -> None:
        self._file = file
        self._unix_time = unix_time
        self._bounds = bounds
        self._new_id = new_id

    @classmethod
    def open(
        cls,
        path: Path,
        unix_time: Callable[[], float],
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        retention_s: float = RETENTION_S,
        *,
        tenant_share: float = TENANT_SHARE,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> "Queue":
        """`path` is the file, `queue.db` in the state directory; see `Bounds` for the limits."""
        bounds = Bounds(max_entries, max_bytes, retention_s, tenant_share)
        return cls(QueueFile.open(path), unix_time, bounds, new_id)

    def put(self, entry: Entry) -> Entry:
        """Takes an entry in, on disk when it returns; its time and, where it has none, its id are
        given here, and what may hold a key is left out. The same tenant's id again gives the entry
        that is there. Raises `QueueFullError` past a bound, `TooLargeError` for what never fits."""
        now_s = self._unix_time()
        given = msgspec.structs.replace(
            safe(entry), id=entry.id or self._new_id(), put_unix_s=now_s, state="waiting",
            status=0, answer_headers=(), answer=b"", tries=0, owner="", taken_unix_s=0.0,
            finished_unix_s=0.0,
        )  # fmt: skip
        with self._file.writing() as connection:
            self._retain(connection, now_s)
            there = connection.execute(select(entries).where(entries.c.id == given.id)).first()
            if there is not None:
                if there.tenant != given.tenant:
                    raise StoreError("the batch queue has another entry of this id")
                return entry_of(there)
            size = size_of(given)
            self._check_room(connection, given.tenant, size, now_s)
            connection.execute(insert(entries), row_of(given, size))
        return given

    def take(self, owner: str) -> Entry | None:
        """The oldest entry of the tenant whose turn it is, running from now on in the name of
        `owner`; None where none waits."""
        now_s = self._unix_time()
        with self._file.writing() as connection:
            order = line(connection)
            if not order:
                return None
            last = connection.execute(select(func.max(turns.c.turn))).scalar() or 0
            tenant = order[0].tenant
            connection.execute(delete(turns).where(turns.c.tenant == tenant))
            connection.execute(insert(turns), {"tenant": tenant, "turn": last + 1})
            row = connection.execute(
                update(entries)
                .where(entries.c.seq == order[0].oldest)
                .values(
                    state="running",
                    owner=owner,
                    tries=entries.c.tries + 1,
                    taken_unix_s=now_s,
                )
                .returning(entries)
            ).one()
            return entry_of(row)

    def done(
        self, identity: str, status: int, headers: Iterable[tuple[str, str]], answer: bytes
    ) -> bool:
        """Keeps an answer, on disk when it returns. False where it comes too late: another one is
        kept, or the entry was cancelled."""
        with self._file.writing() as connection:
            row = self._unfinished(connection, identity)
            if row is None:
                return False
            self._finish(connection, entry_of(row), "done", status, safe_answer(headers), answer)
            return True

    def again(self, identity: str) -> bool:
        """Gives a running entry back to its place, after a failure that may pass. False where its
        tries are spent, or it does not run: then it stays as it is, and `done` ends it."""
        with self._file.writing() as connection:
            changed = connection.execute(
                update(entries)
                .where(entries.c.id == identity, entries.c.state == "running")
                .where(entries.c.tries < MAX_TRIES)
                .values(state="waiting", owner="")
            )
            return changed.rowcount > 0

    def cancel(self, identity: str, tenant: str) -> bool:
        """Ends an entry that is not finished; an answer that still comes is not kept. False where
        there is none of this tenant."""
        with self._file.writing() as connection:
            row = self._unfinished(connection, identity)
            if row is None or row.tenant != tenant:
                return False
            self._finish(connection, entry_of(row), "cancelled", 0, (), b"")
            return True

    def of(self, identity: str, tenant: str) -> Entry | None:
        """An entry of this tenant; None for another's, as for one that is not there."""
        with self._file.reading() as connection:
            mine = (entries.c.id == identity) & (entries.c.tenant == tenant)
            row = connection.execute(select(entries).where(mine)).first()
        return None if row is None else entry_of(row)

    def listed(self, tenant: str | None = None, limit: int = 100) -> list[Entry]:
        """The newest entries, of one tenant or of all, without their bodies and answers."""
        wanted = select(entries).order_by(entries.c.seq.desc()).limit(limit)
        if tenant is not None:
            wanted = wanted.where(entries.c.tenant == tenant)
        with self._file.reading() as connection:
            found = [entry_of(row) for row in connection.execute(wanted)]
        return [msgspec.structs.replace(one, body=b"", answer=b"") for one in found]

    def place(self, identity: str) -> int | None:
        """How many entries are taken before it, if none comes or goes; None where it does not
        wait."""
        with self._file.reading() as connection:
            return place(connection, identity)

    def counts(self) -> Counts:
        """Of all tenants together."""
        query = select(
            entries.c.state, func.count(), func.coalesce(func.sum(entries.c.size_bytes), 0)
        ).group_by(entries.c.state)
        with self._file.reading() as connection:
            rows: list[tuple[str, int, int]] = [
                (row[0], row[1], row[2]) for row in connection.execute(query)
            ]
        states = {state: number for state, number, _ in rows}
        return Counts(**states, size_bytes=sum(size for _, _, size in rows))

    def drained_per_s(self, now_s: float) -> float:
        """Answers a second over the last 10 minutes, or since the first of them was begun; 0 where
        there was none."""
        with self._file.reading() as connection:
            return drained_per_s(connection, now_s)

    def starts_in_s(self, identity: str, now_s: float) -> float | None:
        """When it will be taken, expected from its place and how fast the queue drains; None where
        it does not wait, or nothing was finished of late."""
        place = self.place(identity)
        rate = self.drained_per_s(now_s)
        if place is None or (place and not rate):
            return None
        return place / rate if place else 0.0

    def recover(self, alive: Callable[[str], bool]) -> int:
        """Running entries of owners that are gone wait again, in their old places; how many. Those
        whose tries are spent are done with status 500 and no answer. At least once: what such an
        owner had already sent is sent again."""
        running = entries.c.state == "running"
        with self._file.reading() as connection:
            found = connection.execute(select(entries.c.owner).where(running).distinct()).all()
        gone = [owner for (owner,) in found if not alive(owner)]
        if not gone:
            return 0
        with self._file.writing() as connection:
            lost = running & entries.c.owner.in_(gone)
            spent = connection.execute(
                select(entries).where(lost, entries.c.tries >= MAX_TRIES)
            ).all()
            for row in spent:
                self._finish(connection, entry_of(row), "done", GIVEN_UP, (), b"")
            changed = connection.execute(
                update(entries).where(lost).values(state="waiting", owner="")
            )
            return changed.rowcount

    def retain(self) -> int:
        """Removes finished entries past their retention; how many. `put` does so as well."""
        with self._file.writing() as connection:
            return self._retain(connection, self._unix_time())

    def forget(
        self, values: Collection[str], tenants: Collection[str] = (), before_s: float | None = None
    ) -> int:
        """A purge: every entry that holds one of the values, and every one of these tenants that is
        older, as far as both are given, whatever its state; no byte of them stays in the file or
        its log. How many went."""
        needles = [value.encode(errors="replace") for value in values if value.strip()]
        named = bool(tenants) or before_s is not None
        doomed: list[int] = []
        with self._file.writing() as connection:
            for row in connection.execute(select(entries).execution_options(yield_per=16)):
                meant = named and (not tenants or row.tenant in tenants)
                meant = meant and (before_s is None or row.put_unix_s < before_s)
                texts = (row.body, row.answer, row.headers.encode(), row.path.encode())
                if meant or any(holds(text, needles) for text in texts):
                    doomed.append(row.seq)
            for seq in doomed:
                connection.execute(delete(entries).where(entries.c.seq == seq))
            _forget_turns(connection)
        self._file.empty(vacuum=bool(doomed))
        return len(doomed)

    def close(self) -> None:
        self._file.close()

    def _check_room(self, connection: Connection, tenant: str, size: int, now_s: float) -> None:
        share = self._bounds.tenant_share
        for whose, part, where in (
            ("the batch queue", 1.0, ()),
            ("the batch queue's share of one key", share, (entries.c.tenant == tenant,)),
        ):
            open_ = connection.execute(
                select(func.count()).select_from(entries).where(
                    entries.c.state.in_(_UNFINISHED), *where
                )
            ).scalar_one()  # fmt: skip
            most = max(1, int(self._bounds.max_entries * part))
            if open_ >= most:
                raise self._full(connection, f"{whose} has {most:,} requests, its most", now_s)
            held: int = connection.execute(
                select(func.coalesce(func.sum(entries.c.size_bytes), 0)).where(*where)
            ).scalar_one()
            most = int(self._bounds.max_bytes * part)
            if size > most:
                raise TooLargeError(f"{whose} may hold {most:,} bytes, and this needs {size:,}")
            if held + size > most:
                raise self._full(
                    connection,
                    f"{whose} may hold {most:,} bytes, holds {held:,}, and this needs {size:,}",
                    now_s,
                )

    def _full(self, connection: Connection, why: str, now_s: float) -> QueueFullError:
        rate = drained_per_s(connection, now_s)
        wait_s = 1 / rate if rate else 60.0
        bounded_s = min(max(wait_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)
        return QueueFullError(f"{why}: try again later, or ask for an answer at once", bounded_s)

    def _unfinished(self, connection: Connection, identity: str) -> Row[Any] | None:
        wanted = (entries.c.id == identity) & entries.c.state.in_(_UNFINISHED)
        return connection.execute(select(entries).where(wanted)).first()

    def _finish(
        self,
        connection: Connection,
        entry: Entry,
        state: str,
        status: int,
        headers: Headers,
        answer: bytes,
    ) -> None:
        kept = msgspec.structs.replace(entry, body=b"", answer_headers=headers, answer=answer)
        connection.execute(
            update(entries)
            .where(entries.c.id == entry.id)
            .values(
                state=state, status=status, body=b"", answer_headers=headers_text(headers),
                answer=answer, owner="", finished_unix_s=self._unix_time(),
                size_bytes=size_of(kept),
            )
        )  # fmt: skip

    def _retain(self, connection: Connection, now_s: float) -> int:
        finished = entries.c.state.not_in(_UNFINISHED)
        old = entries.c.finished_unix_s < now_s - self._bounds.retention_s
        gone = connection.execute(delete(entries).where(finished, old)).rowcount
        if gone:
            _forget_turns(connection)
        return gone


def _forget_turns(connection: Connection) -> None:
    """Of tenants that have nothing in the queue."""
    left = select(entries.c.tenant)
    connection.execute(delete(turns).where(turns.c.tenant.not_in(left)))


def forget_queued(
    directory: Path,
    values: Collection[str],
    tenants: Collection[str] = (),
    before_s: float | None = None,
    *,
    unix_time: Callable[[], float],
) -> int:
    """A purge of the queue of a state directory, if there is one. Raises `StoreError`."""
    if not (directory / FILE).exists():
        return 0
    queue = Queue.open(directory / FILE, unix_time)
    try:
        return queue.forget(values, tenants, before_s)
    finally:
        queue.close()
