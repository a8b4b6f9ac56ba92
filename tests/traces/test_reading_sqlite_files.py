"""Databases of other programs: read whole, untouched, and never run."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.errors import InputError
from reflexarc.traces import sqlite_files
from reflexarc.traces.logs import head_of
from reflexarc.traces.sqlite_files import is_sqlite, opened, tables_of
from tests.traces.formats.measures import damaged


def _made(path: Path, *rows: tuple[object, ...]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE note (id TEXT, said TEXT)")
        connection.executemany("INSERT INTO note VALUES (?, ?)", rows)
        connection.commit()
    return path


def _said(path: Path) -> list[object]:
    with opened(path) as database:
        rows = [row for rows in database.grouped("note", "id").values() for row in rows]
        return [one["said"] for one in database.rows("note", rows, ["said"])]


def test_rows_are_read_by_group_in_the_order_they_were_written(tmp_path: Path) -> None:
    path = _made(tmp_path / "a.db", ("x", "1"), ("y", "2"), ("x", "3"))
    assert is_sqlite(head_of(path))
    assert tables_of(path) == {"note": {"id", "said"}}
    with opened(path) as database:
        groups = database.grouped("note", "id")
        assert list(groups) == ["x", "y"]
        found = list(database.rows("note", groups["x"], ["said", "missing"]))
        assert found == [{"said": "1", "missing": None}, {"said": "3", "missing": None}]
        assert database.grouped("no such table") == {}
        assert database.grouped("note", "no such column") == {}


def test_what_a_writer_has_not_folded_in_yet_is_read_and_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("CREATE TABLE note (id TEXT, said TEXT)")
        writer.execute("INSERT INTO note VALUES ('x', 'in the log of writes')")
        writer.commit()
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
        assert "live.db-wal" in before
        assert tables_of(path) == {"note": {"id", "said"}}
        assert _said(path) == ["in the log of writes"]
        after = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
        assert {name for name in before if before[name] != after.get(name)} <= {"live.db-shm"}
        assert after.keys() == before.keys()


def test_reading_makes_no_file_and_needs_no_right_to_write(tmp_path: Path) -> None:
    path = _made(tmp_path / "a.db", ("x", "1"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert _said(path) == ["1"]
        assert [one.name for one in tmp_path.iterdir()] == ["a.db"]
    finally:
        tmp_path.chmod(0o755)


def test_a_database_too_large_to_copy_is_read_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "MAX_COPY_BYTES", 100)
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE note (id TEXT, said TEXT)")
        writer.execute("INSERT INTO note VALUES ('x', 'new')")
        writer.commit()
        assert _said(path) == ["new"]


def test_where_there_is_no_room_for_a_copy_it_is_read_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite_files.shutil, "copyfile", full)
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE note (id TEXT, said TEXT)")
        writer.execute("INSERT INTO note VALUES ('x', 'new')")
        writer.commit()
        assert _said(path) == ["new"]


def test_views_virtual_tables_and_computed_columns_are_not_run(tmp_path: Path) -> None:
    path = _made(tmp_path / "a.db", ("x", "1"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW message AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT i FROM n"
        )
        connection.execute("CREATE TABLE part (id TEXT, data TEXT AS (zeroblob(900000000)))")
        connection.execute("INSERT INTO part (id) VALUES ('p')")
        connection.commit()
    assert tables_of(path) == {"note": {"id", "said"}, "part": {"id"}}
    with opened(path) as database:
        assert database.grouped("message") == {}
        rows = database.grouped("part")[None]
        assert list(database.rows("part", rows, ["data"])) == [{"data": None}]


def test_a_value_past_the_limit_costs_its_row_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _made(tmp_path / "a.db", ("x", "1"), ("x", "2" * 5000), ("x", "3"))
    monkeypatch.setattr(sqlite_files, "MAX_VALUE_BYTES", 1000)
    with opened(path) as database:
        found = list(database.rows("note", database.grouped("note")[None], ["said"]))
        assert [one["said"] for one in found] == ["1", "3"]
        assert sum(database.damage.values()) == 1


def test_rows_past_the_limit_are_said_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _made(tmp_path / "a.db", *(("x", str(number)) for number in range(9)))
    monkeypatch.setattr(sqlite_files, "MAX_ROWS", 4)
    with opened(path) as database:
        assert len(database.grouped("note")[None]) == 4
        assert "beyond the first 4" in next(iter(database.damage))


def test_what_is_no_database_is_an_input_error_and_has_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    assert tables_of(path) == {}
    with pytest.raises(InputError, match="cannot be read as a database"), opened(path):
        pass


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises_anything_but_input_errors(tmp_path: Path, seed: int) -> None:
    whole = tmp_path / "whole.db"
    if not whole.exists():
        _made(whole, *((str(number % 3), "text " * 300) for number in range(40)))
    path = tmp_path / "a.db"
    path.write_bytes(damaged(whole.read_bytes(), seed))
    tables_of(path)
    try:
        with opened(path) as database:
            for table in database.columns:
                for rows in database.grouped(table, "id").values():
                    list(database.rows(table, rows, ["said", "id"]))
    except InputError:
        pass
