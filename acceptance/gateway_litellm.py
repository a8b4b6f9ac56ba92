"""LiteLLM's proxy before and behind a live gateway: the tasks of the returns desk through both.

    python -m acceptance.gateway_litellm

A minute and a half on two cores. Nothing is timed.
"""

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from acceptance.front import NEW_TASKS, SdkSystem2
from acceptance.gateway_world import MAX_ERROR, desk_reflex, desk_sessions, gateway_config
from acceptance.lines import Lines
from acceptance.litellm_proxy import ABSENT, LITELLM, litellm
from acceptance.processes import process
from reflexarc.bench.desk.agent import TaskRun
from reflexarc.bench.desk.record import run_tasks
from reflexarc.bench.desk.world import make_task
from reflexarc.wire.chat_answer import CALL_ID_PREFIX


def measure(lines: Lines) -> None:
    """Lines 9.1 to 9.4; left out, aloud, where LiteLLM is not installed."""
    if not LITELLM.exists():
        lines.skip(f"litellm ({ABSENT})")
        return
    with tempfile.TemporaryDirectory(prefix="reflexarc-accept-") as name:
        folder = Path(name)
        reflex = folder / "desk.reflex"
        desk_reflex(desk_sessions(), reflex)
        with process("sim", "--time-scale", "0", "--port", "0") as sim:
            with _before(sim.base, reflex, folder) as (url, key):
                _tasks(lines, "before", ("9.1", "9.2"), url, key, folder)
            with _behind(sim.base, reflex, folder) as (url, key):
                _tasks(lines, "behind", ("9.3", "9.4"), url, key, folder)


@contextmanager
def _before(upstream: str, reflex: Path, folder: Path) -> Generator[tuple[str, str]]:
    config = _live(folder, "before", upstream, reflex)
    with process("serve", "--config", config, "--port", "0") as ours:
        changes = {"http://127.0.0.1:8411": ours.base}
        with litellm("litellm-before.yaml", changes, folder) as theirs:
            yield theirs.url, theirs.key


@contextmanager
def _behind(upstream: str, reflex: Path, folder: Path) -> Generator[tuple[str, str]]:
    with litellm("litellm-behind.yaml", {"http://127.0.0.1:9100": upstream}, folder) as theirs:
        config = _live(folder, "behind", theirs.url.removesuffix("/v1"), reflex)
        with process("serve", "--config", config, "--port", "0") as ours:
            yield f"{ours.base}/v1", theirs.key


def _live(folder: Path, name: str, upstream: str, reflex: Path) -> str:
    # a long deadline: what is measured is what it decides, not how busy this machine is
    config = gateway_config(
        folder, name, upstream, reflex, mode="live", max_error=MAX_ERROR, deadline_ms=1000, audit=0
    )
    return str(config)


def _tasks(
    lines: Lines, where: str, identities: tuple[str, str], url: str, key: str, folder: Path
) -> None:
    for identity, stream in zip(identities, (False, True), strict=True):
        workplace = folder / f"{where}-{identity}"
        workplace.mkdir()
        runs = asyncio.run(_run(url, key, workplace, stream=stream))
        done = sum(not run.faults for run in runs)
        steps = sum(len(run.steps) for run in runs)
        acts = sum(map(_acts, runs))
        faults = [fault for run in runs for fault in run.faults]
        lines.add(
            identity,
            f"agent tasks with LiteLLM {where} a live gateway, {'streamed' if stream else 'whole'}",
            f"{NEW_TASKS} of {NEW_TASKS} verified, System 1 acting",
            f"{done} of {len(runs)}, {acts} acts in {steps} steps"
            + (f"; first fault: {faults[0][:200]}" if faults else ""),
            done == len(runs) == NEW_TASKS and acts > 0,
        )


async def _run(url: str, key: str, folder: Path, *, stream: bool) -> list[TaskRun]:
    system2 = SdkSystem2(url, stream=stream, api_key=key)
    try:
        return await run_tasks(
            [make_task(f"{folder.name}-{n}") for n in range(NEW_TASKS)],
            lambda _: system2,
            folder,
            concurrency=2,
        )
    finally:
        await system2.close()


def _acts(run: TaskRun) -> int:
    """Turns of System 1 in a conversation, by the ids of their calls: what the agent holds, not
    what a header says, since LiteLLM renames headers."""
    return sum(
        call["id"].startswith(CALL_ID_PREFIX)
        for message in run.messages
        for call in message.get("tool_calls") or ()
    )


if __name__ == "__main__":
    own = Lines("gateway-litellm", 0)
    own.part("9", "Beside LiteLLM", lambda: measure(own))
    raise SystemExit(own.finish(write=False))
