"""Calls ranked by how likely System 2 makes them next."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.candidates import Candidate
from reflexarc.reflex.recall import Recollection
from reflexarc.reflex.trail import OPEN
from reflexarc.steps import call_key

SURE_OF_A_MESSAGE = 0.5
"""From this probability on, where a message is likelier than all calls together, no call is
proposed. On public recordings no call ever acted where it was .3."""

MESSAGE = 0
"""Class 0 of the tool forest: System 2 writes a message (or thinks)."""


class RankedCall:
    """A possible next call. `joint` = `tool_probability` x `argument_probability`; `form`: which
    of its tool's forms it has (-1: none), and then its arguments' probability is the form's too."""

    __slots__ = (
        "_key", "argument_probability", "arguments", "chosen", "form", "joint", "least", "name",
        "tool_probability",
    )  # fmt: skip

    def __init__(
        self, name: str, tool_probability: float, argument_probability: float, least: float,
        arguments: dict[str, Any], chosen: dict[str, Candidate], form: int = OPEN,
    ) -> None:  # fmt: skip
        self.name = name
        self.tool_probability = tool_probability
        self.argument_probability = argument_probability
        self.least = least
        self.joint = tool_probability * argument_probability
        self.arguments = arguments
        self.chosen = chosen
        self.form = form
        self._key: str | None = None

    @property
    def key(self) -> str:
        if self._key is None:
            self._key = call_key(self.name, self.arguments)
        return self._key

    def with_form(self, share: float) -> "RankedCall":
        """The same call, of a form as probable as this."""
        return RankedCall(
            self.name, self.tool_probability, self.argument_probability * share,
            min(self.least, share), self.arguments, self.chosen,
            self.form,
        )  # fmt: skip

    def or_also(self, other: "RankedCall") -> "RankedCall":
        """The same call, found in two ways."""
        return RankedCall(
            self.name, self.tool_probability,
            min(1.0, self.argument_probability + other.argument_probability),
            max(self.least, other.least), self.arguments, self.chosen,
            self.form,
        )  # fmt: skip

    def with_tool(self, probability: float) -> "RankedCall":
        """The same call, its tool as probable as this."""
        return RankedCall(
            self.name, probability, self.argument_probability, self.least, self.arguments,
            self.chosen, self.form,
        )  # fmt: skip


def each_once(calls: list[RankedCall]) -> list[RankedCall]:
    """Calls, best first; one that several forms give is as probable as by all of them."""
    by_key: dict[str, RankedCall] = {}
    for call in sorted(calls, key=lambda call: -call.joint):
        first = by_key.setdefault(call.key, call)
        if first is not call:
            by_key[call.key] = first.or_also(call)
    return sorted(by_key.values(), key=lambda call: -call.joint)


class Ranking:
    """All ranked calls, best first, and the probability of each class (0 is a message).

    Everything is worked out when it is first asked for: the vector of the history and what it says
    of a message, the mended probabilities of tools, the filled calls. Where a message is likelier
    than all calls, or nothing could act, nobody asks for the rest. It has to be asked for before
    the context goes on.

    `recalled`: what earlier runs of this very situation did, where that is the best-ranked call,
    which is known before any other is filled; `unaided`: the ranking without memory, where there is
    another. `contradicted`: they did otherwise, and what they did cannot be made. `history`: the
    vector the probabilities come from."""

    __slots__ = (
        "_best", "_calls", "_history", "_message_probability", "_probabilities", "answer",
        "classes", "contradicted", "recalled", "unaided",
    )  # fmt: skip

    def __init__(
        self,
        calls: list[RankedCall] | Callable[[], list[RankedCall]],
        classes: tuple[str, ...],
        probabilities: NDArray[np.float64] | Callable[[], NDArray[np.float64]],
        message_probability: float | Callable[[], float],
        recalled: Recollection | None = None,
        history: NDArray[np.float32] | Callable[[], NDArray[np.float32] | None] | None = None,
        best: RankedCall | None = None,
    ) -> None:
        self._calls = calls
        self._best = best
        self._probabilities = probabilities
        self.classes = classes
        self._message_probability = message_probability
        self.recalled = recalled
        self.contradicted = False
        self.unaided: Ranking | None = None
        self._history = history
        # What a reflex makes of it, once it was asked.
        self.answer: object = None

    @property
    def calls(self) -> list[RankedCall]:
        """The calls, best first."""
        if callable(self._calls):
            self._calls = self._calls()
        return self._calls

    @property
    def best(self) -> RankedCall | None:
        """The first of the calls, None where there is none."""
        if self._best is None and self.calls:
            self._best = self.calls[0]
        return self._best

    @property
    def predicted(self) -> "Ranking | None":
        """The ranking without memory, where its best call is that very one."""
        unaided = self.unaided
        if unaided is None or unaided.is_message or unaided.best is None or self.best is None:
            return None
        return unaided if unaided.best.key == self.best.key else None

    @property
    def tool_probability(self) -> float:
        """That of the likeliest tool."""
        return float(self.probabilities[1:].max(initial=0.0))

    @property
    def message_probability(self) -> float:
        """That System 2 writes a message (or thinks)."""
        if callable(self._message_probability):
            self._message_probability = self._message_probability()
        return self._message_probability

    @property
    def history(self) -> NDArray[np.float32] | None:
        """(features of the history,), None where it was made without."""
        if callable(self._history):
            self._history = self._history()
        return self._history

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(classes,)"""
        if callable(self._probabilities):
            self._probabilities = self._probabilities()
        return self._probabilities

    @property
    def is_message(self) -> bool:
        """Whether a message is so likely that no call is worth filling."""
        return (
            self.recalled is None
            and not self.contradicted
            and self.message_probability >= SURE_OF_A_MESSAGE
        )

    @property
    def verdict(self) -> str | None:
        """The most probable class: a tool's name, or None for a message."""
        if self.recalled is not None:
            return self.recalled.tool
        if self.message_probability >= SURE_OF_A_MESSAGE:
            return None
        best = int(np.argmax(self.probabilities))
        return None if best == MESSAGE else self.classes[best]
