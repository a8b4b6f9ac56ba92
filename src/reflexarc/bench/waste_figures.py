"""Sums over requests of a log, each with how it is known and how many could not be counted."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from reflexarc.traces.requests import ABSENT, Figure, Kind, RecordedRequest, derived, measured

_RANK: dict[Kind, int] = {"absent": 0, "measured": 1, "derived": 2, "estimated": 3}


class Total(msgspec.Struct):
    """A sum of what is known: its kind is that of the least certain part, absent where nothing is
    known; `unknown` counts what is not in it. Money is summed exactly."""

    known: int = 0
    unknown: int = 0
    kind: Kind = "absent"
    _sum: Decimal = Decimal(0)

    def add(self, figure: Figure) -> None:
        if figure.value is None:
            self.unknown += 1
            return
        self.known += 1
        self._sum += Decimal(repr(figure.value))
        self.kind = max(self.kind, figure.kind, key=_RANK.__getitem__)

    @property
    def value(self) -> float | None:
        """To nine places: what floats of a log add behind them is no money."""
        return round(float(self._sum), 9) if self.known else None

    @property
    def whole(self) -> int | None:
        return round(self._sum) if self.known else None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What some requests come to: tokens (the parts of a prompt are inside it), calls of tools,
    dollars. None: not in this log, which is not zero. `kinds` tell how each is known, `unknown` of
    how many requests it is not, where a sum holds some alone."""

    requests: int
    prompt: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    tool_calls: int | None
    cost_usd: float | None
    kinds: dict[str, Kind]
    unknown: dict[str, int]


_COUNTS = ("prompt", "cache_read", "cache_write", "output", "reasoning")


def figures(requests: Iterable[tuple[RecordedRequest, Figure]]) -> Figures:
    """Of requests, each with its cost. Cache counts of a request of which it is not known whether
    they are inside its prompt are not known either."""
    sums = {name: Total() for name in (*_COUNTS, "tool_calls", "cost_usd")}
    number = 0
    for request, cost in requests:
        number += 1
        for name in _COUNTS:
            figure: Figure = getattr(request.counts, name)
            if request.unknown_cache and name.startswith("cache"):
                figure = ABSENT
            sums[name].add(figure)
        sums["tool_calls"].add(calls(request))
        sums["cost_usd"].add(cost)
    return Figures(
        requests=number,
        **{name: sums[name].whole for name in (*_COUNTS, "tool_calls")},
        cost_usd=sums["cost_usd"].value,
        kinds={name: one.kind for name, one in sums.items()},
        unknown={name: one.unknown for name, one in sums.items() if one.unknown and one.known},
    )


def calls(request: RecordedRequest) -> Figure:
    """How many tools its answer called; absent where a log shows nothing of answers."""
    if request.tools or request.output_text:
        return measured(len(request.tools))
    has_text = request.prompt is not None and not hasattr(request.prompt, "ids")
    return measured(0) if has_text else ABSENT


def hit_rate(made: Figures) -> float | None:
    """The share of prompt tokens that were read from a cache, where both are known of all."""
    if not made.prompt or made.cache_read is None or "cache_read" in made.unknown:
        return None
    return made.cache_read / made.prompt


def with_kind(value: float | None, *parts: Figure) -> Figure:
    """A number made of others: no better known than the worst of them; derived at best."""
    if value is None or any(part.value is None for part in parts):
        return ABSENT
    is_estimated = any(part.kind == "estimated" for part in parts)
    return Figure(value, "estimated") if is_estimated else derived(value)
