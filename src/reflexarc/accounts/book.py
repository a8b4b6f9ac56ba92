"""The book: what is reserved, what was spent, and whether a budget covers more.

A request reserves the most that it can cost; when it is over its reservation goes and its charges
stand, in one transaction, so that at any time reserved and spent together are within the budget.
Two gateways on one file are exact together. One thread at a time.
"""

import contextlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, select, union
from sqlalchemy.dialects.sqlite import insert

from reflexarc.accounts import owners, sums
from reflexarc.accounts.budgets import Budget, renewal, usd, window, windows
from reflexarc.accounts.charge import Charge, Reservation
from reflexarc.accounts.database import Database, charges, once, reservations, tallies
from reflexarc.accounts.database import owners as owners_table
from reflexarc.accounts.keys import VirtualKey
from reflexarc.accounts.sums import Standing
from reflexarc.steps.errors import BookError, BudgetError

OWNERS = "accounts.owners"
FORGOTTEN_AFTER_S = 8 * 86_400.0
"""No request lasts longer; a reservation that does was lost."""

# Built once: building them costs more than running them.
_RESERVE = once(insert(reservations))
_REGISTER = once(insert(owners_table).on_conflict_do_nothing())
_FORGET = delete(reservations).where(reservations.c.id == bindparam("gone"))
_CHARGE = once(insert(charges).on_conflict_do_nothing())


Settlement = tuple[Reservation | None, Sequence[Charge]]


class Book:
    """Raises `BookError` where the file cannot be used just then."""

    def __init__(self, database: Database, unix_time: Callable[[], float]) -> None:
        self.database = database
        self._unix_time = unix_time
        self._owner: owners.Owner | None = None

    @classmethod
    def open(cls, path: Path, unix_time: Callable[[], float]) -> "Book":
        """Makes the file where there is none, and lets go of what processes that are gone had
        reserved. Raises `StoreVersionError`, `StoreError`, `BookError`."""
        book = cls(Database(path), unix_time)
        try:
            book.forget_gone()
        except BookError:
            book.close()
            raise
        return book

    def close(self) -> None:
        """What this book still has reserved goes."""
        if self._owner is not None:
            with contextlib.suppress(BookError):
                self.forget_owner(self._owner.name)
            self._owner.close()
            self._owner = None
        self.database.close()

    def reserve(self, key: VirtualKey, session: str, tier: str, micro_usd: int) -> Reservation:
        """Keeps so much back for a request of a key, if each of its budgets covers it. Raises
        `BudgetError` that names the first that does not, what is left of it and when it renews."""
        if micro_usd < 0:
            raise ValueError(f"a reservation of {micro_usd} micro-dollars")
        if not key.budgets:
            return Reservation("", key.id, session, tier, micro_usd)
        made = Reservation(secrets.token_hex(12), key.id, session, tier, micro_usd)
        owner = self._registered()
        now_s = self._unix_time()
        with self.database.writing() as connection:
            try:
                self._check(connection, key, made, now_s)
            except BudgetError:
                # What stands in the way may be of a process that is gone.
                if not self._forget_gone(connection):
                    raise
                self._check(connection, key, made, now_s)
            connection.execute(_REGISTER, {"owner": owner, "at_s": now_s})
            connection.execute(
                _RESERVE,
                {
                    "id": made.id, "key": made.key, "session": session, "tier": tier,
                    "micro_usd": micro_usd, "owner": owner, "at_s": now_s,
                },
            )  # fmt: skip
        return made

    def settle(self, reservation: Reservation | None, made: Sequence[Charge]) -> None:
        """The reservation goes and the charges stand, both or neither. What was settled before is
        not settled again: a charge counts once, whoever brings it how often. Raises `BookError`
        where it may be tried again, SQLAlchemy's errors where a charge is none."""
        self.settle_all([(reservation, made)])

    def settle_all(self, settlements: Sequence[Settlement]) -> None:
        """Several at once, all or none."""
        with self.database.writing() as connection:
            for reservation, made in settlements:
                if reservation is not None and reservation.id:
                    connection.execute(_FORGET, {"gone": reservation.id})
                fitting = [one.fitting() for one in made]
                added = [one for one in fitting if connection.execute(_CHARGE, _row(one)).rowcount]
                sums.add(connection, added)

    def release(self, reservation: Reservation) -> None:
        """Nothing was asked of anyone."""
        self.settle(reservation, ())

    def forget_owner(self, owner: str) -> int:
        """Lets go of all that a process had reserved. How many reservations."""
        with self.database.writing() as connection:
            return _forget(connection, owner)

    def forget_gone(self) -> int:
        """The same of every process that is known to have ended."""
        with self.database.writing() as connection:
            return self._forget_gone(connection)

    def retain(self, before_s: float) -> int:
        """Removes charges older than a time (Unix seconds), and what they sum up to where its day
        or month, or its session, is over too. What a key has spent of a budget that never renews
        stays. How many charges went."""
        now_s = self._unix_time()
        current = windows(now_s)
        with self.database.writing() as connection:
            gone = connection.execute(delete(charges).where(charges.c.at_s < before_s)).rowcount
            old = tallies.c.last_s < before_s
            connection.execute(delete(tallies).where(old, tallies.c.window.not_in(current)))
            connection.execute(delete(tallies).where(old, tallies.c.scope.startswith("session:")))
            connection.execute(
                delete(reservations).where(reservations.c.at_s < now_s - FORGOTTEN_AFTER_S)
            )
        return int(gone)

    def reserved(self, key: str | None = None) -> int:
        """Micro-dollars that are kept back, for one key or for all."""
        query = select(func.coalesce(func.sum(reservations.c.micro_usd), 0))
        if key is not None:
            query = query.where(reservations.c.key == key)
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def spent(self, key: str, budget: Budget, session: str = "") -> int:
        """Micro-dollars spent under a budget in the window that it is now."""
        scope = budget.of(session, budget.scope.removeprefix("tier:")) or budget.scope
        with self.database.reading() as connection:
            return sums.spent(connection, key, scope, window(budget.renews, self._unix_time()))

    def standing(self, key: VirtualKey) -> list[Standing]:
        """Each budget of a key: what is spent, kept back and left."""
        with self.database.reading() as connection:
            return sums.standing(connection, key, self._unix_time())

    def _registered(self) -> str:
        if self._owner is None:
            try:
                self._owner = owners.Owner(self._directory)
            except OSError as error:
                raise BookError(f"{self._directory} cannot be used: {error}") from error
        return self._owner.name

    @property
    def _directory(self) -> Path:
        return self.database.path.parent / OWNERS

    def _check(
        self, connection: Connection, key: VirtualKey, wanted: Reservation, now_s: float
    ) -> None:
        for budget in key.budgets:
            scope = budget.of(wanted.session, wanted.tier)
            if scope is None:
                continue
            spent = sums.spent(connection, key.id, scope, window(budget.renews, now_s))
            held = sums.held(connection, key.id, scope)
            left = max(0, budget.micro_usd - spent - held)
            if wanted.micro_usd > left:
                raise _refused(key, budget, left, held, wanted.micro_usd, now_s)

    def _forget_gone(self, connection: Connection) -> int:
        found = connection.execute(
            union(select(owners_table.c.owner), select(reservations.c.owner))
        ).scalars()
        own = self._owner.name if self._owner is not None else ""
        count = 0
        for owner in list(found):
            if owner != own and owners.is_gone(self._directory, owner):
                count += _forget(connection, owner)
                owners.sweep(self._directory, owner)
        return count


def _refused(
    key: VirtualKey, budget: Budget, left: int, held: int, wanted: int, now_s: float
) -> BudgetError:
    renews_s = renewal(budget.renews, now_s)
    when = "it never renews" if renews_s is None else f"it renews in {_span(renews_s - now_s)}"
    kept = f" ({usd(held)} dollars are kept back for requests on their way)" if held else ""
    return BudgetError(
        f"the budget {budget} of the key {key.name} does not cover this: it may cost {usd(wanted)} "
        f"dollars, {usd(left)} are left{kept}; {when}",
        str(budget), left, renews_s,
    )  # fmt: skip


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, seconds):.0f} seconds"


def _forget(connection: Connection, owner: str) -> int:
    gone = connection.execute(delete(reservations).where(reservations.c.owner == owner)).rowcount
    connection.execute(delete(owners_table).where(owners_table.c.owner == owner))
    return int(gone)


def _row(charge: Charge) -> dict[str, Any]:
    fields = msgspec.structs.asdict(charge)
    usage = fields.pop("usage")
    fields["at_s"] = fields.pop("at_unix_s")
    return fields | msgspec.structs.asdict(usage)
