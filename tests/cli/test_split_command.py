"""`reflexarc split` on files: what it writes, what it says, how it exits."""

from pathlib import Path

import pytest

from reflexarc.traces import read_recording
from tests.cli.conftest import Run
from tests.traces.conftest import line


def sessions(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    return path


def test_it_writes_both_sides_with_lines_unchanged(run: Run, tmp_path: Path) -> None:
    lines = [line(f"t{n % 9}", id=f"s{n}", extra={"b": 1, "a": 2}) for n in range(27)]
    source = sessions(tmp_path / "all.jsonl", *lines)
    code, told, _ = run("split", source, "-o", tmp_path / "out")
    assert code == 0
    assert "18 sessions of 6 tasks" in told
    assert "9 sessions of 3 tasks" in told
    train = read_recording([tmp_path / "out" / "train.jsonl.gz"])
    test = read_recording([tmp_path / "out" / "test.jsonl.gz"])
    assert {s.task for s in train.sessions}.isdisjoint({s.task for s in test.sessions})
    assert sorted(train.raw + test.raw) == sorted(text.encode() for text in lines)


def test_the_order_of_the_files_does_not_change_a_byte(run: Run, tmp_path: Path) -> None:
    one = sessions(tmp_path / "1.jsonl", *(line(f"a{n}", id=f"a{n}") for n in range(9)))
    two = sessions(tmp_path / "2.jsonl", *(line(f"b{n}", id=f"b{n}") for n in range(9)))
    assert run("split", one, two, "-o", tmp_path / "x")[0] == 0
    assert run("split", two, one, "-o", tmp_path / "y")[0] == 0
    for name in ("train.jsonl.gz", "test.jsonl.gz"):
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


def test_bad_lines_are_told_and_the_exit_status_says_so(run: Run, tmp_path: Path) -> None:
    source = sessions(tmp_path / "s.jsonl", line("a"), "{oops", line("b"))
    code, told, complaints = run("split", source, "-o", tmp_path / "out")
    assert code == 3
    assert "1 sessions of 1 tasks" in told
    assert f"{source}:2: not JSON" in complaints
    assert "1 bad line was left out" in complaints


def test_sessions_without_tasks_are_put_together_and_it_says_so(run: Run, tmp_path: Path) -> None:
    source = sessions(
        tmp_path / "s.jsonl",
        *(line(user=f"Where is order {n % 6}?", id=f"s{n}") for n in range(18)),
    )
    code, told, _ = run("split", source, "-o", tmp_path / "out")
    assert code == 0
    assert "18 of 18 sessions name no task: they were put into 6 tasks" in told


@pytest.mark.parametrize(
    ("lines", "options", "why"),
    [
        ([line("a")], [], "nothing to split by task"),
        ([], [], "no session in"),
        ([line("a"), line("b")], ["--by", "family"], "names no family"),
    ],
)
def test_what_cannot_be_split_is_said_in_one_line(
    run: Run, tmp_path: Path, lines: list[str], options: list[str], why: str
) -> None:
    source = sessions(tmp_path / "s.jsonl", *lines)
    code, _, complaints = run("split", source, "-o", tmp_path / "out", *options)
    assert code == 1
    assert why in complaints
    assert "Traceback" not in complaints


def test_wrong_usage_is_refused(run: Run, tmp_path: Path) -> None:
    assert run("split", "x", "--by", "moon", "-o", tmp_path)[0] == 2
    assert run("split", "x", "--unknown")[0] == 2
    assert run("split")[0] == 2
    for share in ("2", "0", "-1", "nan", "half"):
        code, _, complaints = run("split", "x", "-o", tmp_path, "--test-share", share)
        assert code == 2
        assert "--test-share" in complaints
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        code, _, complaints = run("split", "absent.jsonl", "-o", folder)
        assert code == 2
        assert "is no folder" in complaints
    code, _, complaints = run("split", tmp_path / "absent.jsonl", "-o", tmp_path)
    assert code == 1
    assert "absent.jsonl: cannot be read" in complaints
