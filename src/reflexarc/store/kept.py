"""Answers that clients go on from by id (`previous_response_id`), where the gateway owns them.

A file of its own beside the store: its rows hold a conversation's items as they were sent, whatever
a route records, because a client that was promised them will name them instead of sending them
again. They go with their retention, with a purge that names them, and oldest first past a limit.
"""

import contextlib
import sqlite3
from collections.abc import Collection
from pathlib import Path

import msgspec

from reflexarc.steps.errors import StoreError
from reflexarc.store.place import make_private

FILE = "responses.db"
MAX_BYTES = 512 * 1024 * 1024
MAX_TURNS = 10_000
_VERSION = 1
_TABLE = """
create table if not exists answers (
  tenant text not null, id text not null, parent text, ours integer not null,
  created_s real not null, items blob not null, body blob not null,
  primary key (tenant, id)
) without rowid
"""
_COLUMNS = "tenant, id, parent, ours, created_s, items, body"


class KeptAnswer(msgspec.Struct, frozen=True):
    """One answer of a chain. `items` is a JSON list: what was new in its request, then what was
    answered. `ours`: the upstream does not know it. `body` is the answer as the client got it,
    empty where it was streamed in pieces and not kept. `created_s` is Unix time."""

    tenant: str
    id: str
    parent: str | None
    ours: bool
    created_s: float
    items: bytes
    body: bytes = b""


class KeptAnswers:
    """The file. One thread at a time. Raises `StoreError`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, directory: Path) -> "KeptAnswers":
        make_private(directory)
        path = directory / FILE
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON",
                           "busy_timeout = 2000"):  # fmt: skip
                connection.execute(f"pragma {pragma}")
            version = connection.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise StoreError(
                    f"{path} was written by another release (form {version}, this one knows "
                    f"{_VERSION}): move it away, or name another directory with --state"
                )
            connection.execute(_TABLE)
            connection.execute(f"pragma user_version = {_VERSION}")
            path.chmod(0o600)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be used: {error}") from error
        return cls(connection, path)

    def put(self, answer: KeptAnswer) -> None:
        row = (answer.tenant, answer.id, answer.parent, int(answer.ours), answer.created_s,
               answer.items, answer.body)  # fmt: skip
        self._run(f"insert or replace into answers ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)", row)

    def get(self, tenant: str, identity: str) -> KeptAnswer | None:
        query = f"select {_COLUMNS} from answers where tenant = ? and id = ?"
        row = self._run(query, (tenant, identity)).fetchone()
        if row is None:
            return None
        return KeptAnswer(row[0], row[1], row[2], bool(row[3]), row[4], row[5], row[6])

    def delete(self, tenant: str, identity: str) -> bool:
        query = "delete from answers where tenant = ? and id = ?"
        return self._run(query, (tenant, identity)).rowcount > 0

    def retain(self, before_s: float, max_bytes: int = MAX_BYTES) -> int:
        """Removes what is older, and the oldest past a limit. How many went."""
        gone = self._run("delete from answers where created_s < ?", (before_s,)).rowcount
        while self.bytes_held() > max_bytes:
            oldest = "select tenant, id from answers order by created_s limit 20"
            rows = self._run(oldest).fetchall()
            if not rows:
                break
            for tenant, identity in rows:
                gone += self.delete(tenant, identity)
        return gone

    def bytes_held(self) -> int:
        row = self._run("select coalesce(sum(length(items) + length(body)), 0) from answers")
        return int(row.fetchone()[0])

    def forget(
        self, values: Collection[str], tenants: Collection[str] = (), before_s: float | None = None
    ) -> int:
        """A purge: every row that holds one of the values, is of one of the tenants, or older; no
        byte of them stays in the file or its log. How many went."""
        needles = [_in_json(value) for value in values if value.strip()]
        doomed: list[tuple[str, str]] = []
        for tenant, identity, created_s, items, body in self._run(
            "select tenant, id, created_s, items, body from answers"
        ):
            old = before_s is not None and created_s < before_s
            named = tenant in tenants
            if old or named or any(one in items or one in body for one in needles):
                doomed.append((tenant, identity))
        for tenant, identity in doomed:
            self.delete(tenant, identity)
        if doomed:
            self._run("vacuum")
        self._run("pragma wal_checkpoint(truncate)")
        return len(doomed)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _run(self, query: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(query, values)
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used: {error}") from error


def _in_json(value: str) -> bytes:
    """A value as it stands within a JSON text."""
    return msgspec.json.encode(value)[1:-1]


def forget_kept(
    directory: Path,
    values: Collection[str],
    tenants: Collection[str] = (),
    before_s: float | None = None,
) -> int:
    """A purge of the file in a state directory, if there is one. Raises `StoreError`."""
    if not (directory / FILE).exists():
        return 0
    kept = KeptAnswers.open(directory)
    try:
        return kept.forget(values, tenants, before_s)
    finally:
        kept.close()
