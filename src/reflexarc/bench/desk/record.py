"""Runs many returns-desk tasks and records them as sessions; with the scripted System 2 in
process there is no HTTP and no waiting."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
import xxhash

from reflexarc.bench.desk.agent import MAX_STEPS, StepRun, System2, TaskRun, run_task
from reflexarc.bench.desk.outcome import verify
from reflexarc.bench.desk.schemas import TOOLS
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2
from reflexarc.bench.desk.tools import Desk
from reflexarc.bench.desk.world import MODEL, DeskTask, build_database, make_task
from reflexarc.sim.policy import Policy
from reflexarc.sim.wire import assistant_message
from reflexarc.steps import Message, Session, ToolSpec
from reflexarc.steps.errors import ReflexarcError
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


async def run_tasks(
    tasks: Sequence[DeskTask],
    system2_for: Callable[[DeskTask], System2],
    folder: Path,
    *,
    model: str = MODEL,
    tool_time_s: float = 0.0,
    concurrency: int | None = None,
    starts_s: Sequence[float] | None = None,
    on_task: Callable[[TaskRun], None] | None = None,
    on_step: Callable[[StepRun], None] | None = None,
) -> list[TaskRun]:
    """Run tasks at once (at most `concurrency` of them), each on a database of its own in
    `folder`, and verify each. A task whose System 2 fails has that as its fault; the rest go on.

    `starts_s`: when each task starts. Without it all start in the same instant, and since their
    steps take much the same time they go on asking in the same instants, as no real load does.
    """
    gate = asyncio.Semaphore(concurrency or len(tasks) or 1)

    async def one(number: int, task: DeskTask) -> TaskRun:
        async with gate:
            if starts_s is not None:
                await asyncio.sleep(starts_s[number])
            database = build_database(task, folder / f"{number}.sqlite")
            run = TaskRun(task, [], [], 0.0, finished=False)
            try:
                await run_task(
                    run,
                    Desk(database),
                    system2_for(task),
                    handbook=HANDBOOK,
                    model=model,
                    tool_time_s=tool_time_s,
                    on_step=on_step,
                )
                if not run.finished:
                    run.faults.append(f"no summary within {MAX_STEPS} steps")
            except (ReflexarcError, aiohttp.ClientError, TimeoutError) as error:
                run.faults.append(f"given up: {type(error).__name__}: {error}")
            run.faults += verify(task, database)
            database.close()
            if on_task is not None:
                on_task(run)
            return run

    return list(await asyncio.gather(*(one(i, task) for i, task in enumerate(tasks))))


async def record(
    seeds: Sequence[str], *, salt: str = "", on_task: Callable[[TaskRun], None] | None = None
) -> list[TaskRun]:
    """Run each seed's task once, in order, with the scripted System 2 in process."""
    policy = ReturnsDeskSystem2(salt)
    with tempfile.TemporaryDirectory(prefix="returns-desk-") as folder:
        return await run_tasks(
            [make_task(seed) for seed in seeds],
            lambda _: InProcess(policy),
            Path(folder),
            concurrency=1,
            on_task=on_task,
        )


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
