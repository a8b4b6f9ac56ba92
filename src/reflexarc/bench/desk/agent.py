"""The plain agent loop of the returns desk: ask System 2, run the call, until a message comes."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import aiohttp
import msgspec

from reflexarc.bench.desk.schemas import TOOLS
from reflexarc.bench.desk.tools import Desk
from reflexarc.bench.desk.world import MODEL, DeskTask
from reflexarc.steps.errors import UpstreamError

MAX_STEPS = 60


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Choice(msgspec.Struct):
    message: dict[str, Any]


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class StepRun(msgspec.Struct):
    """One assistant step. `latency_ms` is what the agent waited; `acted` whether System 1
    answered; `message` the index of the assistant message in the task's messages."""

    message: int
    latency_ms: float
    acted: bool
    decision: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class TaskRun(msgspec.Struct):
    """One task from its opening to its summary."""

    task: DeskTask
    messages: list[dict[str, Any]]
    steps: list[StepRun]
    wall_s: float
    faults: list[str] = []
    finished: bool = False


class System2(Protocol):
    """Anything that answers a chat request: an HTTP endpoint, or one with something before it."""

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]: ...


class Endpoint:
    """A chat completions endpoint over HTTP."""

    def __init__(
        self, http: aiohttp.ClientSession, base_url: str, api_key: str | None = None
    ) -> None:
        self._http = http
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]:
        """The assistant message and its step; raises `UpstreamError` for anything but a 200."""
        began = time.perf_counter()
        data = msgspec.json.encode(body)
        headers = {"content-type": "application/json", **self._headers}
        async with self._http.post(self._url, data=data, headers=headers) as response:
            answer = await response.read()
            decision = response.headers.get("x-reflexarc-decision", "")
        latency_ms = (time.perf_counter() - began) * 1e3
        if response.status != 200:
            raise UpstreamError(f"{self._url} answered {response.status}: {answer[:300]!r}")
        completion = msgspec.json.decode(answer, type=_Completion)
        usage = completion.usage or _Usage()
        details = usage.prompt_tokens_details or _Details()
        acted = [field.strip() for field in decision.split(";")][:2] == ["live", "act"]
        step = StepRun(len(cast("list[Any]", body["messages"])), latency_ms, acted, decision)
        step.prompt_tokens = usage.prompt_tokens
        step.cached_tokens = details.cached_tokens or 0
        step.output_tokens = usage.completion_tokens
        return completion.choices[0].message, step


async def run_task(
    run: TaskRun,
    desk: Desk,
    system2: System2,
    *,
    handbook: str,
    model: str = MODEL,
    tool_time_s: float = 0.0,
    on_step: Callable[[StepRun], None] | None = None,
) -> None:
    """Run `run.task` on its desk, filling `run`. Every tool call takes `tool_time_s` more."""
    messages = run.messages
    messages.append({"role": "system", "content": handbook})
    messages.append({"role": "user", "content": run.task.opening})
    began = time.perf_counter()
    while not run.finished and len(run.steps) < MAX_STEPS:
        message, step = await system2.complete(
            {"model": model, "messages": messages, "tools": TOOLS}
        )
        run.steps.append(step)
        if on_step is not None:
            on_step(step)
        messages.append({k: v for k, v in message.items() if v is not None})
        calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
        for call in calls:
            await asyncio.sleep(tool_time_s)
            result = desk.call(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        run.finished = not calls
        run.wall_s = time.perf_counter() - began
