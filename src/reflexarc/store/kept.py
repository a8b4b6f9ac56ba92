"""Answers that clients go on from by id (`previous_response_id`), where the gateway owns them.

A file of its own beside the store: its rows hold a conversation's items as they were sent, whatever
a route records, because a client that was promised them will name them instead of sending them
again. They go with their retention, with a purge that names them, and oldest first past a limit.
"""

import contextlib
import re
import sqlite3
from collections.abc import Collection
from pathlib import Path

import msgspec

from reflexarc.steps.errors import StoreError
from reflexarc.store.place import make_private

FILE = "responses.db"
PURGED = "responses.purged"
"""Its time tells gateways of a purge: what they hold in memory is no longer to be trusted."""
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
        over = self.bytes_held() - max_bytes
        if over <= 0:
            return gone
        oldest = (
            "select tenant, id, length(items) + length(body) from answers order by created_s, id"
        )
        for tenant, identity, size in self._run(oldest).fetchall():
            if over <= 0:
                break
            gone += self.delete(tenant, identity)
            over -= size
        return gone

    def bytes_held(self) -> int:
        row = self._run("select coalesce(sum(length(items) + length(body)), 0) from answers")
        return int(row.fetchone()[0])

    def forget(
        self, values: Collection[str], tenants: Collection[str] = (), before_s: float | None = None
    ) -> int:
        """A purge: every row that holds one of the values, and every one of these tenants that is
        older, as far as both are given; no byte of them stays in the file or its log. How many
        went."""
        needles = [value.encode(errors="replace") for value in values if value.strip()]
        doomed: list[tuple[str, str]] = []
        for tenant, identity, created_s, items, body in self._run(
            "select tenant, id, created_s, items, body from answers"
        ):
            meant = bool(tenants) or before_s is not None
            meant = meant and (not tenants or tenant in tenants)
            meant = meant and (before_s is None or created_s < before_s)
            if meant or holds(items, needles) or holds(body, needles):
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


def holds(text: bytes, values: Collection[bytes]) -> bool:
    """In whatever spelling a client wrote it (`\\u00fc` is a letter like any), in the items' own
    texts and in texts within these: arguments and results often are JSON themselves."""
    if not values or not text:
        return False
    for _ in range(_TEXTS_WITHIN):
        if any(value in text for value in values):
            return True
        if b"\\" not in text:
            return False
        text = _escape.sub(_unescaped, text)
    return any(value in text for value in values)


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return _PLAIN.get(found[0], found[0][1:])
    units = bytes.fromhex(found[1].replace(b"\\u", b"").decode())
    return units.decode("utf-16-be", "replace").encode()


# A run of escaped units at once: two may be one letter.
_escape = re.compile(rb"((?:\\u[0-9a-fA-F]{4})+)|\\[\s\S]")
_PLAIN = {b"\\n": b"\n", b"\\t": b"\t", b"\\r": b"\r", b"\\b": b"\b", b"\\f": b"\f"}
_TEXTS_WITHIN = 3


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
        gone = kept.forget(values, tenants, before_s)
        (directory / PURGED).touch(0o600)
        return gone
    finally:
        kept.close()
