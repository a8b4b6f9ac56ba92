"""Files of JSON values: by lines or as a whole, copies left out, damage counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflexarc.traces.documents import documents
from reflexarc.traces.logs import head_of
from reflexarc.traces.requests import FileReport


def read(*paths: Path, **how: Any) -> tuple[list[Any], dict[Path, FileReport]]:
    reports = {path: FileReport(str(path)) for path in paths}
    return [one.value for one in documents(paths, reports, **how)], reports


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("indent", [None, 1])
def test_one_value_is_read_however_it_is_written(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path / "a.json", json.dumps({"a": [1, {"b": 2}]}, indent=indent))
    values, reports = read(path)
    assert values == [{"a": [1, {"b": 2}]}]
    assert not reports[path].at_least


def test_a_damaged_first_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": 1, "b', '{"a": 2}', '{"a": 3}')
    values, reports = read(path)
    assert values == [{"a": 2}, {"a": 3}]
    assert reports[path].skipped == {"not JSON": 1}
    assert reports[path].at_least
    assert head_of(path).first == {"a": 2}


def test_a_last_line_that_breaks_off_is_a_note_but_two_are_a_loss(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", '{"a": 1}', '{"a":')
    two = write(tmp_path / "b.jsonl", '{"b": 1}', '{"b":', '{"b":')
    _, reports = read(one, two)
    assert [reports[path].at_least for path in (one, two)] == [False, True]
    assert reports[one].notes == ["the last line breaks off"]


def test_a_value_that_breaks_off_is_no_value(tmp_path: Path) -> None:
    text = json.dumps({str(number): [number] for number in range(50)}, indent=1)
    path = write(tmp_path / "a.json", text[:-20])
    values, reports = read(path)
    assert values == []
    assert reports[path].at_least
    assert reports[path].skipped == {"not JSON": 1}


def test_values_that_are_too_long_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", json.dumps(["x" * 100]))
    values, reports = read(path, max_bytes=50)
    assert values == []
    assert reports[path].at_least
    assert reports[path].notes


def test_copies_count_once_in_the_order_of_names(tmp_path: Path) -> None:
    second = write(tmp_path / "b.jsonl", '{"a": 1}', '{"a": 1}', '{"b": 1}')
    first = write(tmp_path / "a.jsonl", '{"a": 1}')
    values, reports = read(second, first)
    assert values == [{"a": 1}, {"b": 1}]
    assert [sum(reports[path].duplicates.values()) for path in (first, second)] == [0, 2]
    values, _ = read(second, first, keep_copies=True)
    assert len(values) == 4


def test_a_first_line_with_half_a_character_or_nan_is_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": "\\ud800", "b": NaN}')
    assert head_of(path).top.keys == {"a", "b"}
    assert head_of(path).first is not None
