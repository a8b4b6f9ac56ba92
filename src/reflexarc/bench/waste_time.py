"""Where the time of recorded work goes, step by step: the model, its tools, waiting.

A step is a request and what its answer's tools do until the next request of the same conversation.
"""

import itertools
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from reflexarc.bench.waste_figures import Total, calls, with_kind
from reflexarc.traces.requests import (
    ABSENT,
    Figure,
    Kind,
    RecordedRequest,
    RecordedTool,
    derived,
    estimated,
)

MAX_STEPS = 200
"""Steps listed one by one: the costliest."""
MIN_FOR_RATE = 8
_MAX_FOR_RATE = 400
_MAX_TOOLS_NAMED = 8


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """`waiting_s`: after model and tools, until the next request: a person, a queue, the agent's
    own work. Kinds stand in `kinds`; None is not in the log."""

    session: str
    agent: str
    request: str
    model: str
    at_s: float | None
    prompt: int | None
    cache_read: int | None
    output: int | None
    cost_usd: float | None
    model_s: float | None
    tools_s: float | None
    waiting_s: float | None
    tools: tuple[str, ...]
    kinds: dict[str, Kind]


class Times(msgspec.Struct, frozen=True):
    """Seconds of all steps together; None where nothing is known. `unknown`: of how many steps not,
    where of some."""

    model_s: float | None
    tools_s: float | None
    waiting_s: float | None
    kinds: dict[str, Kind]
    unknown: dict[str, int]


class Spent(msgspec.Struct, frozen=True):
    """A step's three times."""

    model_s: Figure
    tools_s: Figure
    waiting_s: Figure


def model_time(request: RecordedRequest) -> Figure:
    """From its beginning to its end; estimated where its beginning is an upper bound."""
    began, ended = request.began_s, request.ended_s
    if began.value is None or ended.value is None or ended.value < began.value:
        return ABSENT
    seconds = ended.value - began.value
    return estimated(seconds) if request.gap else with_kind(seconds, began, ended)


def tools_time(tools: Sequence[RecordedTool]) -> Figure:
    """How long at least one of them ran: their times as a union, or the sum of their own times
    where a log has no others. Nothing is known where one has neither."""
    if not tools:
        return ABSENT
    spans = spans_of(tools)
    if spans is not None:
        timed = (*(tool.began_s for tool in tools), *(tool.ended_s for tool in tools))
        return with_kind(busy_s(spans), *timed)
    own = [tool.own_s for tool in tools]
    if any(figure.value is None for figure in own):
        return ABSENT
    return with_kind(sum(figure.value or 0.0 for figure in own), *own)


def spans_of(tools: Sequence[RecordedTool]) -> list[tuple[float, float]] | None:
    """When each ran; None where that is not known of all."""
    spans = [
        (tool.began_s.value, tool.ended_s.value)
        for tool in tools
        if tool.began_s.value is not None and tool.ended_s.value is not None
    ]
    return spans if len(spans) == len(tools) else None


def busy_s(spans: Sequence[tuple[float, float]]) -> float:
    """How long at least one of them lasted."""
    busy, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        busy += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return busy


def spent(requests: Sequence[RecordedRequest]) -> list[Spent]:
    """For each request, in order of time."""
    found: list[Spent] = []
    follows: dict[tuple[str, str], RecordedRequest] = {}
    for request in reversed(requests):
        thread = (request.session, request.agent)
        model, tools = model_time(request), tools_time(request.tools)
        if not request.tools and calls(request).value == 0:
            tools = derived(0.0)  # an answer that can be seen, and called none
        found.append(Spent(model, tools, _waiting(request, tools, follows.get(thread))))
        follows[thread] = request
    return found[::-1]


def _waiting(request: RecordedRequest, tools: Figure, after: RecordedRequest | None) -> Figure:
    """An observed gap has the waiting inside it already, so there is none beside it."""
    if after is None or after.gap or request.ended_s.value is None or after.began_s.value is None:
        return ABSENT
    if request.tools and tools.value is None:
        return ABSENT
    seconds = after.began_s.value - request.ended_s.value - (tools.value or 0.0)
    parts = (request.ended_s, after.began_s, *([tools] if request.tools else []))
    return with_kind(max(0.0, seconds), *parts)


def times(of: Sequence[Spent]) -> Times:
    sums = {name: Total() for name in ("model_s", "tools_s", "waiting_s")}
    for one, (name, total) in itertools.product(of, sums.items()):
        total.add(getattr(one, name))
    return Times(
        **{name: _round(total.value, 3) for name, total in sums.items()},
        kinds={name: total.kind for name, total in sums.items()},
        unknown={
            name: total.unknown for name, total in sums.items() if total.known and total.unknown
        },
    )


def steps(
    requests: Sequence[RecordedRequest],
    costs: Sequence[Figure],
    spent_on: Sequence[Spent],
    most: int = MAX_STEPS,
) -> list[Step]:
    """The costliest first: by money where it is known, else by tokens read and written."""

    def weight(one: tuple[RecordedRequest, Figure, Spent]) -> tuple[float, float]:
        request, cost, _ = one
        tokens = (request.counts.prompt.value or 0.0) + (request.counts.output.value or 0.0)
        return (cost.value or 0.0, tokens)

    listed = sorted(zip(requests, costs, spent_on, strict=True), key=weight, reverse=True)
    return [_step(*one) for one in listed[:most]]


def _step(request: RecordedRequest, cost: Figure, one: Spent) -> Step:
    counts = request.counts
    named = {
        "prompt": counts.prompt,
        "cache_read": ABSENT if request.unknown_cache else counts.cache_read,
        "output": counts.output,
        "cost_usd": cost,
        "model_s": one.model_s,
        "tools_s": one.tools_s,
        "waiting_s": one.waiting_s,
    }
    return Step(
        session=request.session,
        agent=request.agent,
        request=request.id,
        model=request.model,
        at_s=request.began_s.value if request.began_s.value is not None else request.ended_s.value,
        prompt=_whole(named["prompt"]),
        cache_read=_whole(named["cache_read"]),
        output=_whole(named["output"]),
        cost_usd=cost.value,
        model_s=_round(one.model_s.value, 3),
        tools_s=_round(one.tools_s.value, 3),
        waiting_s=_round(one.waiting_s.value, 3),
        tools=tuple(tool.name for tool in request.tools[:_MAX_TOOLS_NAMED]),
        kinds={name: figure.kind for name, figure in named.items()},
    )


class Rates:
    """How fast each model reads what is in no cache, in tokens a second, from first tokens and how
    much was read anew: the middle one of all slopes between two requests. None where fewer than
    eight requests say it, or where more tokens do not take longer."""

    def __init__(self, seen: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        self._rates = {model: _rate(pairs) for model, pairs in seen.items()}

    def seconds(self, model: str, tokens: float) -> Figure:
        rate = self._rates.get(model)
        return ABSENT if rate is None else estimated(tokens / rate)


def first_token_s(request: RecordedRequest) -> Figure:
    began, first = request.began_s, request.first_s
    if request.gap or began.value is None or first.value is None or first.value < began.value:
        return ABSENT
    return derived(first.value - began.value)


def _rate(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < MIN_FOR_RATE:
        return None
    thinned = pairs[:: -(-len(pairs) // _MAX_FOR_RATE)]
    tokens, seconds = np.array(thinned, dtype=np.float64).T
    one, other = np.triu_indices(len(tokens), 1)
    apart = tokens[other] - tokens[one]
    is_apart = np.abs(apart) >= 1.0
    if not is_apart.any():
        return None
    slope = float(np.median((seconds[other] - seconds[one])[is_apart] / apart[is_apart]))
    return 1.0 / slope if slope > 1e-9 else None


def _whole(figure: Figure) -> int | None:
    return None if figure.value is None else round(figure.value)


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
