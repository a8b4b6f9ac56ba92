"""The shadow report: what System 1 would have done on a route, beside what System 2 did.

The figures are those of `reflexarc eval`, made by the same code; docs/report.md defines the rest.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from reflexarc.lifecycle.advice import Verdict, advice, verdict_on
from reflexarc.lifecycle.reported import (
    Item,
    Period,
    Step,
    audits_of,
    repeats_in,
    routes_of,
    steps_of,
)
from reflexarc.lifecycle.standing import ReflexState
from reflexarc.lifecycle.standing_file import Standings
from reflexarc.reflex.evaluation import Evaluation, figures
from reflexarc.reflex.intervals import Interval, clustered_interval, clustered_upper
from reflexarc.reflex.outcome import counts_writes, with_writes
from reflexarc.reflex.repeat import Repeats, ToolRepeats

MOST_WORST = 10


class ToolAgreement(msgspec.Struct, frozen=True):
    """Over System 2's calls of one tool: the share whose best guess was exact, with its interval
    at 95%, calls clustered in tasks; how System 2 agrees with itself there, None where no task
    recurs."""

    tool: str
    effect: str | None
    calls: int
    tasks: int
    exact: float
    interval: Interval
    repeats: ToolRepeats | None


class Saved(msgspec.Struct, frozen=True):
    """What a level would have saved: over the `steps` that it would have answered whole and
    rightly, System 2's time and tokens. `cost_micro_usd` is None where a price is missing.
    `error_upper95`: bound of the error of what it would have answered, clustered in tasks."""

    steps: int
    system2_ms: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    tokens_estimated: bool
    cost_micro_usd: int | None
    error_upper95: float


class Disagreement(msgspec.Struct, frozen=True):
    """A best guess that was wrong. Arguments are None where they were not recorded in full;
    `differing` names those that differ. `answered`: it would have been given."""

    session: str
    task: str
    message: int
    began_unix_s: float
    confidence: float
    answered: bool
    proposed_tool: str
    proposed: dict[str, Any] | None
    recorded_tool: str | None
    recorded: dict[str, Any] | None
    differing: list[str]


class Day(msgspec.Struct, frozen=True):
    """One day, UTC, YYYY-MM-DD. `answered` and `errors` under the report's level."""

    day: str
    steps: int
    calls: int
    exact: float
    answered: int
    errors: int


class RouteReport(msgspec.Struct, frozen=True):
    """One route. `level` is the error level that verdict, days and worst look at. `steps_seen` are
    all recorded ones, `by` says who decided them; `unjudged` why some were not judged;
    `would_act`: steps that live mode would have answered by all of the route's rules;
    `escalations`: why System 1 would not act, by step."""

    route: str
    modes: list[str]
    reflexes: list[str]
    first_unix_s: float
    last_unix_s: float
    level: str
    steps_seen: int
    by: dict[str, int]
    unjudged: dict[str, int]
    evaluation: Evaluation
    tools: list[ToolAgreement]
    saved: dict[str, Saved]
    would_act: int
    escalations: dict[str, int]
    worst: list[Disagreement]
    days: list[Day]
    audits: dict[str, int]
    verdict: Verdict
    because: str
    next: str
    standing: list[ReflexState] = []


class Report(msgspec.Struct, frozen=True):
    """`since_unix_s` and `until_unix_s` as asked for. `silent`: routes with
    steps, none judged: why not, by step."""

    since_unix_s: float | None
    until_unix_s: float | None
    routes: list[RouteReport]
    silent: dict[str, dict[str, int]]


def with_standings(found: Report, standings: Standings) -> Report:
    """With what the reflexes of each route may do now. A gateway names them as its configuration
    does, so that a relative path is told by its end."""
    routes = [
        msgspec.structs.replace(
            route,
            standing=[
                state
                for state in standings.reflexes
                if any(Path(state.artifact).match(name) for name in route.reflexes)
            ],
        )
        for route in found.routes
    ]
    return msgspec.structs.replace(found, routes=routes)


def report(
    connection: Connection,
    *,
    route: str | None = None,
    period: Period | None = None,
    max_error: float = 0.05,
) -> Report:
    """The report on one route, or on all that have a judged step in the period. Verdict and days
    look at the largest recorded error level within `max_error`."""
    during = period if period is not None else Period()
    found: list[RouteReport] = []
    silent: dict[str, dict[str, int]] = {}
    for name in routes_of(connection, during) if route is None else [route]:
        steps = steps_of(connection, name, during)
        if any(step.items for step in steps):
            found.append(_of_route(connection, name, steps, during, max_error))
        elif steps:
            silent[name] = _counted(_unjudged(step) for step in steps)
    return Report(during.since_s, during.until_s, found, silent)


def _of_route(
    connection: Connection, route: str, steps: Sequence[Step], period: Period, max_error: float
) -> RouteReport:
    judged = [step for step in steps if step.items]
    levels = _levels(judged)
    items = [_at_levels(item, levels) for step in judged for item in step.items]
    level = _level(levels, max_error)
    task_of = {item.session: item.task for item in items}
    thinking = {item.named_tool for item in items if item.thought and item.named_tool}
    repeated = repeats_in(connection, list(task_of.items()), thinking)
    evaluation = figures(
        items,
        [item.cpu_ms for item in items],
        sessions=len(task_of),
        tasks=set(task_of.values()),
        levels=levels,
        repeated=repeated,
    )
    saved = {name: _saved(judged, items, name) for name in levels}
    verdict, because = verdict_on(evaluation, level, saved[level].error_upper95)
    modes = sorted({step.mode for step in steps})
    return RouteReport(
        route=route,
        modes=modes,
        reflexes=sorted({step.reflex for step in judged if step.reflex is not None}),
        first_unix_s=judged[0].began_s,
        last_unix_s=judged[-1].began_s,
        level=level,
        steps_seen=len(steps),
        by=_counted(step.decided_by for step in steps),
        unjudged=_counted(
            _unjudged(step) for step in steps if not step.items and step.decided_by != "system1"
        ),
        evaluation=evaluation,
        tools=_tools(items, repeated),
        saved=saved,
        would_act=sum(step.items[0].would_act for step in judged),
        escalations=_counted(
            step.reason for step in steps if step.action == "escalate" and step.reason
        ),
        worst=_worst(judged, level),
        days=_days(judged, level),
        audits=audits_of(connection, route, period),
        verdict=verdict,
        because=because,
        next=advice(verdict, "live" in modes),
    )


def _levels(judged: Sequence[Step]) -> list[str]:
    found = {name for step in judged for item in step.items for name in item.acted}
    return sorted((name for name in found if not counts_writes(name)), key=float)


def _at_levels(item: Item, levels: Sequence[str]) -> Item:
    """With all levels of the report: reflexes of other times may have been judged at others."""
    if len(item.acted) == 2 * len(levels):
        return item
    return msgspec.structs.replace(item, acted=_all(item.acted, levels))


def _all(acted: dict[str, bool], levels: Sequence[str]) -> dict[str, bool]:
    reads = {level: acted.get(level, False) for level in levels}
    return reads | {
        with_writes(level): acted.get(with_writes(level), reads[level]) for level in levels
    }


def _level(levels: Sequence[str], max_error: float) -> str:
    within = [level for level in levels if float(level) <= max_error]
    return within[-1] if within else levels[0]


def _counted(names: Iterable[str]) -> dict[str, int]:
    """The most frequent first."""
    counts = Counter(names)
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _unjudged(step: Step) -> str:
    if not 200 <= step.status < 300:
        return "no_answer"
    return step.reason or "no_decision"


def _tools(items: Sequence[Item], repeated: Repeats) -> list[ToolAgreement]:
    by_tool: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.is_call and item.named_tool is not None:
            by_tool[item.named_tool].append(item)
    rows: list[ToolAgreement] = []
    for tool, calls in by_tool.items():
        exact = sum(one.exact for one in calls) / len(calls)
        rows.append(
            ToolAgreement(
                tool, calls[-1].effect, len(calls), len({one.task for one in calls}),
                round(exact, 6), clustered_interval((one.task, one.exact) for one in calls),
                repeated.tools.get(tool),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda row: (-row.calls, row.tool))


def _saved(judged: Sequence[Step], items: Sequence[Item], level: str) -> Saved:
    whole = [step for step in judged if _answered_whole(step, level)]
    costs = [step.cost_micro_usd for step in whole]
    answered = [(item.task, not item.answer_right) for item in items if item.acted[level]]
    return Saved(
        steps=len(whole),
        system2_ms=round(sum(step.total_ms for step in whole), 3),
        prompt_tokens=sum(step.prompt_tokens for step in whole),
        cached_tokens=sum(step.cached_tokens for step in whole),
        completion_tokens=sum(step.completion_tokens for step in whole),
        tokens_estimated=any(step.tokens_estimated for step in whole),
        cost_micro_usd=(
            None
            if any(step.cost_micro_usd is None for step in judged)
            else sum(cost for cost in costs if cost is not None)
        ),
        error_upper95=round(clustered_upper(answered), 6),
    )


def _answered_whole(step: Step, level: str) -> bool:
    """Whether System 2 need not have been asked: all it did would have been done, and rightly."""
    first = step.items[0] if step.items else None
    if first is not None and first.calls > 1:
        return first.answer_right and bool(first.acted.get(level))
    return all(one.exact and one.acted.get(level) for one in step.items)


def _worst(judged: Sequence[Step], level: str) -> list[Disagreement]:
    """Wrong answers first, then wrong guesses, the surest first."""
    found = [
        Disagreement(
            item.session, item.task, step.at, step.began_s, round(item.confidence, 6),
            item.acted.get(level, False), item.proposed_tool, item.proposed,
            item.named_tool, item.recorded, item.differing,
        )
        for step in judged
        for item in step.items
        if item.proposed_tool is not None and not (item.exact and item.answer_right)
    ]  # fmt: skip
    found.sort(key=lambda one: (not one.answered, -one.confidence, one.began_unix_s))
    return found[:MOST_WORST]


def _days(judged: Sequence[Step], level: str) -> list[Day]:
    by_day: defaultdict[str, list[Step]] = defaultdict(list)
    for step in judged:
        by_day[datetime.fromtimestamp(step.began_s, UTC).strftime("%Y-%m-%d")].append(step)
    rows: list[Day] = []
    for day, steps in sorted(by_day.items()):
        items = [item for step in steps for item in step.items]
        calls = [item for item in items if item.is_call]
        answered = [item for item in items if item.acted.get(level)]
        exact = sum(item.exact for item in calls) / len(calls) if calls else 0.0
        wrong = sum(not item.answer_right for item in answered)
        rows.append(Day(day, len(steps), len(calls), round(exact, 6), len(answered), wrong))
    return rows
