"""Where the arguments of a call came from, what else was possible, what spoke for the choice."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.provenance.words import plain_text
from reflexarc.reflex.argument_features import FEATURES, Chosen
from reflexarc.reflex.candidates import (
    ABSENT,
    ABSENT_TEXT,
    ABSENT_VALUE,
    ACROSS,
    AGENT_NAMED,
    CONSTANT,
    COPIED,
    PROJECTED,
    SUBSET,
    USER_NAMED,
    WHOLE,
    Candidate,
    enumerate_candidates,
)
from reflexarc.reflex.context import Context
from reflexarc.reflex.contributions import contributions
from reflexarc.reflex.decision import Source
from reflexarc.reflex.explain_choice import Driver
from reflexarc.reflex.feature_words import argument_words
from reflexarc.reflex.predictor import ONLY_CANDIDATE, Predictor, RankedCall, argument_rows
from reflexarc.reflex.proposing import source_of
from reflexarc.reflex.sources import Argument
from reflexarc.steps import ToolCall

MAX_OPTIONS = 5
_DRIVERS = 4
_LEAST_MOVE = 0.01
_MADE = {
    COPIED: "copied", WHOLE: "the whole list or object", USER_NAMED: "those the user named",
    AGENT_NAMED: "those System 2 named", SUBSET: "some of one message",
    ACROSS: "one of each message", PROJECTED: "an object cut to its keys", CONSTANT: "a constant",
    ABSENT: "left out",
}  # fmt: skip


class Option(msgspec.Struct, frozen=True):
    """One value an argument could take; `absent`: it is left out. `place` names the slot it stands
    in, which filled this argument in `hit_rate` of the calls learned from. `probability`: after the
    arguments before it, None of a value that was recalled and is no candidate."""

    value: Any
    absent: bool
    probability: float | None
    made: str
    source: Source | None
    place: str | None
    hit_rate: float | None


class ArgumentWhy(msgspec.Struct, frozen=True):
    """One argument: what was chosen (None: there was nothing to choose), out of how many, the best
    others, and what spoke for the choice rather than the best other."""

    name: str
    chosen: Option | None
    candidates: int
    others: tuple[Option, ...]
    because: tuple[Driver, ...]


class RecordedArgument(msgspec.Struct, frozen=True):
    """One argument of the call System 2 made: how probable System 1 took its value for, after the
    other recorded values (None: it was no candidate); `why` says what is known of it."""

    name: str
    value: Any
    absent: bool
    probability: float | None
    why: str


class _Filled:
    """One argument on the way along a call: its candidates and how probable each was."""

    __slots__ = ("argument", "candidates", "picked", "rows", "scores")

    def __init__(
        self, argument: Argument, candidates: list[Candidate], rows: NDArray[np.float32] | None,
        scores: NDArray[np.float64], picked: int | None,
    ) -> None:  # fmt: skip
        self.argument = argument
        self.candidates = candidates
        self.rows = rows
        self.scores = scores
        self.picked = picked


def _along(
    predictor: Predictor,
    context: Context,
    arguments: Iterable[Argument],
    text_of: Callable[[Argument], str | None],
) -> Iterator[_Filled]:
    """Fills arguments as `Predictor.fill` does, with the values whose texts are given."""
    chosen = Chosen()
    for argument in arguments:
        constants = predictor.sources.constants(argument)
        candidates = enumerate_candidates(context, argument, constants)
        rows, scores = None, np.array([ONLY_CANDIDATE] * len(candidates))
        if len(candidates) > 1:
            rows = argument_rows(context, argument, candidates, [chosen], predictor.cues)
            scores = predictor.scores(rows, 1)[0]
        text = text_of(argument)
        picked = next((at for at, one in enumerate(candidates) if one.text == text), None)
        yield _Filled(argument, candidates, rows, scores, picked)
        if picked is not None:
            chosen = chosen.then(candidates[picked])


def why_arguments(
    predictor: Predictor, context: Context, call: RankedCall
) -> tuple[ArgumentWhy, ...]:
    """Every argument of a ranked call, in the order they were filled."""

    def text_of(argument: Argument) -> str | None:
        candidate = call.chosen.get(argument.name)
        return None if candidate is None else candidate.text

    arguments = predictor.filling(call.name, call.form)
    known = {argument.name for argument in arguments}
    return (
        *(
            _why(predictor, one, call.chosen.get(one.argument.name))
            for one in _along(predictor, context, arguments, text_of)
        ),
        # Of a recalled call: what was given too seldom to be learned.
        *(
            ArgumentWhy(name, _recalled(taken), 0, (), ())
            for name, taken in call.chosen.items()
            if name not in known
        ),
    )


def _why(predictor: Predictor, filled: _Filled, taken: Candidate | None) -> ArgumentWhy:
    order = [int(at) for at in np.argsort(-filled.scores, kind="stable")]
    others = [at for at in order if at != filled.picked][:MAX_OPTIONS]
    because: tuple[Driver, ...] = ()
    if filled.picked is not None and others and filled.rows is not None:
        because = _because(predictor, filled.rows[filled.picked], filled.rows[others[0]])
    return ArgumentWhy(
        filled.argument.name,
        _recalled(taken) if filled.picked is None else _option(filled, filled.picked),
        len(filled.candidates),
        tuple(_option(filled, at) for at in others),
        because,
    )


def _because(
    predictor: Predictor, row: NDArray[np.float32], other: NDArray[np.float32]
) -> tuple[Driver, ...]:
    moved = contributions(predictor.argument_forest, 0, row, other[None, :])
    found: list[Driver] = []
    for at in map(int, np.argsort(-np.abs(moved), kind="stable")[:_DRIVERS]):
        if abs(moved[at]) >= _LEAST_MOVE:
            says = f"{_number(float(row[at]))} rather than {_number(float(other[at]))}"
            found.append(Driver(argument_words(FEATURES[at]), says, round(float(moved[at]), 4)))
    return tuple(found)


def _recalled(taken: Candidate | None) -> Option | None:
    """A value that a memory named and that stands in the conversation, but is no candidate."""
    if taken is None or taken.value is ABSENT_VALUE:
        return None
    return Option(taken.value, False, None, "recalled", source_of(taken), None, None)


def _option(filled: _Filled, at: int) -> Option:
    candidate, slots = filled.candidates[at], filled.argument.slots
    absent = candidate.value is ABSENT_VALUE
    first = candidate.slots[0] if candidate.slots else -1
    slot = slots[first] if 0 <= first < len(slots) else None
    return Option(
        value=None if absent else candidate.value,
        absent=absent,
        probability=round(float(filled.scores[at]), 6),
        made=_MADE.get(candidate.made, "derived"),
        source=None if absent else source_of(candidate),
        place=None if slot is None else slot.name,
        hit_rate=None if slot is None else round(slot.hit_rate, 4),
    )


def why_recorded(
    predictor: Predictor, context: Context, call: ToolCall
) -> tuple[RecordedArgument, ...]:
    """Every argument of a recorded call to a tool that was learned, as System 1 saw it."""

    values, form = predictor.sources.take_apart(call)

    def text_of(argument: Argument) -> str:
        return plain_text(values[argument.name]) if argument.name in values else ABSENT_TEXT

    arguments = predictor.filling(call.name, form)
    found = [
        _recorded(context, values, one) for one in _along(predictor, context, arguments, text_of)
    ]
    known = {one.name for one in found}
    found += [
        RecordedArgument(name, value, False, None, "an argument too rare to be learned")
        for name, value in values.items()
        if name not in known
    ]
    return tuple(found)


def _recorded(context: Context, values: Mapping[str, Any], filled: _Filled) -> RecordedArgument:
    name = filled.argument.name
    absent = name not in values
    value = values.get(name)
    if filled.picked is not None:
        rank = int((filled.scores > filled.scores[filled.picked]).sum()) + 1
        why = f"candidate {rank} of {len(filled.candidates)}"
        probability = round(float(filled.scores[filled.picked]), 6)
        return RecordedArgument(name, value, absent, probability, why)
    if absent:
        why = "never left out while learning"
    else:
        text = plain_text(value)
        places = sorted({entry.slot for entry in context.entries if entry.text == text})
        known = {slot.name for slot in filled.argument.slots}
        unknown = [place for place in places if place not in known]
        if not places:
            why = "it stands nowhere in the conversation"
        elif unknown:
            why = f"it stands in {', '.join(unknown[:3])}: it was not learned from there"
        else:
            why = "it stands in a known place, behind too many others"
    return RecordedArgument(name, value, absent, None, why)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
