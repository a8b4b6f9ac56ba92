"""Sessions are read where they fit, and what does not fit is named by file, line and reason."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reflexarc.steps.errors import InputError, SessionLineError
from reflexarc.traces import read_recording, read_sessions, write_sessions
from reflexarc.traces.lines import read_lines
from tests.traces.conftest import line

Write = Callable[..., Path]

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'},
}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "d", "parameters": {"type": "object"}},
}


def test_a_session_is_read_whole(write: Write) -> None:
    path = write(
        json.dumps(
            {
                "id": "s1",
                "task": "t1",
                "trial": 2,
                "source": "here",
                "model": "m",
                "reward": 1,
                "family": "f",
                "unknown": {"kept": True},
                "tools": [TOOL],
                "messages": [
                    {"role": "user", "content": "Weather?"},
                    {"role": "assistant", "content": None, "tool_calls": [CALL]},
                    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
                ],
            }
        )
    )
    (session,) = read_sessions([path])
    assert (session.id, session.task, session.trial, session.source) == ("s1", "t1", 2, "here")
    assert (session.model, session.reward, session.family) == ("m", 1.0, "f")
    assert session.tools[0].name == "get_weather"
    assert session.messages[1].tool_calls[0].arguments == {"city": "Bern"}
    assert session.messages[2].content == "sunny"


def test_a_session_without_an_id_is_named_by_its_place(write: Write) -> None:
    path = write(line("a"), line("b"))
    assert [s.id for s in read_sessions([path])] == [f"{path}:1", f"{path}:2"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("{", "not JSON"),
        ('{"messages": [], "x": NaN}', "not JSON"),
        ('{"messages": [], "x": "\\ud800"}', "not JSON"),
        ('{"a": {"b": 1, "b": 2}, "messages": []}', "'b' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must be an object"),
        ("{}", "messages is missing"),
        ('{"messages": {}}', "messages must be a list"),
        ('{"messages": [{"role": "robot", "content": ""}]}', "messages[0].role"),
        ('{"messages": [{"role": "user", "content": 3}]}', "messages[0].content"),
        (
            '{"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}',
            "messages[0].tool_calls[0].function",
        ),
        ('{"messages": [], "tools": [{"type": "function"}]}', "tools[0].function"),
        ('{"messages": [], "task": ["t"]}', "task must be"),
        ('{"messages": [], "reward": "full"}', "reward must be a number"),
        ('{"messages": [], "model": 4}', "model must be a string"),
        ('{"messages": [], "trial": true}', "trial must be"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(write: Write, bad: str, why: str) -> None:
    path = write(line("a"), bad, line("b"))
    told: list[SessionLineError] = []
    recording = read_recording([path], on_bad_line=told.append)
    assert [s.task for s in recording.sessions] == ["a", "b"]
    (error,) = told
    assert recording.bad_lines == told
    assert error.where == f"{path}:2"
    assert why in error.why
    with pytest.raises(SessionLineError):
        read_sessions([path])


def test_a_line_that_stands_twice_counts_once(write: Write) -> None:
    path = write(line("a"), line("b"), line("a"))
    recording = read_recording([path])
    assert [s.task for s in recording.sessions] == ["a", "b"]
    assert f"the same line as {path}:1" in recording.bad_lines[0].why


def test_marks_of_windows_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line("a").encode() + b"\r\n\r\n \n" + line("b").encode())
    assert [s.task for s in read_sessions([path])] == ["a", "b"]


def test_text_that_is_not_utf8_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(line("a", user="caf?").encode().replace(b"?", b"\xe9") + b"\n")
    assert "UTF-8" in read_recording([path]).bad_lines[0].why


def test_an_empty_file_holds_no_sessions(tmp_path: Path) -> None:
    for name in ("empty.jsonl", "empty.jsonl.gz"):
        (tmp_path / name).write_bytes(b"")
        assert read_recording([tmp_path / name]).sessions == []


def test_gzip_is_seen_from_the_bytes_not_from_the_name(tmp_path: Path) -> None:
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(line("a").encode()))
    (tmp_path / "plain.jsonl.gz").write_text(line("b"))
    read = read_sessions([tmp_path / "packed.jsonl", tmp_path / "plain.jsonl.gz"])
    assert [s.task for s in read] == ["a", "b"]


@pytest.mark.parametrize("lost_bytes", [1, 9, 400])
def test_of_a_truncated_gzip_what_came_before_is_read(tmp_path: Path, lost_bytes: int) -> None:
    lines = [line(f"t{i}", id=f"{i * 7919 % 997:x}" * 9).encode() for i in range(200)]
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n")[:-lost_bytes])
    recording = read_recording([path])
    assert 100 < len(recording.sessions) <= 200
    assert "gzip" in recording.bad_lines[0].why
    assert recording.bad_lines[0].where.startswith(f"{path}:")


def test_a_flipped_byte_in_gzip_is_not_silent(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(line("a").encode()))
    data[-6] ^= 1  # in the checksum
    (tmp_path / "flipped.jsonl.gz").write_bytes(data)
    assert len(read_recording([tmp_path / "flipped.jsonl.gz"]).bad_lines) == 1


def test_a_line_over_the_limit_is_passed_over(write: Write) -> None:
    path = write(line("a"), line("long", user="x" * 5000), line("b"))
    recording = read_recording([path], max_line_bytes=1000)
    assert [s.task for s in recording.sessions] == ["a", "b"]
    assert recording.bad_lines[0].where == f"{path}:2"
    assert "longer than 1000 bytes" in recording.bad_lines[0].why


def test_a_line_of_exactly_the_limit_is_read(write: Write) -> None:
    path = write(line("a"))
    size = path.stat().st_size - 1
    assert [entry.why for entry in read_lines(path, max_line_bytes=size)] == [""]
    assert "longer" in next(iter(read_lines(path, max_line_bytes=size - 2))).why


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_sessions([tmp_path / "absent.jsonl"])
    with pytest.raises(InputError, match="directory"):
        read_sessions([tmp_path])


def test_written_sessions_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    lines = [line("a").encode(), line("b").encode()]
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_sessions(tmp_path / name, lines)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    assert read_recording([tmp_path / "one.jsonl.gz"]).raw == lines
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.jsonl.gz", "two.jsonl.gz"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_sessions(tmp_path / "no" / "where.jsonl", [])


@pytest.mark.parametrize(
    ("name", "sessions", "tasks"),
    [
        ("apibank_lv12", 264, 264),
        ("apiflow_terra", 368, 96),
        ("apiflow_terra_ops", 368, 96),
        ("bfcl_multiturn_gold", 400, 200),
        ("ha_qwen3_30b", 452, 90),
        ("tau1_airline_gpt4o", 120, 30),
        ("tau1_retail_fork", 240, 60),
        ("tau2_airline_mit", 60, 30),
        ("workbench_gpt4", 368, 368),
    ],
)
def test_public_recordings_are_read_without_a_bad_line(
    recordings: Path, name: str, sessions: int, tasks: int
) -> None:
    recording = read_recording([recordings / f"{name}.jsonl.gz"])
    assert recording.bad_lines == []
    assert recording.clustering is None
    assert len(recording.sessions) == sessions
    assert len({s.task for s in recording.sessions}) == tasks


def test_sessions_that_share_an_id_are_told_apart(write: Write) -> None:
    path = write(line("a", id="s"), line("b", id="s"), line("c", id="u"))
    assert [s.id for s in read_sessions([path])] == ["s", f"s ({path}:2)", "u"]
