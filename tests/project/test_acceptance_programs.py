"""An acceptance run is only passed by lines that were measured and hold."""

import random
from pathlib import Path

import pytest
from acceptance import lines as acceptance_lines
from acceptance.lines import Lines
from acceptance.quality import shuffle
from acceptance.report import numbers, render
from acceptance.tables import Table, write_table

from reflexarc.steps import Message, Session


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(acceptance_lines, "RESULTS", tmp_path)
    return tmp_path


def test_lines_that_hold_pass_and_one_that_is_short_does_not(results: Path) -> None:
    run = Lines("spine", cores=2)
    run.at_least("5.1", "agreement", 0.64, 0.63)
    run.at_most("2.9", "p50", 0.5, 1.0, " ms")
    assert run.finish() == 0
    run.at_least("5.2", "reads", 0.7699, 0.77)
    assert run.finish() == 1
    page = render(results)
    assert "| 5.1 | agreement | >= 0.63 | 0.64 | yes |" in page
    assert "| 5.2 | reads | >= 0.77 | 0.7699 | **no** |" in page
    assert "short: 5.2" in page
    headlines = numbers(results)
    assert "| agreement | >= 0.63 | 0.64 |" in headlines
    assert "| reads | >= 0.77 | 0.7699 (short) |" in headlines


def test_a_table_of_figures_stands_on_the_page_as_one(results: Path) -> None:
    table = Table("engine", "On one thread.", ["setting", "memory"], [["f16", "600"]])
    write_table("engine", table, results)
    page = render(results)
    assert "## engine\n\nOn one thread.\n" in page
    assert "| setting | memory |\n| --- | --- |\n| f16 | 600 |" in page


def test_parts_of_one_run_share_no_numbers(results: Path) -> None:
    run = Lines("reflex", cores=2)
    run.at_least("3.1", "x", 1, 1)
    with run.within("3"):
        run.at_least("1.1", "y", 1, 1)
    run.at_least("4.1", "z", 1, 1)
    assert run.finish() == 0
    page = render(results)
    assert all(row in page for row in ("| 3.1 | x |", "| 3.1.1 | y |", "| 4.1 | z |"))


def test_a_part_that_cannot_be_measured_is_short_and_the_next_still_runs(results: Path) -> None:
    run = Lines("spine", cores=2)

    def fails() -> None:
        raise RuntimeError("no such thing")

    run.part("4", "The gateway", fails)
    run.part("5", "Latency", lambda: run.at_most("5.1", "added", 0.1, 0.4))
    assert run.finish() == 1
    page = render(results)
    assert "RuntimeError: no such thing" in page
    assert "| 5.1 | added | <= 0.4 | 0.1 | yes |" in page


def test_a_run_without_a_line_is_not_passed(results: Path) -> None:
    run = Lines("spine", cores=2)
    run.skip("quality")
    assert run.finish() == 1
    assert "Left out of this run: quality." in render(results)


def test_a_part_that_is_missing_fails_the_run_unless_an_option_left_it_out(results: Path) -> None:
    missing = Lines("spine", cores=2)
    missing.at_least("2.1", "x", 1, 1)
    missing.skip("try (no recordings)")
    assert missing.finish() == 1
    asked = Lines("spine", cores=2)
    asked.at_least("2.1", "x", 1, 1)
    asked.skip("clone", asked=True)
    assert asked.finish() == 0
    for page in (render(results), numbers(results)):
        assert "Left out of this run: clone." in page


def test_a_run_with_parts_left_out_is_never_written_over_a_whole_one(results: Path) -> None:
    def run(left_out: str, measured: float) -> None:
        lines = Lines("spine", cores=2)
        lines.at_least("2.1", "x", measured, 0)
        if left_out:
            lines.skip(left_out, asked=True)
        lines.finish()

    run("clone", 1)
    run("clone", 2)
    assert "| 2.1 | x | >= 0 | 2 | yes |" in render(results)
    run("", 3)
    run("clone", 4)
    assert "| 2.1 | x | >= 0 | 3 | yes |" in render(results)
    run("", 5)
    assert "| 2.1 | x | >= 0 | 5 | yes |" in render(results)


def test_a_run_that_is_not_to_be_written_is_not(results: Path) -> None:
    run = Lines("spine", cores=2)
    run.at_least("1", "x", 1, 1)
    assert run.finish(write=False) == 0
    assert list(results.iterdir()) == []


def test_other_figures_are_shown_as_they_are(results: Path) -> None:
    (results / "latency.json").write_text('{"sizes": {"small": {"p50": 0.123456}}, "n": [1, 2]}')
    page = render(results)
    assert "| sizes.small.p50 | 0.1235 |" in page
    assert "| n[1] | 2 |" in page


def test_shuffling_moves_contents_between_sessions_and_loses_none() -> None:
    draw = random.Random(1)
    sessions = [
        Session(
            f"s{n}", f"t{n}", (),
            (Message("user", f"u{n}"), Message("tool", f"r{draw.random()}"), Message("assistant")),
        )
        for n in range(20)
    ]  # fmt: skip
    shuffled = shuffle(sessions, ("tool",), seed=3)

    def contents(given: list[Session], role: str) -> list[str]:
        return [m.content for s in given for m in s.messages if m.role == role]

    assert contents(shuffled, "user") == contents(sessions, "user")
    assert contents(shuffled, "tool") != contents(sessions, "tool")
    assert sorted(contents(shuffled, "tool")) == sorted(contents(sessions, "tool"))
