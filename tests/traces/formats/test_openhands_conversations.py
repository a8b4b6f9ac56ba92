"""OpenHands: calls as its state lists them, or as its sums grew; never a sum as a call, and never
a call twice."""

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


def usage(own: str, prompt: int, output: int, read: int = 0) -> dict[str, Any]:
    return {
        "model": "openai/gpt-x",
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "cache_read_tokens": read,
        "cache_write_tokens": 0,
        "reasoning_tokens": 1,
        "per_turn_token": prompt + output,
        "response_id": own,
    }


def metrics(*rows: dict[str, Any], more_prompt: int = 0) -> dict[str, Any]:
    names = ("prompt_tokens", "completion_tokens", "cache_read_tokens")
    total = {name: sum(row[name] for row in rows) for name in names}
    total["prompt_tokens"] += more_prompt
    if rows:
        total["per_turn_token"] = rows[-1]["per_turn_token"]
    return {
        "model_name": "openai/gpt-x",
        "accumulated_cost": 0.1 * len(rows),
        "accumulated_token_usage": total,
        "costs": [{"model": "m", "cost": 0.1, "timestamp": 1000.0 + i} for i, _ in enumerate(rows)],
        "response_latencies": [{"latency": 2.5, "response_id": row["response_id"]} for row in rows],
        "token_usages": list(rows),
    }


def sums(*rows: dict[str, Any]) -> dict[str, Any]:
    """A snapshot: the sums alone."""
    kept = ("model_name", "accumulated_cost", "accumulated_token_usage")
    return {key: value for key, value in metrics(*rows).items() if key in kept}


def event(number: int, kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:00:{number:02d}.000000"
    return {"id": f"e{number}", "timestamp": at, "source": source, "kind": kind, **more}


def said(number: int, role: str, words: str, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": words}]}
    source = "agent" if role == "assistant" else "user"
    return event(number, "MessageEvent", source, llm_message=message, **more)


def acted(number: int, response: str, call: str) -> dict[str, Any]:
    return event(
        number,
        "ActionEvent",
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": "{}"},
        thought=[{"type": "text", "text": "I look."}],
        llm_response_id=response,
    )


def observed(number: int, call: str, *, is_error: bool = False) -> dict[str, Any]:
    seen = {"content": [{"type": "text", "text": "a.py"}], "is_error": is_error}
    return event(number, "ObservationEvent", "environment", tool_call_id=call, observation=seen)


def stats(number: int, **by_usage: Any) -> dict[str, Any]:
    value = {"usage_to_metrics": by_usage}
    return event(number, "ConversationStateUpdateEvent", "environment", key="stats", value=value)


SYSTEM = event(
    0,
    "SystemPromptEvent",
    system_prompt={"type": "text", "text": "Be brief."},
    tools=[{"name": "terminal"}],
)
EVENTS = [
    SYSTEM,
    said(1, "user", "Fix it."),
    acted(2, "r1", "c1"),
    acted(3, "r1", "c2"),
    observed(4, "c1"),
    observed(5, "c2", is_error=True),
    said(6, "assistant", "Done.", llm_response_id="r2"),
]


def folder(path: Path, events: list[Any], usages: dict[str, Any] | None) -> Path:
    (path / "events").mkdir(parents=True)
    for number, one in enumerate(events):
        (path / "events" / f"event-{number:05d}-{one['id']}.json").write_text(json.dumps(one))
    if usages is not None:
        state = {"id": "conv1", "agent": {}, "workspace": {}, "execution_status": "finished"}
        state["stats"] = {"usage_to_metrics": usages}
        (path / "base_state.json").write_text(json.dumps(state))
    return path


def lines(path: Path, events: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    return path


def test_the_state_lists_each_call_with_its_cost_and_latency(tmp_path: Path, read: Read) -> None:
    usages = {
        "default": metrics(usage("r1", 100, 10, 64), usage("r2", 200, 20)),
        "condenser": metrics(usage("r9", 50, 5)),
    }
    logs = read(folder(tmp_path / "conv", EVENTS, usages))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["cached"], found["output"]) == (
        3, 350, 64, 35
    )  # fmt: skip
    by_id = {one.id: one for one in logs.requests}
    assert by_id["r9"].agent == "condenser"
    assert (by_id["r1"].began_s.value, by_id["r1"].ended_s.value) == (997.5, 1000.0)
    assert by_id["r1"].ended_s.kind == "measured"
    assert (by_id["r1"].cost_usd.value, by_id["r1"].provider) == (0.1, "openai")
    assert all(report.format == "openhands" for report in logs.files)


def test_parallel_calls_of_one_response_are_one_request(tmp_path: Path, read: Read) -> None:
    usages = {"default": metrics(usage("r1", 100, 10), usage("r2", 200, 20))}
    by_id = {one.id: one for one in read(folder(tmp_path / "c", EVENTS, usages)).requests}
    assert [(tool.id, tool.failed) for tool in by_id["r1"].tools] == [("c1", False), ("c2", True)]
    assert by_id["r1"].tools[0].ended_s.kind == "estimated"
    first, second = by_id["r1"].prompt, by_id["r2"].prompt
    assert isinstance(first, Prompt)
    assert isinstance(second, Prompt)
    assert [piece.kind for piece in first.pieces] == ["tool", "system", "message"]
    assert [piece.role for piece in second.pieces][2:] == [
        "user", "assistant", "assistant", "tool", "tool"
    ]  # fmt: skip
    assert second.pieces[0] is first.pieces[0]


def test_sums_that_grow_are_calls_by_their_differences(tmp_path: Path, read: Read) -> None:
    one, two = usage("", 100, 10, 60), usage("", 200, 20, 100)
    events = [
        SYSTEM,
        said(1, "user", "Fix it."),
        stats(2, default=sums(one), condenser=sums()),
        acted(3, "r1", "c1"),
        stats(4, default=sums(one), condenser=sums()),
        stats(5, default=sums(one, two), condenser=sums(usage("", 7, 1))),
    ]
    logs = read(lines(tmp_path / "events.jsonl", events))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"], found["cached"]) == (
        3, 307, 31, 160
    )  # fmt: skip
    assert {request.counts.prompt.kind for request in logs.requests} == {"derived"}
    first = next(one for one in logs.requests if one.counts.prompt.value == 100)
    assert [tool.name for tool in first.tools] == ["terminal"]
    assert logs.files[0].notes == ["times of its events have no zone and are read as UTC"]


def test_sums_that_begin_anew_are_not_negative(tmp_path: Path, read: Read) -> None:
    events = [stats(1, default=sums(usage("", 900, 9))), stats(2, default=sums(usage("", 50, 5)))]
    found = totals(read(lines(tmp_path / "events.jsonl", events)).requests)
    assert (found["requests"], found["prompt"], found["output"]) == (2, 950, 14)


def test_a_difference_of_several_requests_says_so(tmp_path: Path, read: Read) -> None:
    events = [stats(1, default=sums(usage("", 100, 10), usage("", 200, 20)))]
    (one,) = read(lines(tmp_path / "events.jsonl", events)).requests
    assert one.counts.prompt.value == 300
    assert "several requests" in one.notes[0]


def test_agents_over_acp_count_cached_tokens_beside_the_prompt(tmp_path: Path, read: Read) -> None:
    usages = {"default": metrics(usage("r1", 10, 1, 5), usage("r2", 20, 2, 900))}
    found = totals(read(folder(tmp_path / "c", EVENTS, usages)).requests)
    assert (found["prompt"], found["cached"]) == (935, 905)


def test_tokens_that_stand_in_no_call_make_totals_at_least(tmp_path: Path, read: Read) -> None:
    usages = {"default": metrics(usage("r1", 100, 10), more_prompt=40)}
    logs = read(folder(tmp_path / "c", [], usages))
    (report,) = logs.files
    assert report.at_least
    assert "40 prompt tokens" in report.notes[0]


def test_a_condensation_takes_out_what_is_forgotten_and_begins_a_chain(
    tmp_path: Path, read: Read
) -> None:
    condensed = event(
        7,
        "Condensation",
        "environment",
        forgotten_event_ids=["e2", "e3", "e4", "e5"],
        summary="It looked.",
        summary_offset=1,
        llm_response_id="r8",
    )
    events = [*EVENTS[:-1], condensed, said(8, "assistant", "Done.", llm_response_id="r2")]
    usages = {"default": metrics(usage("r1", 100, 10), usage("r2", 90, 9))}
    by_id = {one.id: one for one in read(folder(tmp_path / "c", events, usages)).requests}
    assert (by_id["r1"].starts, by_id["r2"].starts) == ("", "compaction")
    prompt = by_id["r2"].prompt
    assert isinstance(prompt, Prompt)
    assert [piece.raw for piece in prompt.pieces][-1] == b"It looked."
    assert len(prompt.pieces) == 4


def test_without_any_counts_tokens_are_estimated(tmp_path: Path, read: Read) -> None:
    logs = read(lines(tmp_path / "events.jsonl", EVENTS))
    assert [one.id for one in logs.requests] == ["r1", "r2"]
    assert {one.counts.prompt.kind for one in logs.requests} == {"estimated"}


def test_a_copy_of_a_conversation_counts_once(tmp_path: Path, read: Read) -> None:
    early = {"default": metrics(usage("r1", 100, 10))}
    late = {"default": metrics(usage("r1", 100, 10), usage("r2", 200, 20))}
    one = folder(tmp_path / "a", EVENTS[:4], early)
    two = folder(tmp_path / "b", EVENTS, late)
    forward, backward = read(one, two), read(two, one)
    assert totals(forward.requests)["prompt"] == 300
    assert forward.requests == backward.requests


def test_the_same_events_as_lines_and_in_a_folder_count_once(tmp_path: Path, read: Read) -> None:
    events = [stats(1, default=sums(usage("", 100, 10))), acted(2, "r1", "c1")]
    folder(tmp_path / "a", events, None)
    lines(tmp_path / "z.jsonl", events)
    assert totals(read(tmp_path).requests)["requests"] == 1


def test_files_of_events_go_by_their_numbers(tmp_path: Path, read: Read) -> None:
    folder_path = tmp_path / "c" / "events"
    folder_path.mkdir(parents=True)
    first, second = sums(usage("", 100, 10)), sums(usage("", 100, 10), usage("", 200, 20))
    (folder_path / "event-99999-a.json").write_text(json.dumps(stats(1, default=first)))
    (folder_path / "event-100000-b.json").write_text(json.dumps(stats(2, default=second)))
    assert totals(read(tmp_path).requests)["prompt"] == 300


def classic(number: int, *, sum_of: list[dict[str, Any]] | None = None, **more: Any) -> Any:
    at = f"2025-01-01T00:00:{number:02d}.000000"
    found = {"id": number, "timestamp": at, "source": "agent", **more}
    if sum_of:
        found["llm_metrics"] = sums(*sum_of)
    return found


def response(own: str, prompt: int) -> dict[str, Any]:
    used = {"prompt_tokens": prompt, "completion_tokens": 5}
    return {"function_name": "execute_bash", "model_response": {"id": own, "usage": used}}


@pytest.mark.parametrize("counted", ["sums", "lists", "responses"])
def test_trajectories_of_before_the_sdk_count_parallel_actions_once(
    tmp_path: Path, read: Read, counted: str
) -> None:
    one, two = usage("r1", 100, 5), usage("r2", 200, 5)
    task = {"action": "message", "args": {"content": "Fix it."}}
    events = [
        classic(0, action="message", args={"content": "Fix it."}),
        classic(1, action="run", tool_call_metadata=response("r1", 100)),
        classic(2, action="run", tool_call_metadata=response("r1", 100)),
        classic(3, observation="run", cause=1, content="a.py", extras={"exit_code": 1}),
        classic(4, action="finish", tool_call_metadata=response("r2", 200)),
    ]
    events[0] |= {"source": "user", **task}
    for at, rows in ((1, [one]), (2, [one]), (4, [one, two])):
        if counted == "sums":
            events[at]["llm_metrics"] = sums(*rows)
        elif counted == "lists":
            events[at]["llm_metrics"] = metrics(*rows)
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(events))
    logs = read(path)
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (2, 300, 10)
    first = next(one for one in logs.requests if one.counts.prompt.value == 100)
    assert [(tool.name, tool.failed) for tool in first.tools] == [
        ("execute_bash", True), ("execute_bash", False)
    ]  # fmt: skip


def test_lines_of_an_evaluation_are_conversations(tmp_path: Path, read: Read) -> None:
    rows = [
        {
            "instance_id": f"task-{number}",
            "history": EVENTS,
            "metrics": metrics(usage(f"r{number}", 100, 10)),
        }
        for number in (1, 2)
    ]
    logs = read(lines(tmp_path / "output.jsonl", rows))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"]) == (2, 200)
    assert len({one.session for one in logs.requests}) == 2


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    extra = [stats(7, default=sums(usage("", 100, 10))), {"kind": "Condensation", **EVENTS[0]}]
    path = lines(tmp_path / "events.jsonl", [*EVENTS, *extra])
    path.write_bytes(damaged(path.read_bytes(), seed))
    state = tmp_path / "base_state.json"
    usages = {"default": metrics(usage("r1", 100, 10))}
    whole = {"id": "c", "stats": {"usage_to_metrics": usages}}
    state.write_bytes(damaged(json.dumps(whole).encode(), seed))
    old = tmp_path / "old" / "trajectory.json"
    old.parent.mkdir(exist_ok=True)
    made = [
        classic(1, action="run", sum_of=[usage("", 1, 1)], tool_call_metadata=response("r1", 5)),
        classic(2, observation="run", cause=1, content="x", extras={"exit_code": 0}),
    ]
    old.write_bytes(damaged(json.dumps(made).encode(), seed))
    survives([path, state, old])


def test_the_public_events_sum_to_their_last_sums(data: Path, read: Read) -> None:
    """Four times the sums grew, and the last of them are the totals of the conversation."""
    path = data / "logs" / "openhands" / "events.jsonl"
    told = [
        json.loads(line)["value"]["usage_to_metrics"]["default"]["accumulated_token_usage"]
        for line in path.read_text().splitlines()
        if '"key":"stats"' in line
    ]
    found = totals(read(path).requests)
    assert found == {
        "requests": len(told),
        "prompt": told[-1]["prompt_tokens"],
        "cached": told[-1]["cache_read_tokens"],
        "written": 0,
        "output": told[-1]["completion_tokens"],
        "reasoning": 0,
    }
    assert (found["requests"], found["prompt"], found["output"]) == (4, 107458, 1347)
