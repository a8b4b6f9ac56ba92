"""Codex rollouts that repeat one another: each request once, whichever file tells of it."""

from pathlib import Path

import pytest

from tests.traces.formats.test_codex import Rollout, read, total, usage


def told(id: str = "t1", requests: int = 2) -> Rollout:
    written = Rollout(id)
    written.turn(f"{id}-turn")
    for number in range(requests):
        written.count(usage(100 * (number + 1)))
    return written


@pytest.mark.parametrize("fuller", ["a", "b"])
def test_of_two_copies_the_fuller_counts_whichever_comes_first(tmp_path: Path, fuller: str) -> None:
    for folder in ("a", "b"):
        told(requests=3 if folder == fuller else 1).write(tmp_path / folder)

    logs = read(tmp_path)

    assert total(logs.requests) == 600
    assert [one.duplicates for one in logs.files if Path(one.file).parent.name != fuller] == [
        {"another copy of this rollout": 1}
    ]


def test_counts_without_totals_are_requests_where_the_model_spoke(tmp_path: Path) -> None:
    written = Rollout()
    written.turn()
    for _ in range(2):
        written.item(type="message", role="user", content=[])
        written.item(type="message", role="assistant", content=[])
        for _ in range(2):
            written.add("event_msg", type="token_count", info={"last_token_usage": usage(100)})

    assert total(read(written.write(tmp_path)).requests) == 200


def test_a_fork_without_last_counts_goes_on_from_its_parents_totals(tmp_path: Path) -> None:
    parent = told("p")
    child = Rollout("c", forked_from_id="p")
    child.turn("own")
    child.total = dict(parent.total)
    child.total["input_tokens"] += 50
    child.count(None)
    parent.write(tmp_path)
    child.write(tmp_path)

    assert total(read(tmp_path).requests) == 350


def test_a_forks_fork_counts_once_what_it_repeats_where_the_one_between_is_gone(
    tmp_path: Path,
) -> None:
    first = told("p")
    last = Rollout("g", forked_from_id="c")
    last.add("session_meta", id="c", forked_from_id="p")
    last.copied_from(first, first.lines)
    last.turn("own")
    last.count(usage(40))
    first.write(tmp_path)
    last.write(tmp_path)

    logs = read(tmp_path)

    assert total(logs.requests) == 340
    assert any("may include copied history" in note for one in logs.files for note in one.notes)


def test_a_record_of_another_thread_counts_in_its_own_file_and_hides_no_counts(
    tmp_path: Path,
) -> None:
    written = told()
    written.record("r9", usage(1_000), thread="sub")
    written.write(tmp_path)

    logs = read(tmp_path)

    assert total(logs.requests) == 300
    assert logs.files[0].skipped == {"records of another thread, which count in its own file": 1}

    own = Rollout("sub")
    own.turn()
    own.record("r9", usage(1_000))
    own.write(tmp_path)

    assert total(read(tmp_path).requests) == 1_300
