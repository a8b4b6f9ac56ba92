"""The gateway's way to the book: one thread owns it, and nothing of a disk is on the event loop.

A book that cannot be written refuses requests of keys with budgets and lets all others pass; what
they cost waits for it, up to a limit, and then is dropped and counted.
"""

from collections.abc import Callable, Sequence

import msgspec

from reflexarc.accounts.book import Book
from reflexarc.accounts.charge import Charge, Reservation
from reflexarc.accounts.clerk import Clerk, Counts
from reflexarc.accounts.keys import VirtualKey, hash_of, is_secret, session_hash
from reflexarc.accounts.limits import KeyLimits, Pass
from reflexarc.steps.errors import BudgetError, KeyRefusedError


class Admission(msgspec.Struct):
    """A request that was let in; to be settled or released exactly once, though a second time does
    nothing. `key` is None for one that came with none of ours."""

    key: VirtualKey | None
    session: str
    tier: str
    entered: Pass | None = None
    reservation: Reservation | None = None
    over: bool = False


class Desk:
    """`open_book` is called in the desk's own thread. `state_secret` is the state directory's.
    `clock_s` is monotonic. `limits` are those of the desk whose place this one takes: what its keys
    have used of their rates stays used."""

    def __init__(
        self,
        open_book: Callable[[], Book],
        state_secret: bytes,
        unix_time: Callable[[], float],
        clock_s: Callable[[], float],
        *,
        retention_days: float = 90.0,
        max_waiting: int = 10_000,
        tick_s: float = 0.5,
        limits: KeyLimits | None = None,
    ) -> None:
        self._state_secret = state_secret
        self._unix_time = unix_time
        self.limits = KeyLimits(clock_s) if limits is None else limits
        self._clerk = Clerk(
            open_book, state_secret, unix_time, clock_s,
            retention_s=retention_days * 86_400.0, max_waiting=max_waiting, tick_s=tick_s,
        )  # fmt: skip

    async def start(self) -> None:
        """Begins; the book may turn out not to be usable, which `counts().fault` tells."""
        await self._clerk.start()

    async def close(self) -> None:
        """Writes what waits and lets go of the book."""
        await self._clerk.close()

    @property
    def counts(self) -> Counts:
        return self._clerk.counts

    async def identify(self, secret: str) -> VirtualKey | None:
        """The key that a request came with, None where it is none of ours by its form. A key that
        was made or changed elsewhere is known within `tick_s`. Raises `KeyRefusedError` for one
        that is unknown, revoked or expired, `BookError` where nobody can tell."""
        if not is_secret(secret):
            return None
        hashed = hash_of(self._state_secret, secret)
        found = self._clerk.key(hashed)
        if found is None:
            await self._clerk.look_again()
            found = self._clerk.key(hashed)
        if found is None:
            raise KeyRefusedError(
                "the key is not known here: look for a misspelling, or ask for one"
            )
        found.check_alive(self._unix_time())
        return found

    async def known(self, identity: str) -> VirtualKey:
        """The key of an id, for work that was left here under it. Raises `KeyRefusedError` for one
        that is gone, revoked or expired, `BookError` where nobody can tell."""
        await self._clerk.look_again()
        found = self._clerk.key_of(identity)
        if found is None:
            raise KeyRefusedError("the key that this was left under is gone")
        found.check_alive(self._unix_time())
        return found

    async def admit(
        self,
        key: VirtualKey | None,
        *,
        session: str = "",
        tier: str = "",
        model: str = "",
        tokens: int = 0,
        micro_usd: int | None = 0,
    ) -> Admission:
        """Lets a request in that will use about so many tokens and cost so much at most; None: its
        price is not known, which no budget can cover. Raises `KeyRefusedError`, `NotAllowedError`,
        `RateLimitError`, `BudgetError`, `BookError`; then nothing is kept back. Cancelling it
        keeps nothing back either."""
        if key is None:
            return Admission(None, session, tier)
        key.check_alive(self._unix_time())
        key.check(model, tier)
        if micro_usd is None and key.budgets:
            raise BudgetError(
                f"the price of {model!r} is not known, so that no budget of the key {key.name} can "
                "cover it: list it in a file of prices",
                str(key.budgets[0]), 0, None,
            )  # fmt: skip
        admission = Admission(key, session, tier, self.limits.enter(key, tokens))
        try:
            if key.budgets:
                hashed = session_hash(self._state_secret, session)
                admission.reservation = await self._clerk.reserve(key, hashed, tier, micro_usd or 0)
        except BaseException:
            self._leave(admission, 0)
            raise
        return admission

    async def settle(
        self,
        admission: Admission | None,
        charges: Sequence[Charge],
        tokens: int | None = None,
    ) -> None:
        """It is over: what it had reserved goes, what it cost stands, on the disk when this
        returns, or later where the book cannot be written now. `tokens`: what it used, for limits.
        What was handed over is written though this is cancelled. Never raises for what a book can
        do. `None`: charges of no admission, an audit's say."""
        reservation = None
        if admission is not None:
            self._leave(admission, tokens)
            reservation = None if admission.over else admission.reservation
            admission.over = True
        kept = [
            msgspec.structs.replace(one, session=session_hash(self._state_secret, one.session))
            for one in charges
        ]
        if kept or (reservation is not None and reservation.id):
            await self._clerk.settle(reservation, kept)

    async def release(self, admission: Admission) -> None:
        """The same of a request that cost nothing and used nothing."""
        await self.settle(admission, (), 0)

    def inside(self, key: VirtualKey) -> int:
        """Requests of a key that are on their way here."""
        return self.limits.inside(key.id)

    def _leave(self, admission: Admission, tokens: int | None) -> None:
        if admission.entered is not None:
            self.limits.leave(admission.entered, tokens)
