"""SWE-agent: the sums of a run stay what its file says, spread over as many requests as it made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.estimates import cost_shares, shares
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import damaged, survives, totals

Read = Callable[..., Logs]

STATS = {"instance_cost": 0.25, "tokens_sent": 1001, "tokens_received": 99, "api_calls": 2}


def message(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main", **more}


def run(**more: Any) -> dict[str, Any]:
    history = [
        message("system", "You fix bugs.", message_type="system_prompt"),
        message("user", "A demonstration.", is_demo=True),
        message("assistant", "I show how.", is_demo=True),
        message("user", "Fix it."),
        message("assistant", "I look.", action="ls -a"),
        message("user", "a.py"),
    ]
    steps = [
        {"action": "ls -a", "response": "I look.", "observation": "a.py", "execution_time": 0.5},
        {"action": "submit", "response": "Done, it is fixed now.", "observation": ""},
    ]
    return {
        "environment": "main",
        "trajectory": steps,
        "history": history,
        "info": {"model_stats": STATS},
        "replay_config": json.dumps({"agent": {"model": {"name": "openai/gpt-x"}}}),
        **more,
    }


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1))
def test_shares_of_a_whole_are_whole_and_sum_to_it(total: int, weights: list[int]) -> None:
    found = shares(total, weights)
    assert sum(found) == total
    assert len(found) == len(weights)
    assert all(one >= 0 and one == int(one) for one in found)


def test_shares_follow_the_weights() -> None:
    assert shares(100, [1, 3, 0]) == [25, 75, 0]
    assert shares(4, [0, 0]) == [2, 2]
    assert [one.value for one in cost_shares(1.0, [1, 3])] == [0.25, 0.75]


def test_sums_stay_as_the_file_has_them_and_shares_are_estimates(
    tmp_path: Path, read: Read
) -> None:
    logs = read(write(tmp_path / "a.traj", run()))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (2, 1001, 99)
    assert sum(one.cost_usd.value or 0 for one in logs.requests) == pytest.approx(0.25)
    assert {one.counts.prompt.kind for one in logs.requests} == {"estimated"}
    assert "its share" in logs.files[0].notes[0]
    short, long = logs.requests
    assert (short.counts.prompt.value or 0) < (long.counts.prompt.value or 0)


def test_prompts_are_what_came_before_in_the_history(tmp_path: Path, read: Read) -> None:
    first, second = read(write(tmp_path / "a.traj", run())).requests
    assert isinstance(first.prompt, Prompt)
    assert isinstance(second.prompt, Prompt)
    assert [piece.role for piece in first.prompt.pieces] == ["system", "user", "assistant", "user"]
    assert len(second.prompt.pieces) == 6
    assert second.prompt.pieces[0] is first.prompt.pieces[0]
    assert not first.prompt.complete
    assert [tool.name for tool in first.tools] == ["ls"]
    assert first.tools[0].own_s.value == 0.5
    assert (first.provider, first.model) == ("openai", "gpt-x")


def test_a_query_is_the_exact_prompt(tmp_path: Path, read: Read) -> None:
    steps = [
        {"response": "a", "action": "ls", "query": [message("system", "S"), message("user", "U")]},
        {"response": "b", "action": "ls", "query": [message("system", "S"), message("user", "V")]},
    ]
    first, second = read(write(tmp_path / "a.traj", run(trajectory=steps))).requests
    assert isinstance(first.prompt, Prompt)
    assert isinstance(second.prompt, Prompt)
    assert first.prompt.complete
    assert [json.loads(piece.raw) for piece in first.prompt.pieces] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
    ]
    assert first.prompt.pieces[0] is second.prompt.pieces[0]


def test_calls_that_left_no_step_are_requests_too(tmp_path: Path, read: Read) -> None:
    info = {"model_stats": {**STATS, "api_calls": 5}}
    logs = read(write(tmp_path / "a.traj", run(info=info)))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"], found["output"]) == (5, 1001, 99)
    assert sum(one.prompt is None for one in logs.requests) == 3
    assert len({one.id for one in logs.requests}) == 5


def test_a_step_that_made_no_call_is_no_request(tmp_path: Path, read: Read) -> None:
    steps = [{"response": "", "action": ""}, *run()["trajectory"]]
    logs = read(write(tmp_path / "a.traj", run(trajectory=steps)))
    assert [one.output_text for one in logs.requests][-1] == "Done, it is fixed now."
    assert totals(logs.requests)["requests"] == 2
    assert logs.files[0].skipped == {"steps without a call": 1}


def test_tokens_that_were_not_counted_are_absent_not_nothing(tmp_path: Path, read: Read) -> None:
    info = {"model_stats": {"tokens_sent": 0, "tokens_received": 0, "api_calls": 2}}
    logs = read(write(tmp_path / "a.traj", run(info=info)))
    assert {one.counts.prompt.kind for one in logs.requests} == {"absent"}
    assert {one.cost_usd.kind for one in logs.requests} == {"absent"}
    assert logs.files[0].notes == ["its model counted no tokens"]


def test_a_history_alone_gives_a_request_for_each_answer(tmp_path: Path, read: Read) -> None:
    made = run(info={})
    del made["trajectory"]
    logs = read(write(tmp_path / "a.traj", made))
    assert [one.output_text for one in logs.requests] == ["I look."]
    assert "each step is one" in logs.files[0].notes[0]


def test_attempts_are_counted_together_and_the_best_not_twice(tmp_path: Path, read: Read) -> None:
    best = run(info={"model_stats": {**STATS, "api_calls": 4}})
    made = {**best, "attempts": [run(), run(environment="again")]}
    logs = read(write(tmp_path / "a.traj", made))
    found = totals(logs.requests)
    assert (found["requests"], found["prompt"]) == (4, 1001)
    assert {one.agent for one in logs.requests} == {"attempt-1", "attempt-2"}


def test_a_copy_counts_once(tmp_path: Path, read: Read) -> None:
    write(tmp_path / "a.traj", run())
    write(tmp_path / "b.traj", run())
    assert totals(read(tmp_path).requests)["requests"] == 2


@given(st.integers(min_value=0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "a.traj"
    query = [message("system", "S"), message("user", "U", tool_calls=[{"id": "c"}])]
    made = run(attempts=[run()])
    made["trajectory"][0]["query"] = query
    path.write_bytes(damaged(json.dumps(made).encode(), seed))
    survives([path])


def test_the_public_trajectories_have_the_totals_that_they_name(data: Path, read: Read) -> None:
    """The first names its sums: 5 calls, 7,141 and 243 tokens, $0.01952. The second is a replayed
    demonstration: 11 calls, of which nobody counted the tokens."""
    folder = data / "logs" / "swe-agent"
    counted = read(folder / "6e44b9__sweagenttestrepo-1c2844.traj").requests
    found = totals(counted)
    assert (found["requests"], found["prompt"], found["output"]) == (5, 7141, 243)
    assert sum(one.cost_usd.value or 0 for one in counted) == pytest.approx(0.01952)
    assert [one.tools[0].name for one in counted] == ["find_file", "open", "edit", "bash", "submit"]
    replayed = read(folder / "marshmallow-1867_function_calling.traj").requests
    found = totals(replayed)
    assert (found["requests"], found["prompt"], found["output"]) == (11, 0, 0)
    assert {one.counts.prompt.kind for one in replayed} == {"absent"}
