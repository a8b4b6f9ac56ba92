"""A request that is on its way to System 2 while System 1 decides on it."""

import asyncio
from collections.abc import Callable

from reflexarc.gateway.copying import Copy
from reflexarc.gateway.frames import Decided
from reflexarc.gateway.labels import decision_label, escalation_label


class Shadow:
    """The decision, and `copy` of System 2's answer. `without` says why there is no decision."""

    def __init__(self, copy: Copy, without: Callable[[], str]) -> None:
        self.without = without
        self.decision: asyncio.Future[tuple[Decided, bytes] | None] | None = None
        self.copy = copy

    @property
    def is_decided(self) -> bool:
        """Whether the decision is there, or it is certain that there will be none."""
        return self.decision is not None and self.decision.done()

    @property
    def decided(self) -> Decided | None:
        """The decision, if it is there already."""
        got = self.decision.result() if self.decision is not None and self.is_decided else None
        return got[0] if got is not None else None

    @property
    def may_come(self) -> bool:
        """Whether there is, or still may be, a decision to compare with."""
        decision = self.decision
        return decision is not None and not (decision.done() and decision.result() is None)

    def label(self) -> bytes:
        """`x-reflexarc-decision` as it stands now."""
        if self.decision is None or not self.decision.done():
            return decision_label("shadow", None)
        got = self.decision.result()
        if got is None:
            return escalation_label("shadow", self.without())
        return decision_label("shadow", got[0])
