"""The unmodified `openai` SDK through `reflexarc serve` before the simulator, on the returns desk.

Two gateways before one simulator: one with a fresh configuration (no mode given), one live, which
is also sent requests that carry a field System 1 does not understand.
"""

import asyncio
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
from openai import AsyncOpenAI

from acceptance.lines import Lines
from acceptance.processes import process
from reflexarc.bench.desk.agent import StepRun
from reflexarc.bench.desk.record import record, run_tasks, session_of
from reflexarc.bench.desk.world import make_task
from reflexarc.reflex import learn

LEARN_TASKS = 60
NEW_TASKS = 10
MAX_ERROR = 0.10

OUTSIDE: Mapping[str, Any] = {
    "tool_choice": "required",
    "n": 2,
    "logprobs": True,
    "top_logprobs": 3,
    "response_format": {"type": "json_object"},
    "stop": ["END"],
    "logit_bias": {"50256": -100},
    "reasoning_effort": "high",
    "verbosity": "low",
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "wav"},
    "prediction": {"type": "content", "content": "x"},
    "store": True,
    "web_search_options": {},
    "functions": [{"name": "f", "parameters": {}}],
    "function_call": "auto",
    "temperature": "hot",
    "conversation": "conv_1",
    "background": True,
    "a_field_of_tomorrow": None,
}
"""Fields with a value outside what System 1 understands: what the API knows, what providers add,
what nobody knows yet."""


class SdkSystem2:
    """Asks through the SDK as an agent would; keeps every request that System 1 answered."""

    def __init__(self, base_url: str, *, stream: bool, api_key: str = "unused") -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0)
        self._stream = stream
        self.decisions: list[str] = []
        self.answered: list[dict[str, Any]] = []

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]:
        """The assistant message and its step, for the desk's agent loop."""
        create: Any = self._client.chat.completions.with_raw_response.create
        if self._stream:
            raw = await create(**body, stream=True)
            message = await _assembled(raw.parse())
        else:
            raw = await create(**body)
            message = raw.parse().choices[0].message.model_dump(exclude_none=True)
        decision = raw.headers.get("x-reflexarc-decision", "")
        self.decisions.append(decision)
        acted = decision.startswith("live; act")
        if acted:
            self.answered.append(msgspec.json.decode(msgspec.json.encode(body)))
        return message, StepRun(len(body["messages"]), 0.0, acted, decision)

    async def again(self, body: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
        """Send a request once more with further fields; the gateway's decision, whatever the
        status of the answer."""
        create: Any = self._client.chat.completions.with_streaming_response.create
        try:
            async with create(**body, extra_body=dict(extra)) as raw:
                return raw.headers.get("x-reflexarc-decision", "")
        except Exception as error:
            response = getattr(error, "response", None)
            if response is None:
                raise
            return response.headers.get("x-reflexarc-decision", "")

    async def close(self) -> None:
        await self._client.close()


async def _assembled(chunks: Any) -> dict[str, Any]:
    """One message from the SDK's stream of chunks."""
    content = ""
    calls: dict[int, dict[str, Any]] = {}
    async for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                function = {"name": "", "arguments": ""}
                call = calls.setdefault(
                    part.index, {"id": "", "type": "function", "function": function}
                )
                call["id"] += part.id or ""
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


def measure(lines: Lines) -> None:
    """Lines 4.1 to 4.5."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-accept-") as name:
        folder = Path(name)
        reflex = folder / "desk.reflex"
        recorded = asyncio.run(record([f"accept-{n}" for n in range(LEARN_TASKS)]))
        learned = learn([session_of(run) for run in recorded], max_error=MAX_ERROR)
        learned.save(reflex)
        certified = learned.certificate(MAX_ERROR)
        lines.add(
            "4.0",
            "the reflex put in front is certified",
            f"a certificate at {MAX_ERROR:.0%} or less",
            "none" if certified is None else f"{certified.errors} wrong in {certified.n} answers",
            certified is not None,
        )
        with process("sim", "--time-scale", "0", "--port", "0") as simulator:
            upstream = simulator.base
            route = f'[[route]]\nupstream = "{upstream}/v1"\nreflex = "{reflex}"\n'
            with _gateway(folder / "fresh.toml", route) as gateway:
                asyncio.run(_fresh(lines, gateway, folder))
            # a long deadline: what is measured is what it decides, not how busy this machine is
            live = f'{route}mode = "live"\nmax_error = {MAX_ERROR}\ndeadline_ms = 1000\n'
            with _gateway(folder / "live.toml", live) as gateway:
                asyncio.run(_live(lines, gateway, folder))


@contextmanager
def _gateway(config: Path, text: str) -> Generator[str]:
    config.write_text(f'state = "{config.with_suffix(".state")}"\n{text}')
    with process("serve", "--config", str(config), "--port", "0") as gateway:
        yield gateway.base


async def _fresh(lines: Lines, gateway: str, folder: Path) -> None:
    decisions: list[str] = []
    for identity, stream in (("4.1", True), ("4.2", False)):
        done, seen, _ = await _tasks(gateway, folder, stream=stream, prefix=f"fresh-{identity}")
        decisions += seen
        how = "streams and calls tools" if stream else "calls tools without streaming"
        lines.add(
            identity,
            f"the openai SDK {how} through a fresh gateway",
            f"{NEW_TASKS} of {NEW_TASKS} tasks verified",
            f"{done} of {NEW_TASKS}, {len(seen)} steps",
            done == NEW_TASKS,
        )
    acts = sum(decision.startswith("live") for decision in decisions)
    would = _counted(gateway, 'action="act"')
    lines.add(
        "4.3",
        "with a fresh configuration a certified reflex acts",
        "0 times, though in shadow it would have",
        f"{acts} of {len(decisions)} steps; in shadow it would have acted {would:.0f} times",
        acts == 0 and would > 0,
    )


async def _live(lines: Lines, gateway: str, folder: Path) -> None:
    done, seen, answered = await _tasks(gateway, folder, stream=True, prefix="live")
    acts = sum(decision.startswith("live; act") for decision in seen)
    lines.add(
        "4.4",
        "put live, the same reflex acts and the SDK goes on with its turns",
        "more than 0 acts",
        f"{acts} acts in {len(seen)} steps; {done} of {NEW_TASKS} tasks verified",
        acts > 0,
    )
    system2 = SdkSystem2(f"{gateway}/v1", stream=False)
    acted: list[str] = []
    tried = 0
    try:
        for body in answered[:3]:
            for field, value in OUTSIDE.items():
                decision = await system2.again(body, {field: value})
                tried += 1
                if not decision.startswith("live; escalate"):
                    acted.append(f"{field} ({decision})")
        control = [await system2.again(body, {}) for body in answered[:3]]
    finally:
        await system2.close()
    still = sum(decision.startswith("live; act") for decision in control)
    lines.add(
        "4.5",
        f"requests it acts on, sent with any of {len(OUTSIDE)} fields outside the list, acts",
        "0 times, and again without the field",
        f"{len(acted)} of {tried}{': ' + ', '.join(acted[:5]) if acted else ''}; "
        f"without the field {still} of {len(control)}",
        not acted and tried > 0 and still == len(control),
    )


async def _tasks(
    gateway: str, folder: Path, *, stream: bool, prefix: str
) -> tuple[int, list[str], list[dict[str, Any]]]:
    """Run new desk tasks through the SDK: how many were verified, every decision, and the
    requests that System 1 answered."""
    system2 = SdkSystem2(f"{gateway}/v1", stream=stream)
    workplace = folder / prefix
    workplace.mkdir()
    try:
        runs = await run_tasks(
            [make_task(f"{prefix}-{n}") for n in range(NEW_TASKS)],
            lambda _: system2,
            workplace,
            concurrency=2,
        )
    finally:
        await system2.close()
    return sum(not run.faults for run in runs), system2.decisions, system2.answered


def _counted(gateway: str, label: str) -> float:
    """The sum of `reflexarc_decisions_total` over series that carry a label."""
    with urlopen(f"{gateway}/metrics", timeout=10) as response:
        text = response.read().decode()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("reflexarc_decisions_total{") and label in line
    )
