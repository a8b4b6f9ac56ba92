"""Session JSONL as requests: one for each turn of the assistant, estimated from the text."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals

Read = Callable[..., Logs]

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def session(**more: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "task": "t1",
        "model": "openai/gpt-x",
        "tools": [TOOL],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Where is x?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "here"},
            {"role": "assistant", "content": "It is here."},
        ],
        **more,
    }


def write(path: Path, *sessions: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in sessions))
    return path


def test_each_turn_is_a_request_with_what_was_sent_before_it(tmp_path: Path, read: Read) -> None:
    first, second = read(write(tmp_path / "s.jsonl", session())).requests
    assert isinstance(first.prompt, Prompt)
    assert isinstance(second.prompt, Prompt)
    assert [piece.kind for piece in first.prompt.pieces] == ["tool", "system", "message"]
    assert [piece.path for piece in second.prompt.pieces] == [
        "tools[0]",
        "messages[0]",
        "messages[1]",
        "messages[2]",
        "messages[3]",
    ]
    assert first.prompt.complete
    assert [tool.name for tool in first.tools] == ["look"]
    assert second.output_text == "It is here."
    assert (second.provider, second.model) == ("openai", "gpt-x")


def test_pieces_are_shared_between_turns_and_sessions(tmp_path: Path, read: Read) -> None:
    path = write(tmp_path / "s.jsonl", session(), session(id="s2"))
    prompts = [one.prompt for one in read(path).requests]
    pieces = [piece for prompt in prompts if isinstance(prompt, Prompt) for piece in prompt.pieces]
    # a tool that both share, and of each session four messages that were sent
    assert len({id(piece) for piece in pieces}) == 1 + 2 * 4


def test_tokens_are_a_quarter_of_the_bytes_and_said_to_be_estimated(
    tmp_path: Path, read: Read
) -> None:
    made = read(write(tmp_path / "s.jsonl", session())).requests
    for one in made:
        assert isinstance(one.prompt, Prompt)
        size = sum(len(piece.raw) for piece in one.prompt.pieces)
        assert one.counts.prompt.kind == one.counts.output.kind == "estimated"
        assert one.counts.prompt.value == -(-size // 4)
        assert one.counts.cache_read.kind == "absent"
    assert made[-1].counts.output.value == 3


def test_a_turn_that_system_1_answered_was_no_request(tmp_path: Path, read: Read) -> None:
    made = session()
    made["messages"][2]["decided_by"] = "system1"
    logs = read(write(tmp_path / "s.jsonl", made))
    assert [one.output_text for one in logs.requests] == ["It is here."]
    assert logs.files[0].skipped == {"a turn that no model was asked for": 1}


def test_bad_lines_are_counted_and_the_rest_is_read(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(session()), "{broken", '{"id": "no messages"}', json.dumps(session(id="z"))]
    path.write_text("\n".join(lines))
    logs = read(path)
    assert totals(logs.requests)["requests"] == 4
    assert logs.files[0].at_least
    assert sum(logs.files[0].skipped.values()) == 2


def test_a_last_line_that_breaks_off_is_a_note(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(session()) + "\n" + json.dumps(session(id="z"))[:50])
    (report,) = read(path).files
    assert not report.at_least
    assert "breaks off" in report.notes[0]


def test_a_line_that_stands_twice_counts_once(tmp_path: Path, read: Read) -> None:
    logs = read(
        write(tmp_path / "a.jsonl", session(), session()), write(tmp_path / "b.jsonl", session())
    )
    assert totals(logs.requests)["requests"] == 2
    assert [sum(report.duplicates.values()) for report in logs.files] == [1, 1]


@given(st.integers(min_value=0))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "s.jsonl"
    lines = json.dumps(session()) + "\n" + json.dumps(session(id="s2")) + "\n"
    path.write_bytes(damaged(lines.encode(), seed))
    survives([path])


@pytest.mark.parametrize("name", ["tau2_airline_mit", "apibank_lv12", "workbench_gpt4"])
def test_the_public_sessions_give_a_request_for_each_turn(
    data: Path, read: Read, name: str
) -> None:
    path = data / "sessions" / f"{name}.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    turns = sum(
        message["role"] == "assistant" for line in lines for message in json.loads(line)["messages"]
    )
    logs = read(path)
    assert totals(logs.requests)["requests"] == turns == logs.files[0].requests
    assert logs.files[0].skipped == {}


def test_a_first_line_of_any_length_is_recognised(tmp_path: Path, read: Read) -> None:
    long = session()
    long["messages"][1]["content"] = "x" * 2_000_000
    logs = read(write(tmp_path / "s.jsonl", long, session(id="s2")))
    assert logs.files[0].format == "sessions"
    assert totals(logs.requests)["requests"] == 4
