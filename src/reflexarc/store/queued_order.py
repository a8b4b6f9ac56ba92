"""Whose turn it is in the batch queue, what place an entry has, and how fast the queue drains.

Tenants take turns, each with its oldest entry: of two that always have some waiting, neither is
ever more than one ahead of the other, however many it has.
"""

import msgspec
from sqlalchemy import Connection, func, select

from reflexarc.store.queued_file import entries, turns

WINDOW_S = 600.0
"""What was finished within so long tells how fast the queue drains."""


class Turn(msgspec.Struct, frozen=True):
    """A tenant that has entries waiting: how many, and the number of its oldest."""

    tenant: str
    waiting: int
    oldest: int


def line(connection: Connection) -> list[Turn]:
    """Tenants in the order of their turns: who had theirs longest ago, or never, comes first."""
    oldest = func.min(entries.c.seq)
    query = (
        select(entries.c.tenant, func.count(), oldest)
        .select_from(entries.outerjoin(turns, turns.c.tenant == entries.c.tenant))
        .where(entries.c.state == "waiting")
        .group_by(entries.c.tenant)
        .order_by(func.coalesce(func.max(turns.c.turn), 0), oldest)
    )
    return [Turn(row[0], row[1], row[2]) for row in connection.execute(query)]


def place(connection: Connection, identity: str) -> int | None:
    """How many entries are taken before it, if none comes or goes; None where it does not wait."""
    waits = (entries.c.id == identity) & (entries.c.state == "waiting")
    mine = connection.execute(select(entries.c.seq, entries.c.tenant).where(waits)).first()
    if mine is None:
        return None
    rounds: int = connection.execute(
        select(func.count())
        .select_from(entries)
        .where(entries.c.state == "waiting", entries.c.tenant == mine.tenant)
        .where(entries.c.seq < mine.seq)
    ).scalar_one()
    before, earlier = rounds, True
    for other in line(connection):
        if other.tenant == mine.tenant:
            earlier = False
        else:
            before += min(other.waiting, rounds + (1 if earlier else 0))
    return before


def drained_per_s(connection: Connection, now_s: float) -> float:
    """Answers a second over the last 10 minutes, or since the first of them was begun; 0 where
    there was none."""
    row = connection.execute(
        select(func.count(), func.min(entries.c.taken_unix_s)).where(
            entries.c.state == "done",
            entries.c.finished_unix_s > now_s - WINDOW_S,
            entries.c.finished_unix_s <= now_s,
        )
    ).one()
    if not row[0]:
        return 0.0
    return row[0] / min(max(now_s - row[1], 1.0), WINDOW_S)
