"""mini-swe-agent: an answer is a request, also one that could not be parsed."""

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


def usage(prompt: int, output: int, cached: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output}
    if cached is not None:
        found["prompt_tokens_details"] = {"cached_tokens": cached}
    return found


def answer(number: int, used: dict[str, Any], **more: Any) -> dict[str, Any]:
    response = {"id": f"r{number}", "model": "gpt-x-2026", "usage": used}
    extra = {"response": response, "cost": 0.01, "timestamp": 1000.0 + number}
    call = {"id": f"c{number}", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
    return {
        "role": "assistant",
        "content": f"Step {number}.",
        "tool_calls": [call],
        "extra": extra,
        **more,
    }


def result(number: int, code: int = 0) -> dict[str, Any]:
    extra = {"returncode": code, "timestamp": 1000.5 + number}
    return {"role": "tool", "tool_call_id": f"c{number}", "content": "a.py", "extra": extra}


def unparsed(number: int, used: dict[str, Any]) -> dict[str, Any]:
    response = {
        "id": f"r{number}",
        "usage": used,
        "choices": [{"message": {"role": "assistant", "content": "No call."}}],
    }
    extra = {"response": response, "cost": 0.02, "timestamp": 1000.0 + number}
    return {"role": "user", "content": "Format error.", "extra": extra}


def run(*messages: Any, **info: Any) -> dict[str, Any]:
    head = [
        {"role": "system", "content": "Be brief.", "extra": {"timestamp": 990.0}},
        {"role": "user", "content": "Fix it.", "extra": {"timestamp": 1000.0}},
    ]
    config = {"model": {"model_name": "openai/gpt-x"}}
    return {
        "info": {"mini_version": "2.1.0", "config": config, **info},
        "messages": [*head, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
    }


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2))
    return path


def test_each_answer_has_its_own_counts_times_and_cost(tmp_path: Path, read: Read) -> None:
    made = run(
        answer(1, usage(100, 10, 64)), result(1, code=2), answer(3, usage(200, 20)), result(3)
    )
    first, second = read(write(tmp_path / "a.traj.json", made)).requests
    assert (first.counts.prompt.value, first.counts.prompt.kind) == (100, "measured")
    assert first.counts.cache_read.value == 64
    assert second.counts.cache_read.kind == "absent"
    assert (first.cost_usd.value, first.cost_usd.kind) == (0.01, "measured")
    assert (first.began_s.value, first.ended_s.value, first.gap) == (1000.0, 1001.0, True)
    assert (first.provider, first.model) == ("openai", "gpt-x-2026")
    (tool,) = first.tools
    assert (tool.name, tool.began_s.value, tool.ended_s.value, tool.failed) == (
        "bash", 1001.0, 1001.5, True
    )  # fmt: skip


def test_an_answer_that_could_not_be_parsed_is_a_request(tmp_path: Path, read: Read) -> None:
    made = run(unparsed(1, usage(50, 5)), answer(2, usage(100, 10)), result(2))
    logs = read(write(tmp_path / "a.traj.json", made))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (2, 150, 15)
    assert logs.requests[0].output_text == "No call."


def test_answers_of_the_responses_api_are_read(tmp_path: Path, read: Read) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"}
    text = {"type": "message", "content": [{"type": "output_text", "text": "I look."}]}
    used = {
        "input_tokens": 300,
        "output_tokens": 30,
        "input_tokens_details": {"cached_tokens": 256},
        "output_tokens_details": {"reasoning_tokens": 12},
    }
    made = run(
        {
            "object": "response",
            "id": "r1",
            "model": "gpt-x",
            "output": [text, call],
            "usage": used,
            "extra": {"timestamp": 1001.0, "cost": 0.01},
        },
        {"type": "function_call_output", "call_id": "c1", "output": "a.py", "extra": {}},
    )
    (one,) = read(write(tmp_path / "a.traj.json", made)).requests
    assert (one.counts.prompt.value, one.counts.cache_read.value) == (300, 256)
    assert (one.counts.output.value, one.counts.reasoning.value) == (30, 12)
    assert one.output_text == "I look."
    assert [tool.name for tool in one.tools] == ["bash"]


def test_anthropics_own_counts_leave_cached_tokens_out(tmp_path: Path, read: Read) -> None:
    used = {"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 7}
    (one,) = read(write(tmp_path / "a.traj.json", run(answer(1, used)))).requests
    assert (one.counts.prompt.value, one.counts.prompt.kind) == (903, "derived")


def test_the_bare_list_of_version_1_is_estimated_from_its_text(tmp_path: Path, read: Read) -> None:
    made = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "```bash\nls\n```"},
        {"role": "user", "content": "<returncode>1</returncode>"},
    ]
    (one,) = read(write(tmp_path / "old.json", made)).requests
    assert one.counts.prompt.kind == one.counts.output.kind == "estimated"
    assert isinstance(one.prompt, Prompt)
    assert one.prompt.complete
    assert one.counts.prompt.value == -(-sum(len(piece.raw) for piece in one.prompt.pieces) // 4)
    (tool,) = one.tools
    assert (tool.name, tool.failed) == ("bash", True)
    assert one.cost_usd.kind == "absent"


def test_calls_that_left_no_message_make_totals_at_least(tmp_path: Path, read: Read) -> None:
    made = run(answer(1, usage(1, 1)), model_stats={"api_calls": 3})
    (report,) = read(write(tmp_path / "a.traj.json", made)).files
    assert report.at_least
    assert report.notes == ["2 of its calls left no message"]


def test_the_cost_of_a_run_is_shared_where_no_request_has_its_own(
    tmp_path: Path, read: Read
) -> None:
    answers = [answer(1, usage(100, 1)), answer(2, usage(300, 1))]
    for one in answers:
        del one["extra"]["cost"]
    made = run(*answers, model_stats={"api_calls": 2, "instance_cost": 0.4})
    costs = [one.cost_usd for one in read(write(tmp_path / "a.traj.json", made)).requests]
    assert [(round(one.value or 0, 6), one.kind) for one in costs] == [
        (0.1, "estimated"), (0.3, "estimated")
    ]  # fmt: skip


def test_an_answer_in_an_early_and_a_final_state_of_a_run_counts_once(
    tmp_path: Path, read: Read
) -> None:
    first, second = answer(1, usage(100, 10)), answer(2, usage(200, 20))
    early = write(tmp_path / "a.traj.json", run(first))
    final = write(tmp_path / "b.traj.json", run(first, result(1), second))
    forward, backward = read(early, final), read(final, early)
    assert totals(forward.requests)["prompt"] == 300
    assert forward.requests == backward.requests


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.traj.json"
    made = run(answer(1, usage(100, 10, 5)), result(1), unparsed(2, usage(5, 5)))
    path.write_bytes(damaged(json.dumps(made).encode(), seed))
    survives([path])


def test_the_public_trajectory_has_a_request_for_each_answer(data: Path, read: Read) -> None:
    """22 messages: the system's, the task's, then ten answers and their ten observations. The last
    observation is the submission, without a code of return."""
    path = data / "logs" / "mini-swe-agent" / "github_issue.traj.json"
    answers = [one for one in json.loads(path.read_text()) if one["role"] == "assistant"]
    logs = read(path)
    assert [one.output_text for one in logs.requests] == [one["content"] for one in answers]
    assert len(answers) == 10
    assert {one.counts.prompt.kind for one in logs.requests} == {"estimated"}
