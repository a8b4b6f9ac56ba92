"""Whether a log's "input" holds cached tokens, and its "output" reasoning: sources disagree, some
even with themselves from version to version. Where a total stands beside the parts, it tells.
"""

from typing import Literal

import msgspec

Usual = Literal["inclusive", "disjoint"] | None


class Told(msgspec.Struct, frozen=True):
    """Tokens as a row tells them; None where it does not."""

    prompt: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    total: float | None = None


class Settled(msgspec.Struct, frozen=True):
    """`prompt` is all that was read, `output` all that was generated. `sums`: something was added
    up to get there. `unknown`: which tokens are inside others cannot be told; then both are as the
    row has them, and no share of cached ones may be made of it."""

    prompt: float | None
    output: float | None
    sums: bool = False
    unknown: bool = False


def settled(told: Told, usual: Usual, *, reasoning_inside: bool = True) -> Settled:
    """`usual` is what the source does by its documentation, None where that varies;
    `reasoning_inside` the same of reasoning in the output."""
    cached = (told.cache_read or 0) + (told.cache_write or 0)
    if told.prompt is None:
        # Parts without a whole: what was cached was read at least.
        return Settled(None, _output(told, beside=not reasoning_inside))
    if told.prompt < max(told.cache_read or 0, told.cache_write or 0):
        return _settled(told, beside=False if reasoning_inside else _beside(told, cached))
    fits = _fitting(told, cached)
    if fits is not None:
        disjoint, beside = fits
        return _settled(told, beside=beside, disjoint=disjoint)
    if told.total is not None and not _plausible(told, cached):
        return Settled(told.prompt, told.output, unknown=cached > 0)
    if usual is None and cached:
        return Settled(told.prompt, told.output, unknown=True)
    return _settled(told, beside=not reasoning_inside, disjoint=usual == "disjoint")


def _settled(told: Told, *, beside: bool, disjoint: bool = True) -> Settled:
    prompt = told.prompt or 0.0
    cached = (told.cache_read or 0) + (told.cache_write or 0)
    whole = prompt + cached if disjoint else prompt
    output = _output(told, beside=beside)
    return Settled(whole, output, sums=whole != prompt or output != told.output)


def _output(told: Told, *, beside: bool) -> float | None:
    if told.output is None or not beside:
        return told.output
    return told.output + (told.reasoning or 0)


def _fitting(told: Told, cached: float) -> tuple[bool, bool] | None:
    """Whether input is without the cached ones, and reasoning beside output, where the total tells;
    None where it fits several ways that differ, or none."""
    if told.total is None:
        return None
    reasoning = told.reasoning or 0
    parts = (told.prompt or 0) + (told.output or 0)
    ways = [
        (disjoint, beside)
        for disjoint in (False, True)
        for beside in (False, True)
        if parts + cached * disjoint + reasoning * beside == told.total
        and (cached or not disjoint)
        and (reasoning or not beside)
    ]
    return ways[0] if len(ways) == 1 else None


def _beside(told: Told, cached: float) -> bool:
    parts = (told.prompt or 0) + (told.output or 0) + cached
    return told.total is None or told.total == parts + (told.reasoning or 0)


def _plausible(told: Told, cached: float) -> bool:
    """Whether some way fits at all."""
    parts = (told.prompt or 0) + (told.output or 0)
    reasoning = told.reasoning or 0
    return told.total in (
        parts, parts + cached, parts + reasoning, parts + cached + reasoning,
    )  # fmt: skip
