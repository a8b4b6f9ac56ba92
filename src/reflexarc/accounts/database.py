"""The file of accounts: its tables, and transactions on it. SQLite in WAL mode.

Several gateways and the command line share it. Money is in whole micro-dollars, times are Unix
seconds.
"""

import contextlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    ClauseElement,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TextClause,
    create_engine,
    event,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, ProgrammingError
from sqlalchemy.pool import StaticPool

from reflexarc.steps.errors import BookError, StoreError, StoreVersionError

FILE = "accounts.db"
VERSION = 1
BUSY_MS = 2_000
"""How long a writer waits for another one before it says that the book is locked."""

metadata = MetaData()
_SECONDS: Float[float] = Float()

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("hash", String, nullable=False, unique=True),  # keyed, of its secret
    Column("settings", Text, nullable=False),  # JSON: a VirtualKey
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", String, primary_key=True),
    Column("key", String, nullable=False),
    Column("session", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("micro_usd", Integer, nullable=False),
    Column("owner", String, nullable=False),
    Column("at_s", _SECONDS, nullable=False),
    Index("reservations_key", "key"),
    Index("reservations_owner", "owner"),
)

owners = Table(
    "owners",
    metadata,
    Column("owner", String, primary_key=True),
    Column("at_s", _SECONDS, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("gateway", String, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("request_id", String, nullable=False),
    Column("at_s", _SECONDS, nullable=False),
    Column("key", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("session", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("route", String, nullable=False),
    Column("provider", String, nullable=False),
    Column("model", String, nullable=False),
    Column("service_tier", String, nullable=False),
    Column("input", Integer, nullable=False),
    Column("output", Integer, nullable=False),
    Column("cache_read", Integer, nullable=False),
    Column("cache_write", Integer, nullable=False),
    Column("cache_write_1h", Integer, nullable=False),
    Column("reasoning", Integer, nullable=False),
    Column("micro_usd", Integer),  # null: price not known
    Column("status", Integer, nullable=False),
    Column("outcome", String, nullable=False),
    Column("partial", Boolean, nullable=False),
    Column("estimated", Boolean, nullable=False),
    Index("charges_at", "at_s"),
    Index("charges_key", "key", "at_s"),
)

tallies = Table(
    "tallies",
    metadata,
    Column("key", String, primary_key=True),
    Column("scope", String, primary_key=True),  # key | session:HASH | tier:NAME
    Column("window", String, primary_key=True),  # a day, a month, or empty: all time
    Column("micro_usd", Integer, nullable=False),
    Column("last_s", _SECONDS, nullable=False),
)


def once(statement: ClauseElement) -> TextClause:
    """A statement as text, compiled here and never again: SQLite's own forms of INSERT would be at
    each execution, which takes longer than running them."""
    return text(str(statement.compile(dialect=sqlite.dialect(paramstyle="named"))))


class Database:
    """One connection, for one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Makes the file where there is none. Raises `StoreVersionError` for one of a later
        release, `StoreError` for one that cannot be used."""
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = _connected(path)
            _prepare(self._connection, path)
            path.chmod(0o600)
            self._file = _file(path)
        except (DatabaseError, OSError) as error:
            raise StoreError(f"{path} cannot be used: {_said(error)}") from error

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """One transaction that holds the only write lock; on the disk when it is through, as far as
        the end of a process goes. Raises `BookError`."""
        with self._transaction("BEGIN IMMEDIATE", "COMMIT") as connection:
            yield connection

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """One view of the whole. Raises `BookError`."""
        with self._transaction("BEGIN", "ROLLBACK") as connection:
            yield connection

    def version(self) -> int:
        """Another number after any other connection wrote. Raises `BookError`."""
        try:
            self._follow()
            value: Any = self._connection.exec_driver_sql("PRAGMA data_version").scalar()
        except (DatabaseError, OSError) as error:
            raise BookError(f"{self.path}: {_said(error)}") from error
        return int(value)

    def close(self) -> None:
        with contextlib.suppress(DatabaseError):
            self._connection.close()
        self._connection.engine.dispose()

    @contextmanager
    def _transaction(self, begin: str, end: str) -> Generator[Connection]:
        try:
            self._follow()
            self._connection.exec_driver_sql(begin)
            try:
                yield self._connection
                self._connection.exec_driver_sql(end)
            except BaseException:
                self._roll_back()
                raise
        except (DataError, IntegrityError, ProgrammingError):
            raise  # what was to be written is wrong, not the book
        except (DatabaseError, StoreError, OSError) as error:
            raise BookError(
                f"{self.path} cannot be used now: {_said(error)}; look at the disk and at its "
                "permissions"
            ) from error

    def _roll_back(self) -> None:
        driver: Any = self._connection.connection.driver_connection
        if driver.in_transaction:
            with contextlib.suppress(DatabaseError):
                self._connection.exec_driver_sql("ROLLBACK")

    def _follow(self) -> None:
        """Opens the file anew where another stands in its place: what others write is there."""
        with contextlib.suppress(FileNotFoundError):
            if _file(self.path) == self._file:
                return
        self.close()
        again = Database(self.path)
        self._connection, self._file = again._connection, again._file


def _connected(path: Path) -> Connection:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=StaticPool,
        hide_parameters=True,
        connect_args={"check_same_thread": False},
    )

    def set_up(connection: sqlite3.Connection, _: Any) -> None:
        # Transactions are begun here, not by the driver, so that a reader never turns writer.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {BUSY_MS}",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "secure_delete = ON",
            "temp_store = MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", set_up)
    return engine.connect()


def _prepare(connection: Connection, path: Path) -> None:
    def version() -> int:
        value: Any = connection.exec_driver_sql("PRAGMA user_version").scalar()
        return int(value)

    if version() == VERSION:
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # of two that open it first, one makes it
    try:
        if (found := version()) > VERSION:
            raise StoreVersionError(
                f"{path} was written by a newer reflexarc (form {found}; this one knows up to "
                f"{VERSION}): upgrade, or name another directory with --state"
            )
        if found < VERSION:
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        connection.close()
        raise


def _file(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _said(error: BaseException) -> str:
    """What the database itself says, without SQLAlchemy's statement, which may hold values."""
    origin = getattr(error, "orig", None)
    return str(origin if origin is not None else error).splitlines()[0]
