"""OpenCode: each answer once from whichever store, tokens in their places, prompts as they were."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, times_in_order, totals
from tests.traces.formats.opencode_rows import (
    START_MS,
    answer,
    database,
    folders,
    said,
    session,
    tokens,
    tool,
    user,
)

Read = Callable[..., Logs]
TALK = [
    user("msg_1", "Look", 0),
    answer("msg_2", 10, tokens(input=100, output=20), said("Looking"), tool("c1", 400)),
    answer("msg_3", 1000, tokens(100, 30, input=5, output=7), said("Done", 1100)),
]
START_S = START_MS / 1000


def test_the_database_is_read_and_cached_tokens_are_beside_the_input(
    tmp_path: Path, read: Read
) -> None:
    used = tokens(642_944, input=638, output=10, total=643_592)
    path = database(tmp_path / "opencode.db", [session()], [answer("msg_1", 0, used)])
    logs = read(path)
    found = totals(logs.requests)
    assert (found["prompt"], found["cached"]) == (643_582, 642_944)
    assert logs.files[0].format == "opencode"
    assert logs.requests[0].provider == "anthropic"


def test_databases_folders_and_exports_tell_the_same(tmp_path: Path, read: Read) -> None:
    packed = database(tmp_path / "opencode-local.db", [session()], TALK)
    plain = folders(tmp_path / "plain", [session()], TALK)
    export = tmp_path / "export.json"
    messages = [{"info": info, "parts": parts} for info, parts in TALK]
    export.write_text(json.dumps({"info": session(), "messages": messages}))
    expected = {
        "requests": 2, "prompt": 235, "cached": 100, "written": 30, "output": 27, "reasoning": 0,
    }  # fmt: skip
    for path in (packed, plain, export):
        assert totals(read(path).requests) == expected
        prompts = [one.prompt for one in read(path).requests]
        assert all(isinstance(prompt, Prompt) for prompt in prompts)
        assert [len(prompt.pieces) for prompt in prompts if isinstance(prompt, Prompt)] == [1, 3]


def test_where_both_are_the_database_counts(tmp_path: Path, read: Read) -> None:
    folders(tmp_path, [session()], TALK)
    newer = [*TALK, answer("msg_4", 2000, tokens(input=50, output=1))]
    path = database(tmp_path / "opencode.db", [session()], newer)
    logs = read(tmp_path)
    assert totals(logs.requests)["prompt"] == 285
    assert {one.file for one in logs.requests} == {str(path)}
    assert sum(sum(report.duplicates.values()) for report in logs.files) == 3
    assert read(path, tmp_path / "storage").requests == read(tmp_path / "storage", path).requests


def test_what_opencode_is_still_writing_is_read_too(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path / "opencode.db", [session()], TALK)
    info, _ = answer("msg_9", 9000, tokens(input=50, output=1))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute(
            "INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)",
            ("msg_9", START_MS + 9000, START_MS + 9000, json.dumps(info)),
        )
        writer.commit()
        assert totals(read(path).requests)["prompt"] == 285
        assert not (tmp_path / "opencode.db-journal").exists()


@pytest.mark.parametrize(
    ("reasoning", "total", "output"), [(5, 125, 25), (5, 120, 20), (5, None, 25), (0, 120, 20)]
)
def test_reasoning_is_beside_the_output_unless_the_total_tells_otherwise(
    tmp_path: Path, read: Read, reasoning: int, total: int | None, output: int
) -> None:
    used = tokens(input=100, output=20, reasoning=reasoning, total=total)
    path = database(tmp_path / "opencode.db", [session()], [answer("msg_1", 0, used)])
    (one,) = read(path).requests
    assert one.counts.output.value == output


def test_an_answer_of_several_steps_is_several_requests_and_its_own_tokens_no_more(
    tmp_path: Path, read: Read
) -> None:
    first = {"type": "step-finish", "tokens": tokens(input=100, output=20), "cost": 0.25}
    last = {"type": "step-finish", "tokens": tokens(input=150, output=3), "cost": 0.5}
    parts = [said("a"), tool("c1", 400), first, said("b", 750), last]
    message = answer("msg_2", 10, tokens(input=150, output=3), *parts, cost=0.75)
    path = database(tmp_path / "opencode.db", [session()], [user("msg_1", "Go", 0), message])
    one, two = read(path).requests
    assert totals([one, two])["prompt"] == 250
    assert (one.cost_usd.value, two.cost_usd.value) == (0.25, 0.5)
    assert (two.began_s.value, two.began_s.kind, two.gap) == (START_S + 0.7, "estimated", True)
    assert isinstance(two.prompt, Prompt)
    assert [piece.role for piece in two.prompt.pieces] == ["user", "assistant", "tool"]
    assert [len(request.tools) for request in (one, two)] == [1, 0]


def test_one_step_and_its_message_are_one_request(tmp_path: Path, read: Read) -> None:
    finish = {"type": "step-finish", "tokens": tokens(input=100, output=20), "cost": 0.25}
    told = answer("msg_1", 0, tokens(input=100, output=20), said("a"), finish, cost=0.25)
    untold = answer("msg_2", 2000, tokens(input=0, output=0), said("b"), finish)
    logs = read(database(tmp_path / "opencode.db", [session()], [told, untold]))
    assert totals(logs.requests)["prompt"] == 200
    assert [one.cost_usd.value for one in logs.requests] == [0.25, 0.25]


def test_times_are_those_of_the_model_where_they_are_known(tmp_path: Path, read: Read) -> None:
    first, second = read(database(tmp_path / "opencode.db", [session()], TALK)).requests
    assert (first.began_s.value, first.began_s.kind) == (START_S + 0.01, "measured")
    assert first.first_s.value == START_S + 0.1
    # completed at 0.91 with its tool; the call began at 0.4
    assert (first.ended_s.value, first.ended_s.kind) == (START_S + 0.4, "estimated")
    assert (second.ended_s.value, second.ended_s.kind) == (START_S + 1.9, "measured")
    (called,) = first.tools
    assert (called.name, called.id) == ("read", "c1")
    assert (called.began_s.value, called.ended_s.value) == (START_S + 0.4, START_S + 0.7)


def test_child_sessions_are_agents_of_the_one_that_began_them(tmp_path: Path, read: Read) -> None:
    sessions = [session(), session("ses_2", "ses_1", 5), session("ses_3", "ses_2", 6)]
    messages = [
        answer("msg_1", 0, tokens(input=1, output=1)),
        answer("msg_2", 10, tokens(input=2, output=1), session="ses_2"),
        answer("msg_3", 20, tokens(input=4, output=1), session="ses_3"),
    ]
    logs = read(database(tmp_path / "opencode.db", sessions, messages))
    assert [(one.session, one.agent) for one in logs.requests] == [
        ("ses_1", ""),
        ("ses_1", "ses_2"),
        ("ses_1", "ses_3"),
    ]


def test_sessions_that_are_each_others_parents_end(tmp_path: Path, read: Read) -> None:
    sessions = [session("ses_1", "ses_2"), session("ses_2", "ses_1")]
    path = database(tmp_path / "opencode.db", sessions, [answer("m", 0, tokens(input=1, output=1))])
    assert totals(read(path).requests)["requests"] == 1


def test_what_a_fork_repeats_counts_once(tmp_path: Path, read: Read) -> None:
    copied = [
        ({**info, "id": f"copy_{info['id']}", "sessionID": "ses_2"}, parts) for info, parts in TALK
    ]
    own = answer("msg_9", 5000, tokens(130, input=9, output=2), session="ses_2")
    sessions = [session("ses_2", at=4000), session()]
    logs = read(database(tmp_path / "opencode.db", sessions, [*copied, own, *TALK]))
    assert totals(logs.requests)["requests"] == 3
    assert [(one.session, one.starts) for one in logs.requests] == [
        ("ses_1", "session"),
        ("ses_1", ""),
        ("ses_2", "branch"),
    ]
    last = logs.requests[2].prompt
    assert isinstance(last, Prompt)
    assert len(last.pieces) == 4
    assert sum(logs.files[0].duplicates.values()) == 2


def test_compaction_is_a_request_and_begins_anew(tmp_path: Path, read: Read) -> None:
    asked = user("msg_4", "", 3000, {"type": "compaction", "auto": True})
    summary = answer(
        "msg_5", 3010, tokens(input=300, output=40), said("So far"), summary=True, parentID="msg_4"
    )
    after = answer("msg_6", 5000, tokens(input=60, output=5), said("On"))
    logs = read(database(tmp_path / "opencode.db", [session()], [*TALK, asked, summary, after]))
    assert totals(logs.requests)["prompt"] == 235 + 300 + 60
    assert [(one.agent, one.starts) for one in logs.requests] == [
        ("", "session"),
        ("", ""),
        ("compaction", "session"),
        ("", "compaction"),
    ]
    last = logs.requests[3].prompt
    assert isinstance(last, Prompt)
    assert [piece.role for piece in last.pieces] == ["user", "assistant"]
    assert b"So far" in last.pieces[1].raw


def test_a_result_that_was_cleared_later_is_sent_whole_before_and_cleared_after(
    tmp_path: Path, read: Read
) -> None:
    called = tool("c1", 400, "long", compacted=START_MS + 2000)
    messages = [
        user("msg_1", "Look", 0),
        answer("msg_2", 10, tokens(input=1, output=1), called),
        answer("msg_3", 1000, tokens(input=1, output=1)),
        answer("msg_4", 3000, tokens(input=1, output=1)),
    ]
    _, before, after = [
        one.prompt for one in read(database(tmp_path / "o.db", [session()], messages)).requests
    ]
    assert isinstance(before, Prompt)
    assert isinstance(after, Prompt)
    assert b"long" in before.pieces[-1].raw
    assert b"cleared" in after.pieces[-1].raw
    assert before.pieces[0] is after.pieces[0]


def test_errors_and_retries_are_no_requests(tmp_path: Path, read: Read) -> None:
    zero = tokens(input=0, output=0)
    retry = {"type": "retry", "attempt": 1, "time": {"created": START_MS + 50}}
    messages = [
        user("msg_1", "Look", 0),
        answer("msg_2", 10, zero, error={"name": "APIError"}),
        answer("msg_3", 1000, tokens(input=7, output=1), retry, said("ok")),
        answer("msg_4", 2000, zero, time={"created": START_MS + 2000}, finish=None),
    ]
    logs = read(database(tmp_path / "opencode.db", [session()], messages))
    assert totals(logs.requests)["requests"] == 1
    assert logs.files[0].errors == 3
    assert logs.files[0].requests == 1
    assert [one.starts for one in logs.requests if not one.failed] == ["session"]


def test_an_answer_without_usage_is_a_request_of_which_no_tokens_are_known(
    tmp_path: Path, read: Read
) -> None:
    path = database(
        tmp_path / "opencode.db", [session()], [answer("msg_1", 0, tokens(input=0, output=0))]
    )
    (one,) = read(path).requests
    assert not one.failed
    assert one.counts.prompt.kind == one.counts.output.kind == "absent"


def test_rows_that_are_no_json_make_totals_at_least(tmp_path: Path, read: Read) -> None:
    path = database(tmp_path / "opencode.db", [session()], TALK)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"role": "assistant"', b'{"role", "assistant"', 1))
    logs = read(path)
    assert totals(logs.requests)["requests"] == 1
    assert logs.files[0].at_least


@given(st.integers(min_value=0))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    whole = tmp_path / "whole" / "opencode.db"
    if not whole.exists():
        whole.parent.mkdir()
        database(whole, [session(), session("ses_2", "ses_1")], TALK)
    path = tmp_path / "opencode.db"
    path.write_bytes(damaged(whole.read_bytes(), seed))
    times_in_order(survives([path]))


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=7))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_a_file_raises(tmp_path: Path, seed: int, which: int) -> None:
    root = folders(tmp_path, [session()], TALK)
    files: list[Any] = sorted((root / "storage").rglob("*.json"))
    hurt = files[which % len(files)]
    hurt.write_bytes(damaged(hurt.read_bytes(), seed))
    times_in_order(survives([root]))
