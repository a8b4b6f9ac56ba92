"""SQLite databases that other programs keep, read without touching them: read-only, or from a copy
where a writer has left work beside them (`-wal`, `-journal`). What rows mean is not known here.

Only plain columns of plain tables are read: no view, trigger or expression of the file is run.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from reflexarc.steps.errors import InputError
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table

MAX_VALUE_BYTES = 64 * 1024 * 1024
"""A row with a longer value is left out and counted as damage."""

MAX_ROWS = 20_000_000
"""Of one table; what is beyond is not read and the report says so."""

MAX_COPY_BYTES = 4 * 1024 * 1024 * 1024
"""A larger database is read where it lies, as its other readers do."""

_MAGIC = b"SQLite format 3\x00"
_BESIDE = ("-wal", "-journal")
_FRESH_BYTES = 64 * 1024
_TRIES = 3
_DAMAGE = (sqlite3.Error, OverflowError, ValueError)


def is_sqlite(head: Head) -> bool:
    return head.data.startswith(_MAGIC)


def holds_sqlite(path: Path) -> bool:
    """Whether a file that was recognised once is a database; False where it is gone."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def tables_of(path: Path) -> dict[str, frozenset[str]]:
    """The columns of each table, as far as they are known without a copy; nothing where the file
    cannot be read. Raises nothing."""
    try:
        with closing(_connected(path, "mode=ro&immutable=1")) as connection:
            found = _columns(connection)
        if not found and _left_beside(path) and path.stat().st_size <= _FRESH_BYTES:
            # all of a new database may still stand in what lies beside it
            with opened(path) as database:
                found = database.columns
    except (*_DAMAGE, OSError, InputError):
        return {}
    return {name: frozenset(columns) for name, columns in found.items()}


class Database:
    """Rows of one file. `damage`: what could not be read, by reason and how often."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self.columns = _columns(connection)
        self.damage: dict[str, int] = {}

    def grouped(self, table: str, by: str = "") -> dict[object, list[int]]:
        """Rows of a table by the value of a column (all under None without one), in the order in
        which they were written; none where there is no such table or column."""
        columns = self.columns.get(table)
        if columns is None or (by and by not in columns):
            return {}
        value = _quoted(by) if by else "NULL"
        groups: dict[object, list[int]] = {}
        query = f"SELECT rowid, {value} FROM {_quoted(table)} ORDER BY rowid LIMIT {MAX_ROWS + 1}"
        count = 0
        try:
            for row, key in self._connection.execute(query):
                count += 1
                if count > MAX_ROWS:
                    self._damaged(f"rows of {table} beyond the first {MAX_ROWS:,}")
                    break
                groups.setdefault(key, []).append(row)
        except _DAMAGE as error:
            self._damaged(f"{table}: {error}")
        return groups

    def rows(self, table: str, rows: Iterable[int], wanted: Sequence[str]) -> Iterator[Table]:
        """The values of these columns; None for one that the table does not have. A row that cannot
        be read is left out."""
        columns = self.columns.get(table)
        if columns is None:
            return
        chosen = ", ".join(_quoted(name) if name in columns else "NULL" for name in wanted)
        query = f"SELECT {chosen} FROM {_quoted(table)} WHERE rowid = ?"
        for row in rows:
            try:
                found = self._connection.execute(query, (row,)).fetchone()
            except _DAMAGE as error:
                self._damaged(f"{table}: {error}")
                continue
            if found is not None:
                yield dict(zip(wanted, found, strict=True))

    def _damaged(self, reason: str) -> None:
        self.damage[reason] = self.damage.get(reason, 0) + 1


@contextmanager
def opened(path: Path) -> Generator[Database]:
    """Raises `InputError` where there is no database that can be read."""
    with ExitStack() as held:
        try:
            database = Database(path, _held(path, held))
        except (*_DAMAGE, OSError) as error:
            raise InputError(f"{path}: cannot be read as a database ({error})") from error
        yield database


def _held(path: Path, held: ExitStack) -> sqlite3.Connection:
    beside = _left_beside(path)
    size = sum(one.stat().st_size for one in (path, *beside))
    how = "mode=ro" if beside else "mode=ro&immutable=1"
    if beside and size <= MAX_COPY_BYTES:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        # where there is no room for a copy it is read where it lies
        with suppress(OSError):
            # what lies beside is worked in as the copy is opened
            path, how = _copied(path, folder), "mode=rw"
    return held.enter_context(closing(_connected(path, how)))


def _connected(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.text_factory = _text
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _columns(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    names = [
        name
        for name, made in connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        )
        if isinstance(name, str) and not str(made).upper().startswith("CREATE VIRTUAL")
    ]
    return {
        # hidden ones are computed
        name: tuple(
            row[1]
            for row in connection.execute(f"PRAGMA table_xinfo({_quoted(name)})")
            if not row[6]
        )
        for name in names
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _left_beside(path: Path) -> list[Path]:
    found = [path.with_name(path.name + ending) for ending in _BESIDE]
    return [one for one in found if one.is_file() and one.stat().st_size]


def _copied(path: Path, folder: Path) -> Path:
    """A copy made while nothing was written, if that can be had in a few tries; a copy that is not
    whole shows as damage."""
    for _ in range(_TRIES):
        files = (path, *_left_beside(path))
        before = [_state(one) for one in files]
        for one in files:
            shutil.copyfile(one, folder / one.name)
        if before == [_state(one) for one in (path, *_left_beside(path))]:
            break
    return folder / path.name


def _state(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return path.name, found.st_size, found.st_mtime_ns
