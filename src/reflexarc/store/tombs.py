"""What was purged and may still be on its way to the store: steps that began before the purge.

Such a step waits in a recorder, in a gateway, or for System 2. A row of `purges`, written in the
transaction that deletes, says what must not come back; a recorder looks there in the transaction
that writes, so that each step is either deleted or refused. It holds keyed hashes, no value.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, insert, select

from reflexarc.store.records import StepEnded
from reflexarc.store.schema import purges

KEPT_S = 8 * 86_400.0
"""No request lasts longer: a gateway ends it after a week at most."""


class Tomb(msgspec.Struct, frozen=True):
    """Conditions that hold together; None and empty ones always do. `ends` and `heads` are of one
    purged session: a request that goes on from one of its `ends`, or asks what it had asked
    (`heads`), belongs to it."""

    at_s: float
    tenant: str | None = None
    route: str | None = None
    name: str | None = None
    before_s: float | None = None
    ends: frozenset[str] = frozenset()
    heads: frozenset[str] = frozenset()

    @property
    def of_conversation(self) -> bool:
        return bool(self.heads)

    def takes(
        self, step: StepEnded, name: str | None, heads: Sequence[str], *, goes_on: bool
    ) -> bool:
        """Whether a step was purged. `name` is the keyed hash of its session's, `heads` its chain
        after each of its messages; `goes_on`: its session is in the store, so it was kept."""
        if step.began_unix_s > self.at_s:
            return False
        if self.tenant is not None and step.tenant != self.tenant:
            return False
        if self.route is not None and step.route != self.route:
            return False
        if self.name is not None and name != self.name:
            return False
        if self.heads:
            return heads[-1] in self.heads or not self.ends.isdisjoint(heads)
        return self.before_s is None or (step.began_unix_s < self.before_s and not goes_on)


def add(connection: Connection, tombs: Sequence[Tomb]) -> None:
    """Within the transaction that deletes."""
    connection.execute(delete(purges).where(purges.c.at_s < tombs[0].at_s - KEPT_S))
    connection.execute(
        insert(purges),
        [
            {
                "at_s": one.at_s,
                "tenant": one.tenant,
                "route": one.route,
                "name": one.name,
                "before_s": one.before_s,
                "ends": _text(one.ends),
                "heads": _text(one.heads),
            }
            for one in tombs
        ],
    )


def since(connection: Connection, began_s: float) -> list[Tomb]:
    """Those that may take a step which began then or later."""
    rows = connection.execute(select(purges).where(purges.c.at_s >= began_s))
    return [
        Tomb(
            row.at_s, row.tenant, row.route, row.name, row.before_s,
            _hashes(row.ends), _hashes(row.heads),
        )
        for row in rows
    ]  # fmt: skip


def _text(hashes: frozenset[str]) -> str | None:
    return msgspec.json.encode(sorted(hashes)).decode() if hashes else None


def _hashes(text: str | None) -> frozenset[str]:
    return frozenset() if text is None else msgspec.json.decode(text, type=frozenset[str])
