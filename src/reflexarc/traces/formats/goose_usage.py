"""Tokens as Goose tells them, of one request or of a whole session, and lumps of them shared out.

Input holds the cached tokens (since they are told at all); where more were read than that, it does
not.
"""

from collections.abc import Sequence

import msgspec

from reflexarc.traces.estimates import shares
from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.loose import Table, amount, table, text
from reflexarc.traces.requests import Counts, Figure, derived, estimated, measured


class Tokens(msgspec.Struct, frozen=True):
    """None where it is not told. `prompt` is all that was read."""

    prompt: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cost: float | None = None
    sums: bool = False
    unknown: bool = False

    @property
    def is_nothing(self) -> bool:
        return not (self.prompt or self.output)

    def counts(self) -> Counts:
        """As they stand, for one request."""
        return Counts(
            prompt=derived(self.prompt) if self.sums else measured(self.prompt),
            cache_read=measured(self.cache_read),
            cache_write=measured(self.cache_write),
            output=measured(self.output),
        )


def tokens_of(fields: Table, before: str = "") -> Tokens:
    """Of a row, of a `usage` object, or of columns that begin with `before`."""

    def given(*names: str) -> float | None:
        found = (amount(fields.get(before + name)) for name in names)
        return next((one for one in found if one is not None), None)

    told = Told(
        given("input_tokens"),
        given("output_tokens"),
        given("cache_read_input_tokens", "cache_read_tokens"),
        given("cache_write_input_tokens", "cache_write_tokens"),
        total=given("total_tokens") or None,
    )
    whole = settled(told, "inclusive")
    return Tokens(
        whole.prompt,
        whole.output,
        told.cache_read,
        told.cache_write,
        given("cost"),
        whole.sums,
        whole.unknown,
    )


def sums_of(fields: Table) -> Tokens:
    """What a session used in all: nested in newer exports, flat in databases and older ones. Where
    neither is told, what its last request used, which is at least that."""
    nested = table(fields.get("accumulated_usage"))
    found = tokens_of(nested) if nested else tokens_of(fields, "accumulated_")
    if found.is_nothing:
        last = table(fields.get("usage"))
        found = tokens_of(last) if last else tokens_of(fields)
    return msgspec.structs.replace(found, cost=amount(fields.get("accumulated_cost")))


def less(whole: Tokens, parts: Sequence[Tokens]) -> Tokens:
    """What is left of a sum, never less than nothing; nothing where less was summed than stands
    in its parts."""

    def left(name: str) -> float | None:
        total: float | None = getattr(whole, name)
        if total is None:
            return None
        known = [getattr(part, name) for part in parts]
        return max(0.0, total - sum(one for one in known if one is not None))

    return Tokens(
        left("prompt"), left("output"), left("cache_read"), left("cache_write"), left("cost"),
        whole.sums, whole.unknown,
    )  # fmt: skip


def added(parts: Sequence[Tokens]) -> Tokens:
    """Sums of what is told; None where none tells."""

    def summed(name: str) -> float | None:
        known = [one for one in (getattr(part, name) for part in parts) if one is not None]
        return sum(known) if known else None

    return Tokens(
        summed("prompt"), summed("output"), summed("cache_read"), summed("cache_write"),
        summed("cost"), any(part.sums for part in parts), any(part.unknown for part in parts),
    )  # fmt: skip


def shared_out(lump: Tokens, read: list[int], wrote: list[int]) -> list[Counts]:
    """A lump over requests by the text that they read and wrote. The sums stay as they are, and of
    each what was cached stays inside its prompt."""
    if len(read) == 1:
        return [lump.counts()]
    cached = min((lump.cache_read or 0) + (lump.cache_write or 0), lump.prompt or 0)
    fresh = shares((lump.prompt or 0) - cached, read)
    from_cache = shares(lump.cache_read or 0, read)
    to_cache = shares(lump.cache_write or 0, read)
    outputs = shares(lump.output or 0, wrote)
    prompts = [sum(parts) for parts in zip(fresh, from_cache, to_cache, strict=True)]
    return [
        Counts(
            prompt=_share(lump.prompt, prompts[at]),
            cache_read=_share(lump.cache_read, from_cache[at]),
            cache_write=_share(lump.cache_write, to_cache[at]),
            output=_share(lump.output, outputs[at]),
        )
        for at in range(len(read))
    ]


def _share(whole: float | None, share: float) -> Figure:
    return estimated(None if whole is None else share)


def cost_of(row: Table) -> Figure:
    """As the provider told it, else as Goose reckoned it; none of nothing."""
    cost = amount(row.get("cost")) or None
    is_told = text(row.get("cost_source")) == "provider_reported"
    return measured(cost) if is_told else estimated(cost)
