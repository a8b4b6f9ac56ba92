"""Helicone's and Portkey's exports: a row a request, columns that are not there are not zero."""

import csv
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
ASKED = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Rain?"}]}
ANSWER = {"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "Yes."}}]}


def helicone(id: str = "h1", **more: Any) -> dict[str, Any]:
    return {
        "request_id": id, "request_created_at": "2026-01-01T00:00:00.000Z",
        "response_created_at": "2026-01-01T00:00:02.000Z", "delay_ms": 2000,
        "time_to_first_token": 500, "request_model": "gpt-4.1", "provider": "OPENAI",
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_cache_read_tokens": 64, "prompt_cache_write_tokens": 0, "cost": 0.25,
        "request_body": ASKED, "response_body": ANSWER, "response_status": 200,
        "request_properties": {"Helicone-Session-Id": "s1"}, **more,
    }  # fmt: skip


def portkey(**more: Any) -> dict[str, Any]:
    return {
        "id": "p1", "trace_id": "t1", "created_at": "2026-01-01T00:00:00Z", "request": ASKED,
        "response": ANSWER, "ai_org": "openai", "ai_model": "gpt-4.1", "req_units": 100,
        "res_units": 20, "response_time": 1500, "cost": 12, "response_status_code": 200, **more,
    }  # fmt: skip


def test_helicone_tells_times_in_milliseconds(tmp_path: Path, read: Read) -> None:
    (request,) = read(write_jsonl(tmp_path / "h.jsonl", helicone())).requests
    began, first, ended = (one.value for one in (request.began_s, request.first_s, request.ended_s))
    assert (began, first, ended) == (1_767_225_600, 1_767_225_600.5, 1_767_225_602)
    assert totals([request]) == {
        "requests": 1, "prompt": 100, "cached": 64, "written": 0, "output": 20, "reasoning": 0
    }  # fmt: skip
    assert (request.session, request.provider, request.cost_usd.value) == ("s1", "openai", 0.25)
    assert isinstance(request.prompt, Prompt)
    assert request.prompt.complete


def test_helicone_s_rows_are_csv_too(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "h.csv"
    row = {
        key: json.dumps(one) if isinstance(one, dict) else one for key, one in helicone().items()
    }
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    (request,) = read(path).requests
    assert (request.counts.prompt.value, request.session, request.output_text) == (
        100, "s1", "Yes."
    )  # fmt: skip


def test_what_anthropic_has_beside_its_input_is_told_by_the_total(
    tmp_path: Path, read: Read
) -> None:
    tokens: dict[str, Any] = {
        "prompt_tokens": 50,
        "completion_tokens": 20,
        "prompt_cache_read_tokens": 40,
    }
    beside = helicone(provider="ANTHROPIC", **tokens, total_tokens=110)
    (request,) = read(write_jsonl(tmp_path / "a.jsonl", beside)).requests
    assert request.counts.prompt.value == 90
    inside = helicone(provider="ANTHROPIC", **tokens, total_tokens=70)
    (request,) = read(write_jsonl(tmp_path / "b.jsonl", inside)).requests
    assert request.counts.prompt.value == 50
    vague = helicone(provider="ANTHROPIC", **tokens, total_tokens=None)
    (request,) = read(write_jsonl(tmp_path / "c.jsonl", vague)).requests
    assert request.unknown_cache


def test_the_gateway_s_own_cache_asked_no_model(tmp_path: Path, read: Read) -> None:
    rows = [helicone(), helicone("h2", cache_reference_id="0f0f"), helicone("h3", cache_hit=True)]
    (report,) = read(write_jsonl(tmp_path / "h.jsonl", *rows)).files
    assert (report.requests, sum(report.skipped.values())) == (1, 2)


def test_statuses_of_failures_are_errors(tmp_path: Path, read: Read) -> None:
    none = {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}
    rows = [helicone("a", response_status=-3, **none), helicone("b", response_status=429, **none)]
    (report,) = read(write_jsonl(tmp_path / "h.jsonl", *rows, helicone())).files
    assert (report.requests, report.errors) == (1, 2)


def test_portkey_s_cost_has_no_unit_and_is_not_taken(tmp_path: Path, read: Read) -> None:
    (request,) = read(write_json(tmp_path / "p.json", [portkey()])).requests
    assert (request.counts.prompt.value, request.counts.output.value) == (100, 20)
    assert (request.session, request.cost_usd.kind) == ("t1", "absent")
    assert request.ended_s.value == 1_767_225_601.5


def test_columns_that_were_not_exported_are_absent(tmp_path: Path, read: Read) -> None:
    row = {"id": "p1", "created_at": "2026-01-01T00:00:00Z", "ai_model": "gpt-4.1"}
    (request,) = read(write_jsonl(tmp_path / "p.jsonl", row)).requests
    kinds = {request.counts.prompt.kind, request.counts.output.kind, request.ended_s.kind}
    assert kinds == {"absent"}


@given(st.integers(min_value=0), st.booleans())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_raises(tmp_path: Path, seed: int, other: bool) -> None:
    path = tmp_path / "a.jsonl"
    row = json.dumps(portkey() if other else helicone()) + "\n"
    path.write_bytes(damaged(row.encode() * 2, seed))
    survives([path])
