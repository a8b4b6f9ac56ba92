"""Judging a reflex on sessions it was not learned from: what it would answer, how rightly."""

import gc
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
import numpy as np

from reflexarc.reflex.certificate import binomial_upper
from reflexarc.reflex.decision import Decision
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.outcome import (
    Judgement,
    Offered,
    decide_item,
    judge_item,
    levels_of,
    with_proposal,
    with_writes,
)
from reflexarc.reflex.outcome import level_name as level_name
from reflexarc.reflex.reflex import Reflex
from reflexarc.reflex.repeat import Repeats, repeats
from reflexarc.reflex.replay import replay
from reflexarc.steps import Session, ToolCall

_BINS = 10


class Placed(Judgement, frozen=True, kw_only=True):
    """A judgement, and the step it belongs to: `step` counts within its session."""

    session: str
    task: str
    step: int


class Outcome(Placed, frozen=True, kw_only=True):
    """One decision item of a recorded session and what System 1 made of it. `recorded` is the call
    System 2 made (None: a message, or a thought); `message` its index in the session."""

    message: int
    recorded: ToolCall | None
    decision: Decision
    cpu_ms: float


class ReadOnly(msgspec.Struct, frozen=True):
    """Over recorded calls of read tools, candidates limited to read tools."""

    n: int
    top1: float
    top3: float


class Writes(msgspec.Struct, frozen=True):
    """Over recorded calls of write tools."""

    n: int
    top1: float


class Certified(msgspec.Struct, frozen=True):
    """What would have been answered under one error level. `answered` counts answers, a batch of
    calls as one, and so do `errors`; `coverage_calls` counts the calls that System 2 did not have
    to make. `error_ucb95` is the exact binomial upper bound of the error at 95%;
    `tasks_touched_wrong` the share of tasks with a wrong one."""

    answered: int
    errors: int
    error: float
    error_ucb95: float
    coverage_calls: float
    coverage_steps: float
    tasks_touched_wrong: float


class Latency(msgspec.Struct, frozen=True):
    """CPU of one decision, the reading of the new messages included, in milliseconds."""

    p50: float
    p99: float
    max: float


class Evaluation(msgspec.Struct, frozen=True):
    """The figures of `reflexarc eval`; docs/metrics.md defines each. `certified`: what certificates
    cover, writes included, which act only where that is allowed; `acting`: what of it acts by
    itself."""

    sessions: int
    tasks: int
    steps: int
    tool_steps: int
    calls: int
    name_accuracy: float
    call_exact_top1: float
    call_exact_top3: float
    read_only: ReadOnly
    writes: Writes
    certified: dict[str, Certified]
    acting: dict[str, Certified]
    repeat_rate: float | None
    modal_share: float | None
    modal_share_left_out: float | None
    repeat_calls: int
    ece: float
    latency_ms: Latency


def outcomes(reflex: Reflex, sessions: Sequence[Session]) -> Iterator[Outcome]:
    """Every decision item of the sessions, in order, with what System 1 would have done."""
    levels = levels_of(reflex)
    for session in sessions:
        yield from _session_outcomes(reflex, session, levels)


def _session_outcomes(reflex: Reflex, session: Session, levels: Sequence[float]) -> list[Outcome]:
    # A collection of what the caller holds is no part of a decision; timeit does the same.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return list(_timed_outcomes(reflex, session, levels))
    finally:
        if collecting:
            gc.enable()


def _timed_outcomes(reflex: Reflex, session: Session, levels: Sequence[float]) -> Iterator[Outcome]:
    tools = Offered(reflex, offered_tools(session), recorded=bool(session.tools))
    before = time.thread_time()
    for context, item in replay(session):
        ranking, decision = decide_item(reflex, context, tools, model=session.model)
        cpu_ms = (time.thread_time() - before) * 1e3
        decision = with_proposal(reflex, context, tools, ranking, decision, model=session.model)
        judged = judge_item(reflex, context, item, tools, ranking, decision, levels)
        yield Outcome(
            **msgspec.structs.asdict(judged),
            session=session.id,
            task=session.task,
            step=item.step,
            message=item.message,
            recorded=item.recorded if judged.is_call else None,
            decision=decision,
            cpu_ms=cpu_ms,
        )
        before = time.thread_time()


def evaluate(
    reflex: Reflex,
    sessions: Sequence[Session],
    *,
    progress: Callable[[float], None] | None = None,
) -> Evaluation:
    """Judge a reflex on sessions, none of whose tasks it should have been learned from.
    `progress` is called with the share of the sessions done."""
    found: list[Outcome] = []
    levels = levels_of(reflex)
    for done, session in enumerate(sessions, 1):
        found += _session_outcomes(reflex, session, levels)
        if progress is not None:
            progress(done / len(sessions))
    return summarise(reflex, sessions, found)


def summarise(reflex: Reflex, sessions: Sequence[Session], found: Sequence[Outcome]) -> Evaluation:
    """The figures over outcomes already made."""
    thinking = {name for name, effect in reflex.effects.items() if effect == "think"}
    return figures(
        found,
        [one.cpu_ms for one in found],
        sessions=len(sessions),
        tasks={session.task for session in sessions},
        levels=[level_name(level) for level in levels_of(reflex)],
        repeated=repeats(sessions, thinking),
    )


def figures(
    found: Sequence[Placed],
    cpu_ms: Sequence[float],
    *,
    sessions: int,
    tasks: Collection[str],
    levels: Sequence[str],
    repeated: Repeats,
) -> Evaluation:
    """The figures over judgements, wherever they were made; `cpu_ms` of each item, `repeated`: how
    System 2 agrees with itself in the same sessions."""
    calls = [one for one in found if one.is_call]
    reads = [one for one in calls if one.effect == "read"]
    writes = [one for one in calls if one.effect == "write"]
    steps = {(one.session, one.step) for one in found}
    tool_steps = {(one.session, one.step) for one in calls}
    cpu = np.array(cpu_ms) if cpu_ms else np.zeros(1)
    return Evaluation(
        sessions=sessions,
        tasks=len(tasks),
        steps=len(steps),
        tool_steps=len(tool_steps),
        calls=len(calls),
        name_accuracy=_share([one.named for one in found]),
        call_exact_top1=_share([one.exact for one in calls]),
        call_exact_top3=_share([one.among_three for one in calls]),
        read_only=ReadOnly(
            len(reads),
            _share([one.read_exact for one in reads]),
            _share([one.read_among_three for one in reads]),
        ),
        writes=Writes(len(writes), _share([one.exact for one in writes])),
        certified={
            level: _certified(found, level, len(calls), tool_steps, tasks, writes=True)
            for level in levels
        },
        acting={
            level: _certified(found, level, len(calls), tool_steps, tasks, writes=False)
            for level in levels
        },
        repeat_rate=repeated.repeat_rate,
        modal_share=repeated.modal_share,
        modal_share_left_out=repeated.modal_share_left_out,
        repeat_calls=repeated.calls,
        ece=_expected_calibration_error(found),
        latency_ms=Latency(
            round(float(np.median(cpu)), 4),
            round(float(np.quantile(cpu, 0.99)), 4),
            round(float(cpu.max()), 4),
        ),
    )


def _certified(
    found: Sequence[Placed],
    level: str,
    calls: int,
    tool_steps: set[tuple[str, int]],
    tasks: Collection[str],
    *,
    writes: bool,
) -> Certified:
    # What was recorded by an older gateway says nothing of writes.
    key = with_writes(level) if writes else level
    covered = [one.acted.get(key, one.acted[level]) for one in found]
    answered = [one for one, here in zip(found, covered, strict=True) if here]
    wrong = [one for one in answered if not one.answer_right]
    whole = {(one.session, one.step) for one in answered if one.calls > 1}
    left = {
        (one.session, one.step) for one, here in zip(found, covered, strict=True) if not here
    } - whole
    n, errors = len(answered), len(wrong)
    spared = sum(min(one.calls, max(1, one.made)) for one in answered)
    return Certified(
        answered=n,
        errors=errors,
        error=round(errors / n, 6) if n else 0.0,
        error_ucb95=round(binomial_upper(errors, n, 0.05), 6),
        coverage_calls=round(spared / calls, 6) if calls else 0.0,
        coverage_steps=round(len(tool_steps - left) / len(tool_steps), 6) if tool_steps else 0.0,
        tasks_touched_wrong=round(len({one.task for one in wrong}) / max(1, len(tasks)), 6),
    )


def _expected_calibration_error(found: Sequence[Placed]) -> float:
    """Mean distance of confidence and accuracy over ten equal bins, weighted by their size."""
    ranked = [one for one in found if one.proposed_tool is not None]
    if not ranked:
        return 0.0
    confidence = np.array([one.confidence for one in ranked])
    exact = np.array([one.answer_right for one in ranked], dtype=np.float64)
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    error = 0.0
    for at in range(_BINS):
        here = bins == at
        if here.any():
            error += abs(confidence[here].mean() - exact[here].mean()) * here.mean()
    return round(float(error), 6)


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 6) if values else 0.0
