"""Reads the store for people and for learning: how much there is, and the sessions as JSONL."""

from collections.abc import Collection, Iterator
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, Row, Select, and_, func, select

from reflexarc.store.retention import used_bytes
from reflexarc.store.schema import audits, decisions, messages, sessions, steps, trail


class Stats(msgspec.Struct, frozen=True):
    """`bytes` in use; `in_full` counts sessions all of whose messages are there. `by`: steps by
    who decided. Times are Unix seconds, None where nothing is there."""

    bytes: int
    sessions: int
    in_full: int
    tasks: int
    tenants: int
    steps: int
    by: dict[str, int]
    decisions: int
    audits: int
    trail: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    oldest_unix_s: float | None
    newest_unix_s: float | None
    routes: list["RouteStats"]


class RouteStats(msgspec.Struct, frozen=True):
    """Counts of one route; `system1` of the steps that System 1 answered."""

    route: str
    sessions: int
    steps: int
    system1: int


class Gone(msgspec.Struct, frozen=True):
    """Sessions that were left out, by reason."""

    not_in_full: int
    no_answer: int


class Kept(msgspec.Struct, frozen=True):
    """`line` is the session as one line of JSON, without a line end."""

    id: str
    line: bytes


def stats(connection: Connection) -> Stats:
    """How much is kept, since when, decided by whom."""

    def number(query: Select[Any]) -> int:
        return int(connection.execute(query).scalar() or 0)

    oldest, newest = connection.execute(
        select(func.min(sessions.c.began_s), func.max(sessions.c.last_s))
    ).one()
    by = connection.execute(select(steps.c.decided_by, func.count()).group_by(steps.c.decided_by))
    in_sessions = connection.execute(
        select(sessions.c.route, func.count()).group_by(sessions.c.route)
    )
    counted: dict[str, int] = {row[0]: row[1] for row in in_sessions}
    routes = connection.execute(
        select(
            steps.c.route, func.count(), func.sum(steps.c.decided_by == "system1")
        ).group_by(steps.c.route).order_by(steps.c.route)
    )  # fmt: skip
    return Stats(
        bytes=used_bytes(connection),
        sessions=number(select(func.count()).select_from(sessions)),
        in_full=number(select(func.count()).select_from(sessions).where(_in_full())),
        tasks=number(select(func.count(sessions.c.task.distinct()))),
        tenants=number(select(func.count(sessions.c.tenant.distinct()))),
        steps=number(select(func.count()).select_from(steps)),
        by={row[0]: row[1] for row in by},
        decisions=number(select(func.count()).select_from(decisions)),
        audits=number(select(func.count()).select_from(audits)),
        trail=number(select(func.count()).select_from(trail)),
        prompt_tokens=number(select(func.sum(steps.c.prompt_tokens))),
        cached_tokens=number(select(func.sum(steps.c.cached_tokens))),
        completion_tokens=number(select(func.sum(steps.c.completion_tokens))),
        oldest_unix_s=oldest,
        newest_unix_s=newest,
        routes=[
            RouteStats(row[0], counted.get(row[0], 0), row[1], int(row[2] or 0)) for row in routes
        ],
    )


def kept_sessions(
    connection: Connection, *, route: str | None = None, since_s: float | None = None
) -> tuple[list[Kept], Gone]:
    """Sessions recorded in full, oldest first; `since_s`: whose last step began then or later.

    The task stands in the line only where the client named it, else it is found by the likeness
    of openings when the line is read. A message System 1 wrote carries
    `"decided_by": "system1"`, one whose tool it chose `"decided_by": "partial"`.
    """
    query = select(sessions).order_by(sessions.c.began_s, sessions.c.id)
    if route is not None:
        query = query.where(sessions.c.route == route)
    if since_s is not None:
        query = query.where(sessions.c.last_s >= since_s)
    everything = connection.execute(query).all()
    full = set(connection.execute(select(sessions.c.id).where(_in_full())).scalars())
    kept: list[Kept] = []
    not_in_full = no_answer = 0
    for row in everything:
        if row.id not in full:
            not_in_full += 1
            continue
        line = _line(connection, row)
        if line is None:
            no_answer += 1
        else:
            kept.append(Kept(row.id, line))
    return kept, Gone(not_in_full, no_answer)


def contents(connection: Connection, ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Session and text of every message kept by value in these sessions."""
    for identity in ids:
        rows = connection.execute(
            select(messages.c.content).where(
                messages.c.session == identity, messages.c.content.is_not(None)
            )
        ).scalars()
        for text in rows:
            yield identity, text


def _in_full() -> Any:
    gap = select(messages.c.at).where(
        and_(messages.c.session == sessions.c.id, messages.c.content.is_(None))
    )
    return and_(sessions.c.messages > 0, ~gap.exists())


def _line(connection: Connection, row: Row[Any]) -> bytes | None:
    listed: list[Any] = []
    answered = False
    found = connection.execute(
        select(messages.c.content, messages.c.role, messages.c.by_system1, messages.c.forced)
        .where(messages.c.session == row.id)
        .order_by(messages.c.at)
    )
    for content, role, by_system1, forced in found:
        try:
            message: Any = msgspec.json.decode(content)
        except msgspec.DecodeError:
            return None
        if (by_system1 or forced) and isinstance(message, dict):
            cast("dict[str, Any]", message)["decided_by"] = "system1" if by_system1 else "partial"
        answered = answered or role == "assistant"
        listed.append(message)
    if not answered:
        return None
    session: dict[str, Any] = {"id": row.id, "model": row.model or None}
    session["began_unix_s"] = row.began_s
    if row.task_from == "header":
        session["task"] = row.task
    if row.tools is not None:
        try:
            session["tools"] = msgspec.json.decode(row.tools)
        except msgspec.DecodeError:
            return None
    session["messages"] = listed
    return msgspec.json.encode(session)
