"""The batch queue's database: its tables, its transactions, and its rows as entries."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    create_engine,
    event,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import QueuePool

from reflexarc.steps.errors import StoreError
from reflexarc.store.place import make_private
from reflexarc.store.queued_entries import Entry, headers_of, headers_text
from reflexarc.store.store import said

BUSY_MS = 5000
_VERSION = 1
_SECONDS: Float[float] = Float()

metadata = MetaData()
entries = Table(
    "entries",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),  # the order of coming
    Column("id", String, nullable=False, unique=True),
    Column("tenant", String, nullable=False),
    Column("key", String, nullable=False),
    Column("route", String, nullable=False),
    Column("path", String, nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("put_unix_s", _SECONDS, nullable=False),
    Column("state", String, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer_headers", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("owner", String, nullable=False),
    Column("taken_unix_s", _SECONDS, nullable=False),
    Column("finished_unix_s", _SECONDS, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Index("entries_turn", "state", "tenant", "seq"),
    Index("entries_size", "tenant", "state", "size_bytes"),
    Index("entries_finished", "state", "finished_unix_s", "taken_unix_s"),
    sqlite_autoincrement=True,  # a number is never given again: an order of coming stays one
)
turns = Table(  # when a tenant had its last turn; higher is later, none: never
    "turns",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("turn", Integer, nullable=False),
)


class QueueFile:
    """One connection, kept open. Every fault of the database is a `StoreError`."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self._engine = engine

    @classmethod
    def open(cls, path: Path) -> "QueueFile":
        """Made where it is not there, for its owner alone."""
        make_private(path.parent)
        engine = create_engine(
            f"sqlite:///{path}", poolclass=QueuePool, pool_size=1, hide_parameters=True
        )
        event.listen(engine, "connect", _set_up)
        opened = cls(path, engine)
        try:
            opened._make()
            path.chmod(0o600)
        except BaseException:
            engine.dispose()
            raise
        return opened

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """One transaction that holds the only write lock, and survives a power cut once it is
        through: what was taken in was promised."""
        with self._told(), self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                driver: Any = connection.connection.driver_connection
                if driver.in_transaction:
                    connection.exec_driver_sql("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Generator[Connection]:
        with self._told(), self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except DatabaseError as error:
            raise StoreError(f"{self.path} cannot be used: {said(error)}") from error

    def empty(self, *, vacuum: bool) -> None:
        """Leaves no byte of what was deleted in the file or its log; `StoreError` where another
        process reads on and so keeps the log."""
        with self._told(), self._engine.connect() as connection:
            if vacuum:
                connection.exec_driver_sql("VACUUM")
            kept: Any = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if kept[0]:
            raise StoreError(
                f"{self.path}: the rows are gone, but another process still reads it, so its log "
                "holds them yet; purge again when that is over"
            )

    def close(self) -> None:
        self._engine.dispose()

    def _make(self) -> None:
        with self._told(), self._engine.connect() as connection:
            version: Any = connection.exec_driver_sql("PRAGMA user_version").scalar()
        if version == _VERSION:
            return
        if version != 0:
            raise StoreError(
                f"{self.path} was written by another release (form {version}, this one knows "
                f"{_VERSION}): move it away, or name another directory with --state"
            )
        with self.writing() as connection:  # of two that open it first, the second finds it made
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {_VERSION}")


def row_of(entry: Entry, size: int) -> dict[str, object]:
    fields = msgspec.structs.asdict(entry)
    fields["headers"] = headers_text(entry.headers)
    fields["answer_headers"] = headers_text(entry.answer_headers)
    return {**fields, "size_bytes": size}


def entry_of(row: Row[Any]) -> Entry:
    fields: dict[str, Any] = {name: getattr(row, name) for name in Entry.__struct_fields__}
    fields["headers"] = headers_of(fields["headers"])
    fields["answer_headers"] = headers_of(fields["answer_headers"])
    return Entry(**fields)


def _set_up(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun here, not by the driver
    for pragma in (
        f"busy_timeout = {BUSY_MS}", "journal_mode = WAL", "synchronous = FULL",
        "secure_delete = ON", "temp_store = MEMORY",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")
