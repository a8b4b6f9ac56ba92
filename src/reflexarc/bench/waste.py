"""What recorded work wastes: figures, breaks, what could be saved, and verdicts; for any log.

Needs no network and keeps nothing. Everything that a log does not hold is None, never 0.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from reflexarc.accounts import Prices
from reflexarc.bench import waste_verdicts as words
from reflexarc.bench.trial import Trial
from reflexarc.bench.waste_breaks import MAX_BREAKS, BreakFound, breaks
from reflexarc.bench.waste_cost import NO_MODEL, Costs, Money
from reflexarc.bench.waste_expiry import CacheExpiry, cache_expiry
from reflexarc.bench.waste_figures import Figures, figures, hit_rate
from reflexarc.bench.waste_prompts import Known, Texts, context_tokens, held_tokens, known, texts
from reflexarc.bench.waste_rows import FileRow, Row, Rows
from reflexarc.bench.waste_savings import Saving, savings
from reflexarc.bench.waste_time import Rates, Step, Times, first_token_s, spent, steps, times
from reflexarc.context.reuse import Band, by_context, concentration
from reflexarc.traces.logs import Logs
from reflexarc.traces.requests import RecordedRequest

OnProgress = Callable[[str, float], None]


class Breaks(msgspec.Struct, frozen=True):
    """All breaks together. `usd` and `seconds`: of those of which they are known."""

    count: int
    lost_tokens: int
    usd: float | None
    seconds: float | None


class Concentrated(msgspec.Struct, frozen=True):
    """Of all turns, `share_of_turns` reuse less than half of their prompt; they cause
    `share_of_recomputed` of the tokens that are read anew."""

    turns: int
    below_half: int
    share_of_turns: float
    recomputed_tokens: int
    share_of_recomputed: float


class Overall(msgspec.Struct, frozen=True):
    """Medians over all turns: the share of the prompt that the previous turn's, and any earlier
    one, began with. None without prompts."""

    turns: int
    previous: float | None
    earlier: float | None


class Again(msgspec.Struct, frozen=True):
    """Requests whose prompt had been sent before as it was, and the tokens of those prompts."""

    requests: int
    tokens: int


class Waste(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a log. Lists that may be long are bounded, the costliest first:
    `break_totals` and `totals` count all."""

    totals: Figures
    errors: int
    time: Times
    money: Money
    hit_rate: float | None
    files: list[FileRow]
    models: list[Row]
    sessions: list[Row]
    steps: list[Step]
    texts: Texts
    redundancy: Overall
    redundancy_by_context: list[Band]
    redundancy_any_earlier_by_context: list[Band]
    concentration: Concentrated
    again: Again
    breaks: list[BreakFound]
    break_totals: Breaks
    cache_expiry: list[CacheExpiry]
    savings: list[Saving]
    unpriced: dict[str, int]
    priced_as_maker: list[str]
    verdicts: list[str] = []


def waste(
    logs: Logs, prices: Prices, *, trial: Trial | None = None, progress: OnProgress | None = None
) -> Waste:
    """The analysis of what was read; requests that failed count as errors alone."""

    def tell(share: float) -> None:
        if progress is not None:
            progress("comparing prompts", share)

    requests = [one for one in logs.requests if not one.failed]
    found = known(requests, tell)
    costs = Costs(prices)
    cost = [costs.of(one) for one in requests]
    time_of = spent(requests)
    rates = Rates(_first_tokens(requests, found))
    broken = breaks(requests, found, costs, rates)
    rows = Rows(requests, cost, time_of, found)
    lengths = [context_tokens(one).value or 0.0 for one in requests]
    held = [held_tokens(*pair) for pair in zip(requests, found, strict=True)]
    previous = [one.reused and one.reused.previous for one in found]
    earlier = [one.reused and one.reused.earlier for one in found]
    made = Waste(
        totals=figures(zip(requests, cost, strict=True)),
        errors=sum(report.errors for report in logs.files),
        time=times(time_of),
        money=costs.money(requests),
        hit_rate=hit_rate(figures(zip(requests, cost, strict=True))),
        files=rows.files(logs.files),
        models=rows.by(lambda one: "/".join(filter(None, (one.provider, one.model))) or NO_MODEL),
        sessions=rows.by(lambda one: one.session),
        steps=steps(requests, cost, time_of),
        texts=texts(requests),
        redundancy=_overall(previous, earlier),
        redundancy_by_context=by_context(lengths, previous),
        redundancy_any_earlier_by_context=by_context(lengths, earlier),
        concentration=_concentrated(held, previous),
        again=_again(held, found),
        breaks=broken[:MAX_BREAKS],
        break_totals=_break_totals(broken),
        cache_expiry=cache_expiry(requests, found, costs),
        savings=savings(requests, found, broken, costs, rates, trial),
        unpriced=dict(sorted(costs.unpriced.items())),
        priced_as_maker=sorted(costs.by_maker),
    )
    return msgspec.structs.replace(made, verdicts=_verdicts(made, broken))


def _verdicts(made: Waste, broken: Sequence[BreakFound]) -> list[str]:
    """The short answer first, what the sums do not hold last."""
    totals, overall, few = made.totals, made.redundancy, made.concentration
    is_known = overall.turns > 0 or totals.cache_read is not None
    return [
        *words.of_totals(totals, made.errors),
        *words.of_caches(totals, made.hit_rate),
        *words.of_reuse(overall.turns, overall.previous, overall.earlier, made.sessions),
        *words.of_concentration(few.below_half, few.turns, few.share_of_recomputed),
        *words.of_again(made.again),
        *words.of_breaks(broken, made.break_totals.lost_tokens, made.break_totals.usd, is_known),
        *words.of_expiry(made.cache_expiry),
        *words.of_savings(made.savings),
        *words.of_limits(made.files, made.unpriced, made.priced_as_maker),
    ]


def _overall(previous: Sequence[float | None], earlier: Sequence[float | None]) -> Overall:
    shares = [one for one in previous if one is not None]
    pairs = zip(previous, earlier, strict=True)
    any_earlier = [one or 0.0 for before, one in pairs if before is not None]
    return Overall(
        len(shares),
        round(median(shares), 6) if shares else None,
        round(median(any_earlier), 6) if shares else None,
    )


def _first_tokens(
    requests: Sequence[RecordedRequest], found: Sequence[Known]
) -> dict[str, list[tuple[float, float]]]:
    """By model: tokens read anew and seconds to the first token, where both are known."""
    seen: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for request, one in zip(requests, found, strict=True):
        first, sent = first_token_s(request).value, request.counts.prompt.value
        if first is None or sent is None:
            continue
        cached = request.counts.cache_read.value
        if cached is None or request.unknown_cache:
            if one.followed is None:
                continue
            hidden = one.sent.hidden_tokens if one.sent is not None else 0.0
            cached = one.followed.shared_tokens + hidden
        seen[request.model].append((max(0.0, sent - cached), first))
    return seen


def _concentrated(lengths: Sequence[float], shares: Sequence[float | None]) -> Concentrated:
    one = concentration(lengths, shares)
    return Concentrated(
        one.turns,
        one.little,
        round(one.share_of_turns, 6),
        round(one.tokens_anew),
        round(one.share_of_tokens, 6),
    )


def _again(lengths: Sequence[float], found: Sequence[Known]) -> Again:
    tokens = [
        length
        for length, one in zip(lengths, found, strict=True)
        if one.reused is not None and one.reused.again
    ]
    return Again(len(tokens), round(sum(tokens)))


def _break_totals(broken: Sequence[BreakFound]) -> Breaks:
    usd = [one.usd for one in broken if one.usd is not None]
    seconds = [one.seconds for one in broken if one.seconds is not None]
    return Breaks(
        len(broken),
        sum(one.lost_tokens for one in broken),
        round(sum(usd), 6) if usd or not broken else None,
        round(sum(seconds), 3) if seconds or not broken else None,
    )
