"""LangSmith: runs of models are requests, the chains around them hold their sums."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals
from tests.traces.formats.written import write_json, write_jsonl

Read = Callable[..., Logs]


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": kwargs}


def run(id: str, kind: str = "llm", parent: str | None = "root", **more: Any) -> dict[str, Any]:
    call = {"name": "look", "args": {}, "id": "c1", "type": "tool_call"}
    usage = {
        "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
        "input_token_details": {"cache_read": 64},
    }  # fmt: skip
    answer = lc("AIMessage", content="", tool_calls=[call], usage_metadata=usage, type="ai")
    return {
        "id": id, "trace_id": "t1", "parent_run_id": parent, "run_type": kind, "name": id,
        "dotted_order": f"20260101T000000000000Zt1.{id}", "start_time": "2026-01-01T00:00:00",
        "end_time": "2026-01-01T00:00:02", "first_token_time": "2026-01-01T00:00:01",
        "inputs": {"messages": [[lc("HumanMessage", content="Rain?", type="human")]]},
        "outputs": {"generations": [[{"text": "", "message": answer}]], "llm_output": None},
        "total_cost": "0.25", "error": None,
        "extra": {
            "metadata": {"ls_model_name": "gpt-4.1", "ls_provider": "openai", "thread_id": "th"},
            "invocation_params": {"tools": [{"type": "function", "function": {"name": "look"}}]},
        }, **more,
    }  # fmt: skip


def chain() -> dict[str, Any]:
    return run("root", "chain", None, prompt_tokens=300, completion_tokens=60)


def test_chains_hold_sums_that_are_not_added(tmp_path: Path, read: Read) -> None:
    logs = read(write_jsonl(tmp_path / "runs.jsonl", chain(), run("a"), run("b")))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["cached"]) == (2, 200, 128)
    request = logs.requests[0]
    assert (request.session, request.model, request.provider) == ("th", "gpt-4.1", "openai")
    assert (request.began_s.value, request.first_s.value) == (1_767_225_600, 1_767_225_601)
    assert request.cost_usd.value == 0.25
    assert isinstance(request.prompt, Prompt)
    assert [(piece.kind, piece.role) for piece in request.prompt.pieces] == [
        ("tool", ""), ("message", "user")
    ]  # fmt: skip


def test_runs_inside_others_are_read(tmp_path: Path, read: Read) -> None:
    inner = {**run("a"), "parent_run_id": None, "trace_id": None}
    logs = read(write_json(tmp_path / "run.json", {**chain(), "child_runs": [inner]}))
    assert totals(logs.requests)["prompt"] == 100
    assert logs.requests[0].id == "t1:a"


def test_a_model_s_run_around_another_is_the_same_request(tmp_path: Path, read: Read) -> None:
    logs = read(write_json(tmp_path / "runs.json", [run("outer"), run("inner", parent="outer")]))
    assert totals(logs.requests)["requests"] == 1
    assert sum(logs.files[0].duplicates.values()) == 1


def test_input_without_the_cache_is_made_whole(tmp_path: Path, read: Read) -> None:
    """Anthropic's 19 tokens beside 39,000 that were cached."""
    usage = {"input_tokens": 19, "output_tokens": 4, "total_tokens": 23,
             "input_token_details": {"cache_read": 39_000, "cache_creation": 0}}  # fmt: skip
    row = run("a", outputs={"role": "assistant", "content": "Yes.", "usage_metadata": usage})
    logs = read(write_json(tmp_path / "runs.json", [row]))
    (request,) = logs.requests
    assert (request.counts.prompt.value, request.counts.prompt.kind) == (39_019, "derived")
    assert request.output_text == "Yes."


def test_counts_of_the_run_itself_are_read(tmp_path: Path, read: Read) -> None:
    row = run(
        "a", prompt_tokens="100", completion_tokens=20.0, total_tokens=120,
        prompt_token_details={"cache_read": 64}, outputs=None, extra=None,
    )  # fmt: skip
    found = totals(read(write_json(tmp_path / "runs.json", [row])).requests)
    assert (found["prompt"], found["cached"], found["output"]) == (100, 64, 20)


def test_bodies_of_wrapped_clients_are_read(tmp_path: Path, read: Read) -> None:
    asked = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Rain?"}]}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    answer = {"id": "chatcmpl-1", "choices": [{"message": {"content": "Yes."}}], "usage": usage}
    row = run("a", inputs=asked, outputs=answer, extra={})
    (request,) = read(write_json(tmp_path / "runs.json", [row])).requests
    assert (request.counts.prompt.value, request.output_text) == (9, "Yes.")
    assert request.provider == "openai"


def test_tools_that_ran_have_their_times(tmp_path: Path, read: Read) -> None:
    tool = run(
        "look", "tool", start_time="2026-01-01T00:00:03+00:00", error="gone",
        end_time="2026-01-01T00:00:05+00:00", outputs={"output": {"tool_call_id": "c1"}},
    )  # fmt: skip
    (request,) = read(write_jsonl(tmp_path / "runs.jsonl", run("a"), tool)).requests
    (used,) = request.tools
    assert (used.name, used.own_s.value, used.failed) == ("look", 2, True)


def test_a_failed_run_is_an_error(tmp_path: Path, read: Read) -> None:
    row = run("a", outputs=None, error="RateLimitError")
    (report,) = read(write_jsonl(tmp_path / "runs.jsonl", row, run("b"))).files
    assert (report.requests, report.errors) == (1, 1)


def test_runs_of_two_exports_count_once(tmp_path: Path, read: Read) -> None:
    one = write_jsonl(tmp_path / "a.jsonl", run("a"), run("b"))
    other = write_jsonl(tmp_path / "b.jsonl", run("b"), run("c"))
    assert totals(read(other, one).requests)["requests"] == 3


@given(st.integers(min_value=0))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(damaged(json.dumps([chain(), run("a"), run("b", "tool")]).encode(), seed))
    survives([path])
