"""What each arm of the demo measures: latency, time, cost, coverage, wrong acts, verified tasks."""

import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import msgspec
import numpy as np

from reflexarc.bench.baseline import Baseline
from reflexarc.bench.desk.agent import StepRun, System2, TaskRun
from reflexarc.bench.desk.record import SPECS
from reflexarc.bench.desk.schemas import READ_TOOLS, TOOLS
from reflexarc.bench.desk.world import DeskTask
from reflexarc.reflex.certificate import binomial_upper
from reflexarc.sim import Answer, PlannedCall, Profile
from reflexarc.sim.wire import assistant_message
from reflexarc.steps import Message
from reflexarc.wire.chat import message_from_chat

_INTERVAL = 0.95


class WrongAct(msgspec.Struct, frozen=True):
    """System 1 acted, and System 2 asked at the same place answers otherwise."""

    task: str
    step: int
    expected: str
    acted: str
    decision: str


class Escalation(msgspec.Struct, frozen=True):
    """System 1 left a step to System 2; `system2` is what that did."""

    task: str
    step: int
    reason: str
    system2: str


class Quantiles(msgspec.Struct, frozen=True):
    """Of a sample in ms; None where it is empty."""

    n: int
    p50: float | None
    p99: float | None
    mean: float | None


class ArmResult(msgspec.Struct, frozen=True):
    """One arm. Costs are dollars; `joules_per_task` is System 2's energy, simulated, None where its
    profile gives no power; `wrong_interval` is the exact 95% interval (Clopper and Pearson
    1934) of the share of acts that are wrong, as if acts were independent."""

    arm: str
    tasks: int
    verified: int
    steps: int
    acted: int
    coverage: float
    step_ms: Quantiles
    acted_ms: Quantiles
    system2_ms: Quantiles
    task_s_mean: float
    task_s_p50: float
    usd_per_task: Decimal | None
    usd_per_10k_steps: Decimal | None
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    wrong: int
    wrong_interval: tuple[float, float] | None
    wrong_acts: list[WrongAct]
    escalations: list[Escalation]
    faults: list[str]
    joules_per_task: float | None = None


class BaselineFront:
    """The plain baseline before a System 2: acts in process wherever it has seen the situation
    and the call only reads. One per task."""

    def __init__(self, baseline: Baseline, system2: System2) -> None:
        self._baseline = baseline
        self._system2 = system2
        self._messages: list[Message] = []

    async def complete(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], StepRun]:
        began = time.perf_counter()
        given: list[dict[str, Any]] = body["messages"]
        self._messages.extend(message_from_chat(m) for m in given[len(self._messages) :])
        call = self._baseline.predict(self._messages, SPECS)
        if call is None or call.name not in READ_TOOLS:
            return await self._system2.complete(body)
        answer = Answer(calls=(PlannedCall(call.name, call.arguments, call.raw),))
        message = assistant_message(answer, f"baseline{len(given):08d}")
        latency_ms = (time.perf_counter() - began) * 1e3
        return message, StepRun(len(given), latency_ms, True, f"baseline; act; {call.name}")


async def judge_arm(
    arm: str,
    runs: Sequence[TaskRun],
    oracle_for: Callable[[DeskTask], System2],
    model: str,
    profile: Profile | None,
) -> ArmResult:
    """Sum an arm up. Each act is put to the oracle: the System 2 the arm had, without the wait.

    An act is wrong if the oracle would not have made this very call (name and all arguments) at
    that step; a wrong read may still be harmless for the task, which `verified` tells.
    """
    wrong_acts: list[WrongAct] = []
    escalations: list[Escalation] = []
    for run in runs:
        oracle = oracle_for(run.task)
        for number, step in enumerate(run.steps):
            message = run.messages[step.message]
            if not step.acted:
                escalations.append(
                    Escalation(run.task.id, number, _reason(step.decision), _said(message))
                )
                continue
            body = {"model": model, "messages": run.messages[: step.message], "tools": TOOLS}
            expected, _ = await oracle.complete(body)
            right = {call.key for call in message_from_chat(expected).tool_calls}
            if any(call.key not in right for call in message_from_chat(message).tool_calls):
                wrong_acts.append(
                    WrongAct(run.task.id, number, _said(expected), _said(message), step.decision)
                )
    steps = [step for run in runs for step in run.steps]
    asked = [step for step in steps if not step.acted]
    acted = len(steps) - len(asked)
    usd = None
    if profile is not None:
        usd = sum(
            (profile.cost_usd(s.prompt_tokens, s.cached_tokens, s.output_tokens) for s in asked),
            Decimal(0),
        )
    joules = None
    if profile is not None and profile.power_w is not None:
        joules = sum(
            profile.energy_j(s.prompt_tokens, s.cached_tokens, s.output_tokens) or 0.0
            for s in asked
        )
    walls_s = np.array([run.wall_s for run in runs])
    return ArmResult(
        arm=arm,
        tasks=len(runs),
        verified=sum(not run.faults for run in runs),
        steps=len(steps),
        acted=acted,
        coverage=acted / max(1, len(steps)),
        step_ms=_quantiles([s.latency_ms for s in steps]),
        acted_ms=_quantiles([s.latency_ms for s in steps if s.acted]),
        system2_ms=_quantiles([s.latency_ms for s in asked]),
        task_s_mean=float(walls_s.mean()),
        task_s_p50=float(np.median(walls_s)),
        usd_per_task=None if usd is None else usd / len(runs),
        usd_per_10k_steps=None if usd is None else usd * 10_000 / max(1, len(steps)),
        prompt_tokens=sum(s.prompt_tokens for s in asked),
        cached_tokens=sum(s.cached_tokens for s in asked),
        output_tokens=sum(s.output_tokens for s in asked),
        wrong=len(wrong_acts),
        wrong_interval=interval(len(wrong_acts), acted) if acted else None,
        wrong_acts=wrong_acts,
        escalations=escalations,
        faults=[f"{run.task.id}: {fault}" for run in runs for fault in run.faults],
        joules_per_task=None if joules is None else joules / len(runs),
    )


def interval(errors: int, n: int) -> tuple[float, float]:
    """The exact two-sided 95% interval of a share, `errors` of `n` (Clopper and Pearson 1934)."""
    tail = (1 - _INTERVAL) / 2
    lower = 0.0 if errors == 0 else 1 - binomial_upper(n - errors, n, tail)
    return lower, binomial_upper(errors, n, tail)


def _quantiles(sample_ms: Sequence[float]) -> Quantiles:
    if not sample_ms:
        return Quantiles(0, None, None, None)
    values = np.array(sample_ms)
    p50, p99 = np.percentile(values, (50, 99))
    return Quantiles(len(values), float(p50), float(p99), float(values.mean()))


def _reason(decision: str) -> str:
    """The reason in `x-reflexarc-decision` (`live; escalate; below_threshold`)."""
    fields = [field.strip() for field in decision.split(";")]
    return fields[2] if len(fields) > 2 and fields[1] == "escalate" else decision


def _said(message: Mapping[str, Any]) -> str:
    calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
    if not calls:
        return f"a message: {str(message.get('content'))[:80]!r}"
    return ", ".join(
        f"{call['function']['name']}({call['function']['arguments']})" for call in calls
    )
