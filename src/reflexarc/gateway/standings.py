"""What each route's reflex may do now, as every request of this process sees it, and what acts and
their audits add. The file is watched and written beside the requests, never on their way."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reflexarc.gateway.config import ACTING_MODES, Route
from reflexarc.gateway.frames import Decided
from reflexarc.lifecycle.changes import Changes
from reflexarc.lifecycle.oversight import Act, Oversight
from reflexarc.lifecycle.standing import (
    Demotion,
    Event,
    Kind,
    ReflexState,
    is_of_writes,
    without_promotions,
)
from reflexarc.lifecycle.standing_file import (
    FILE,
    Standings,
    adopted,
    change,
    digest_of,
    keep,
    kept_path,
    name_of,
    read_standings,
)
from reflexarc.steps.errors import ConfigError

_log = logging.getLogger("reflexarc.gateway")
_WRITE_EVERY_S = 1.0
_STANDBY = "@"

OnDemotion = Callable[[Demotion], None]


class StandingDesk:
    """`on_demotion` hears what this process demoted, `on_change` what a file's change made of a
    reflex. Without a directory nothing is known, and nothing acts (nothing is recorded either)."""

    def __init__(
        self,
        directory: Path | None,
        routes: Sequence[Route],
        clock_s: Callable[[], float],
        on_demotion: OnDemotion,
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self.fault = ""
        self.seen_ns = 0
        self._directory = directory
        self._clock_s = clock_s
        self._on_demotion = on_demotion
        self._unix_time = unix_time
        self._names = {
            route.path: name_of(route.reflex) for route in routes if route.reflex is not None
        }
        self._shares = {
            self._names[route.path]: None if route.audit == "adaptive" else route.audit
            for route in routes
            if route.reflex is not None and route.mode in ACTING_MODES
        }
        self._oversights: dict[str, Oversight] = {}
        self._changes = {name: Changes() for name in self._names.values()}
        self._loaded: dict[str, str] = {}
        self._seen: tuple[int, int, int] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._write_at_s = 0.0
        self._urgent = False

    # --- what the file says ---------------------------------------------------------------------

    def look(self) -> None:
        """Reads the file again where it changed; writes what was gathered, now and then."""
        if self._directory is None:
            return
        busy = self._writing is not None and not self._writing.done()
        if not busy:
            self._read(self._directory)
        for one in self._oversights.values():
            one.look()
        if not busy and (self._urgent or self._clock_s() >= self._write_at_s):
            self._urgent = False
            self._write_at_s = self._clock_s() + _WRITE_EVERY_S
            if any(one.has_events for one in self._oversights.values()):
                self._writing = asyncio.get_running_loop().create_task(self.write())

    async def adopt(self, digests: dict[str, str]) -> None:
        """The digests of what System 1 loaded, by source: what stands in a route's file becomes the
        version in use. Never fails: what cannot be written counts in this process."""
        self._loaded = digests
        for path, name in self._names.items():
            digest = digests.get(path)
            known = self._oversights.get(name)
            if digest is None or (known is not None and known.state.in_use == digest):
                continue
            try:
                state = await asyncio.to_thread(self._adopt, name, digest)
            except (OSError, ConfigError) as error:
                _log.error("%s: what it may do cannot be written down: %s", name, error)
                before = known.state if known is not None else None
                state = adopted(before, name, digest, self._unix_time())
            self._set(state)

    def standby(self) -> dict[str, tuple[str, str]]:
        """Per source name, the route and the file of each version held ready for a rollback."""
        found: dict[str, tuple[str, str]] = {}
        for path, name in self._names.items():
            known = self._oversights.get(name)
            previous = known.state.previous if known is not None else None
            if previous is None or self._directory is None:
                continue
            file = kept_path(self._directory, name, previous.digest)
            if file.exists():
                found[f"{path}{_STANDBY}{previous.digest}"] = (path, str(file))
        return found

    def source(self, route: Route) -> str:
        """The source that answers for a route now: its file's, or the one held ready."""
        state = self.state(route)
        if state is None or self._loaded.get(route.path) == state.in_use:
            return route.path
        ready = f"{route.path}{_STANDBY}{state.in_use}"
        return ready if ready in self._loaded else route.path

    def state(self, route: Route) -> ReflexState | None:
        known = self._oversights.get(self._names.get(route.path, ""))
        return known.state if known is not None else None

    # --- whether it may act ---------------------------------------------------------------------

    def why_none(self, route: Route) -> str | None:
        """Why nothing of the route's reflex may act; None where something may. Reads need no
        promotion but where the route is managed."""
        oversight = self._oversight(route)
        if self.fault or (oversight is not None and oversight.is_full):
            return "off:standing"
        state = self.state(route)
        if state is None:
            return "not_promoted" if route.mode == "managed" else None
        current = state.current
        reads = current.standing("reads", "")
        words = {one.word for one in current.scopes}
        if "live" in words or (route.mode != "managed" and reads is None):
            return None
        return "demoted" if "demoted" in words else "not_promoted"

    def why_not(self, route: Route, decided: Decided) -> str | None:
        """Why this decision is not acted on; None where it is."""
        if self.fault:
            return "off:standing"
        oversight = self._oversight(route)
        if oversight is None:
            return "not_promoted"
        act = act_of(decided)
        state = oversight.state
        if act.digest != state.in_use:
            return "version_not_in_use"
        standing = state.current.standing(act.kind, act.tool)
        if act.kind == "reads":
            # Of calls made together each tool has to be one that may act.
            every = [state.current.standing("reads", tool) for tool in decided.tools]
            if any(one is not None and one.word == "demoted" for one in every):
                return "demoted"
            if route.mode == "managed" and any(one is None or one.word != "live" for one in every):
                return "not_promoted"
        if act.kind == "writes":
            reason = why_no_write(route, decided)
            if reason is None and (standing is None or standing.word != "live"):
                demoted_one = standing is not None and standing.word == "demoted"
                reason = "demoted" if demoted_one else "writes:no_approver"
            return reason or oversight.why_not(act)
        if standing is not None and standing.word == "demoted":
            return "demoted"
        if (standing is None or standing.word != "live") and route.mode == "managed":
            return "not_promoted"
        return oversight.why_not(act)

    def writes(self, route: Route) -> tuple[str, ...]:
        """The tools whose writes the route's policy allows and somebody answers for."""
        state = self.state(route)
        if not route.writes or state is None or route.mode not in ACTING_MODES:
            return ()
        live = {one.scope for one in state.current.scopes if one.word == "live"}
        return tuple(tool for tool in route.writes if f"writes:{tool}" in live)

    # --- acts and audits ------------------------------------------------------------------------

    def share(self, route: Route, decided: Decided) -> float:
        """The probability with which this act has to be audited."""
        oversight = self._oversight(route)
        return oversight.share(act_of(decided)) if oversight is not None else 0.0

    def count(self, word: str) -> int:
        """How many scopes of the versions in use have this standing."""
        states = [one.state for one in self._oversights.values()]
        return sum(one.word == word for state in states for one in state.current.scopes)

    def acted(self, route: Route, decided: Decided, share: float) -> None:
        """An act was made."""
        oversight = self._oversight(route)
        if oversight is not None:
            oversight.acted(decided.id, act_of(decided), audited=decided.audit, share=share)

    def audited(self, route_path: str, number: int, outcome: str) -> None:
        """What came of the audit of an act: agree, disagree, or why nothing did."""
        oversight = self._oversights.get(self._names.get(route_path, ""))
        if oversight is not None:
            wrong = {"agree": False, "disagree": True}.get(outcome)
            self._urgent |= bool(wrong)  # other gateways have to be in doubt as well
            self._demoted(oversight.answered(number, wrong))

    def compared(self, route_path: str, decided: Decided, outcome: str) -> None:
        """What System 2 did where System 1 would have acted, were it not in doubt."""
        oversight = self._oversights.get(self._names.get(route_path, ""))
        if oversight is not None and outcome in ("agree", "disagree"):
            self._urgent |= outcome == "disagree"
            self._demoted(oversight.compared(act_of(decided), outcome == "disagree"))

    def decided(self, route: Route, tenant: bytes, decided: Decided) -> None:
        """Any decision: where prompt, schemas or model changed for good, all is demoted."""
        name = self._names.get(route.path)
        oversight = self._oversights.get(name or "")
        if name is None or oversight is None:
            return
        why = self._changes[name].seen(tenant, decided.session, decided.reason, decided.variant)
        if why:
            self._demoted(oversight.changed(why))

    # --- writing --------------------------------------------------------------------------------

    async def write(self) -> None:
        """Brings what was gathered into the file; kept for the next time where that fails."""
        directory = self._directory
        if directory is None:
            return
        for name, oversight in self._oversights.items():
            if not oversight.has_events:
                continue
            changed = _merging(oversight.take(), oversight.state)
            try:
                state = await asyncio.to_thread(change, directory, name, changed)
            except (OSError, ConfigError) as error:
                _log.error("%s: what audits said cannot be written down: %s", name, error)
                oversight.give_back()
                continue
            self._demoted(oversight.set(state, written=True))

    async def close(self) -> None:
        """Writes what is left."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self.write()

    def shown(self) -> list[dict[str, Any]]:
        """For people: each reflex, its version in use, its scopes."""
        return [
            {
                "artifact": name,
                "in_use": one.state.in_use,
                "scopes": [msgspec.structs.asdict(scope) for scope in one.state.current.scopes],
            }
            for name, one in self._oversights.items()
        ]

    def _oversight(self, route: Route) -> Oversight | None:
        return self._oversights.get(self._names.get(route.path, ""))

    def _adopt(self, name: str, digest: str) -> ReflexState:
        """In a thread of its own: it reads and writes files."""
        directory = self._directory
        now_unix_s = self._unix_time()
        if directory is None:
            return adopted(None, name, digest, now_unix_s)
        path = Path(name)
        if path.is_file() and digest_of(content := path.read_bytes()) == digest:
            keep(directory, name, content)
        return change(directory, name, lambda state: adopted(state, name, digest, now_unix_s))

    def _read(self, directory: Path) -> None:
        try:
            stat = (directory / FILE).stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            seen = (0, 0, 0)
        except OSError as error:
            self._seen = None
            self.fault = str(error)
            return
        if seen == self._seen:
            return
        self._seen = seen
        found = read_standings(directory)
        if found.fault and found.fault != self.fault:
            _log.error("nothing acts: %s", found.fault)
        self.fault = found.fault
        self._take(found)
        self.seen_ns = seen[0]

    def _take(self, found: Standings) -> None:
        for name in set(self._names.values()):
            state = found.of(name)
            known = self._oversights.get(name)
            if state is not None:
                self._set(state)
            elif known is not None:
                # Who takes it out of the file takes promotions back, and no demotion.
                self._set(without_promotions(known.state))

    def _set(self, state: ReflexState) -> None:
        known = self._oversights.get(state.artifact)
        if known is None:
            share = self._shares.get(state.artifact)
            self._oversights[state.artifact] = Oversight(state, self._unix_time, share)
        else:
            known.set(state)  # who demoted it there has said so

    def _demoted(self, demotions: Sequence[Demotion]) -> None:
        for one in demotions:
            self._urgent = True
            self._on_demotion(one)


def _merging(
    events: list[Event], fallback: ReflexState
) -> Callable[[ReflexState | None], ReflexState]:
    """Adds events to what the file says; where that is nothing, what is known here."""
    return lambda state: without_promotions(fallback) if state is None else state.after(events)


def act_of(decided: Decided) -> Act:
    """What of a decision evidence is about."""
    scope = decided.guarantee.scope if decided.guarantee is not None else ""
    kind: Kind = "writes" if decided.writes else "reads"
    own = scope.endswith(f"{kind}:{decided.tool}")
    return Act(decided.reflex, kind, decided.tool, decided.max_error, own, decided.session)


def why_no_write(route: Route, decided: Decided) -> str | None:
    """A write needs a policy that names its tool and a certificate that is about it alone; the
    third, a named approver, is its standing."""
    if decided.tool not in route.writes:
        return "writes:no_policy"
    scope = decided.guarantee.scope if decided.guarantee is not None else ""
    own = is_of_writes(scope) and scope.partition(":")[2] == decided.tool
    return None if own else "writes:no_certificate"
