"""Traces of the Agents SDK: its generations and responses are requests, its sums are not added."""

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
USAGE = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 64}}
TRACE = {"object": "trace", "id": "t1", "workflow_name": "w", "group_id": "chat-7"}


def span(id: str, kind: str, second: int, parent: str | None = None, **data: Any) -> dict[str, Any]:
    return {
        "object": "trace.span", "id": id, "trace_id": "t1", "parent_id": parent,
        "started_at": f"2026-01-01T00:00:{second:02d}.000000+00:00",
        "ended_at": f"2026-01-01T00:00:{second + 1:02d}.000000+00:00",
        "span_data": {"type": kind, **data}, "error": None,
    }  # fmt: skip


def spans() -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = [{"role": "user", "content": "Rain?"}]
    return [
        TRACE,
        span("agent", "agent", 0, name="Helper"),
        span("task", "custom", 0, "agent", name="task",
             data={"sdk_span_type": "task", "usage": {"input_tokens": 200, "output_tokens": 40}}),
        span("g1", "generation", 1, "task", input=asked, model="gpt-4.1", usage=USAGE,
             output=[{"role": "assistant", "content": None, "tool_calls": [call]}]),
        span("f1", "function", 3, "task", name="look", input="{}", output="rain"),
        span("r1", "response", 5, "task", response_id="resp_1", usage=USAGE),
    ]  # fmt: skip


def test_sums_of_tasks_are_not_added(tmp_path: Path, read: Read) -> None:
    logs = read(write_jsonl(tmp_path / "trace.jsonl", *spans()))
    assert totals(logs.requests) == {
        "requests": 2, "prompt": 200, "cached": 128, "written": 0, "output": 40, "reasoning": 0
    }  # fmt: skip
    first, second = logs.requests
    assert (first.session, first.agent, first.model) == ("chat-7", "Helper", "gpt-4.1")
    assert (first.began_s.value, first.ended_s.value) == (1_767_225_601, 1_767_225_602)
    (tool,) = first.tools
    assert (tool.name, tool.id, tool.own_s.value) == ("look", "c1", 1)
    assert isinstance(first.prompt, Prompt)
    assert not first.prompt.complete
    assert (second.prompt, second.tools) == (None, ())


def test_batches_of_spans_are_read_alike(tmp_path: Path, read: Read) -> None:
    found = read(write_json(tmp_path / "batch.json", {"data": spans()}))
    assert totals(found.requests)["prompt"] == 200
    twice = write_jsonl(tmp_path / "again.jsonl", *spans())
    assert totals(read(tmp_path / "batch.json", twice).requests)["prompt"] == 200


def test_a_response_that_is_there_tells_prompt_and_tools(tmp_path: Path, read: Read) -> None:
    tool = {"type": "function", "name": "look", "parameters": {}}
    body = {"id": "resp_1", "object": "response", "model": "gpt-5", "instructions": "Be brief.",
            "tools": [tool], "output": [{"type": "message", "content": [{"text": "Yes."}]}],
            "usage": USAGE}  # fmt: skip
    made = span("r1", "response", 1, input="Rain?", response=body)
    (request,) = read(write_jsonl(tmp_path / "trace.jsonl", made)).requests
    assert isinstance(request.prompt, Prompt)
    assert request.prompt.complete
    kinds = [piece.kind for piece in request.prompt.pieces if piece.kind != "settings"]
    assert kinds == ["tool", "system", "message"]
    assert (request.output_text, request.counts.prompt.value) == ("Yes.", 100)


def test_a_failed_generation_is_an_error(tmp_path: Path, read: Read) -> None:
    failed = {**span("g2", "generation", 8), "error": {"message": "busy"}}
    (report,) = read(write_jsonl(tmp_path / "trace.jsonl", *spans(), failed)).files
    assert (report.requests, report.errors) == (2, 1)


@given(st.integers(min_value=0))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(damaged(json.dumps(spans()).encode(), seed))
    survives([path])
