"""Records returns-desk sessions with the scripted System 2 in process: no HTTP, no waiting."""

import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import xxhash

from reflexarc.bench.desk.agent import MAX_STEPS, StepRun, TaskRun, run_task
from reflexarc.bench.desk.outcome import verify
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2
from reflexarc.bench.desk.tools import TOOLS, Desk
from reflexarc.bench.desk.world import MODEL, build_database, make_task
from reflexarc.sim.policy import Policy
from reflexarc.sim.wire import assistant_message
from reflexarc.steps import Message, Session, ToolSpec
from reflexarc.wire.chat import message_from_chat, tool_from_chat

HANDBOOK = resources.files("reflexarc.bench.desk").joinpath("handbook.md").read_text("utf-8")
SPECS: tuple[ToolSpec, ...] = tuple(tool_from_chat(tool) for tool in TOOLS)


class InProcess:
    """A policy asked directly; fits `agent.System2`. One instance per task: it keeps the parsed
    beginning of that task's conversation."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._messages: list[Message] = []

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]:
        given: list[dict[str, Any]] = body["messages"]
        self._messages.extend(message_from_chat(m) for m in given[len(self._messages) :])
        answer = self._policy.answer(self._messages, SPECS)
        seed = xxhash.xxh3_64_hexdigest(f"{given[1]['content']}{len(given)}".encode())
        return assistant_message(answer, seed), StepRun(len(given), 0.0, False, "")


async def record(
    seeds: list[str], *, salt: str = "", on_task: Callable[[TaskRun], None] | None = None
) -> list[TaskRun]:
    """Run each seed's task once, verify it, in order. Databases live in a temporary folder."""
    runs: list[TaskRun] = []
    policy = ReturnsDeskSystem2(salt)
    with tempfile.TemporaryDirectory(prefix="returns-desk-") as folder:
        for number, seed in enumerate(seeds):
            task = make_task(seed)
            database = build_database(task, Path(folder) / f"{number}.sqlite")
            try:
                run = await run_task(task, Desk(database), InProcess(policy), handbook=HANDBOOK)
                run.faults = verify(task, database)
            finally:
                database.close()
            if not run.finished:
                run.faults.append(f"no summary within {MAX_STEPS} steps")
            runs.append(run)
            if on_task is not None:
                on_task(run)
    return runs


def session_line(run: TaskRun, trial: int = 0, model: str = MODEL) -> dict[str, Any]:
    """A run as one line of session JSONL."""
    return {
        "id": f"{run.task.id}-run{trial}",
        "task": run.task.id,
        "trial": trial,
        "source": "reflexarc demo: returns desk, scripted System 2",
        "model": model,
        "reward": 0.0 if run.faults else 1.0,
        "tools": list(TOOLS),
        "messages": run.messages,
    }


def session_of(run: TaskRun, trial: int = 0, model: str = MODEL) -> Session:
    """A run as a `Session`."""
    return Session(
        id=f"{run.task.id}-run{trial}",
        task=run.task.id,
        tools=SPECS,
        messages=tuple(message_from_chat(m) for m in run.messages),
        model=model,
        trial=trial,
        source="returns desk",
        reward=0.0 if run.faults else 1.0,
    )
