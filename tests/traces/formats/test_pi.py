"""Pi sessions: a tree of which every answer was paid, whichever branch was kept."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, times_in_order, totals

Read = Callable[..., Logs]
START_MS = 1_785_578_400_000  # 2026-08-01T10:00:00Z


def at(ms: int) -> str:
    return f"2026-08-01T10:00:{ms // 1000:02}.{ms % 1000:03}Z"


def header(id: str = "s1", ms: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": id, "timestamp": at(ms), "cwd": "/x", **more}


def entry(id: str, parent: str | None, ms: int, **message: Any) -> dict[str, Any]:
    own = {"timestamp": START_MS + ms, **message}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": at(ms), "message": own}


def user(id: str, parent: str | None, said: str, ms: int = 0) -> dict[str, Any]:
    return entry(id, parent, ms, role="user", content=[{"type": "text", "text": said}])


def usage(input: int, output: int, read: int = 0, write: int = 0, **more: Any) -> dict[str, Any]:
    total = input + output + read + write
    used = {"input": input, "output": output, "cacheRead": read, "cacheWrite": write}
    return {**used, "totalTokens": total, "cost": {"total": 0}, **more}


def answer(
    id: str, parent: str | None, ms: int, used: Any, said: str = "ok", *calls: str, **more: Any
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": said}]
    content += [{"type": "toolCall", "id": one, "name": "bash", "arguments": {}} for one in calls]
    message = {
        "role": "assistant",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "stopReason": "stop",
        "usage": used,
        "content": content,
        "timestamp": START_MS + ms - 400,
        **more,
    }
    return entry(id, parent, ms, **message)


def result(id: str, parent: str, ms: int, call: str, *, failed: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": "out"}]
    return entry(
        id, parent, ms, role="toolResult", toolCallId=call, content=content, isError=failed
    )


def write(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


TALK = [
    user("a", None, "Go"),
    answer("b", "a", 1000, usage(10, 5, 200, 30), "Running", "c1", "c2"),
    result("c", "b", 3000, "c1"),
    result("d", "c", 3500, "c2", failed=True),
    answer("e", "d", 5000, usage(20, 7, 240), "Done"),
]


def test_cached_tokens_are_beside_the_input(tmp_path: Path, read: Read) -> None:
    logs = read(write(tmp_path / "s.jsonl", header(), *TALK))
    assert logs.files[0].format == "pi"
    assert totals(logs.requests) == {
        "requests": 2, "prompt": 500, "cached": 440, "written": 30, "output": 12, "reasoning": 0,
    }  # fmt: skip
    assert {one.provider for one in logs.requests} == {"anthropic"}


@pytest.mark.parametrize(("total", "output"), [(115, 15), (118, 18), (None, 15)])
def test_reasoning_is_inside_the_output_unless_the_total_tells_otherwise(
    tmp_path: Path, read: Read, total: int | None, output: int
) -> None:
    used = {"input": 100, "output": 15, "reasoning": 3, "totalTokens": total}
    (one,) = read(write(tmp_path / "s.jsonl", header(), answer("b", None, 900, used))).requests
    assert one.counts.output.value == output


def test_a_title_may_stand_before_the_header(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path / "s.jsonl", {"type": "title", "title": "T", "pad": " "}, header(), *TALK)
    assert totals(read(path).requests)["requests"] == 2


def test_caches_told_in_older_and_other_forms_are_read(tmp_path: Path, read: Read) -> None:
    nested = {"input": 10, "output": 1, "cache": {"read": 5, "write": 2}}
    flat = {"input": 10, "output": 1, "cacheRead": 5, "cacheCreation": 2}
    path = write(
        tmp_path / "s.jsonl", header(), answer("a", None, 900, nested), answer("b", "a", 1900, flat)
    )
    assert [one.counts.prompt.value for one in read(path).requests] == [17, 17]


def test_times_of_answers_and_their_calls(tmp_path: Path, read: Read) -> None:
    first, second = read(write(tmp_path / "s.jsonl", header(), *TALK)).requests
    start = START_MS / 1000
    assert (first.began_s.value, first.began_s.kind) == (start + 0.6, "measured")
    assert first.ended_s.value == start + 1
    assert not first.gap
    assert [tool.ended_s.value for tool in first.tools] == [start + 3, start + 3.5]
    assert [tool.failed for tool in first.tools] == [False, True]
    assert second.tools == ()


def test_an_answer_with_its_end_twice_has_no_start_of_its_own(tmp_path: Path, read: Read) -> None:
    late = answer("e", "d", 5000, usage(20, 7), timestamp=START_MS + 5000)
    _, second = read(write(tmp_path / "s.jsonl", header(), *TALK[:4], late)).requests
    assert (second.began_s.value, second.began_s.kind) == (START_MS / 1000 + 3.5, "estimated")
    assert second.gap


def test_prompts_are_the_way_to_the_root_in_shared_pieces(tmp_path: Path, read: Read) -> None:
    first, second = read(write(tmp_path / "s.jsonl", header(), *TALK)).requests
    assert isinstance(first.prompt, Prompt)
    assert isinstance(second.prompt, Prompt)
    assert [piece.role for piece in second.prompt.pieces] == ["user", "assistant", "tool", "tool"]
    assert second.prompt.pieces[0] is first.prompt.pieces[0]
    assert not first.prompt.complete


def test_all_branches_were_paid_and_a_new_one_begins_anew(tmp_path: Path, read: Read) -> None:
    other = [user("f", "a", "Other", 6000), answer("g", "f", 7000, usage(15, 1), "Else")]
    back = [user("h", "e", "Again", 8000), answer("i", "h", 9000, usage(40, 1), "Back")]
    logs = read(write(tmp_path / "s.jsonl", header(), *TALK, *other, *back))
    assert totals(logs.requests)["prompt"] == 500 + 15 + 40
    assert [one.starts for one in logs.requests] == ["session", "", "rewind", "rewind"]
    third = logs.requests[2].prompt
    assert isinstance(third, Prompt)
    assert [json.loads(piece.raw)["content"][0]["text"] for piece in third.pieces] == [
        "Go",
        "Other",
    ]


def test_compaction_keeps_what_it_says_and_begins_anew(tmp_path: Path, read: Read) -> None:
    compaction = {
        "type": "compaction", "id": "k", "parentId": "e", "timestamp": at(6000),
        "summary": "So far", "firstKeptEntryId": "d", "tokensBefore": 9,
    }  # fmt: skip
    after = [user("l", "k", "On", 7000), answer("m", "l", 8000, usage(30, 1))]
    later = [user("n", "m", "And", 9000), answer("o", "n", 10_000, usage(35, 1))]
    logs = read(write(tmp_path / "s.jsonl", header(), *TALK, compaction, *after, *later))
    assert [one.starts for one in logs.requests] == ["session", "", "compaction", ""]
    third, fourth = (one.prompt for one in logs.requests[2:])
    assert isinstance(third, Prompt)
    assert isinstance(fourth, Prompt)
    assert [piece.role for piece in third.pieces] == ["user", "tool", "assistant", "user"]
    assert b"So far" in third.pieces[0].raw
    assert fourth.pieces[:4] == third.pieces
    assert any("1 compactions" in note for note in logs.files[0].notes)


def test_a_compaction_that_tells_its_usage_is_a_request(tmp_path: Path, read: Read) -> None:
    compaction = {
        "type": "compaction", "id": "k", "parentId": "e", "timestamp": at(6000),
        "summary": "So far", "usage": usage(300, 40),
    }  # fmt: skip
    logs = read(write(tmp_path / "s.jsonl", header(), *TALK, compaction))
    assert totals(logs.requests)["prompt"] == 800
    assert [one.agent for one in logs.requests] == ["", "", "compaction"]


def test_what_a_forked_session_repeats_counts_once(tmp_path: Path, read: Read) -> None:
    parent = write(tmp_path / "z.jsonl", header(), *TALK)
    own = [user("f", "e", "More", 20_000), answer("g", "f", 21_000, usage(50, 1))]
    child = write(tmp_path / "a.jsonl", header("s2", 15_000, parentSession="z"), *TALK, *own)
    logs = read(parent, child)
    assert totals(logs.requests)["prompt"] == 550
    assert [(one.session, one.starts) for one in logs.requests] == [
        ("s1", "session"),
        ("s1", ""),
        ("s2", "branch"),
    ]
    assert logs.requests == read(child, parent).requests
    last = logs.requests[2].prompt
    assert isinstance(last, Prompt)
    assert len(last.pieces) == 6


def test_equal_entry_ids_of_sessions_that_have_nothing_in_common_are_two(
    tmp_path: Path, read: Read
) -> None:
    write(tmp_path / "a.jsonl", header(), user("a", None, "Go"), answer("b", "a", 900, usage(9, 1)))
    other = answer("b", "a", 1900, usage(9, 1))
    write(tmp_path / "b.jsonl", header("s2", 1000), user("a", None, "Go", 1000), other)
    assert totals(read(tmp_path).requests)["prompt"] == 18


def test_subagents_lie_in_a_folder_of_the_name_of_their_parent(tmp_path: Path, read: Read) -> None:
    write(tmp_path / "p.jsonl", header(), answer("a", None, 900, usage(1, 1)))
    write(tmp_path / "p" / "Scout.jsonl", header("s2"), answer("a", None, 950, usage(2, 1)))
    write(
        tmp_path / "p" / "Scout" / "Deep.jsonl", header("s3"), answer("a", None, 990, usage(4, 1))
    )
    logs = read(tmp_path)
    assert [(one.session, one.agent) for one in logs.requests] == [
        ("s1", ""),
        ("s1", "s2"),
        ("s1", "s3"),
    ]


def test_failed_and_aborted_answers_are_errors_and_not_sent_again(
    tmp_path: Path, read: Read
) -> None:
    path = write(
        tmp_path / "s.jsonl",
        header(),
        user("a", None, "Go"),
        answer("b", "a", 1000, usage(0, 0), "half", stopReason="error"),
        answer("c", "b", 2000, usage(12, 3), "half", stopReason="aborted"),
        answer("d", "c", 3000, usage(13, 3), "whole"),
    )
    logs = read(path)
    assert totals(logs.requests)["prompt"] == 25
    assert logs.files[0].errors == 1
    last = logs.requests[-1].prompt
    assert isinstance(last, Prompt)
    assert len(last.pieces) == 1


def test_the_first_version_without_ids_is_a_chain(tmp_path: Path, read: Read) -> None:
    new = ("id", "parentId")
    lines = [{key: one for key, one in line.items() if key not in new} for line in TALK]
    head = {key: one for key, one in header().items() if key not in ("id", "version")}
    logs = read(write(tmp_path / "old.jsonl", head, *lines))
    assert [one.starts for one in logs.requests] == ["session", ""]
    assert logs.requests[0].session == "old"


def test_unknown_lines_are_counted_by_name(tmp_path: Path, read: Read) -> None:
    odd = {"type": "brand_new", "id": "x", "parentId": "e", "timestamp": at(6000)}
    more = [user("f", "x", "On", 7000), answer("g", "f", 8000, usage(30, 1))]
    logs = read(write(tmp_path / "s.jsonl", header(), *TALK, odd, *more))
    assert logs.files[0].skipped == {"lines of type 'brand_new'": 1}
    last = logs.requests[-1].prompt
    assert isinstance(last, Prompt)
    assert len(last.pieces) == 6


@given(st.integers(min_value=0))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    compaction = {"type": "compaction", "id": "k", "parentId": "e", "firstKeptEntryId": "d"}
    more = [compaction, user("f", "k", "On", 7000), answer("g", "f", 8000, usage(30, 1))]
    lines = "".join(json.dumps(line) + "\n" for line in [header(), *TALK, *more])
    path = tmp_path / "s.jsonl"
    path.write_bytes(damaged(lines.encode(), seed))
    times_in_order(survives([path]))
