"""The analysis behind `reflexarc stream`: a cold start, in which only the past is learned from.

Sessions come in recorded order, in blocks. What was learned from earlier blocks is judged on the
next, then that block is past, too. Every figure is over the whole stream so far: no promise is made
about one block, in which a single error may be more than a level allows.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from reflexarc.bench.stream_learning import Learning, learning_plan
from reflexarc.bench.stream_order import Order, adjacent_share, in_order
from reflexarc.bench.stream_tally import Sofar, Tally, levels_within
from reflexarc.reflex import Reflex, Repeats, learn, outcomes, repeats
from reflexarc.reflex.evaluation import level_name
from reflexarc.reflex.learning import tool_effects
from reflexarc.reflex.replay import replay
from reflexarc.steps import Effect, Session
from reflexarc.steps.errors import InputError, LearnError

OnProgress = Callable[[str, float], None]
KINDS = ("all", "new", "recurring")
"""Tasks of a stream: all of them, those that what judged them had not learned from, the others."""

_JUDGING_A_SESSION = 0.05
"""Beside learning from one, for the bar alone."""


class Block(msgspec.Struct, frozen=True):
    """One block and the stream up to its end. `learned_from`: sessions behind what judged it (0:
    nothing yet); `relearned`: just before it; `attempt` is the last attempt at a certificate.
    `so_far` is by kind of task, see `KINDS`."""

    block: int
    sessions: int
    learned_from: int
    relearned: bool
    attempt: int
    so_far: dict[str, Sofar]


class Attempt(msgspec.Struct, frozen=True):
    """One learning. `attempt` is 0 where there was too little for an attempt to act;
    `confidence`: with which its certificates hold, so that all of them together hold with the one
    asked for; `certified`: the levels granted, by scope; `kept`: whether the one before was kept,
    which was certified within the error asked for where this one was not."""

    attempt: int
    before_block: int
    sessions: int
    tasks: int
    confidence: float
    certified: dict[str, list[str]]
    kept: bool


class Stream(msgspec.Struct, frozen=True):
    """Everything `reflexarc stream` says. `adjacent`: of the sessions whose task came before, the
    share for which it came within the last block's length of sessions."""

    sessions: int
    tasks: int
    block: int
    order: Order
    adjacent: float
    max_error: float
    confidence: float
    blocks: list[Block]
    learned: list[Attempt]
    repeats: Repeats


def run_stream(
    sessions: Sequence[Session],
    *,
    block: int,
    every: int | None = None,
    order: Order | None = None,
    max_error: float = 0.05,
    confidence: float = 0.9,
    effects: Mapping[str, Effect] | None = None,
    progress: OnProgress | None = None,
) -> Stream:
    """Learn from the past, judge on the next block, go on.

    `block`: sessions in a block; `every`: learn after every so many blocks (None: by growth, see
    `stream_learning`);
    `order` as `in_order` takes it.
    `confidence`: with which all certificates of the stream hold together. Raises InputError where
    there is no second block, LearnError for an effect declared for a tool that occurs nowhere and
    where what learning needs is not installed.
    """
    if block < 1 or (every is not None and every < 1):
        raise InputError("a block holds at least one session, and --every is at least 1")
    if len(sessions) <= block:
        raise InputError(
            f"{len(sessions)} sessions are one block of {block}: there is nothing to judge what "
            "was learned from it; give more sessions, or a smaller --block"
        )
    kinds = tool_effects(sessions, effects or {})
    ordered, order = in_order(sessions, order)
    plan = {
        one.sessions: one
        for one in learning_plan(
            ordered, block, every=every, max_error=max_error, confidence=confidence
        )
    }
    work = _Work(list(plan), ordered, progress)
    run = _Run(ordered, max_error, effects or {}, kinds, work)
    for number, begin in enumerate(range(0, len(ordered), block), 1):
        run.next_block(number, begin, ordered[begin : begin + block], plan.get(begin))
    thinking = [name for name, (effect, _) in kinds.items() if effect == "think"]
    return Stream(
        sessions=len(ordered),
        tasks=len({session.task for session in ordered}),
        block=block,
        order=order,
        adjacent=adjacent_share(ordered, block),
        max_error=max_error,
        confidence=confidence,
        blocks=run.blocks,
        learned=run.learned,
        repeats=repeats(ordered, thinking),
    )


class _Work:
    """How much of it all is done: learning costs in proportion to the sessions learned from."""

    def __init__(
        self, points: Sequence[int], sessions: Sequence[Session], progress: OnProgress | None
    ) -> None:
        self._all = sum(points) + _JUDGING_A_SESSION * len(sessions)
        self._done = 0.0
        self._say = progress

    def during(self, what: str, size: float) -> Callable[[str, float], None]:
        before, self._done = self._done, self._done + size

        def moved(_phase: str, share: float) -> None:
            if self._say is not None:
                self._say(what, (before + share * size) / self._all)

        return moved


class _Run:
    """The stream as it goes: what is learned, what was judged."""

    def __init__(
        self,
        ordered: Sequence[Session],
        max_error: float,
        effects: Mapping[str, Effect],
        kinds: Mapping[str, tuple[Effect, str]],
        work: _Work,
    ) -> None:
        self._ordered = ordered
        self._max_error = max_error
        self._effects = effects
        self._thinking = {name for name, (effect, _) in kinds.items() if effect == "think"}
        self._work = work
        self._reflex: Reflex | None = None
        self._acting = False
        self._attempt = 0
        self._learned_from = 0
        self._tallies = {kind: Tally(levels_within(max_error)) for kind in KINDS}
        self.blocks: list[Block] = []
        self.learned: list[Attempt] = []

    def next_block(
        self, number: int, begin: int, sessions: Sequence[Session], due: Learning | None
    ) -> None:
        relearned = due is not None and self._learn(number, due)
        moved = self._work.during(f"block {number}: judging", _JUDGING_A_SESSION * len(sessions))
        for done, session in enumerate(sessions, 1):
            self._judge(session)
            moved("", done / len(sessions))
        self.blocks.append(
            Block(
                number, begin + len(sessions), self._learned_from, relearned, self._attempt,
                {kind: tally.so_far() for kind, tally in self._tallies.items()},
            )
        )  # fmt: skip

    def _learn(self, number: int, due: Learning) -> bool:
        """Learn from the past; whether something new judges from here on."""
        past = self._ordered[: due.sessions]
        acting = due.attempt > 0
        self._attempt = due.attempt or self._attempt
        moved = self._work.during(f"block {number}: learning from {len(past)} sessions", len(past))
        try:
            reflex = learn(
                past, max_error=self._max_error, confidence=due.confidence,
                effects=_occurring(self._effects, past), progress=moved,
            )  # fmt: skip
        except LearnError as error:
            if isinstance(error.__cause__, ImportError):
                raise
            return False  # too little, or nothing learnable, so far: a result, no error
        kept = self._acting and acting and _grants(self._reflex) and not _grants(reflex)
        certified: defaultdict[str, list[str]] = defaultdict(list)
        for one in reflex.card.reads:
            if one.granted and acting:
                certified[one.scope].append(level_name(one.max_error))
        self.learned.append(
            Attempt(
                due.attempt, number, due.sessions, due.tasks, round(due.confidence, 6),
                dict(certified), kept,
            )
        )  # fmt: skip
        if not kept:
            self._reflex, self._acting, self._learned_from = reflex, acting, len(past)
        return not kept

    def _judge(self, session: Session) -> None:
        known = self._reflex is not None and self._reflex.learned_from(session.task)
        tallies = [self._tallies["all"], self._tallies["recurring" if known else "new"]]
        if self._reflex is None:
            calls = sum(bool(item.answers(self._thinking)) for _, item in replay(session))
            for tally in tallies:
                tally.unlearned(calls)
            return
        found = list(outcomes(self._reflex, [session]))
        for tally in tallies:
            tally.add(found, self._acting)


def _grants(reflex: Reflex | None) -> bool:
    """Whether anything is certified within the error asked for."""
    return reflex is not None and any(
        one.granted and one.max_error <= reflex.card.max_error for one in reflex.card.reads
    )


def _occurring(effects: Mapping[str, Effect], past: Sequence[Session]) -> dict[str, Effect]:
    """Declared effects of the tools that the past knows."""
    known = {tool.name for session in past for tool in session.tools}
    known |= {call.name for one in past for m in one.messages for call in m.tool_calls}
    return {name: effect for name, effect in effects.items() if name in known}
