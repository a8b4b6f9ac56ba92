"""Whether System 1 may act right now, beside what a request and a reflex say; and its trail.

Asked before a decision is sought and again before an act is sent, so that off is off at once.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any

from reflexarc.gateway.config import Route
from reflexarc.gateway.frames import Decided
from reflexarc.gateway.health import Health
from reflexarc.gateway.labels import own_request_id
from reflexarc.gateway.recorder import Recorder
from reflexarc.gateway.standings import StandingDesk
from reflexarc.gateway.switch import Switch
from reflexarc.lifecycle.off import OffEntry
from reflexarc.lifecycle.standing import Demotion
from reflexarc.store.records import TrailEntry


class Acting:
    """`gateway` names this process in the trail; `secret` keys what must not stand there."""

    def __init__(
        self,
        gateway: str,
        recorder: Recorder,
        clock_s: Callable[[], float],
        switch_of: Callable[[Callable[..., None]], Switch],
        secret: bytes,
        standings_of: Callable[[Callable[[Demotion], None]], StandingDesk],
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self.recorder = recorder
        self.health = Health(clock_s, self._health_changed)
        self.switch = switch_of(self._switched)
        self.standings = standings_of(self._demoted)
        self.demotions = 0
        self._gateway = gateway
        self._secret = secret
        self._unix_time = unix_time
        self._entries = 0

    def why_not(self, route: Route, tool: str = "") -> str | None:
        """A reason to escalate, None where System 1 may act. `tool` where it is known."""
        reason = self.switch.off.reason(route.path, route.reflex, tool)
        if reason is not None:
            return reason
        if self.health.why_off:
            return "off:health"
        if not self.recorder.well:
            return "store_down"
        return self.standings.why_none(route)

    def why_not_this(self, route: Route, decided: Decided) -> str | None:
        """The same for a decision that would act."""
        for tool in decided.tools or (decided.tool,):
            reason = self.why_not(route, tool)
            if reason is not None:
                return reason
        return self.standings.why_not(route, decided)

    def acted(
        self,
        route: str,
        decided: Decided,
        tenant: str,
        request_id: bytes,
        audit_share: float = 0.0,
    ) -> None:
        """Written before the act, or the partial, is sent: none without its entry. `audit_share`:
        the probability with which it had to be audited."""
        guarantee = decided.guarantee
        certificate = None
        if guarantee is not None:
            certificate = {name: getattr(guarantee, name) for name in guarantee.__struct_fields__}
        self.note(
            decided.action,
            "system1",
            {
                "request": self._shown(request_id, decided.id),
                "number": decided.id,
                "route": route,
                "tenant": tenant,
                "tool": decided.tool,
                "tools": list(decided.tools),
                "call": decided.call,
                "key": decided.key,
                "confidence": decided.confidence,
                "reflex": decided.reflex,
                "certificate": certificate,
                "audit": decided.audit,
                "audit_share": audit_share,
            },
        )

    def _shown(self, request_id: bytes, number: int) -> str:
        """A request's id where it is ours. One that the client gave may say anything, and entries
        of the trail outlive a purge: of that a keyed hash."""
        if request_id == own_request_id(self._gateway, number):
            return request_id.decode("latin-1")
        return hashlib.blake2b(request_id, key=self._secret[:64], digest_size=16).hexdigest()

    def note(self, what: str, who: str, evidence: dict[str, Any]) -> None:
        """An entry of the trail."""
        self._entries += 1
        self.recorder.trail(
            TrailEntry(
                id=f"{self._gateway}-{self._entries}",
                at_unix_s=self._unix_time(),
                what=what,
                who=who,
                evidence={"gateway": self._gateway, **evidence},
            )
        )

    def _demoted(self, demotion: Demotion) -> None:
        self.demotions += 1
        standing = demotion.standing
        self.note(
            "demote",
            standing.by,
            {
                "artifact": demotion.artifact,
                "scope": standing.scope,
                "version": demotion.digest,
                "why": standing.why,
            },
        )

    def _switched(self, off: tuple[OffEntry, ...], on: tuple[OffEntry, ...], on_by: str) -> None:
        for entry in off:
            self.note("off", entry.who, {"what": entry.what, "name": entry.name, "why": entry.why})
        for entry in on:
            self.note("on", on_by or "off.json", {"what": entry.what, "name": entry.name})

    def _health_changed(self, why: str) -> None:
        self.note("off" if why else "on", "health", {"what": "all", "name": "", "why": why})
