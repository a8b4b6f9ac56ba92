"""The unmodified OpenAI SDK works a task through `reflexarc serve` before `reflexarc sim`."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

from reflexarc.traces.sessions import write_sessions

TASKS = range(5000, 5004)


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., str]]:
    """`run("serve", ...)` starts a command and gives the base URL it says it listens on."""
    processes: list[subprocess.Popen[str]] = []

    def running(*arguments: str) -> str:
        command = [sys.executable, "-u", "-m", "reflexarc", *arguments, "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"http://[0-9.]+:\d+", line)
            if found:
                return f"{found.group()}/v1"
        raise AssertionError(f"{arguments} said no address")

    yield running
    for process in reversed(processes):
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def simulator(run: Callable[..., str], tmp_path_factory: Any, recorded: Any) -> str:
    path = tmp_path_factory.mktemp("sim") / "sessions.jsonl"
    write_sessions(path, [msgspec.json.encode(recorded(task)) for task in TASKS])
    return run("sim", "--policy", f"recorded:{path}", "--time-scale", "0")


@pytest.fixture(scope="module")
def recorded(desk: Any) -> Callable[[int], dict[str, Any]]:
    def session(task: int) -> dict[str, Any]:
        request = desk.request(task, 100)
        return {
            "id": str(task),
            "task": str(task),
            "trial": 0,
            "source": "test",
            "model": request["model"],
            "tools": request["tools"],
            "messages": request["messages"],
        }

    return session


def _work(base: str, session: dict[str, Any], streamed: bool) -> tuple[list[Any], list[str]]:
    """The messages of a task done through the SDK, and the gateway's decisions on the way."""
    results = [m for m in session["messages"] if m["role"] == "tool"]
    messages = session["messages"][:2]
    decisions: list[str] = []
    with openai.OpenAI(base_url=base, api_key="sk-test", max_retries=0, timeout=20) as client:
        while True:
            asked: dict[str, Any] = {
                "model": session["model"],
                "messages": messages,
                "tools": session["tools"],
            }
            if streamed:
                with client.chat.completions.stream(**asked) as stream:
                    turn = stream.get_final_completion().choices[0].message
                    decisions.append(stream._response.headers["x-reflexarc-decision"])
            else:
                raw = client.chat.completions.with_raw_response.create(**asked)
                turn = raw.parse().choices[0].message
                decisions.append(raw.headers["x-reflexarc-decision"])
            if not turn.tool_calls:
                return [*messages, {"role": "assistant", "content": turn.content}], decisions
            calls = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": c.function.model_dump(include={"name", "arguments"}),
                }
                for c in turn.tool_calls
            ]
            messages = [*messages, {"role": "assistant", "content": None, "tool_calls": calls}]
            for call in calls:
                content = results.pop(0)["content"]
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def _said(messages: list[Any]) -> list[Any]:
    """What was said and called, ids aside."""
    return [
        [
            (c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in m.get("tool_calls", [])
        ]
        or m["content"]
        for m in messages
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_live_answers_the_reads_and_leaves_the_rest(
    streamed: bool, run: Any, simulator: str, recorded: Any, reflex_path: Path
) -> None:
    base = run("serve", "--upstream", simulator, "--reflex", str(reflex_path), "--mode", "live")
    acted = 0
    for task in TASKS:
        messages, decisions = _work(base, recorded(task), streamed)
        assert _said(messages) == _said(recorded(task)["messages"])
        acted += sum(decision.startswith("live; act") for decision in decisions)
        assert decisions[2].startswith(("live; escalate; side_effect", "live; escalate; deadline"))
        assert decisions[3].startswith("live; escalate")
    # Two reads a task; now and then one misses its deadline on a busy machine.
    assert acted >= len(TASKS)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_fresh_configuration_acts_zero_times(
    streamed: bool, run: Any, simulator: str, recorded: Any, reflex_path: Path
) -> None:
    base = run("serve", "--upstream", simulator, "--reflex", str(reflex_path))
    for task in TASKS:
        messages, decisions = _work(base, recorded(task), streamed)
        assert _said(messages) == _said(recorded(task)["messages"])
        assert all(decision.startswith("shadow; ") for decision in decisions)


def test_the_sdk_raises_what_the_gateway_says(run: Any, simulator: str) -> None:
    base = run("serve", "--upstream", simulator)
    with openai.OpenAI(base_url=base, api_key="sk", max_retries=0, timeout=20) as client:
        assert client.models.list().data
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="m", input="x")
    down = run("serve", "--upstream", "http://127.0.0.1:9/v1")
    with (
        openai.OpenAI(base_url=down, api_key="sk", max_retries=0, timeout=20) as client,
        pytest.raises(openai.InternalServerError, match=r"cannot be reached"),
    ):
        client.models.list()
