"""Lists put together from values that stand apart: those that what was said points at.

Bounded: at most some 30 lists of a slot, of at most 12 values, from at most eight messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from reflexarc.provenance import Entry, Origin
from reflexarc.reflex.context import Context
from reflexarc.reflex.said import Told

# How a candidate was made. The order matters: trees split on it.
COPIED, WHOLE, USER_NAMED, AGENT_NAMED, SUBSET, ACROSS, PROJECTED, CONSTANT, ABSENT = range(9)

Part = tuple[Any, Entry]
_LONGEST_LIST = 12
_PAIRED = 5
_ACROSS = 5
_ENOUGH = 0.5


def told_parts(
    context: Context, by_message: Mapping[Origin, Sequence[Part]]
) -> dict[Origin, list[Told]]:
    """How well each value of one slot fits what was said, among those of its message."""
    return {origin: _scores(context, parts) for origin, parts in by_message.items()}


def lists_told(
    by_message: Mapping[Origin, Sequence[Part]], scores: Mapping[Origin, Sequence[Told]]
) -> Iterator[tuple[Sequence[Part], int]]:
    """The lists and how they were made; `by_message` holds the values of one slot."""
    newest = sorted(by_message, key=lambda origin: -origin.event)
    for origin in newest:
        yield from _within(by_message[origin], scores[origin])
    if 2 <= len(by_message) <= 8:
        ordered = [(by_message[origin], scores[origin]) for origin in reversed(newest)]
        yield from _across(ordered[-_ACROSS:])


def _scores(context: Context, parts: Sequence[Part]) -> list[Told]:
    records = tuple(dict.fromkeys(entry.record for _, entry in parts))
    told = context.said_now().told(records)
    return [told[entry.record] for _, entry in parts]


def _within(parts: Sequence[Part], scores: Sequence[Told]) -> Iterator[tuple[Sequence[Part], int]]:
    """Lists of values of one message: all, those that the user or System 2 spoke of, pairs."""
    if not 2 <= len(parts) <= _LONGEST_LIST:
        return
    yield parts, WHOLE
    for field, made in ((2, AGENT_NAMED), (0, USER_NAMED), (3, AGENT_NAMED), (1, USER_NAMED)):
        most = max(score[field] for score in scores)
        if most > 0.0:
            named = [
                part
                for part, score in zip(parts, scores, strict=True)
                if score[field] >= _ENOUGH * most
            ]
            if len(named) < len(parts):
                yield named, made
    for size in (2, 3):
        for chosen in combinations(parts[:_PAIRED], size):
            yield chosen, SUBSET


def _across(
    messages: Sequence[tuple[Sequence[Part], Sequence[Told]]],
) -> Iterator[tuple[Sequence[Part], int]]:
    """One value of each of several messages, those that were spoken of most, in the order of the
    messages."""
    for field in (2, 0, 3):
        best = [_best(parts, scores, field) for parts, scores in messages]
        for size in range(2, len(best) + 1):
            for group in combinations(best, size):
                yield [two[0] for two in group], ACROSS
    best = [_best(parts, scores, 3) for parts, scores in messages]
    for group in combinations(best, 2):
        for chosen in product(*group):
            yield chosen, ACROSS


def _best(parts: Sequence[Part], scores: Sequence[Told], field: int) -> list[Part]:
    order = sorted(range(len(parts)), key=lambda at: (-scores[at][field], -sum(scores[at])))
    return [parts[at] for at in order[:2]]
