"""Why System 1 decided as it did at one step of a recorded session, and what would change it."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from reflexarc.reflex.context import Context
from reflexarc.reflex.explain_arguments import (
    ArgumentWhy,
    RecordedArgument,
    why_arguments,
    why_recorded,
)
from reflexarc.reflex.explain_choice import Driver, Why, references, why_sure, why_tool
from reflexarc.reflex.explain_fit import why_fit
from reflexarc.reflex.gates import Gate, LevelDistance, distances, gates
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.predictor import MESSAGE, RankedCall, Ranking
from reflexarc.reflex.reflex import Reflex
from reflexarc.reflex.replay import replay
from reflexarc.steps import Item, Session, ToolCall, decision_items
from reflexarc.steps.errors import InputError

_CHANCES = 5
_RANKED = 5


class Chance(msgspec.Struct, frozen=True):
    """A tool, or None for a message, and how probable it was taken for."""

    tool: str | None
    probability: float


class RankedOut(msgspec.Struct, frozen=True):
    """A whole call and its probability in the ranking."""

    name: str
    arguments: dict[str, Any]
    probability: float


class Recorded(msgspec.Struct, frozen=True):
    """What System 2 did: a call (None: a message, or a thought). `agrees`: System 1's best call is
    that call; with a message: a message was likeliest. `rank`: its place among the ranked
    calls (None: not among them); `arguments` where it was a call to a tool that was learned."""

    call: ToolCall | None
    agrees: bool
    rank: int | None
    tool_probability: float | None
    arguments: tuple[RecordedArgument, ...]


class Recalled(msgspec.Struct, frozen=True):
    """What memory holds of this very situation: of so many `runs`, `agreeing` went on alike, with a
    call of `tool` (None: a message). `used`: that is the call proposed. `against`: most did
    something that is not, or cannot be made again here."""

    runs: int
    agreeing: int
    tool: str | None
    used: bool
    against: bool


class Explanation(msgspec.Struct, frozen=True):
    """One decision, taken apart. `step` counts the session's steps, `call` the calls of a batch,
    `message` is the index of System 2's message. `recalled`: what earlier runs of the situation did
    (None: there were none); `member`: which member of the reflex answers this conversation, from 1.
    `together`: what would be called together with `proposed`, in one turn. `verdict`: the
    likeliest tool (None: a message), `over` the next likely; `why_tool` says what
    spoke for the one rather than the other, `why_fit` how the tools fit what was said, `why_sure`
    what made the confidence of the best-ranked call more or less than usual. `levels` and `gates`
    are about all that would be called together, `changes` say what would have turned the
    decision."""

    session: str
    task: str
    learned_from: bool
    step: int
    steps: int
    message: int
    call: int
    action: Literal["act", "escalate"]
    reason: str
    max_error: float
    confidence: float
    proposed: RankedOut | None
    together: tuple[RankedOut, ...]
    tools: tuple[Chance, ...]
    ranked: tuple[RankedOut, ...]
    recalled: Recalled | None
    member: int
    verdict: str | None
    over: Chance | None
    why_tool: Why
    why_fit: tuple[Driver, ...]
    why_sure: Why
    arguments: tuple[ArgumentWhy, ...]
    gates: tuple[Gate, ...]
    levels: tuple[LevelDistance, ...]
    changes: tuple[str, ...]
    recorded: Recorded


def explain(
    reflex: Reflex,
    session: Session,
    step: int,
    *,
    call: int = 0,
    max_error: float | None = None,
    others: Sequence[Session] = (),
) -> Explanation:
    """Explain the decision at a step of a session (0 is the first after the user's first message),
    at the so-manieth call of its batch. What moved it is said compared with other steps, of the
    session itself and of `others`. Raises InputError where there is no such step or call.
    """
    context, item, steps = _find(session, step, call)
    tools = offered_tools(session)
    member = reflex.member(context)
    predictor = member.predictor
    ranking = reflex.rank(context, {tool.name for tool in tools})
    asked = gates(
        reflex, context, ranking, tools,
        model=session.model, max_error=max_error, recorded=bool(session.tools),
    )  # fmt: skip
    failed = [gate for gate in asked if not gate.passed]
    asked_for = bool(ranking.calls) and not ranking.is_message
    ground = None
    if asked_for:
        ground = reflex.ground(context, ranking, {tool.name for tool in tools}, max_error)
    confidence = ground.answer.confidence if ground is not None else 0.0
    calls = ground.answer.calls if ground is not None else tuple(ranking.calls[:1])
    levels = distances(reflex, ground.ranking if ground else ranking, calls, confidence)
    known = references(member, [session, *others])
    best = ranking.calls[0] if ranking.calls else None
    verdict, over = _two_likeliest(ranking)
    limit = reflex.card.max_error if max_error is None else max_error
    return Explanation(
        session=session.id,
        task=session.task,
        learned_from=reflex.learned_from(session.task),
        step=step,
        steps=steps,
        message=item.message,
        call=call,
        action="escalate" if failed else "act",
        reason=(failed[0].reason or "unknown") if failed else "certified",
        max_error=limit,
        confidence=round(confidence, 6),
        proposed=None if best is None else _out(best, confidence),
        together=tuple(_out(one, confidence) for one in calls[1:]),
        tools=_chances(ranking),
        ranked=tuple(_out(one, one.joint) for one in ranking.calls[:_RANKED]),
        recalled=_memory(reflex, context, ranking),
        member=1 + next(at for at, one in enumerate(reflex.members) if one is member),
        verdict=ranking.verdict,
        over=None if over is None else _chance(ranking, over),
        why_tool=why_tool(predictor, context, ranking, known, verdict, over),
        why_fit=why_fit(predictor, context, ranking, verdict, over),
        why_sure=why_sure(member, context, ground.ranking if ground else ranking, known),
        arguments=() if best is None else why_arguments(predictor, context, best),
        gates=asked,
        levels=levels,
        changes=_changes(failed, levels, confidence, limit),
        recorded=_recorded(reflex, context, ranking, item),
    )


def _find(session: Session, step: int, call: int) -> tuple[Context, Item, int]:
    """The context before an item; how many steps the session has."""
    steps = calls = 0
    for context, item in replay(session):
        steps = item.step + 1
        if item.step != step:
            continue
        calls = item.position + 1
        if item.position == call:
            return context, item, 1 + max(one.step for one in decision_items(session))
    if not steps:
        raise InputError(f"session {session.id} has no step: System 2 decided nothing in it")
    if calls:
        raise InputError(
            f"step {step} of session {session.id} has {calls} calls: --call is 0 to {calls - 1}"
        )
    raise InputError(
        f"session {session.id} has {steps} steps: there is no step {step}, --step is 0 to "
        f"{steps - 1} (0 is System 2's first turn after the user's first message)"
    )


def _two_likeliest(ranking: Ranking) -> tuple[int, int | None]:
    """The verdict's class, which is not the likeliest where it was recalled, and the likeliest
    other; None where there is no other, or nothing to compare it with."""
    order = [int(at) for at in np.argsort(-ranking.probabilities, kind="stable")]
    recalled = ranking.recalled
    verdict = order[0] if recalled is None else ranking.classes.index(recalled.tool or "")
    others = [at for at in order if at != verdict and ranking.probabilities[at] > 0.0]
    return verdict, others[0] if others and ranking.probabilities[verdict] > 0.0 else None


def _chance(ranking: Ranking, at: int) -> Chance:
    name = None if at == MESSAGE else ranking.classes[at]
    return Chance(name, round(float(ranking.probabilities[at]), 6))


def _chances(ranking: Ranking) -> tuple[Chance, ...]:
    order = np.argsort(-ranking.probabilities, kind="stable")[:_CHANCES]
    return tuple(_chance(ranking, int(at)) for at in order if ranking.probabilities[at] > 0.0)


def _out(call: RankedCall, probability: float) -> RankedOut:
    return RankedOut(call.name, call.arguments, round(probability, 6))


def _changes(
    failed: Sequence[Gate], levels: Sequence[LevelDistance], confidence: float, limit: float
) -> tuple[str, ...]:
    """What would have turned the decision, in sentences without a full stop."""
    if not failed:
        return _would_escalate(levels, confidence, limit)
    found = [
        f"{gate.reason}: {gate.remedy or 'this would have to be otherwise'}" for gate in failed
    ]
    unsure = {"no_certificate", "below_threshold", "free_text"}
    if {gate.reason for gate in failed} <= unsure:
        enough = [one for one in levels if one.enough]
        if enough:
            least = min(one.max_error for one in enough)
            found.append(f"it would act if an error of {100 * least:g}% were accepted")
        else:
            found.append("it would act at no level that is certified")
    elif len(failed) == 1:
        found.append("nothing else stood against it")
    return tuple(found)


def _would_escalate(
    levels: Sequence[LevelDistance], confidence: float, limit: float
) -> tuple[str, ...]:
    within = [one for one in levels if one.enough and one.max_error <= limit]
    found: list[str] = []
    if within:
        loosest = max(within, key=lambda one: one.max_error)
        found.append(
            f"it would escalate with a confidence below {loosest.threshold:.3f}: it has "
            f"{confidence:.3f}, {-(loosest.short or 0.0):.3f} to spare"
        )
    for one in levels:
        if one.max_error <= limit and not one.enough:
            why = (
                "that is not certified" if one.threshold is None
                else f"that takes a confidence of {one.threshold:.3f}"
            )  # fmt: skip
            found.append(
                f"it would escalate at an error of at most {100 * one.max_error:g}%: {why}"
            )
    return tuple(found)


def _memory(reflex: Reflex, context: Context, ranking: Ranking) -> Recalled | None:
    found = reflex.recall.find(context)
    if found is None:
        return None
    used = ranking.recalled is not None
    return Recalled(found.runs, found.agreeing, found.tool, used, ranking.contradicted)


def _recorded(reflex: Reflex, context: Context, ranking: Ranking, item: Item) -> Recorded:
    thinking = {name for name, effect in reflex.effects.items() if effect == "think"}
    answers = item.answers(thinking)
    best = ranking.calls[0].key if ranking.calls else None
    made = item.recorded if answers else None
    if made is None:
        return Recorded(None, ranking.verdict is None, None, None, ())
    keys = [one.key for one in ranking.calls]
    rank = next((at + 1 for at, key in enumerate(keys) if key in answers), None)
    predictor = reflex.member(context).predictor
    learned = made.name in predictor.sources.by_name
    probability = (
        round(float(ranking.probabilities[ranking.classes.index(made.name)]), 6)
        if learned
        else None
    )
    return Recorded(
        made, best in answers, rank, probability,
        why_recorded(predictor, context, made) if learned else (),
    )  # fmt: skip
