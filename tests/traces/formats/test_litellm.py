"""LiteLLM: each call once, with what the provider's cache held, whichever version wrote the row."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from reflexarc.traces.requests import RecordedRequest
from tests.traces.formats.measures import damaged, survives, totals
from tests.traces.formats.written import write_json, write_jsonl

Read = Callable[..., Logs]
MESSAGES = [{"role": "user", "content": "Rain?"}]


def spend(id: str = "r1", **more: Any) -> dict[str, Any]:
    return {
        "request_id": id, "call_type": "acompletion", "spend": 0.25, "total_tokens": 120,
        "prompt_tokens": 100, "completion_tokens": 20, "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-01T00:00:02Z", "completionStartTime": "2026-01-01T00:00:01Z",
        "model": "anthropic/claude-sonnet-4-5", "custom_llm_provider": "anthropic",
        "cache_hit": "False", "messages": {}, "response": {}, "metadata": {}, "session_id": "s1",
        "status": "success", **more,
    }  # fmt: skip


def payload(**more: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "look"}}
    message = {"role": "assistant", "content": "Yes."}
    return {
        "id": "chatcmpl-1", "trace_id": "t1", "call_type": "completion", "stream": True,
        "status": "success", "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "startTime": 1_767_225_600.0, "endTime": 1_767_225_602.0,
        "completionStartTime": 1_767_225_600.5, "model": "gpt-4.1", "messages": MESSAGES,
        "custom_llm_provider": "openai", "response_cost": 0.5, "hidden_params": {},
        "model_parameters": {"tools": [tool]}, "metadata": {},
        "response": {"id": "chatcmpl-1", "choices": [{"message": message}]}, **more,
    }  # fmt: skip


def only(logs: Logs) -> RecordedRequest:
    (request,) = logs.requests
    return request


def test_a_spend_row_tells_tokens_money_and_times(tmp_path: Path, read: Read) -> None:
    request = only(read(write_jsonl(tmp_path / "spend.jsonl", spend())))
    assert (request.counts.prompt.value, request.counts.output.value) == (100, 20)
    assert (request.cost_usd.value, request.cost_usd.kind) == (0.25, "measured")
    assert (request.began_s.value, request.first_s.value, request.ended_s.value) == (
        1_767_225_600, 1_767_225_601, 1_767_225_602
    )  # fmt: skip
    assert (request.session, request.provider, request.model) == (
        "s1", "anthropic", "claude-sonnet-4-5"
    )  # fmt: skip
    assert request.counts.cache_read.kind == "absent"
    assert request.prompt is None


def test_csv_and_lists_are_rows_too(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "spend.csv"
    row = {key: one if isinstance(one, str) else json.dumps(one) for key, one in spend().items()}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    assert totals(read(path).requests)["prompt"] == 100
    assert totals(read(write_json(tmp_path / "a.json", [spend()])).requests)["prompt"] == 100


def test_a_payload_tells_the_prompt_with_its_tools(tmp_path: Path, read: Read) -> None:
    request = only(read(write_json(tmp_path / "log.json", payload())))
    assert isinstance(request.prompt, Prompt)
    assert [piece.kind for piece in request.prompt.pieces] == ["tool", "message"]
    assert request.prompt.complete
    assert (request.first_s.value, request.output_text) == (1_767_225_600.5, "Yes.")


@pytest.mark.parametrize(
    "more", [{"stream": False}, {"completionStartTime": 1_767_225_602.0}], ids=str
)
def test_without_a_stream_there_is_no_first_token(
    tmp_path: Path, read: Read, more: dict[str, Any]
) -> None:
    request = only(read(write_json(tmp_path / "log.json", payload(**more))))
    assert request.first_s.kind == "absent"


def test_a_false_cache_hit_hides_nothing_that_the_provider_cached(
    tmp_path: Path, read: Read
) -> None:
    usage = {"prompt_tokens": 40_000, "completion_tokens": 9, "cache_read_input_tokens": 38_500}
    row = spend(prompt_tokens=40_000, total_tokens=40_009, completion_tokens=9,
                metadata={"usage_object": usage})  # fmt: skip
    counts = only(read(write_jsonl(tmp_path / "spend.jsonl", row))).counts
    assert (counts.prompt.value, counts.cache_read.value) == (40_000, 38_500)


def test_what_was_written_beside_the_prompt_is_part_of_it(tmp_path: Path, read: Read) -> None:
    """Older rows: 31 prompt tokens, 1,253 written."""
    more = {"cache_creation_input_tokens": 1_253, "cache_read_input_tokens": 0}
    row = spend(prompt_tokens=31, completion_tokens=9, total_tokens=40,
                metadata=json.dumps({"additional_usage_values": more}))  # fmt: skip
    counts = only(read(write_jsonl(tmp_path / "spend.jsonl", row))).counts
    assert (counts.prompt.value, counts.cache_write.value) == (1_284, 1_253)


def test_a_split_by_time_to_live_never_shrinks_what_was_written(tmp_path: Path, read: Read) -> None:
    usage = {
        "prompt_tokens": 190_000, "completion_tokens": 5, "total_tokens": 190_005,
        "cache_creation_input_tokens": 184_457,
        "cache_creation": {"ephemeral_5m_input_tokens": 31_490, "ephemeral_1h_input_tokens": 0},
    }  # fmt: skip
    row = spend(metadata={"usage_object": usage})
    counts = only(read(write_jsonl(tmp_path / "spend.jsonl", row))).counts
    assert (counts.cache_write.value, counts.cache_write_1h.value) == (184_457, 0)


def test_one_call_that_ran_through_two_apis_counts_once(tmp_path: Path, read: Read) -> None:
    bridged = spend("r1", call_type="aresponses"), spend("r2", call_type="acompletion")
    logs = read(write_jsonl(tmp_path / "spend.jsonl", *bridged))
    assert totals(logs.requests)["prompt"] == 100
    assert sum(logs.files[0].duplicates.values()) == 1
    same = [payload(id=one, metadata={"litellm_call_id": "c"}, response={}) for one in "ab"]
    assert totals(read(write_jsonl(tmp_path / "b.jsonl", *same)).requests)["requests"] == 1


def test_equal_calls_one_after_the_other_stay_two(tmp_path: Path, read: Read) -> None:
    later = spend(
        "r2", call_type="aresponses", startTime="2026-01-01T00:01:00Z",
        endTime="2026-01-01T00:01:02Z", completionStartTime=None,
    )  # fmt: skip
    logs = read(write_jsonl(tmp_path / "spend.jsonl", spend(), later))
    assert totals(logs.requests)["requests"] == 2


def test_failed_attempts_and_answers_of_its_own_cache_are_no_requests(
    tmp_path: Path, read: Read
) -> None:
    rows = [
        spend("r1", status="failure", prompt_tokens=0, completion_tokens=0, total_tokens=0),
        spend("r2"),
        spend("r3", cache_hit="True"),
    ]
    logs = read(write_jsonl(tmp_path / "spend.jsonl", *rows))
    (report,) = logs.files
    assert (report.requests, report.errors, sum(report.skipped.values())) == (1, 1, 1)


def test_the_order_of_files_changes_nothing(tmp_path: Path, read: Read) -> None:
    one = write_jsonl(tmp_path / "a.jsonl", spend("r1"), spend("r2", prompt_tokens=7))
    other = write_jsonl(tmp_path / "b.jsonl", spend("r2", prompt_tokens=7), spend("r3"))
    assert read(one, other).requests == read(other, one).requests
    assert totals(read(one, other).requests)["requests"] == 3


@given(st.integers(min_value=0), st.booleans())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int, whole: bool) -> None:
    path = tmp_path / "a.jsonl"
    row = json.dumps(payload() if whole else spend()) + "\n"
    path.write_bytes(damaged(row.encode() * 2, seed))
    survives([path])
