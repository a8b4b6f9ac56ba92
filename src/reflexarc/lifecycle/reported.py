"""What a report is made from: the judged steps of one route, read from the store.

Of a step that was asked for several times the last judged attempt counts: it is the one that its
session went on with.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, select

from reflexarc.reflex.evaluation import Placed
from reflexarc.reflex.repeat import Call, Repeats, repeats_of
from reflexarc.store.schema import audits, decisions, messages, sessions, steps

_AT_ONCE = 400
_acted: msgspec.json.Decoder[dict[str, bool]] = msgspec.json.Decoder(dict[str, bool])
_arguments: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_names: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])
_Calls = list[tuple[str, dict[str, str]]]
_calls: msgspec.json.Decoder[_Calls] = msgspec.json.Decoder(_Calls)


class Item(Placed, frozen=True, kw_only=True):
    """A judgement as it was recorded, with the arguments where they were kept (None: not), and the
    names of those that differ. `would_act`: the route's own rules allowed it too."""

    proposed: dict[str, Any] | None
    recorded: dict[str, Any] | None
    differing: list[str]
    would_act: bool
    cpu_ms: float


class Step(msgspec.Struct, frozen=True):
    """A step of System 2, with its items; none where it was not judged."""

    number: int
    session: str
    at: int
    began_s: float
    mode: str
    reflex: str | None
    decided_by: str
    status: int
    action: str
    reason: str
    total_ms: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    tokens_estimated: bool
    cost_micro_usd: int | None
    items: list[Item]


class Period(msgspec.Struct, frozen=True):
    """From `since_s` on, before `until_s`; None is open. Unix seconds."""

    since_s: float | None = None
    until_s: float | None = None

    def of(self, column: Any) -> ColumnElement[bool]:
        bounds: list[ColumnElement[bool]] = [column.is_not(None)]
        if self.since_s is not None:
            bounds.append(column >= self.since_s)
        if self.until_s is not None:
            bounds.append(column < self.until_s)
        return and_(*bounds)


def routes_of(connection: Connection, period: Period) -> list[str]:
    """Routes with a step in that time, by name."""
    return list(
        connection.execute(
            select(steps.c.route).where(period.of(steps.c.began_s)).distinct()
            .order_by(steps.c.route)
        ).scalars()
    )  # fmt: skip


def steps_of(connection: Connection, route: str, period: Period) -> list[Step]:
    """Steps of a route in that time, as they began."""
    here = and_(steps.c.route == route, period.of(steps.c.began_s))
    of_step: dict[int, list[Item]] = {}
    found = connection.execute(
        select(decisions, steps.c.session, sessions.c.task)
        .join(steps, steps.c.id == decisions.c.step)
        .join(sessions, sessions.c.id == steps.c.session)
        .where(here)
        .order_by(decisions.c.step, decisions.c.position)
    )
    for row in found:
        of_step.setdefault(row.step, []).append(_item(row))
    last: dict[tuple[str, int], Step] = {}
    for row in connection.execute(select(steps).where(here).order_by(steps.c.id)):
        step = Step(
            row.id, row.session, row.at, row.began_s, row.mode, row.reflex, row.decided_by,
            row.status, row.action, row.reason, row.total_ms, row.prompt_tokens, row.cached_tokens,
            row.completion_tokens, row.tokens_estimated, row.cost_micro_usd,
            of_step.get(row.id, []),
        )  # fmt: skip
        known = last.get((step.session, step.at))
        if known is None or step.items or not known.items:
            last[step.session, step.at] = step
    return sorted(last.values(), key=lambda step: (step.began_s, step.number))


def audits_of(connection: Connection, route: str, period: Period) -> dict[str, int]:
    """Acts of System 1 that System 2 was asked about as well, by what came of it."""
    rows = connection.execute(
        select(audits.c.outcome, func.count())
        .where(audits.c.route == route, period.of(audits.c.at_s))
        .group_by(audits.c.outcome)
        .order_by(audits.c.outcome)
    )
    return {row[0]: row[1] for row in rows}


def repeats_in(
    connection: Connection, tasks: Sequence[tuple[str, str]], thinking: Iterable[str]
) -> Repeats:
    """How often System 2 repeats itself in these sessions, each with its task. Calls are compared
    by the hashes of their arguments."""
    skipped = set(thinking)
    return repeats_of(_runs(connection, tasks, skipped))


def _runs(
    connection: Connection, tasks: Sequence[tuple[str, str]], skipped: set[str]
) -> Iterator[tuple[str, list[Call]]]:
    for begin in range(0, len(tasks), _AT_ONCE):
        part = dict(tasks[begin : begin + _AT_ONCE])
        made: dict[str, list[Call]] = {session: [] for session in part}
        rows = connection.execute(
            select(messages.c.session, messages.c.calls, messages.c.by_system1)
            .where(messages.c.session.in_(part), messages.c.role == "assistant")
            .order_by(messages.c.session, messages.c.at)
        )
        for session, calls, by_system1 in rows:
            made[session] += [
                (
                    name,
                    msgspec.json.encode((name, sorted(arguments.items()))).decode(),
                    not by_system1,
                )
                for name, arguments in _calls.decode(calls)
                if name not in skipped
            ]
        for session, calls in made.items():
            yield part[session], calls


def _item(row: Any) -> Item:
    return Item(
        session=row.session,
        task=row.task,
        step=row.step,
        named_tool=row.recorded_tool,
        proposed_tool=row.proposed_tool,
        effect=row.effect,
        thought=row.thought,
        named=row.named,
        exact=row.exact,
        among_three=row.among_three,
        read_exact=row.read_exact,
        read_among_three=row.read_among_three,
        confidence=row.confidence,
        reason=row.reason,
        acted=_acted.decode(row.acted),
        proposed=_arguments.decode(row.proposed) if row.proposed is not None else None,
        recorded=_arguments.decode(row.recorded) if row.recorded is not None else None,
        differing=_names.decode(row.differing),
        would_act=row.would_act,
        cpu_ms=row.cpu_ms,
        right=row.answer_right,
        calls=row.answer_calls,
        made=row.calls_made,
    )
