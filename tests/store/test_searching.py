"""Strings are found wherever they stand in a file, and only where they do."""

import random
from pathlib import Path

import pytest

from reflexarc.store import searching
from reflexarc.store.searching import standing_in


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
