"""Judging one item: what System 1 makes of it, and whether that is what System 2 did.

`reflexarc eval` and a gateway that looks on judge by this same code.
"""

from collections.abc import Collection, Sequence

import msgspec

from reflexarc.reflex.context import Context
from reflexarc.reflex.decision import Decision
from reflexarc.reflex.learning import LEVELS
from reflexarc.reflex.predictor import Ranking
from reflexarc.reflex.reflex import Reflex
from reflexarc.steps import Effect, Item, ToolCall, ToolSpec, call_key


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One item and what System 1 made of it.

    `named_tool` is the tool System 2 called (None: it wrote a message); `thought`: that tool only
    thinks, which counts as a message; `effect` is that of a call that counts. `proposed_tool` is
    the best-ranked call's, None where there was none. `named`: the most probable class is what
    System 2 did. `exact`: the best-ranked call is the recorded one; `among_three`: it is among the
    best three; `read_exact`, `read_among_three`: the same among calls of read tools only. `acted`
    maps an error level ("0.05") to whether System 1 would have acted under it, by itself; and the
    level `with_writes` to whether it would if every write might act that has a certificate.
    `confidence` is 0 where nothing was ranked. `right`: the answer, of one call or of `calls`
    together, is what System 2 did (a batch: just these calls), who made `made` calls from here on
    in this turn (0: a message); None where an older gateway recorded it, which knew no batches.
    """

    named_tool: str | None
    proposed_tool: str | None
    effect: Effect | None
    thought: bool
    named: bool
    exact: bool
    among_three: bool
    read_exact: bool
    read_among_three: bool
    confidence: float
    reason: str
    acted: dict[str, bool]
    right: bool | None = None
    calls: int = 1
    made: int = 1

    @property
    def answer_right(self) -> bool:
        """Whether what would be answered is what System 2 did."""
        return self.exact if self.right is None else self.right

    @property
    def is_call(self) -> bool:
        """Whether System 2 made a call that counts as one."""
        return self.named_tool is not None and not self.thought


class Offered:
    """What is looked up about the tools of a request, once for all its items. `recorded` is false
    only where a session recorded no schemas: then tools are known by name alone."""

    __slots__ = ("offered", "parts", "reads", "recorded", "specs", "thinking", "writes")

    def __init__(self, reflex: Reflex, specs: Sequence[ToolSpec], *, recorded: bool = True) -> None:
        effects = reflex.effects
        self.specs = specs
        self.recorded = recorded
        self.offered = {tool.name for tool in specs}
        self.thinking = {name for name, effect in effects.items() if effect == "think"}
        self.writes = {name for name, effect in effects.items() if effect == "write"}
        self.parts = reflex.card.parts
        self.reads = {name for name in self.offered if effects.get(name) == "read"}


_WITH_WRITES = " with writes"


def with_writes(level: str) -> str:
    """The key of a level, writes included."""
    return f"{level}{_WITH_WRITES}"


def counts_writes(key: str) -> bool:
    """Whether a key of `acted` is one of `with_writes`."""
    return key.endswith(_WITH_WRITES)


_OF_CONFIDENCE = ("certified", "below_threshold", "free_text", "no_certificate")
"""Reasons of a decision that nothing stands against but what certificates ask."""


def levels_of(reflex: Reflex) -> list[float]:
    """The error levels a reflex is judged at: the usual ones and its own."""
    return sorted({*LEVELS, reflex.card.max_error})


def level_name(level: float) -> str:
    """An error level as the key it is reported under: 0.05 is "0.05", 0.1 is "0.10"."""
    return f"{level:.2f}" if round(level, 2) == level else f"{level:.12g}"


def decide_item(
    reflex: Reflex, context: Context, tools: Offered, *, model: str | None
) -> tuple[Ranking, Decision]:
    """What System 1 makes of the context, without a limit on the error: what a limit would change
    is found by `judge_item`. As in production, no call is looked for where none could act."""
    ranking = reflex.rank(context, tools.offered)
    decision = reflex.judge(
        context, ranking, tools.specs, model=model, max_error=1.0, recorded=tools.recorded,
        proposing=False,
    )  # fmt: skip
    return ranking, decision


def with_proposal(
    reflex: Reflex,
    context: Context,
    tools: Offered,
    ranking: Ranking,
    decision: Decision,
    *,
    model: str | None,
) -> Decision:
    """What `decide_item` gave, with the call that would have been made."""
    if decision.call is not None:
        return decision
    return reflex.judge(
        context, ranking, tools.specs, model=model, max_error=1.0, recorded=tools.recorded
    )


def judge_item(
    reflex: Reflex,
    context: Context,
    item: Item,
    tools: Offered,
    ranking: Ranking,
    decision: Decision,
    levels: Collection[float],
) -> Judgement:
    """Compares a decision `with_proposal` with what System 2 did at this item."""
    wanted = item.answers(tools.thinking)
    recorded = item.recorded if wanted else None
    effect = reflex.effects.get(recorded.name, "write") if recorded is not None else None
    # Calls are filled only where one was made to compare with.
    keys = [call.key for call in ranking.calls[:3]] if wanted else []
    # Ranked for reads alone only where it is asked about: over recorded reads.
    of_reads: list[str] = []
    if effect == "read":
        among = reflex.rank_among(context, ranking, tools.reads)
        of_reads = [call.key for call in among[:3]]
    verdict = ranking.verdict
    covered = decision
    if decision.reason == "side_effect" or (
        ranking.recalled is not None and decision.reason in _OF_CONFIDENCE
    ):
        covered = reflex.judge(
            context, ranking, tools.specs, max_error=1.0, recorded=tools.recorded,
            writes=tools.writes,
        )  # fmt: skip
    return Judgement(
        named_tool=item.recorded.name if item.recorded is not None else None,
        proposed_tool=decision.call.name if decision.call is not None else None,
        effect=effect,
        thought=item.recorded is not None and recorded is None,
        named=_named(verdict, item.calls) if recorded is not None else verdict is None,
        exact=not wanted.isdisjoint(keys[:1]),
        among_three=not wanted.isdisjoint(keys),
        read_exact=not wanted.isdisjoint(of_reads[:1]),
        read_among_three=not wanted.isdisjoint(of_reads),
        confidence=decision.confidence,
        reason=decision.reason,
        right=_right(decision, item, wanted, tools.parts),
        calls=max(1, len(decision.calls)),
        made=len(item.calls) if wanted else 0,
        acted={
            **{
                level_name(level): _acts(reflex, context, ranking, tools, decision, level)
                for level in levels
            },
            **{
                with_writes(level_name(level)): _acts(
                    reflex, context, ranking, tools, covered, level, tools.writes
                )
                for level in levels
            },
        },
    )


def _right(decision: Decision, item: Item, wanted: frozenset[str], parts: bool) -> bool:
    keys = [call_key(call.name, call.arguments) for call in decision.calls]
    if len(keys) > 1:
        made = [call.key for call in item.calls]
        return bool(wanted) and not item.position and sorted(keys) == sorted(made)
    return not wanted.isdisjoint(keys) and (parts or item.is_last)


def _named(verdict: str | None, calls: Sequence[ToolCall]) -> bool:
    return verdict in {call.name for call in calls}


def _acts(
    reflex: Reflex,
    context: Context,
    ranking: Ranking,
    tools: Offered,
    decision: Decision,
    level: float,
    writes: Collection[str] = (),
) -> bool:
    """Whether the decision, made without a limit on the error, also holds under one."""
    if decision.reason not in _OF_CONFIDENCE or decision.call is None or ranking.is_message:
        return False
    if not reflex.ground(context, ranking, tools.offered, level, writes).holds:
        return False
    return decision.reason == "certified" or reflex.unfamiliar(context) is None
