"""One process's view of one artifact: how its acts are watched, and what their audits add.

The state of the file, with what happened here since it was read on top. Events go to the file in
bunches; what they say counts here at once.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

import msgspec

from reflexarc.lifecycle.behind import MAX_PENDING, Behind
from reflexarc.lifecycle.clusters import Clusters
from reflexarc.lifecycle.standing import (
    Demotion,
    Event,
    Kind,
    ReflexState,
    Version,
    checked_scope,
    demotions,
)
from reflexarc.lifecycle.watched import MAX_UNANSWERED, Watched, tool_null

PATIENCE_S = 300.0
"""An audit that is not answered by then counts as never answered."""
MAX_UNWRITTEN = 10_000
"""Events that cannot be written down, after which nothing acts any more."""


class Act(msgspec.Struct, frozen=True):
    """One act that may be audited. `level`: the error its certificate allows; `own`: the
    certificate is about this tool alone; `session`: any name of the session."""

    digest: str
    kind: Kind
    tool: str
    level: float
    own: bool
    session: bytes


class _Audit(msgspec.Struct, frozen=True):
    """An audit under way: drawn with probability `share`, counting `stake` among all reads, or all
    writes."""

    act: Act
    share: float
    stake: float
    since_unix_s: float


class Oversight:
    """`share`: a fixed share of audits (0: none at all) instead of one that adapts; after an error
    all are audited with either."""

    def __init__(
        self,
        state: ReflexState,
        unix_time: Callable[[], float],
        share: float | None = None,
    ) -> None:
        self.state = state
        self.fixed = share
        self._unix_time = unix_time
        self._clusters = Clusters()
        self._behind = Behind()
        self._audits: OrderedDict[int, _Audit] = OrderedDict()
        self._events: list[Event] = []
        self._taken: list[Event] = []

    def version(self, digest: str) -> Version | None:
        return self.state.version(digest)

    def watched(self, digest: str, kind: Kind, tool: str) -> Watched:
        version = self.state.version(digest)
        one = version.watched.get(f"{kind}:{tool}") if version is not None else None
        return one or Watched()

    def why_not(self, act: Act) -> str | None:
        """Why evidence, or its absence, forbids this act: `audits_unanswered` where nobody answers
        the tool's audits, `in_doubt` for a write until an error is behind it."""
        watched = self.watched(act.digest, act.kind, act.tool)
        if watched.unanswered >= MAX_UNANSWERED:
            return "audits_unanswered"
        if act.kind == "writes" and watched.to_clear:
            return "in_doubt"
        return None

    def share(self, act: Act) -> float:
        """The probability with which this act has to be audited."""
        return self._share(act.digest, act.kind, act.tool)

    def acted(self, number: int, act: Act, *, audited: bool, share: float) -> None:
        """The act was made; `number` names its audit."""
        self._behind.acted(number, f"{act.kind}:{act.tool}", audited=audited)
        if audited:
            stake = min(self._least(act), share) / share
            self._audits[number] = _Audit(act, share, stake, self._unix_time())
            if len(self._audits) > MAX_PENDING:
                self.answered(next(iter(self._audits)), None)
        self._add(self._event(act, "acted"))

    def answered(self, number: int, wrong: bool | None) -> tuple[Demotion, ...]:
        """What System 2 said to an audit, None where it said nothing."""
        known = self._audits.pop(number, None)
        self._behind.ended(number)
        if known is None:
            return ()
        return self._outcome(known.act, wrong, known.share, known.stake)

    def look(self) -> None:
        """An audit that is older than any answer is worth waiting for came to nothing."""
        now_unix_s = self._unix_time()
        while self._audits:
            number, audit = next(iter(self._audits.items()))
            if now_unix_s - audit.since_unix_s < PATIENCE_S:
                return
            self.answered(number, None)

    def compared(self, act: Act, wrong: bool) -> tuple[Demotion, ...]:
        """A step that was left to System 2 though System 1 would have acted: as good as an audit
        made for sure."""
        return self._outcome(act, wrong, 1.0, self._least(act))

    def changed(self, why: str) -> tuple[Demotion, ...]:
        """Prompt, schemas or model are no longer those learned: nothing acts any more."""
        event = Event(self.state.in_use, "reads", "", "changed", self._unix_time(), why=why)
        return self._add(event)

    @property
    def has_events(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._events)

    @property
    def is_full(self) -> bool:
        """Whether too much waits to be written for anything to be added."""
        return len(self._events) + len(self._taken) >= MAX_UNWRITTEN

    def set(self, state: ReflexState, *, written: bool = False) -> tuple[Demotion, ...]:
        """The file says something new; `written`: what was taken stands in it."""
        if written:
            self._taken = []
        return self._become(state.after([*self._taken, *self._events]))

    def take(self) -> list[Event]:
        """What the file does not know yet: it is being written until `set` or `give_back`."""
        self._taken, self._events = [*self._taken, *_bunched(self._events)], []
        return self._taken

    def give_back(self) -> None:
        """What was taken could not be written."""
        self._events, self._taken = [*self._taken, *self._events], []

    def _least(self, act: Act) -> float:
        """The smallest share with which any tool of the same kind is audited now."""
        version = self.state.version(act.digest)
        tools = [
            stream.partition(":")[2]
            for stream in (version.watched if version is not None else ())
            if stream.startswith(f"{act.kind}:")
        ]
        shares = [self._share(act.digest, act.kind, tool) for tool in (act.tool, *tools)]
        return min(shares) or 1.0

    def _share(self, digest: str, kind: Kind, tool: str) -> float:
        watched = self.watched(digest, kind, tool)
        if self.fixed is not None:
            return watched.share(self.fixed, 0)
        return watched.share(self._behind.least_share(f"{kind}:{tool}"))

    def _outcome(
        self, act: Act, wrong: bool | None, share: float, stake: float
    ) -> tuple[Demotion, ...]:
        if wrong is None:
            return self._add(self._event(act, "unanswered"))
        own = tool_null(act.level, own=act.own)
        stream = f"{act.digest}/{act.kind}"
        nulls = (
            self._clusters.null(act.session, f"{stream}:{act.tool}", own, wrong=wrong),
            self._clusters.null(act.session, stream, act.level, wrong=wrong),
        )
        event = self._event(act, "disagree" if wrong else "agree")
        return self._add(msgspec.structs.replace(event, nulls=nulls, share=share, stake=stake))

    def _event(self, act: Act, what: Literal["acted", "agree", "disagree", "unanswered"]) -> Event:
        return Event(act.digest, act.kind, act.tool, what, self._unix_time())

    def _add(self, event: Event) -> tuple[Demotion, ...]:
        self._events.append(event)
        found = self._become(self.state.after([event]))
        for one in found:
            if one.standing.by == "audits":
                kind, tool = checked_scope(one.standing.scope)
                self._events.append(
                    Event(one.digest, kind, tool, "demoted", event.at_unix_s, why=one.standing.why)
                )
        return found

    def _become(self, state: ReflexState) -> tuple[Demotion, ...]:
        found = demotions(self.state, state)
        self.state = state
        return found


def _bunched(events: list[Event]) -> list[Event]:
    """Acts of a tool as one event: their order says nothing."""
    acts: dict[tuple[str, str, str], Event] = {}
    rest: list[Event] = []
    for event in events:
        if event.what != "acted":
            rest.append(event)
            continue
        key = (event.digest, event.kind, event.tool)
        before = acts.get(key)
        count = event.count + (before.count if before is not None else 0)
        acts[key] = msgspec.structs.replace(event, count=count)
    return [*acts.values(), *rest]
