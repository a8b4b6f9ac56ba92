"""Gemini CLI chats: each answer once however often it is written, also those taken back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, times_in_order, totals

Read = Callable[..., Logs]
HEADER = {
    "sessionId": "s1",
    "projectHash": "p",
    "startTime": "2026-08-01T10:00:00.000Z",
    "kind": "main",
}


def tokens(prompt: Any, output: Any, **more: Any) -> dict[str, Any]:
    found = {"input": prompt, "output": output, "cached": 0, "thoughts": 0, "tool": 0, **more}
    return {"total": prompt + output + found["thoughts"] + found["tool"], **found}


def user(id: str, said: str, second: int = 0) -> dict[str, Any]:
    at = f"2026-08-01T10:00:{second:02}.000Z"
    return {"id": id, "timestamp": at, "type": "user", "content": [{"text": said}]}


def answer(id: str, said: str, second: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "timestamp": f"2026-08-01T10:00:{second:02}.000Z",
        "type": "gemini",
        "content": said,
        "model": "gemini-3-pro-preview",
        "thoughts": [],
        **more,
    }


def call(id: str, second: int, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": "read_file",
        "args": {"path": "a.py"},
        "result": [{"functionResponse": {"id": id, "name": "read_file", "response": {"o": "x"}}}],
        "status": "success",
        "timestamp": f"2026-08-01T10:00:{second:02}.500Z",
        **more,
    }


def write(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def chat(tmp_path: Path, *lines: Any, name: str = "session-1.jsonl") -> Path:
    return write(tmp_path / "chats" / name, HEADER, *lines)


def test_cached_tokens_are_inside_the_prompt_and_an_answer_written_twice_counts_once(
    tmp_path: Path, read: Read
) -> None:
    first = answer("g1", "Hi", tokens=None)
    last = answer("g1", "Hi", tokens=tokens(1000, 500, cached=300))
    logs = read(chat(tmp_path, user("u1", "Hello"), first, last))
    assert totals(logs.requests) == {
        "requests": 1,
        "prompt": 1000,
        "cached": 300,
        "written": 0,
        "output": 500,
        "reasoning": 0,
    }
    assert sum(logs.files[0].duplicates.values()) == 1
    (one,) = logs.requests
    assert (one.provider, one.model, one.output_text) == ("gemini", "gemini-3-pro-preview", "Hi")


def test_the_last_writing_of_an_answer_counts(tmp_path: Path, read: Read) -> None:
    early = answer("g1", "H", tokens=tokens(10, 1))
    late = answer("g1", "Hi", tokens=tokens(1000, 500))
    found = totals(read(chat(tmp_path, user("u1", "Hello"), early, late)).requests)
    assert (found["prompt"], found["output"]) == (1000, 500)


def test_thoughts_are_beside_the_output_or_inside_it_as_the_total_tells(
    tmp_path: Path, read: Read
) -> None:
    beside = {"input": 100, "output": 20, "cached": 0, "thoughts": 7, "tool": 0, "total": 127}
    inside = {"input": 100, "output": 20, "cached": 0, "thoughts": 7, "tool": 0, "total": 120}
    no_total = {"input": 100, "output": 20, "thoughts": 7}
    path = chat(
        tmp_path,
        user("u1", "Hello"),
        answer("g1", "a", 1, tokens=beside),
        answer("g2", "b", 2, tokens=inside),
        answer("g3", "c", 3, tokens=no_total),
    )
    assert [one.counts.output.value for one in read(path).requests] == [27, 20, 27]
    assert [one.counts.reasoning.value for one in read(path).requests] == [7, 7, 7]
    assert read(path).requests[2].counts.cache_read.kind == "absent"


def test_what_the_providers_tools_put_into_a_prompt_belongs_to_it(
    tmp_path: Path, read: Read
) -> None:
    beside = {"input": 100, "output": 20, "thoughts": 0, "tool": 30, "total": 150}
    inside = {"input": 100, "output": 20, "thoughts": 0, "tool": 30, "total": 120}
    path = chat(tmp_path, answer("g1", "a", 1, tokens=beside), answer("g2", "b", 2, tokens=inside))
    assert [one.counts.prompt.value for one in read(path).requests] == [130, 100]


def test_answers_that_were_taken_back_were_paid_for(tmp_path: Path, read: Read) -> None:
    path = chat(
        tmp_path,
        user("u1", "one"),
        answer("g1", "A", 1, tokens=tokens(100, 5)),
        user("u2", "two", 2),
        answer("g2", "B", 3, tokens=tokens(200, 5)),
        {"$rewindTo": "u2"},
        user("u3", "other", 4),
        answer("g3", "C", 5, tokens=tokens(210, 5)),
    )
    logs = read(path)
    assert totals(logs.requests)["prompt"] == 510
    assert [one.starts for one in logs.requests] == ["session", "", "rewind"]
    third = logs.requests[2].prompt
    assert isinstance(third, Prompt)
    assert [json.loads(piece.raw)["content"][0]["text"] for piece in third.pieces] == [
        "one",
        "A",
        "other",
    ]


def test_a_rewind_to_what_is_not_there_takes_all_back(tmp_path: Path, read: Read) -> None:
    path = chat(
        tmp_path,
        user("u1", "one"),
        answer("g1", "A", 1, tokens=tokens(100, 5)),
        {"$rewindTo": "gone"},
        user("u2", "two", 2),
        answer("g2", "B", 3, tokens=tokens(50, 5)),
    )
    second = read(path).requests[1].prompt
    assert isinstance(second, Prompt)
    assert len(second.pieces) == 1


def test_compressing_starts_anew_and_masking_does_not(tmp_path: Path, read: Read) -> None:
    first, second = user("u1", "one"), answer("g1", "A", 1, tokens=tokens(100, 5))
    path = chat(
        tmp_path,
        first,
        second,
        {"$set": {"messages": [first, {**second, "content": "masked"}]}},
        answer("g2", "B", 2, tokens=tokens(100, 5)),
        {"$set": {"messages": [user("s1", "What was said so far", 3)]}},
        user("u2", "on", 4),
        answer("g3", "C", 5, tokens=tokens(40, 5)),
    )
    logs = read(path)
    assert [one.starts for one in logs.requests] == ["session", "", "compaction"]
    assert totals(logs.requests)["requests"] == 3
    after, compressed = logs.requests[1].prompt, logs.requests[2].prompt
    assert isinstance(after, Prompt)
    assert isinstance(compressed, Prompt)
    assert b"masked" in after.pieces[1].raw
    assert len(compressed.pieces) == 2


def test_calls_have_their_times_and_their_results_are_sent_next(tmp_path: Path, read: Read) -> None:
    failed = call("c2", 4, status="error")
    path = chat(
        tmp_path,
        user("u1", "Read it"),
        answer("g1", "", 1, tokens=tokens(100, 5)),
        answer("g1", "", 1, tokens=tokens(100, 5), toolCalls=[call("c1", 3), failed]),
        answer("g2", "Done", 6, tokens=tokens(200, 5)),
        {"id": "i", "type": "info", "content": "not sent", "timestamp": ""},
    )
    first, second = read(path).requests
    assert [(tool.name, tool.failed) for tool in first.tools] == [
        ("read_file", False),
        ("read_file", True),
    ]
    assert first.ended_s.value is not None
    assert [(tool.ended_s.value or 0) - first.ended_s.value for tool in first.tools] == [2.5, 3.5]
    assert second.began_s == type(second.began_s)(first.ended_s.value + 3.5, "estimated")
    assert second.gap
    assert isinstance(second.prompt, Prompt)
    assert [piece.role for piece in second.prompt.pieces] == ["user", "model", "user"]
    assert b"functionCall" in second.prompt.pieces[1].raw
    assert b"functionResponse" in second.prompt.pieces[2].raw
    assert not second.prompt.complete


def test_calls_and_results_that_stand_twice_after_a_rewriting_are_sent_once(
    tmp_path: Path, read: Read
) -> None:
    done = call("c1", 3)
    first = answer("g1", "", 1, tokens=tokens(100, 5), toolCalls=[done])
    parts = [{"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.py"}}}]
    results = {**user("r1", "", 3), "content": done["result"]}
    path = chat(
        tmp_path,
        user("u1", "Read it"),
        first,
        answer("g2", "Half", 5, tokens=tokens(200, 5)),
        {
            "$set": {
                "messages": [
                    user("u1", "Read it"),
                    {**first, "content": parts},
                    results,
                    answer("g2", "Half", 5, tokens=tokens(200, 5)),
                ]
            }
        },
        answer("g3", "Done", 6, tokens=tokens(210, 5)),
    )
    _, second, third = (one.prompt for one in read(path).requests)
    assert isinstance(second, Prompt)
    assert isinstance(third, Prompt)
    assert [piece.raw for piece in third.pieces[:3]] == [piece.raw for piece in second.pieces]
    assert len(third.pieces) == 4


def test_equal_pieces_of_later_prompts_are_one_object(tmp_path: Path, read: Read) -> None:
    lines: list[Any] = []
    for index in range(6):
        lines += [user(f"u{index}", f"say {index}", 2 * index)]
        lines += [answer(f"g{index}", f"{index}", 2 * index + 1, tokens=tokens(10, 1))]
    prompts = [one.prompt for one in read(chat(tmp_path, *lines)).requests]
    pieces = [piece for prompt in prompts if isinstance(prompt, Prompt) for piece in prompt.pieces]
    assert len({id(piece) for piece in pieces}) == 11


def test_subagents_are_apart_within_their_session(tmp_path: Path, read: Read) -> None:
    chat(tmp_path, user("u1", "go"), answer("g1", "A", 1, tokens=tokens(100, 5)))
    write(
        tmp_path / "chats" / "s1" / "sub7.jsonl",
        {**HEADER, "sessionId": "sub7", "kind": "subagent"},
        user("u1", "part"),
        answer("g1", "B", 2, tokens=tokens(30, 5)),
    )
    logs = read(tmp_path)
    assert {(one.session, one.agent) for one in logs.requests} == {("s1", ""), ("s1", "sub7")}
    assert totals(logs.requests)["prompt"] == 130


def test_the_older_form_beside_the_newer_one_counts_once(tmp_path: Path, read: Read) -> None:
    lines = [user("u1", "go"), answer("g1", "A", 1, tokens=tokens(100, 5))]
    chat(tmp_path, *lines, {"$set": {"lastUpdated": "x"}}, answer("g2", "B", tokens=tokens(120, 5)))
    old = tmp_path / "chats" / "session-1.json"
    old.write_text(json.dumps({**HEADER, "messages": lines}, indent=2))
    logs = read(tmp_path)
    assert totals(logs.requests)["prompt"] == 220
    assert {Path(one.file).suffix for one in logs.requests} == {".jsonl"}
    alone = read(old)
    assert totals(alone.requests)["prompt"] == 100


def test_the_order_of_files_changes_nothing(tmp_path: Path, read: Read) -> None:
    lines = [user("u1", "go"), answer("g1", "A", 1, tokens=tokens(100, 5))]
    first = chat(tmp_path, *lines)
    second = chat(
        tmp_path, *lines, answer("g2", "B", 2, tokens=tokens(7, 1)), name="session-2.jsonl"
    )
    assert read(first, second).requests == read(second, first).requests
    assert totals(read(first, second).requests)["prompt"] == 107


def test_numbers_of_other_kinds_and_a_line_that_breaks_off(tmp_path: Path, read: Read) -> None:
    odd = {"input": "120", "output": None, "cached": 3.0, "total": None}
    path = chat(tmp_path, user("u1", "go"), answer("g1", "A", 1, tokens=odd))
    path.write_text(path.read_text() + json.dumps(answer("g2", "B"))[:40])
    logs = read(path)
    (one,) = logs.requests
    assert (one.counts.prompt.value, one.counts.cache_read.value) == (120, 3)
    assert one.counts.output.kind == "absent"
    assert not logs.files[0].at_least
    assert any("breaks off" in note for note in logs.files[0].notes)


def test_a_chat_that_lost_its_first_line_is_read_and_others_in_such_a_folder_are_not(
    tmp_path: Path, read: Read
) -> None:
    lines = [user("u1", "go"), answer("g1", "A", 1, tokens=tokens(100, 5))]
    lost = write(tmp_path / "chats" / "session-9.jsonl", *lines)
    other = write(tmp_path / "chats" / "other.jsonl", {"id": "x", "type": "note", "content": ""})
    logs = read(lost, other)
    assert [(one.session, one.counts.prompt.value) for one in logs.requests] == [("session-9", 100)]
    assert logs.files[1].format != "gemini-cli"


def test_a_bad_line_in_the_middle_makes_totals_at_least(tmp_path: Path, read: Read) -> None:
    path = chat(tmp_path, user("u1", "go"))
    good = json.dumps(answer("g1", "A", 1, tokens=tokens(100, 5)))
    path.write_text(path.read_text() + "{broken\n" + good + "\n")
    logs = read(path)
    assert totals(logs.requests)["requests"] == 1
    assert logs.files[0].at_least


@given(st.integers(min_value=0))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    lines = [
        HEADER,
        user("u1", "Read it"),
        answer("g1", "", 1, tokens=tokens(100, 5), toolCalls=[call("c1", 3)]),
        {"$rewindTo": "g1"},
        {"$set": {"messages": [user("s1", "so far")]}},
        answer("g2", "Done", 6, tokens=tokens(200, 5)),
    ]
    path = tmp_path / "chats" / "session-1.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(damaged("\n".join(map(json.dumps, lines)).encode(), seed))
    times_in_order(survives([path]))
