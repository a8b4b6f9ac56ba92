"""Loose values, peeks and packed files: what importers of logs stand on."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from backports.zstd import compress
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.steps.errors import InputError
from reflexarc.traces.lines import read_lines
from reflexarc.traces.logs import HEAD_BYTES, head_of, whole
from reflexarc.traces.loose import amount, decoded, encoded, moment, number, text

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_numbers_come_as_text_floats_and_null() -> None:
    assert number("12") == 12
    assert number(12.5) == 12.5
    assert number(None) is None
    assert number(True) is None
    assert number("many") is None
    assert number(float("nan")) is None
    assert number(10**400) is None
    assert amount(-3) is None


@pytest.mark.parametrize(
    "value",
    [
        "2026-06-16T05:39:18Z",
        "2026-06-16T07:39:18.000000+02:00",
        "2026-06-16T05:39:18.000000000Z",
        "2026-06-16T05:39:18",
        1781588358,
        1781588358.0,
        1781588358000,
        "1781588358000000",
        1781588358000000000,
    ],
)
def test_a_time_is_told_in_many_forms(value: Any) -> None:
    assert moment(value) == 1781588358


@given(anything)
def test_no_value_raises(value: Any) -> None:
    number(value)
    moment(value)
    text(value)
    encoded(value)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_json_are_a_value_error(data: bytes) -> None:
    try:
        decoded(data)
    except ValueError:
        return
    json.loads(data.decode("utf-8-sig", "replace"))


def test_half_characters_are_marked_and_can_be_written_again() -> None:
    assert decoded(b'{"a\\ud800": ["\\ud83d\\ude00\\udfff"]}') == {"a�": ["😀�"]}
    assert encoded({"a": 10**30}) == b'{"a":%d}' % 10**30


def test_a_value_nested_too_deeply_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="deep"):
        decoded(b"[" * 200_000 + b"]" * 200_000)


def test_the_top_of_a_long_object_is_seen_without_its_end(tmp_path: Path) -> None:
    long = {"a": {"inner": 1}, "b": 'with "quotes" and {braces}: x', "c": "z" * HEAD_BYTES, "d": 1}
    path = tmp_path / "long.json"
    path.write_text(json.dumps(long, indent=1))
    assert head_of(path).top.keys == {"a", "b", "c"}


def test_the_first_element_of_a_long_list_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text(json.dumps([{"role": "system"}, {"content": "z" * HEAD_BYTES}], indent=1))
    assert head_of(path).top.element == {"role": "system"}


@given(st.binary(max_size=200))
def test_no_beginning_of_a_file_makes_the_peek_fail(data: bytes) -> None:
    from reflexarc.traces.logs import Head

    for opening in (b"", b"{", b"[", b'[{"'):
        _ = Head(Path("x"), opening + data, None, 0).top


def test_zstd_of_several_frames_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(compress(b'{"a": 1}\n{"b"') + compress(b": 2}\n"))
    assert [line.data for line in read_lines(path)] == [b'{"a": 1}', b'{"b": 2}']
    assert head_of(path).first == {"a": 1}
    assert whole(path, 100) == b'{"a": 1}\n{"b": 2}\n'


def test_zstd_that_breaks_off_gives_what_is_before(tmp_path: Path) -> None:
    packed = compress(b'{"a": 1}\n') + compress(b"x" * 1000)[:-3]
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(packed)
    lines = list(read_lines(path))
    assert lines[0].data == b'{"a": 1}'
    assert lines[-1].why


def test_damaged_zstd_is_told_and_raises_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.zst"
    packed = bytearray(compress(b'{"a": 1}\n' * 400))
    packed[-3] ^= 0xFF
    path.write_bytes(bytes(packed))
    head_of(path)
    assert any(line.why for line in read_lines(path))
    with pytest.raises(InputError):
        whole(path, 10_000)


@pytest.mark.parametrize("pack", [gzip.compress, compress])
def test_a_bomb_is_not_unpacked(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "bomb.json"
    path.write_bytes(pack(b" " * 5_000_000))
    assert len(head_of(path).data) <= HEAD_BYTES
    with pytest.raises(InputError, match="larger than 1000000 bytes"):
        whole(path, 1_000_000)
