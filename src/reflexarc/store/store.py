"""Opens the database: SQLite in WAL mode, brought to the newest schema, one writer at a time."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool, QueuePool

from reflexarc.steps.errors import StoreError, StoreVersionError
from reflexarc.store.place import make_private

BUSY_MS = 500
"""How long a writer waits for another one before it says that the store is locked."""


class Store:
    """One database file. Connections are opened for a piece of work and closed after it; with
    `keep` one stays open between (the recorder writes several times a second)."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self._engine = engine

    @classmethod
    def open(
        cls, path: Path, *, create: bool = True, keep: bool = False, busy_ms: int = BUSY_MS
    ) -> "Store":
        """Raises `StoreVersionError` for a schema of a later release, `StoreError` where the file
        is missing (`create` false) or cannot be used."""
        if not create and not path.exists():
            raise StoreError(
                f"there is no store at {path}: nothing was recorded yet, or --state names "
                "another directory"
            )
        make_private(path.parent)
        engine = _engine(path, busy_ms, keep)
        try:
            with engine.connect() as connection:
                _migrate(connection, path)
        except DatabaseError as error:
            engine.dispose()
            raise StoreError(f"{path} cannot be used: {said(error)}") from error
        path.chmod(0o600)
        return cls(path, engine)

    @contextmanager
    def writing(self, *, durable: bool = False) -> Generator[Connection]:
        """One transaction that holds the only write lock. `durable`: it survives a power cut once
        it is through, not only the end of the process. Raises SQLAlchemy's `DatabaseError`."""
        with self._engine.connect() as connection:
            level = "FULL" if durable else "NORMAL"
            connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                if _in_transaction(connection):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """One view of the whole store, unchanged while it is read."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")

    @contextmanager
    def bare(self) -> Generator[Connection]:
        """A connection without a transaction, for pragmas and VACUUM."""
        with self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()


def said(error: BaseException) -> str:
    """What the database itself says, without SQLAlchemy's statement, which may hold values."""
    origin = getattr(error, "orig", None)
    return str(origin if origin is not None else error).splitlines()[0]


def _engine(path: Path, busy_ms: int, keep: bool) -> Engine:
    url = f"sqlite:///{path}"
    if keep:
        engine = create_engine(url, poolclass=QueuePool, pool_size=1, hide_parameters=True)
    else:
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True)

    def set_up(connection: sqlite3.Connection, _: Any) -> None:
        # Transactions are begun here, not by the driver, so that a reader of today does not
        # become a writer halfway.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {busy_ms}",
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "secure_delete = ON",
            "temp_store = MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", set_up)
    return engine


def _migrate(connection: Connection, path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(files("reflexarc.store") / "migrations"))
    script = ScriptDirectory.from_config(config)
    head = script.get_current_head()
    if MigrationContext.configure(connection).get_current_revision() == head:
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE")  # of two that open it first, one migrates
    try:
        current = MigrationContext.configure(connection).get_current_revision()
        known = {revision.revision for revision in script.walk_revisions()}
        if current is not None and current not in known:
            raise StoreVersionError(
                f"{path} was written by a newer reflexarc (schema {current}; this one knows up to "
                f"{head}): upgrade, or name another directory with --state"
            )
        if current != head:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        if _in_transaction(connection):
            connection.exec_driver_sql("ROLLBACK")
        raise


def _in_transaction(connection: Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    return bool(driver.in_transaction)
