"""Strings are found wherever they stand in a file, and only where they do."""

import random
from pathlib import Path

import pytest

from reflexarc.store import searching
from reflexarc.store.searching import standing_as_word, standing_in


@pytest.mark.parametrize("at_once", [8, 9, 16, 1 << 24])
def test_the_same_is_found_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(searching, "_AT_ONCE", at_once)
    draw = random.Random(at_once)
    files = [tmp_path / name for name in ("a", "b", "empty", "absent")]
    data = [bytes(draw.choices(b"ab", k=size)) for size in (400, 37)]
    for path, content in zip(files, [*data, b""], strict=False):
        path.write_bytes(content)
    wanted = {bytes(draw.choices(b"ab", k=draw.randrange(1, 20))) for _ in range(600)}
    expected = {one for one in wanted if any(one in content for content in data)}
    assert expected
    assert expected < wanted
    assert standing_in(files, wanted) == expected


def test_strings_at_both_ends_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"beginning ... the end")
    assert standing_in([path], [b"beginning", b"the end", b"... the end", b"end of it"]) == {
        b"beginning", b"the end", b"... the end",
    }  # fmt: skip


@pytest.mark.parametrize("at_once", [4, 5, 7, 8, 1 << 24])
@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b'{"pin": "1535"}', True),
        (b'{"pin": 1535, "x": 1}', True),
        (b"1535", True),
        (b"\x001535\x01", True),
        (b'say \\"1535\\" twice', True),
        (b"a\\n1535 b", True),
        (b"...................1535", True),
        (b"1535...................", True),
        (b"86e90/v1535d88bb", False),
        (b"8e3df0a21a4929401535f078", False),
        (b"x_1535", False),
        (b"1535_", False),
        (b"15351535", False),
        (b"153", False),
        (b"", False),
    ],
)
def test_a_word_is_told_from_a_part_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, content: bytes, is_one: bool
) -> None:
    monkeypatch.setattr(searching, "_AT_ONCE", at_once)
    path = tmp_path / "a"
    path.write_bytes(content)
    assert standing_as_word([tmp_path / "absent", path], b"1535") is is_one
