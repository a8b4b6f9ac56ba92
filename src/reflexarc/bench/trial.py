"""The analysis behind `reflexarc try`: what System 1 would and would not do for an agent.

Sessions are split by task; a reflex is learned from one part and judged on the other. Nothing is
kept. What cannot be learned is a result, not an error.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from reflexarc.bench.forecast import Forecast, forecast
from reflexarc.bench.verdicts import ToolVerdict, Verdict, overall_verdict, tool_verdicts
from reflexarc.context import Redundancy, redundancy
from reflexarc.reflex import (
    Card,
    Certificate,
    Evaluation,
    Outcome,
    Reflex,
    Repeats,
    learn,
    outcomes,
    repeats,
    summarise,
)
from reflexarc.reflex.evaluation import Certified, level_name
from reflexarc.reflex.learning import tool_effects
from reflexarc.reflex.scopes import parent_scope
from reflexarc.sim import Profile
from reflexarc.steps import Effect, Session, decision_items
from reflexarc.steps.errors import InputError, LearnError
from reflexarc.traces import split_sessions

OnProgress = Callable[[str, float], None]

_EXAMPLES = 5
_LEARNING_SHARE = 0.85  # of the work; the rest is judging


class Division(msgspec.Struct, frozen=True):
    """What System 2 did. `steps` are assistant turns, `messages` those without a call; calls of
    tools that only think are `thinks` and not among `calls`."""

    steps: int
    messages: int
    calls: int
    reads: int
    writes: int
    thinks: int


class Level(msgspec.Struct, frozen=True):
    """One error level: its certificate from the learning part, what happened on the held-out one.
    `more_sessions` is about how many further sessions it would take, None where it is certified or
    cannot be told."""

    certificate: Certificate
    held_out: Certified
    more_sessions: int | None


class Example(msgspec.Struct, frozen=True):
    """One wrong answer: where, what stood before it, what System 1 and System 2 did."""

    session: str
    message: int
    after: str
    system_1: str
    system_2: str
    confidence: float


class Facts(msgspec.Struct, frozen=True):
    """What holds without learning anything."""

    sessions: int
    tasks: int
    division: Division
    repeats: Repeats
    redundancy: Redundancy


class Learned(msgspec.Struct, frozen=True):
    """What was learned from one part of the tasks and how it did on the other.
    `examples_certified`: whether the examples are answers that would have been given, or only the
    surest wrong guesses."""

    train_sessions: int
    test_sessions: int
    card: Card
    evaluation: Evaluation
    levels: tuple[Level, ...]
    examples: tuple[Example, ...]
    examples_certified: bool
    forecast: Forecast
    tools: tuple[ToolVerdict, ...]


class Trial(msgspec.Struct, frozen=True):
    """Everything `reflexarc try` says. `learned` is None where nothing could be learned; `because`
    then says why."""

    max_error: float
    confidence: float
    facts: Facts
    learned: Learned | None
    verdict: Verdict
    because: str


def run_trial(
    sessions: Sequence[Session],
    *,
    profile: Profile,
    test_share: float = 0.33,
    seed: int = 1,
    max_error: float = 0.05,
    confidence: float = 0.9,
    effects: Mapping[str, Effect] | None = None,
    progress: OnProgress | None = None,
) -> Trial:
    """Learn from a part of the sessions, judge on the rest, and weigh the result.

    `profile` gives System 2's latency and prices for the forecast. Raises `LearnError` for an
    effect declared for a tool that occurs nowhere, and where `learn` needs what is not installed.
    """
    declared = effects or {}
    kinds: dict[str, Effect] = {
        name: kind for name, (kind, _) in tool_effects(sessions, declared).items()
    }
    facts = Facts(
        sessions=len(sessions),
        tasks=len({session.task for session in sessions}),
        division=divide(sessions, kinds),
        repeats=repeats(sessions, [name for name, kind in kinds.items() if kind == "think"]),
        redundancy=redundancy(sessions),
    )
    try:
        split = split_sessions(sessions, test_share=test_share, seed=seed)
    except InputError as error:
        return Trial(max_error, confidence, facts, None, "do not enable", str(error))
    train = [sessions[i] for i in split.train]
    try:
        reflex = learn(
            train,
            max_error=max_error,
            confidence=confidence,
            effects={name: kind for name, kind in declared.items() if _occurs(name, train)},
            progress=_first_part(progress),
        )
    except LearnError as error:
        if isinstance(error.__cause__, ImportError):
            raise
        because = f"in the learning part, {error}"
        return Trial(max_error, confidence, facts, None, "do not enable", because)
    learned = _judged(reflex, train, [sessions[i] for i in split.test], profile, progress)
    verdict, because = overall_verdict(reflex.card, learned.evaluation, learned.tools, max_error)
    return Trial(max_error, confidence, facts, learned, verdict, because)


def _first_part(progress: OnProgress | None) -> OnProgress | None:
    if progress is None:
        return None
    return lambda what, done: progress(what, done * _LEARNING_SHARE)


def divide(sessions: Sequence[Session], effects: Mapping[str, Effect]) -> Division:
    """How System 2's steps and calls divide; a tool without an effect counts as a write."""
    steps = messages = 0
    found = {"read": 0, "write": 0, "think": 0}
    for session in sessions:
        for item in decision_items(session):
            steps += item.position == 0
            messages += item.recorded is None
            if item.recorded is not None:
                found[effects.get(item.recorded.name, "write")] += 1
    return Division(
        steps=steps,
        messages=messages,
        calls=found["read"] + found["write"],
        reads=found["read"],
        writes=found["write"],
        thinks=found["think"],
    )


def _judged(
    reflex: Reflex,
    train: Sequence[Session],
    test: Sequence[Session],
    profile: Profile,
    progress: OnProgress | None,
) -> Learned:
    card = reflex.card
    found: list[Outcome] = []
    for done, session in enumerate(test, 1):
        found += outcomes(reflex, [session])
        if progress is not None:
            share = _LEARNING_SHARE + (1 - _LEARNING_SHARE) * done / len(test)
            progress("judging on new tasks", share)
    evaluation = summarise(reflex, test, found)
    certified = [one.max_error for one in card.reads if one.granted]
    shown = level_name(max(certified)) if certified else None
    return Learned(
        train_sessions=len(train),
        test_sessions=len(test),
        card=card,
        evaluation=evaluation,
        levels=tuple(
            Level(one, evaluation.acting[level_name(one.max_error)], _more(one, len(train)))
            for one in card.reads
            if one.scope == parent_scope("new", "read")
        ),
        examples=wrong_answers(found, test, shown, reflex.effects),
        examples_certified=shown is not None,
        forecast=forecast(
            test,
            answered_steps(found, level_name(card.max_error)),
            profile,
            decision_ms=evaluation.latency_ms.p50,
        ),
        tools=tool_verdicts(card, found, card.max_error),
    )


def _occurs(name: str, sessions: Sequence[Session]) -> bool:
    return any(
        any(tool.name == name for tool in session.tools)
        or any(call.name == name for message in session.messages for call in message.tool_calls)
        for session in sessions
    )


def _more(certificate: Certificate, sessions: int) -> int | None:
    """About how many further sessions a certificate would need, if they bring as many confident
    answers each as those learned from."""
    if certificate.threshold is not None or not certificate.n:
        return None
    return math.ceil(certificate.missing * sessions / certificate.n)


def answered_steps(found: Sequence[Outcome], level: str) -> set[tuple[str, int]]:
    """The steps every item of which System 1 would have answered at an error level."""
    left = {(one.session, one.message) for one in found if not one.acted[level]}
    return {(one.session, one.message) for one in found if one.acted[level]} - left


def wrong_answers(
    found: Sequence[Outcome],
    sessions: Sequence[Session],
    level: str | None,
    effects: Mapping[str, Effect],
) -> tuple[Example, ...]:
    """The surest wrong answer of each of the first few tasks: those that would have been given at
    a level, or, where it is None, wrong guesses at reads."""
    by_id = {session.id: session for session in sessions}
    wrong = [
        one
        for one in found
        if not one.exact
        and one.decision.call is not None
        and (one.acted[level] if level else effects.get(one.decision.call.name) == "read")
    ]
    wrong.sort(key=lambda one: (-one.decision.confidence, one.session, one.message))
    surest: dict[str, Outcome] = {}
    for one in wrong:
        surest.setdefault(one.task, one)
    return tuple(_example(one, by_id[one.session]) for one in list(surest.values())[:_EXAMPLES])


def _example(outcome: Outcome, session: Session) -> Example:
    call = outcome.decision.call
    assert call is not None
    before = session.messages[outcome.message - 1]
    answer = session.messages[outcome.message]
    recorded = outcome.recorded
    if recorded is not None:
        system_2 = recorded.key
    elif answer.tool_calls:
        system_2 = f"a thought: {answer.tool_calls[0].key}"
    else:
        system_2 = f"a message: {answer.content}"
    return Example(
        session=session.id,
        message=outcome.message,
        after=f"{before.role}: {before.content or ', '.join(c.key for c in before.tool_calls)}",
        system_1=f"{call.name}({msgspec.json.encode(call.arguments).decode()})",
        system_2=system_2,
        confidence=call.confidence,
    )
