"""What OpenHands counted: lists of calls, or sums that only grow, of which the differences are the
calls. What was sent and answered is `openhands_events`' business.

Cached tokens are part of a prompt (litellm's way), save for agents spoken to over ACP, which give
themselves away by more cached tokens than a prompt has (the SDK's metrics.py tells them the same
way).
"""

from collections.abc import Sequence

import msgspec

from reflexarc.traces.loose import Table, amount, table, tables, text
from reflexarc.traces.requests import ABSENT, Counts, Figure, derived, estimated, measured

SUM = "the sum of several requests: this log has nothing finer"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it was counted. `usage` names what it was for (`default`, `condenser`);
    `place` tells it from others of the log where it has no `response_id`; `at_s` is when it had
    ended, `position` that of its event in the log."""

    usage: str
    place: str
    response_id: str = ""
    model: str = ""
    counts: Counts = Counts()
    cost_usd: Figure = ABSENT
    latency_s: float | None = None
    at_s: float | None = None
    position: int | None = None
    notes: tuple[str, ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """Sums of one usage as an event tells of them."""

    metrics: Table
    place: str
    at_s: float | None
    position: int


def calls_of(usage: str, metrics: Table) -> list[Call]:
    """The calls in `token_usages`, with costs and latencies where these are as many or name the
    response; one call with the sum where there are sums alone."""
    rows = tables(metrics.get("token_usages"))
    model = text(metrics.get("model_name"))
    total = table(metrics.get("accumulated_token_usage"))
    if not rows:
        counts = _counts(total, apart=_apart([total]))
        if not counts.prompt.value and not counts.output.value:
            return []
        cost = measured(amount(metrics.get("accumulated_cost")) or None)
        return [
            Call(usage=usage, place=usage, model=model, counts=counts, cost_usd=cost, notes=(SUM,))
        ]
    costs = tables(metrics.get("costs"))
    paired = costs if len(costs) == len(rows) else []
    latencies = {
        text(one.get("response_id")): amount(one.get("latency"))
        for one in tables(metrics.get("response_latencies"))
    }
    is_apart = _apart(rows)
    found: list[Call] = []
    seen: set[tuple[str, Counts]] = set()
    for index, row in enumerate(rows):
        counts = _counts(row, apart=is_apart)
        own = text(row.get("response_id"))
        if own and (own, counts) in seen:
            continue
        seen.add((own, counts))
        cost = paired[index] if paired else {}
        found.append(
            Call(
                usage=usage,
                place=f"{usage}:{index}",
                response_id=own,
                model=text(row.get("model")) or model,
                counts=counts,
                cost_usd=measured(amount(cost.get("cost"))),
                latency_s=latencies.get(own) if own else None,
                at_s=amount(cost.get("timestamp")),
            )
        )
    return found


def missing_tokens(metrics: Table) -> float:
    """How many prompt tokens the sum has more than the calls."""
    rows = tables(metrics.get("token_usages"))
    total = amount(table(metrics.get("accumulated_token_usage")).get("prompt_tokens"))
    if not rows or total is None:
        return 0
    return max(0.0, total - sum(amount(row.get("prompt_tokens")) or 0 for row in rows))


def differences(usage: str, snapshots: Sequence[Snapshot]) -> list[Call]:
    """A call for each growth between one snapshot and the next. Where sums fall, they began
    anew."""
    found: list[Call] = []
    sums = [_sums(one.metrics) for one in snapshots]
    is_apart = _apart([table(one.metrics.get("accumulated_token_usage")) for one in snapshots])
    nothing: dict[str, float] = dict.fromkeys(_FIELDS, 0.0)
    before = nothing
    cost_before = 0.0
    for snapshot, now in zip(snapshots, sums, strict=True):
        cost = amount(snapshot.metrics.get("accumulated_cost")) or 0.0
        known = {name: value for name, value in now.items() if value is not None}
        if any(value < before[name] for name, value in known.items()):
            before, cost_before = nothing, 0.0
        grown = {name: value - before[name] for name, value in known.items()}
        before = before | known
        if not grown.get("prompt_tokens") and not grown.get("completion_tokens"):
            continue
        spent, cost_before = cost - cost_before, cost
        last = amount(table(snapshot.metrics.get("accumulated_token_usage")).get("per_turn_token"))
        size = grown.get("prompt_tokens", 0) + grown.get("completion_tokens", 0)
        found.append(
            Call(
                usage=usage,
                place=snapshot.place,
                model=text(snapshot.metrics.get("model_name")),
                counts=_grown(grown, apart=is_apart),
                cost_usd=derived(spent) if spent > 0 else ABSENT,
                at_s=snapshot.at_s,
                position=snapshot.position,
                notes=(SUM,) if last and size > last else (),
            )
        )
    return found


_FIELDS = (
    "prompt_tokens",
    "completion_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def _sums(metrics: Table) -> dict[str, float | None]:
    total = table(metrics.get("accumulated_token_usage"))
    return {name: amount(total.get(name)) for name in _FIELDS}


def _apart(rows: list[Table]) -> bool:
    return any(
        (amount(row.get("cache_read_tokens")) or 0) > (amount(row.get("prompt_tokens")) or 0)
        for row in rows
    )


def _counts(row: Table, *, apart: bool) -> Counts:
    known = {name: amount(row.get(name)) for name in _FIELDS}
    return _made({name: measured(value) for name, value in known.items()}, apart)


def _grown(grown: dict[str, float], *, apart: bool) -> Counts:
    return _made({name: derived(grown.get(name)) for name in _FIELDS}, apart)


def _made(figures: dict[str, Figure], apart: bool) -> Counts:
    prompt = figures["prompt_tokens"]
    read, written = figures["cache_read_tokens"], figures["cache_write_tokens"]
    if apart and prompt.value is not None:
        prompt = derived(prompt.value + (read.value or 0) + (written.value or 0))
    return Counts(
        prompt=prompt,
        cache_read=read,
        cache_write=written,
        output=figures["completion_tokens"],
        reasoning=figures["reasoning_tokens"],
    )


def at_unknown_zone(at_s: float | None) -> Figure:
    """A time of an event: without a zone, so that it may be hours off, though never by parts of
    an hour from its neighbours."""
    return estimated(at_s)
