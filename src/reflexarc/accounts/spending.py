"""What was spent, summed up for people: by key, session, tier, provider or model."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec
from sqlalchemy import ColumnElement, case, func, select

from reflexarc.accounts.database import Database, charges

By = Literal[
    "key", "tenant", "session", "tier", "route", "provider", "model", "service_tier", "outcome"
]
GROUPS: tuple[By, ...] = get_args(By)


class Filter(msgspec.Struct, frozen=True):
    """All of it must hold; None always does. `session` is a hash. From `since_s` on, before
    `until_s`, Unix seconds."""

    key: str | None = None
    tenant: str | None = None
    session: str | None = None
    since_s: float | None = None
    until_s: float | None = None


class Spent(msgspec.Struct, frozen=True):
    """`group` says of what. Tokens of `input` hold those of `cache_read` and `cache_write`.
    `partial_micro_usd` and `estimated_micro_usd` are parts of `micro_usd`, of attempts that were
    cut off and of those whose usage was estimated; `unpriced` attempts cost what nobody knows and
    are not in it."""

    group: dict[str, str]
    requests: int
    attempts: int
    input: int
    cache_read: int
    cache_write: int
    output: int
    micro_usd: int
    partial: int
    partial_micro_usd: int
    estimated: int
    estimated_micro_usd: int
    unpriced: int


def spending(database: Database, by: Sequence[By], only: Filter | None = None) -> list[Spent]:
    """One row for each combination that there is, the dearest first; with nothing to group by, one
    row of all. Raises `BookError`."""
    wanted = only if only is not None else Filter()
    columns: list[Any] = [charges.c[name] for name in by]
    cost = func.coalesce(charges.c.micro_usd, 0)

    def flagged(flag: ColumnElement[bool], value: Any = 1) -> Any:
        return func.coalesce(func.sum(case((flag, value), else_=0)), 0)

    query = select(
        *columns,
        func.count(func.distinct(charges.c.gateway + ":" + charges.c.number.cast(_TEXT))),
        func.count(),
        *(func.coalesce(func.sum(charges.c[name]), 0) for name in _TOKENS),
        func.coalesce(func.sum(cost), 0),
        flagged(charges.c.partial),
        flagged(charges.c.partial, cost),
        flagged(charges.c.estimated),
        flagged(charges.c.estimated, cost),
        flagged(charges.c.micro_usd.is_(None)),
    ).group_by(*columns)
    for column, value in (
        (charges.c.key, wanted.key),
        (charges.c.tenant, wanted.tenant),
        (charges.c.session, wanted.session),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.since_s is not None:
        query = query.where(charges.c.at_s >= wanted.since_s)
    if wanted.until_s is not None:
        query = query.where(charges.c.at_s < wanted.until_s)
    with database.reading() as connection:
        rows = connection.execute(query).all()
    found: list[Spent] = []
    for row in rows:
        values: list[Any] = list(row)
        group: dict[str, str] = dict(zip(by, values[: len(by)], strict=True))
        found.append(Spent(group, *(int(value) for value in values[len(by) :])))
    found = [one for one in found if one.attempts]
    return sorted(found, key=lambda one: (-one.micro_usd, -one.attempts, list(one.group.values())))


_TOKENS = ("input", "cache_read", "cache_write", "output")
_TEXT = charges.c.gateway.type
