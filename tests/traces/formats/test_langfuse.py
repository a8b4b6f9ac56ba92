"""Langfuse: a generation is a request, cached tokens count once, sums of others not at all."""

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
USAGE = {"input": 100, "output": 20, "total": 120}


def generation(id: str = "g1", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "traceId": "t1", "type": "GENERATION", "parentObservationId": None,
        "startTime": "2026-01-01T00:00:00.000Z", "endTime": "2026-01-01T00:00:02.000Z",
        "completionStartTime": None, "model": "gpt-4.1", "modelParameters": {},
        "usageDetails": usage, "costDetails": {"total": 0.5}, "level": "DEFAULT",
        "latency": 2000, "input": [{"role": "user", "content": "Rain?"}],
        "output": {"role": "assistant", "content": "Yes."}, "metadata": {}, **more,
    }  # fmt: skip


def download(*observations: dict[str, Any]) -> dict[str, Any]:
    return {"trace": {"id": "t1", "sessionId": "s1"}, "observations": list(observations)}


def only(logs: Logs) -> RecordedRequest:
    (request,) = logs.requests
    return request


def snaked(row: dict[str, Any]) -> dict[str, Any]:
    """As blobs have it: snake case, times without a zone, members that are JSON in text."""
    names = {"traceId": "trace_id", "parentObservationId": "parent_observation_id"}
    names |= {"startTime": "start_time", "endTime": "end_time", "usageDetails": "usage_details"}
    names |= {"costDetails": "cost_details", "completionStartTime": "completion_start_time"}
    found = {names.get(key, key): one for key, one in row.items()}
    found["start_time"] = "2026-01-01 00:00:00.000000"
    found["end_time"] = "2026-01-01 00:00:02.000000"
    found["usage_details"] = json.dumps(found["usage_details"])
    return found


def test_all_shapes_of_exports_tell_the_same(tmp_path: Path, read: Read) -> None:
    shapes: dict[str, Any] = {
        "download": download(generation()),
        "page": {"data": [generation()], "meta": {"page": 1}},
        "list": [generation()],
        "blob": [snaked(generation())],
        "text": [{**generation(), "input": json.dumps(generation()["input"])}],
    }
    for name, value in shapes.items():
        request = only(read(write_json(tmp_path / f"{name}.json", value)))
        assert (request.counts.prompt.value, request.counts.output.value) == (100, 20), name
        assert (request.began_s.value, request.ended_s.value) == (1_767_225_600, 1_767_225_602)
        assert (request.cost_usd.value, request.output_text) == (0.5, "Yes.")
        assert isinstance(request.prompt, Prompt)
        assert [piece.path for piece in request.prompt.pieces] == ["messages[0]"]
    lines = write_jsonl(tmp_path / "lines.jsonl", generation(), snaked(generation("g2")))
    assert totals(read(lines).requests)["prompt"] == 200


def test_csv_has_its_members_in_cells(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "observations.csv"
    row = {key: one if isinstance(one, str) else json.dumps(one) for key, one in
           generation().items()}  # fmt: skip
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    request = only(read(path))
    assert (request.counts.prompt.value, request.cost_usd.value) == (100, 0.5)


def test_the_session_is_the_trace_s(tmp_path: Path, read: Read) -> None:
    path = write_json(tmp_path / "a.json", download(generation()))
    assert only(read(path)).session == "s1"


@pytest.mark.parametrize(
    ("usage", "attributes", "prompt"),
    [
        # overlapping parts, and a total that says so
        ({"input": 17_903, "input_cached_tokens": 17_817, "output": 10, "total": 17_913}, {},
         17_903),
        # disjoint ones
        ({"input": 86, "input_cached_tokens": 17_817, "output": 10, "total": 17_913}, {}, 17_903),
        # stored as if they were disjoint, their total too: the span knows better
        ({"input": 130_213, "input_cache_read": 128_955, "input_cache_creation": 1_253,
          "output": 7, "total": 260_428},
         {"gen_ai.usage.input_tokens": 130_213, "gen_ai.usage.output_tokens": 7,
          "gen_ai.usage.cache_read.input_tokens": 128_955,
          "gen_ai.usage.cache_creation.input_tokens": 1_253}, 130_213),
        ({"input": 5, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1_253,
          "output": 7}, {}, 130_213),
    ],
)  # fmt: skip
def test_cached_tokens_count_once(
    tmp_path: Path, read: Read, usage: Any, attributes: Any, prompt: int
) -> None:
    row = generation(usage=usage, metadata={"attributes": attributes})
    request = only(read(write_json(tmp_path / "a.json", [row])))
    assert request.counts.prompt.value == prompt
    assert not request.unknown_cache


def test_where_nothing_tells_what_is_inside_what_that_is_said(tmp_path: Path, read: Read) -> None:
    usage = {"input": 100, "input_cached_tokens": 40, "output": 10}
    request = only(read(write_json(tmp_path / "a.json", [generation(usage=usage)])))
    assert request.unknown_cache


def test_a_generation_with_the_sum_of_those_below_it_is_no_request(
    tmp_path: Path, read: Read
) -> None:
    rows = [
        generation("agent", {"input": 300, "output": 30}),
        generation("a", {"input": 100, "output": 10}, parentObservationId="span"),
        generation("b", {"input": 200, "output": 20}, parentObservationId="agent"),
        {**generation("span", {}, parentObservationId="agent"), "type": "SPAN"},
        {**generation("chain", {"input": 300, "output": 30}), "type": "CHAIN"},
    ]
    logs = read(write_json(tmp_path / "a.json", download(*rows)))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (2, 300, 30)


def test_an_observation_in_two_exports_counts_once(tmp_path: Path, read: Read) -> None:
    one = write_json(tmp_path / "a.json", download(generation()))
    other = write_jsonl(tmp_path / "b.jsonl", snaked(generation()), generation("g2"))
    forward, backward = read(one, other), read(other, one)
    assert totals(forward.requests)["prompt"] == 200
    assert forward.requests == backward.requests


def test_a_tool_s_observation_gives_the_call_its_times(tmp_path: Path, read: Read) -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    asks = generation(output=[{"role": "assistant", "parts": [call]}])
    tool = {
        **generation("tool", {}), "type": "TOOL", "name": "running tool: look",
        "startTime": "2026-01-01T00:00:03Z", "endTime": "2026-01-01T00:00:04Z",
        "metadata": {"attributes": {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}},
    }  # fmt: skip
    (used,) = only(read(write_json(tmp_path / "a.json", download(asks, tool)))).tools
    assert (used.name, used.id, used.own_s.value) == ("look", "c1", 1)


def test_tools_among_the_messages_are_no_messages(tmp_path: Path, read: Read) -> None:
    tool = {"role": "tool", "content": {"type": "function", "function": {"name": "look"}}}
    row = generation(input=[{"role": "user", "content": "Rain?"}, tool])
    request = only(read(write_json(tmp_path / "a.json", [row])))
    assert isinstance(request.prompt, Prompt)
    assert [piece.kind for piece in request.prompt.pieces] == ["tool", "message"]


def test_errors_without_tokens_are_no_requests(tmp_path: Path, read: Read) -> None:
    rows = [generation("a", {}, level="ERROR"), generation("b")]
    (report,) = read(write_json(tmp_path / "a.json", download(*rows))).files
    assert (report.requests, report.errors) == (1, 1)


@given(st.integers(min_value=0))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.json"
    rows = [generation("a", parentObservationId="b"), generation("b", parentObservationId="a")]
    path.write_bytes(damaged(json.dumps(download(*rows)).encode(), seed))
    survives([path])


def test_the_public_downloads_have_their_totals(data: Path, read: Read) -> None:
    """Their generations stand side by side: no sums among them, so their parts can be added."""
    for path in sorted((data / "logs" / "langfuse").glob("*.json")):
        rows = json.loads(path.read_text())["observations"]
        asked = [row for row in rows if row["type"] == "GENERATION"]
        found = totals(read(path).requests)
        assert found["requests"] == len(asked)
        assert found["prompt"] == sum(row["usageDetails"]["input"] for row in asked)
        assert found["output"] == sum(row["usageDetails"]["output"] for row in asked)
        costs = [request.cost_usd.value for request in read(path).requests]
        assert sum(cost or 0 for cost in costs) == pytest.approx(
            sum(float(row["totalCost"]) for row in asked)
        )
    prompts = {path.name: totals(read(path).requests)["prompt"] for path in
               (data / "logs" / "langfuse").glob("*.json")}  # fmt: skip
    assert sorted(prompts.values()) == [140, 168, 1315]
