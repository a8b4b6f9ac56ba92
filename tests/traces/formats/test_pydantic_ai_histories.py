"""pydantic-ai histories: a response counts once, however many runs it was passed on to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals

Read = Callable[..., Logs]


def request(second: int, *parts: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:00:{second:02d}Z"
    return {"kind": "request", "parts": list(parts), "timestamp": at, "run_id": "run1", **more}


def response(second: int, *parts: Any, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1000, "cache_read_tokens": 800, "output_tokens": 20}
    return {
        "kind": "response",
        "parts": list(parts),
        "usage": usage,
        "model_name": "gpt-x",
        "provider_name": "openai",
        "timestamp": f"2026-01-01T00:00:{second:02d}Z",
        "provider_response_id": f"r{second}",
        "run_id": "run1",
        **more,
    }


ASK = {"part_kind": "user-prompt", "content": "Weather?", "timestamp": "2026-01-01T00:00:00Z"}
CALL = {"part_kind": "tool-call", "tool_name": "look", "args": "{}", "tool_call_id": "c1"}
RETURN = {
    "part_kind": "tool-return",
    "tool_call_id": "c1",
    "content": "Rain",
    "timestamp": "2026-01-01T00:00:05Z",
}
SAY = {"part_kind": "text", "content": "Rain."}


def history() -> list[dict[str, Any]]:
    return [request(0, ASK), response(2, CALL), request(5, RETURN), response(7, SAY)]


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_cached_tokens_are_inside_input_tokens(tmp_path: Path, read: Read) -> None:
    first, second = read(write(tmp_path / "a.json", history())).requests
    assert (first.counts.prompt.value, first.counts.cache_read.value) == (1000, 800)
    assert (first.began_s.value, first.ended_s.value) == (1767225600, 1767225602)
    assert (first.provider, first.model) == ("openai", "gpt-x")
    (tool,) = first.tools
    assert (tool.name, tool.began_s.value, tool.ended_s.value) == (
        "look", 1767225602, 1767225605
    )  # fmt: skip
    assert second.output_text == "Rain."
    assert isinstance(second.prompt, Prompt)
    assert [piece.role for piece in second.prompt.pieces] == ["user", "assistant", "tool"]
    assert not second.prompt.complete


def test_a_history_that_was_passed_on_counts_once(tmp_path: Path, read: Read) -> None:
    later = [*history(), request(10, ASK, run_id="run2"), response(12, SAY, run_id="run2")]
    first = write(tmp_path / "a.json", history())
    second = write(tmp_path / "b.json", later)
    forward, backward = read(first, second), read(second, first)
    assert totals(forward.requests)["requests"] == 3
    assert forward.requests == backward.requests
    assert [sum(report.duplicates.values()) for report in forward.files] == [0, 2]


def test_without_ids_of_responses_run_and_time_tell_them_apart(tmp_path: Path, read: Read) -> None:
    nameless = history()
    for message in nameless:
        message.pop("provider_response_id", None)
    write(tmp_path / "a.json", nameless)
    write(tmp_path / "b.json", [*nameless, request(9, ASK), response(11, SAY)])
    assert totals(read(tmp_path).requests)["requests"] == 3


def test_the_newest_instructions_alone_are_sent(tmp_path: Path, read: Read) -> None:
    made = history()
    made[0]["instructions"] = "Be brief."
    made[2]["instructions"] = "Be brief, now."
    prompts = [one.prompt for one in read(write(tmp_path / "a.json", made)).requests]
    systems = [
        [piece.raw for piece in prompt.pieces if piece.kind == "system"]
        for prompt in prompts
        if isinstance(prompt, Prompt)
    ]
    assert systems == [[b"Be brief."], [b"Be brief, now."]]


def test_a_call_that_was_sent_back_failed(tmp_path: Path, read: Read) -> None:
    made = history()
    made[2]["parts"] = [{"part_kind": "retry-prompt", "tool_call_id": "c1", "content": "bad"}]
    first, _ = read(write(tmp_path / "a.json", made)).requests
    assert [tool.failed for tool in first.tools] == [True]


def test_names_of_the_first_versions_are_read(tmp_path: Path, read: Read) -> None:
    made = history()
    made[1]["usage"] = {"request_tokens": "7", "response_tokens": 3.0, "total_tokens": None}
    first, _ = read(write(tmp_path / "a.json", made)).requests
    assert (first.counts.prompt.value, first.counts.output.value) == (7, 3)
    assert first.counts.cache_read.kind == "absent"


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(damaged(json.dumps(history()).encode(), seed))
    survives([path])


def test_the_public_history_has_its_totals(data: Path, read: Read) -> None:
    """Its two responses say 1,210 in and 18 out with nothing cached, 1,262 in (1,152 of it cached)
    and 12 out, 4 of these reasoning."""
    found = totals(read(data / "logs" / "pydantic-ai").requests)
    assert found == {
        "requests": 2, "prompt": 2472, "cached": 1152, "written": 0, "output": 30, "reasoning": 4
    }  # fmt: skip
