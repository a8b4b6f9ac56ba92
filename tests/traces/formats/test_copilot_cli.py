"""Copilot CLI: each row of its store is one request, cached tokens inside its prompt."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, times_in_order, totals

Read = Callable[..., Logs]
COLUMNS = (
    "session_id", "agent_id", "model", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "duration_ms", "time_to_first_token_ms", "created_at",
)  # fmt: skip
ROWS: list[tuple[Any, ...]] = [
    ("s", None, "gpt-5.4", 43_792, 40, 42_698, 904, 12, 3000, 800, "2026-09-08T00:00:10Z"),
    ("s", "a7", "gpt-5.4", 500, 4, 0, 0, 0, 1000, None, "2026-09-08T00:00:12Z"),
    ("s", None, "gpt-5.4", 44_000, 5, 43_000, 0, 0, None, None, "2026-09-08 00:00:20"),
]


def store(path: Path, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS) -> Path:
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE assistant_usage_events (id INTEGER PRIMARY KEY, {names})")
        connection.executemany(
            f"INSERT INTO assistant_usage_events ({names}) VALUES ({places})",
            [row[: len(columns)] for row in rows],
        )
        connection.commit()
    return path


def test_rows_are_requests_with_cached_tokens_inside(tmp_path: Path, read: Read) -> None:
    logs = read(store(tmp_path / "session-store.db", ROWS))
    assert logs.files[0].format == "copilot-cli"
    assert totals(logs.requests) == {
        "requests": 3, "prompt": 88_292, "cached": 85_698, "written": 904, "output": 49,
        "reasoning": 12,
    }  # fmt: skip
    assert [(one.agent, one.starts) for one in logs.requests] == [
        ("", "session"),
        ("a7", "session"),
        ("", ""),
    ]


def test_times_are_worked_out_from_the_end_and_how_long_it_took(tmp_path: Path, read: Read) -> None:
    first, _, last = read(store(tmp_path / "session-store.db", ROWS)).requests
    assert first.ended_s.value is not None
    assert first.began_s.value == first.ended_s.value - 3
    assert first.first_s.value == first.ended_s.value - 2.2
    assert last.began_s.kind == last.first_s.kind == "absent"


def test_an_older_store_without_some_columns_is_read(tmp_path: Path, read: Read) -> None:
    columns = ("session_id", "agent_id", "model", "input_tokens", "output_tokens")
    logs = read(store(tmp_path / "session-store.db", ROWS, columns))
    assert totals(logs.requests)["prompt"] == 88_292
    assert {one.counts.cache_read.kind for one in logs.requests} == {"absent"}


def test_a_copy_of_the_store_counts_once(tmp_path: Path, read: Read) -> None:
    first = store(tmp_path / "a.db", ROWS)
    second = store(tmp_path / "b.db", ROWS)
    assert totals(read(tmp_path).requests)["requests"] == 3
    assert read(first, second).requests == read(second, first).requests


@given(st.integers(min_value=0))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    whole = tmp_path / "whole" / "session-store.db"
    if not whole.exists():
        whole.parent.mkdir()
        store(whole, ROWS)
    path = tmp_path / "session-store.db"
    path.write_bytes(damaged(whole.read_bytes(), seed))
    times_in_order(survives([path]))
