"""Rows, whichever way a file holds them: the same rows from lines, lists, members and CSV."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.traces.formats.rows import rows
from reflexarc.traces.requests import FileReport
from tests.traces.formats.measures import survives
from tests.traces.formats.written import write_json, write_jsonl

ROWS = [{"a": "1", "b": "x, y"}, {"a": "2", "b": 'line\nwith "quotes"'}]


def in_csv(given: list[dict[str, Any]]) -> str:
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, list(given[0]))
    writer.writeheader()
    writer.writerows(given)
    return written.getvalue()


def read(path: Path) -> tuple[list[dict[str, Any]], FileReport]:
    report = FileReport(str(path))
    return [row.fields for row in rows([path], {path: report})], report


def test_every_way_of_writing_rows_gives_the_same(tmp_path: Path) -> None:
    write_json(tmp_path / "list.json", ROWS)
    write_json(tmp_path / "page.json", {"data": ROWS, "next": None})
    write_jsonl(tmp_path / "lines.jsonl", *ROWS)
    (tmp_path / "table.csv").write_bytes(b"\xef\xbb\xbf" + in_csv(ROWS).encode())
    for path in sorted(tmp_path.iterdir()):
        assert read(path)[0] == ROWS, path.name


def test_what_is_no_row_is_counted(tmp_path: Path) -> None:
    found, report = read(write_json(tmp_path / "list.json", [ROWS[0], 7, None]))
    assert (found, sum(report.skipped.values())) == ([ROWS[0]], 2)


def test_cells_longer_than_usual_are_read_and_empty_ones_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(in_csv([{"a": "x" * 300_000, "b": ""}]))
    (row,) = read(path)[0]
    assert (len(row["a"]), "b" in row) == (300_000, False)


def test_marks_are_the_same_in_another_file_and_differ_within_one(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "a.jsonl", ROWS[0], ROWS[0])
    other = write_json(tmp_path / "b.json", [ROWS[0]])
    reports = {path: FileReport(str(path)) for path in (one, other)}
    marks = [row.mark for row in rows([one, other], reports)]
    assert marks[0] == marks[2]
    assert marks[0] != marks[1]


@pytest.mark.parametrize(
    "header", ["request,response,model", "request_id,spend,call_type,prompt_tokens"]
)
@given(rest=st.binary(max_size=400))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_table_raises(tmp_path: Path, header: str, rest: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(header.encode() + b"\n" + rest)
    survives([path])


def test_deep_and_endless_values_raise_nothing(tmp_path: Path) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    number = "9" * 5_000
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps({"request": {"model": "m", "messages": []}, "response": "x"})
        + f'\n{{"request": {deep}, "response": {number}}}\n{{"request": {number}, "response": 1}}\n'
    )
    survives([path])
