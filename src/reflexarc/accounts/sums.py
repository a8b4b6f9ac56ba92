"""What was spent and what is kept back, summed up by key, session and tier, day and month."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, func, select
from sqlalchemy.dialects.sqlite import insert

from reflexarc.accounts.budgets import Budget, renewal, window, windows
from reflexarc.accounts.charge import Charge
from reflexarc.accounts.database import once, reservations, tallies
from reflexarc.accounts.keys import VirtualKey

# Built once: building them costs more than running them.
_SPENT = select(tallies.c.micro_usd).where(
    tallies.c.key == bindparam("of"),
    tallies.c.scope == bindparam("scope"),
    tallies.c.window == bindparam("window"),
)
_RESERVED = select(func.coalesce(func.sum(reservations.c.micro_usd), 0)).where(
    reservations.c.key == bindparam("of")
)
_RESERVED_IN = {
    "key": _RESERVED,
    "session": _RESERVED.where(reservations.c.session == bindparam("part")),
    "tier": _RESERVED.where(reservations.c.tier == bindparam("part")),
}
_ADDED = insert(tallies)
_TALLY = once(
    _ADDED.on_conflict_do_update(
        index_elements=[tallies.c.key, tallies.c.scope, tallies.c.window],
        set_={
            "micro_usd": tallies.c.micro_usd + _ADDED.excluded.micro_usd,
            "last_s": func.max(tallies.c.last_s, _ADDED.excluded.last_s),
        },
    )
)


class Standing(msgspec.Struct, frozen=True):
    """A budget of a key now. Of one that binds each session, the session that has spent most.
    `renews_unix_s` is None where it never renews."""

    budget: str
    micro_usd: int
    spent_micro_usd: int
    reserved_micro_usd: int
    left_micro_usd: int
    renews_unix_s: float | None


def spent(connection: Connection, key: str, scope: str, in_window: str) -> int:
    """Micro-dollars of charges."""
    found = connection.execute(_SPENT, {"of": key, "scope": scope, "window": in_window}).scalar()
    return int(found or 0)


def held(connection: Connection, key: str, scope: str) -> int:
    """Micro-dollars kept back for requests on their way."""
    kind, _, part = scope.partition(":")
    values = {"of": key} if kind == "key" else {"of": key, "part": part}
    return int(connection.execute(_RESERVED_IN[kind], values).scalar_one())


def add(connection: Connection, charges: Sequence[Charge]) -> None:
    """Adds what these cost to what was spent."""
    rows = [row for charge in charges for row in _rows(charge)]
    if rows:
        connection.execute(_TALLY, rows)


def standing(connection: Connection, key: VirtualKey, now_s: float) -> list[Standing]:
    """Each budget of a key: what is spent, kept back and left."""
    found: list[Standing] = []
    for budget in key.budgets:
        scope = _fullest(connection, key.id, budget, now_s)
        was = spent(connection, key.id, scope, window(budget.renews, now_s))
        kept = held(connection, key.id, scope)
        left = max(0, budget.micro_usd - was - kept)
        renews_s = renewal(budget.renews, now_s)
        found.append(Standing(str(budget), budget.micro_usd, was, kept, left, renews_s))
    return found


def _fullest(connection: Connection, key: str, budget: Budget, now_s: float) -> str:
    """What a budget is counted under; of sessions, the one with the most spent and kept back."""
    if budget.scope != "session":
        return budget.scope
    spent_by = select(tallies.c.scope, tallies.c.micro_usd).where(
        tallies.c.key == key,
        tallies.c.window == window(budget.renews, now_s),
        tallies.c.scope.startswith("session:"),
    )
    sums: dict[str, int] = {row.scope: row.micro_usd for row in connection.execute(spent_by)}
    for session, micro_usd in connection.execute(
        select(reservations.c.session, func.sum(reservations.c.micro_usd))
        .where(reservations.c.key == key)
        .group_by(reservations.c.session)
    ):
        scope = f"session:{session}"
        sums[scope] = sums.get(scope, 0) + int(micro_usd)
    return max(sorted(sums), key=lambda scope: sums[scope], default="session:")


def _rows(charge: Charge) -> list[dict[str, Any]]:
    if not charge.key or not charge.micro_usd:
        return []
    return [
        {
            "key": charge.key, "scope": scope, "window": one,
            "micro_usd": charge.micro_usd, "last_s": charge.at_unix_s,
        }
        for scope in ("key", f"session:{charge.session}", f"tier:{charge.tier}")
        for one in windows(charge.at_unix_s)
    ]  # fmt: skip
