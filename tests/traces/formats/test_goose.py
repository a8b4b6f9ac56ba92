"""Goose: a request for each row of usage; sums of a session where there are none, never twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.goose_rows import (
    START_S,
    call,
    database,
    export,
    result,
    row,
    said,
    session,
)
from tests.traces.formats.measures import damaged, survives, times_in_order, totals

Read = Callable[..., Logs]
TALK = [
    said("user", 0, "List them"),
    said("assistant", 5, "Listing"),
    said("assistant", 5, call("c1")),
    said("user", 8, result("c1")),
    said("assistant", 12, "a.py it is"),
]
ROWS = [row(5, 1000, 20, 700, 200), row(12, 1100, 10, 1000)]
USED: dict[str, Any] = {"input_tokens": 2100, "output_tokens": 30, "total_tokens": 2130}
CACHED: dict[str, Any] = {"cache_read_tokens": 1700, "cache_write_tokens": 200}
NESTED = {
    "input_tokens": 124_611,
    "output_tokens": 394,
    "total_tokens": 125_005,
    "cache_read_input_tokens": 112_820,
    "cache_write_input_tokens": 11_777,
}


def test_an_export_with_nested_sums_is_not_all_zero(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "goose.json"
    told = export(TALK[:2], usage=NESTED, accumulated_usage=NESTED, accumulated_cost=None)
    path.write_text(json.dumps(told, indent=2))
    logs = read(path)
    assert totals(logs.requests) == {
        "requests": 1, "prompt": 124_611, "cached": 112_820, "written": 11_777, "output": 394,
        "reasoning": 0,
    }  # fmt: skip
    (one,) = logs.requests
    assert one.counts.prompt.kind == "measured"
    assert (one.provider, one.model) == ("anthropic", "claude-sonnet-4-5")


def test_a_row_of_usage_is_a_request_and_sums_add_nothing_to_it(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path / "sessions.db", [session(**USED, **CACHED)], TALK, ROWS)
    logs = read(path)
    assert totals(logs.requests) == {
        "requests": 2, "prompt": 2100, "cached": 1700, "written": 200, "output": 30, "reasoning": 0,
    }  # fmt: skip
    assert [one.starts for one in logs.requests] == ["session", ""]
    assert logs.files[0].format == "goose"


def test_cached_tokens_that_are_more_than_the_input_stand_beside_it(
    tmp_path: Path, read: Read
) -> None:
    old = row(5, 10, 20, 700, 200, total_tokens=930)
    path = database(tmp_path / "sessions.db", [session()], TALK[:2], [old])
    assert totals(read(path).requests)["prompt"] == 910


def test_answers_have_their_rows_prompts_and_calls(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path / "sessions.db", [session(**USED, **CACHED)], TALK, ROWS)
    first, second = read(path).requests
    assert isinstance(first.prompt, Prompt)
    assert isinstance(second.prompt, Prompt)
    assert [piece.role for piece in second.prompt.pieces] == [
        "user",
        "assistant",
        "assistant",
        "user",
    ]
    assert second.prompt.pieces[0] is first.prompt.pieces[0]
    (called,) = first.tools
    assert (called.name, called.ended_s.value, called.failed) == (
        "developer__shell",
        START_S + 8,
        False,
    )
    assert (second.began_s.value, second.began_s.kind, second.gap) == (
        START_S + 8,
        "estimated",
        True,
    )
    assert second.output_text == "a.py it is"


def test_rows_whose_times_fit_no_answer_have_none(tmp_path: Path, read: Read) -> None:
    late = [row(5, 1000, 20), row(3, 1100, 10)]
    path = database(tmp_path / "sessions.db", [session()], TALK, late)
    logs = read(path)
    assert totals(logs.requests)["prompt"] == 2100
    assert [one.prompt for one in logs.requests] == [None, None]


def test_sums_are_shared_out_over_answers_where_there_are_no_rows(
    tmp_path: Path, read: Read
) -> None:
    path = database(tmp_path / "sessions.db", [session(**USED, **CACHED, cost=0.5)], TALK)
    logs = read(path)
    found = totals(logs.requests)
    assert found == {
        "requests": 2, "prompt": 2100, "cached": 1700, "written": 200, "output": 30, "reasoning": 0,
    }  # fmt: skip
    assert {one.counts.prompt.kind for one in logs.requests} == {"estimated"}
    assert sum(one.cost_usd.value or 0 for one in logs.requests) == pytest.approx(0.5)
    for one in logs.requests:
        cached = (one.counts.cache_read.value or 0) + (one.counts.cache_write.value or 0)
        assert cached <= (one.counts.prompt.value or 0)
    assert any("its share by text" in note for note in logs.files[0].notes)


def test_what_was_used_before_rows_were_kept_belongs_to_the_answers_before(
    tmp_path: Path, read: Read
) -> None:
    carried = row(12, 1000, 20, 700, 200, model=None, cost_source="carried_forward")
    path = database(
        tmp_path / "a" / "sessions.db", [session(**USED, **CACHED)], TALK, [carried, ROWS[1]]
    )
    untold = database(tmp_path / "b" / "sessions.db", [session(**USED, **CACHED)], TALK, [ROWS[1]])
    for one in (path, untold):
        logs = read(one)
        assert totals(logs.requests)["prompt"] == 2100
        assert [made.counts.prompt.value for made in logs.requests] == [1000, 1100]
        assert [made.prompt is not None for made in logs.requests] == [True, True]


def test_a_session_without_messages_is_all_its_requests_together(
    tmp_path: Path, read: Read
) -> None:
    (one,) = read(database(tmp_path / "sessions.db", [session(**USED)], [])).requests
    assert one.counts.prompt.value == 2100
    assert "how many there were is not in this log" in one.notes[0]


def test_a_copied_session_pays_for_its_own_answers_only(tmp_path: Path, read: Read) -> None:
    own = {"session_id": "20260801_2"}
    copied = [{**one, **own} for one in TALK]
    more = [said("user", 100, "More"), said("assistant", 105, "Yes")]
    copied += [{**one, **own} for one in more]
    path = database(
        tmp_path / "sessions.db",
        [session(**USED), session("20260801_2", at=60, input_tokens=1300, output_tokens=5)],
        [*TALK, *copied],
        [*ROWS, {**row(105, 1300, 5), **own}],
    )
    logs = read(path)
    assert totals(logs.requests)["prompt"] == 3400
    assert [(one.session, one.starts) for one in logs.requests] == [
        ("20260801_1", "session"),
        ("20260801_1", ""),
        ("20260801_2", "branch"),
    ]


def test_compaction_is_a_request_and_begins_anew(tmp_path: Path, read: Read) -> None:
    hidden = [{**one, "metadata_json": '{"agentVisible": false}'} for one in TALK]
    summary = said("assistant", 20, "So far", userVisible=False)
    after = [said("user", 30, "On"), said("assistant", 35, "Sure")]
    rows = [*ROWS, row(20, 900, 90, is_compaction=1), row(35, 300, 5)]
    logs = read(database(tmp_path / "sessions.db", [session()], [*hidden, summary, *after], rows))
    assert totals(logs.requests)["prompt"] == 3300
    assert [(one.agent, one.starts) for one in logs.requests] == [
        ("", "session"),
        ("", ""),
        ("compaction", "session"),
        ("", "compaction"),
    ]
    assert {one.prompt for one in logs.requests} == {None}


def test_children_are_agents_of_the_session_that_began_them(tmp_path: Path, read: Read) -> None:
    child = {"session_id": "20260801_2"}
    path = database(
        tmp_path / "sessions.db",
        [session(), session("20260801_2", "20260801_1", at=60)],
        TALK,
        [*ROWS, {**row(70, 50, 5), **child}],
    )
    last = read(path).requests[-1]
    assert (last.session, last.agent) == ("20260801_1", "20260801_2")


def test_an_export_and_a_backup_of_what_the_database_has_count_once(
    tmp_path: Path, read: Read
) -> None:
    used = session(**USED, **CACHED)
    live = database(tmp_path / "sessions.db", [used], TALK, ROWS)
    database(tmp_path / "backups" / "old.db", [used], TALK[:3], ROWS[:1])
    told = export(TALK, accumulated_usage={"input_tokens": 2100, "output_tokens": 30})
    (tmp_path / "a.json").write_text(json.dumps(told))
    logs = read(tmp_path)
    assert totals(logs.requests)["prompt"] == 2100
    assert {one.file for one in logs.requests} == {str(live)}
    assert sum(sum(one.duplicates.values()) for one in logs.files) == 2


def test_sessions_of_two_machines_may_have_one_id(tmp_path: Path, read: Read) -> None:
    database(tmp_path / "a.db", [session(**USED)], TALK, ROWS)
    database(tmp_path / "b.db", [session(at=3600, **USED)], TALK, ROWS)
    logs = read(tmp_path)
    assert totals(logs.requests)["prompt"] == 4200
    assert len({one.session for one in logs.requests}) == 2
    assert len({one.id for one in logs.requests}) == 4


def test_lines_of_older_versions_and_flat_exports_are_read(tmp_path: Path, read: Read) -> None:
    old = tmp_path / "20250601_1.jsonl"
    head = {"working_dir": "/x", "description": "d", "message_count": 4, "schedule_id": None}
    head |= {f"accumulated_{name}": one for name, one in USED.items()}
    lines = [head] + [
        {
            "role": one["role"],
            "created": one["created_timestamp"],
            "content": json.loads(one["content_json"]),
        }
        for one in TALK
    ]
    old.write_text("".join(json.dumps(line) + "\n" for line in lines))
    logs = read(old)
    assert totals(logs.requests)["prompt"] == 2100
    assert len(logs.requests) == 2
    flat = tmp_path / "flat.json"
    sums = {f"accumulated_{name}": one for name, one in USED.items()}
    flat.write_text(json.dumps(export(TALK, **sums)))
    assert totals(read(flat).requests)["prompt"] == 2100


def test_a_session_of_which_no_tokens_are_told_is_no_request(tmp_path: Path, read: Read) -> None:
    logs = read(database(tmp_path / "sessions.db", [session()], TALK, []))
    assert logs.requests == []
    assert sum(logs.files[0].skipped.values()) == 1


def test_the_order_of_files_changes_nothing(tmp_path: Path, read: Read) -> None:
    first = database(tmp_path / "a.db", [session(**USED)], TALK, ROWS)
    second = database(tmp_path / "b.db", [session(**USED)], TALK, ROWS)
    assert read(first, second).requests == read(second, first).requests
    assert totals(read(first, second).requests)["prompt"] == 2100


@given(st.integers(min_value=0))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_a_database_raises(tmp_path: Path, seed: int) -> None:
    whole = tmp_path / "whole" / "sessions.db"
    if not whole.exists():
        database(whole, [session(**USED, **CACHED)], TALK, ROWS)
    path = tmp_path / "sessions.db"
    path.write_bytes(damaged(whole.read_bytes(), seed))
    times_in_order(survives([path]))


@given(st.integers(min_value=0))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_an_export_raises(tmp_path: Path, seed: int) -> None:
    told: Any = export(TALK, usage=NESTED, accumulated_usage=NESTED, accumulated_cost=0.25)
    path = tmp_path / "goose.json"
    path.write_bytes(damaged(json.dumps(told).encode(), seed))
    times_in_order(survives([path]))
