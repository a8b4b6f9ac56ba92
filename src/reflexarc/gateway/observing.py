"""Looks at what System 2 answered: what System 1 would have done, item by item as `eval` judges.

A decision waits here for its answer. What it needs of its conversation stays in the memory of
conversations, which may drop it: then the answer is still compared, but not judged.
"""

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from reflexarc.gateway.frames import Decided, Observe, Observed
from reflexarc.reflex.context import Context
from reflexarc.reflex.decision import ProposedCall
from reflexarc.reflex.fork import fork
from reflexarc.reflex.outcome import (
    Offered,
    decide_item,
    judge_item,
    levels_of,
    with_proposal,
)
from reflexarc.reflex.reflex import Reflex
from reflexarc.steps import Item, ToolCall, call_key
from reflexarc.steps.errors import InputError, MalformedError
from reflexarc.store.records import Prediction
from reflexarc.wire.answers import Answer, answer_from_body
from reflexarc.wire.encodings import plain_bytes
from reflexarc.wire.offered import Tools

MAX_ITEMS = 64
"""Calls of one batch that are judged: no answer may hold the process of all for long."""
MAX_ARGUMENT_BYTES = 16 * 1024
"""Longer arguments are compared, but not handed on."""
_MAX_WAITING = 4096
_MAX_FORKS = 64


class HasReflex(Protocol):
    """What is needed of a loaded reflex."""

    @property
    def reflex(self) -> object: ...


class Waiting:
    """A decision whose answer has not come. `calls` are those it would act with."""

    __slots__ = ("calls", "context", "decided", "forked", "model", "route", "tools")

    def __init__(
        self, decided: Decided, calls: tuple[ProposedCall, ...], route: str, model: str
    ) -> None:
        self.decided = decided
        self.calls = calls
        self.route = route
        self.model = model
        self.context: weakref.ref[Context] | None = None
        self.tools: weakref.ref[Tools] | None = None
        self.forked: Context | None = None


class Observing:
    """`on_thinking(route, model)` hears of answers that carry thinking; `cpu_s` measures the time
    of this thread."""

    def __init__(
        self,
        reflexes: Mapping[str, HasReflex],
        on_thinking: Callable[[str, str], None],
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._reflexes = reflexes
        self._on_thinking = on_thinking
        self._cpu_s = cpu_s
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        self._of_context: weakref.WeakKeyDictionary[Context, dict[int, None]] = (
            weakref.WeakKeyDictionary()
        )
        self._forks: OrderedDict[int, None] = OrderedDict()

    def remember(
        self,
        decided: Decided,
        calls: tuple[ProposedCall, ...],
        *,
        route: str,
        model: str,
        context: object = None,
        tools: Tools | None = None,
    ) -> None:
        """A decision to be compared. With `context` and `tools`, as they were when it was made, it
        is judged as well."""
        waiting = Waiting(decided, calls, route, model)
        if isinstance(context, Context) and tools is not None:
            waiting.context = weakref.ref(context)
            waiting.tools = weakref.ref(tools)
            self._of_context.setdefault(context, {})[decided.id] = None
        self._waiting[decided.id] = waiting
        if len(self._waiting) > _MAX_WAITING:
            self._forget(next(iter(self._waiting)))

    def moves_on(self, context: object) -> None:
        """A conversation is about to be extended: who still waits for an answer to what it was
        keeps a fork of it."""
        if not isinstance(context, Context):
            return
        waiting = self._of_context.pop(context, None)
        if not waiting:
            return
        forked = fork(context)
        for number in waiting:
            self._waiting[number].context = None
            self._waiting[number].forked = forked
            self._forks[number] = None
        while len(self._forks) > _MAX_FORKS:
            oldest, _ = self._forks.popitem(last=False)
            self._waiting[oldest].forked = None

    def observe(self, request: Observe, body: bytes) -> Observed | None:
        """Compares what System 2 answered with what System 1 would have done; None where the
        decision is not remembered. For one call, any of System 2's batch counts as agreement where
        the reflex was learned so; several calls agree if just these were made."""
        waiting = self._forget(request.id)
        if waiting is None:
            return None
        try:
            answer = _answer(request, body)
        except InputError:
            return Observed(request.id, "unreadable", "")
        if answer.thinking:
            self._on_thinking(waiting.route, waiting.model)
        if not answer.complete or not all(call.well_formed for call in answer.calls):
            return Observed(request.id, "unreadable", "")
        predictions = self._judged(waiting, answer.calls)
        if not waiting.calls:
            tool = answer.calls[0].name if answer.calls else "message"
            return Observed(request.id, "escalate", tool, predictions)
        agrees = self._agrees(waiting, [made.key for made in answer.calls])
        tool = waiting.decided.tool
        return Observed(request.id, "agree" if agrees else "disagree", tool, predictions)

    def _agrees(self, waiting: Waiting, made: list[str]) -> bool:
        keys = [call_key(call.name, call.arguments) for call in waiting.calls]
        loaded = self._reflexes.get(waiting.route)
        reflex = loaded.reflex if loaded is not None else None
        whole = isinstance(reflex, Reflex) and not reflex.card.parts
        if whole or len(keys) > 1:
            return sorted(keys) == sorted(made)
        return keys[0] in made

    def _forget(self, number: int) -> Waiting | None:
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return None
        self._forks.pop(number, None)
        context = waiting.context() if waiting.context is not None else None
        if context is not None:
            self._of_context.get(context, {}).pop(number, None)
        return waiting

    def _judged(self, waiting: Waiting, calls: tuple[ToolCall, ...]) -> list[Prediction]:
        """A prediction for each call of the batch, or for the message. The context is left as it
        was: its conversation may go on with another answer."""
        context = waiting.forked
        if context is None and waiting.context is not None:
            context = waiting.context()
        tools = waiting.tools() if waiting.tools is not None else None
        loaded = self._reflexes.get(waiting.route)
        reflex = loaded.reflex if loaded is not None else None
        if context is None or tools is None or not isinstance(reflex, Reflex):
            return []
        if not context.user_turns:
            return []  # before a user has spoken nothing is a decision point
        offered, levels = Offered(reflex, tools.specs), levels_of(reflex)
        acts = waiting.decided.action == "act"
        found: list[Prediction] = []
        for position in range(min(max(1, len(calls)), MAX_ITEMS)):
            if position == 1:
                context = fork(context)
            if position:
                context.append_call(calls[position - 1])
            began_s = self._cpu_s()
            item = Item(0, context.length, position, calls[position:])
            ranking, decision = decide_item(reflex, context, offered, model=waiting.model)
            cpu_ms = (self._cpu_s() - began_s) * 1e3
            if position == 0:  # most of the work was done when it was decided
                cpu_ms += waiting.decided.decide_ms
            decision = with_proposal(
                reflex, context, offered, ranking, decision, model=waiting.model
            )
            one = judge_item(reflex, context, item, offered, ranking, decision, levels)
            found.append(
                Prediction(
                    position=position,
                    recorded_tool=one.named_tool,
                    recorded=_shown(item.recorded.arguments) if item.recorded else None,
                    proposed_tool=one.proposed_tool,
                    proposed=_shown(decision.call.arguments) if decision.call else None,
                    effect=one.effect,
                    thought=one.thought,
                    named=one.named,
                    exact=one.exact,
                    among_three=one.among_three,
                    read_exact=one.read_exact,
                    read_among_three=one.read_among_three,
                    confidence=one.confidence,
                    reason=one.reason,
                    acted=one.acted,
                    would_act=acts and position == 0,
                    cpu_ms=cpu_ms,
                    right=one.right,
                    calls=one.calls,
                    made=one.made,
                )
            )
        return found


def _answer(request: Observe, body: bytes) -> Answer:
    if request.status != 200:
        raise MalformedError(f"System 2 answered with status {request.status}")
    plain = plain_bytes(body, request.content_encoding)
    return answer_from_body(plain, request.content_type, request.dialect)


def _shown(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments as they are handed on, None where they are too long, or hold what a frame does not
    take: half a character, a number of more than 64 bits."""
    try:
        size = len(msgspec.msgpack.encode(arguments))
    except (ValueError, OverflowError, RecursionError):
        return None
    return arguments if size <= MAX_ARGUMENT_BYTES else None
