"""What System 2 answered, shown to System 1, and what came of the comparison: counted and kept."""

from reflexarc.gateway.copying import Copy
from reflexarc.gateway.frames import Decided, Observe, Observed
from reflexarc.gateway.keeping import Keeper
from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.standings import StandingDesk
from reflexarc.gateway.system1 import System1

_MAX_OBSERVING = 4096


class Comparing:
    """Knows which comparison belongs to which route, and whether it is an audit's."""

    def __init__(
        self, system1: System1, keeper: Keeper, metrics: Metrics, standings: StandingDesk
    ) -> None:
        self._system1 = system1
        self._keeper = keeper
        self._metrics = metrics
        self._standings = standings
        self._observing: dict[int, tuple[str, bool]] = {}
        self._in_doubt: dict[int, Decided] = {}
        self._auditing: dict[int, tuple[str, str]] = {}
        # Models heard thinking, by route: a process that is replaced does not know.
        self._thinking: dict[str, set[str]] = {}

    def thinking(self, route: str) -> tuple[str, ...]:
        """The models heard thinking on a route since the gateway started."""
        return tuple(self._thinking.get(route, ()))

    def show(
        self,
        number: int,
        route: str,
        status: int,
        copy: Copy | None,
        *,
        audit: bool = False,
        in_doubt: Decided | None = None,
    ) -> None:
        """Nothing comes of an answer that did not end, or was too long to keep. `in_doubt`: an act
        that was left to System 2 until errors are behind its tool."""
        body = copy.body if copy is not None else None
        if copy is None or body is None:
            return
        if in_doubt is not None:
            self._in_doubt[number] = in_doubt
        self._observing[number] = (route, audit)
        self._system1.observe(
            Observe(
                id=number,
                status=status,
                content_type=copy.content_type,
                content_encoding=copy.content_encoding,
                dialect=copy.dialect,
            ),
            body,
        )
        while len(self._observing) > _MAX_OBSERVING:  # comparisons a lost process never answered
            lost = next(iter(self._observing))
            lost_route, was_audit = self._observing.pop(lost)
            self._in_doubt.pop(lost, None)
            if was_audit:
                self._audited(lost, lost_route, "", "lost")

    def observed(self, number: int, observed: Observed) -> None:
        """System 1's word on an answer it was shown."""
        known = self._observing.pop(number, None)
        if known is None:
            return
        route, audit = known
        if observed.thinks:
            self._thinking.setdefault(route, set()).add(observed.thinks)
        if audit:
            self._audited(number, route, observed.tool, observed.outcome)
            return
        in_doubt = self._in_doubt.pop(number, None)
        if in_doubt is not None:
            self._standings.compared(route, in_doubt, observed.outcome)
        self._metrics.shadow(route, observed.tool, observed.outcome)
        self._keeper.judged(number, observed.predictions)

    def audit(self, number: int, route: str, tool: str, *, taken: bool) -> None:
        """An act that was drawn for an audit; `taken`: System 2 is being asked."""
        if taken:
            self._auditing[number] = (route, tool)
        else:
            self._audited(number, route, tool, "skipped")

    def audit_answered(self, number: int, copy: Copy | None) -> None:
        """What System 2 said to an audit; None where it did not answer it."""
        known = self._auditing.pop(number, None)
        if known is None:
            return
        route, tool = known
        if copy is None or copy.body is None:
            self._audited(number, route, tool, "upstream_failed")
        else:
            self.show(number, route, 200, copy, audit=True)

    def _audited(self, number: int, route: str, tool: str, outcome: str) -> None:
        self._metrics.audit(route, tool, outcome)
        self._keeper.audited(number, route, tool, outcome)
        self._standings.audited(route, number, outcome)
