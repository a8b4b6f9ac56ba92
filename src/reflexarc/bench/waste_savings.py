"""What could be saved on recorded work, way by way, each with its assumptions named.

Not a promise. A way that saves nothing says 0; one that a log says nothing about says nothing.
"""

import math
from collections.abc import Sequence

import msgspec

from reflexarc.bench.trial import Trial
from reflexarc.bench.waste_breaks import USUAL_TTL_S, BreakFound
from reflexarc.bench.waste_cost import Costs, again_usd, anew_usd
from reflexarc.bench.waste_prompts import Known, context_tokens
from reflexarc.bench.waste_time import Rates, busy_s, spans_of
from reflexarc.traces.requests import Kind, RecordedRequest

_PROVIDERS_SIDE = ("expired", "deployment")
_MEANT = ("history_truncated", "model")
_CUT = "a history is cut rarely and much at a time, or not at all"
_NO_TEXT = "where the text is not in the log, no new conversation was begun under the same session"
_PING_EVERY = 0.9  # of the time to live, so that none comes too late


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens` would not be read anew (or not at all), `seconds` not be waited, `usd` not be paid.
    None: this log does not say. `because`: what it comes from, as a sentence."""

    way: str
    tokens: int | None
    seconds: float | None
    usd: float | None
    kind: Kind
    because: str
    assumptions: tuple[str, ...] = ()


def savings(
    requests: Sequence[RecordedRequest],
    found: Sequence[Known],
    broken: Sequence[BreakFound],
    costs: Costs,
    rates: Rates,
    trial: Trial | None,
) -> list[Saving]:
    return [
        _system_1(trial),
        _stable_prefixes(requests, found, broken),
        _keep_warm(requests, found, broken, costs, rates),
        _parallel_tools(requests),
    ]


def _system_1(trial: Trial | None) -> Saving:
    way = "System 1"
    if trial is None:
        because = "not tried: it learns from sessions with their tools (docs/sessions.md)"
        return Saving(way=way, tokens=None, seconds=None, usd=None, kind="absent", because=because)
    if trial.learned is None:
        return _nothing(way, f"it would answer no step: {trial.because}")
    forecast = trial.learned.forecast
    if not forecast.answered:
        return _nothing(way, f"it would answer no step of {forecast.steps}: {trial.because}")
    return Saving(
        way=way,
        tokens=None,
        seconds=round(forecast.before.model_s - forecast.after.model_s, 3),
        usd=float(forecast.before.usd - forecast.after.usd),
        kind="estimated",
        because=f"it would answer {forecast.answered} of {forecast.steps} steps of the sessions "
        "it was judged on",
        assumptions=forecast.assumptions,
    )


def _stable_prefixes(
    requests: Sequence[RecordedRequest], found: Sequence[Known], broken: Sequence[BreakFound]
) -> Saving:
    way = "stable prefixes"
    if not any(one.sent for one in found) and not _says_cached(requests):
        because = "neither prompts nor cached tokens are in this log"
        return Saving(way=way, tokens=None, seconds=None, usd=None, kind="absent", because=because)
    rows = [one for one in broken if _is_clients(one)]
    if not rows:
        return _nothing(way, "no prompt stopped being what was sent before it by a client's doing")
    return Saving(
        way=way,
        tokens=sum(one.lost_tokens for one in rows),
        seconds=_sum([one.seconds for one in rows], 3),
        usd=_sum([one.usd for one in rows], 6),
        kind=_worst(rows),
        because=f"{len(rows)} of {len(broken)} breaks: what was sent changed before its end",
        assumptions=(
            "what breaks a prefix can stand behind it, or be left as it was",
            "a cache holds every prompt until the next of its conversation",
            *([_CUT] if any(one.cause == "history_truncated" for one in rows) else []),
            *([_NO_TEXT] if any(one.source == "blocks" for one in rows) else []),
        ),
    )


def _is_clients(one: BreakFound) -> bool:
    """By a client's doing. A history that was cut counts where the log shows that what stands
    behind the cut was sent once more; by blocks it does not."""
    if one.source == "counts" or one.cause in (*_PROVIDERS_SIDE, "model"):
        return False
    return one.cause != "history_truncated" or one.source == "text"


def _keep_warm(
    requests: Sequence[RecordedRequest],
    found: Sequence[Known],
    broken: Sequence[BreakFound],
    costs: Costs,
    rates: Rates,
) -> Saving:
    way = "keeping prefixes warm and in place"
    if _says_cached(requests):
        return _kept_by_counts(way, broken, costs, {(one.file, one.id): one for one in requests})
    timed = [one for one in found if one.missed is not None]
    if not timed:
        because = "neither cached tokens nor prompts with their times are in this log"
        return Saving(way=way, tokens=None, seconds=None, usd=None, kind="absent", because=because)
    tokens, pings, times = 0.0, 0, 0
    usd: list[float | None] = []
    seconds: list[float | None] = []
    for request, one in zip(requests, found, strict=True):
        if one.missed is None or one.before is None:
            continue
        lost = one.missed.at[0] - one.missed.cold
        gap_s = _apart_s(requests[one.before], request)
        if lost < 1 or gap_s is None or gap_s <= USUAL_TTL_S:
            continue
        price, length = costs.price(request), context_tokens(request).value or 0.0
        needed = _pings(gap_s)
        if price is not None:
            won = anew_usd(price, lost, length) - needed * again_usd(price, length)
            if won <= 0:
                continue
            usd.append(won)
        tokens, pings, times = tokens + lost, pings + needed, times + 1
        seconds.append(rates.seconds(request.model, lost).value)
    if not times:
        return _nothing(way, "no prefix expired that would have been cheaper to keep")
    return Saving(
        way=way,
        tokens=round(tokens),
        seconds=_sum(seconds, 3),
        usd=_sum(usd, 6),
        kind="estimated",
        because=f"{times} prefixes expired in a pause, if caches live 5 minutes; {pings} requests "
        "in between would have kept them",
        assumptions=_WARM,
    )


_WARM = (
    "with hindsight: only those prefixes are kept whose next use is worth it",
    f"a prefix is read again every {_PING_EVERY * USUAL_TTL_S:g} s, at the price of cached tokens",
)


def _kept_by_counts(
    way: str,
    broken: Sequence[BreakFound],
    costs: Costs,
    by_id: dict[tuple[str, str], RecordedRequest],
) -> Saving:
    rows = [one for one in broken if one.source == "counts" and one.cause not in _MEANT]
    if not rows:
        return _nothing(way, "caches gave what had been sent before, within a block")
    usd: list[float | None] = []
    kept: list[BreakFound] = []
    for one in rows:
        won = one.usd
        price = costs.price(by_id[one.file, one.request])
        if one.cause == "expired" and one.gap_s is not None and won is not None and price:
            won -= _pings(one.gap_s) * again_usd(price, one.prompt_tokens)
            if won <= 0:
                continue
        kept.append(one)
        usd.append(won)
    if not kept:
        return _nothing(way, "keeping what expired would have cost more than reading it anew")
    expired = sum(one.cause == "expired" for one in kept)
    return Saving(
        way=way,
        tokens=sum(one.lost_tokens for one in kept),
        seconds=_sum([one.seconds for one in kept], 3),
        usd=_sum(usd, 6),
        kind="estimated",
        because=f"{len(kept)} times less was cached than had been sent: {expired} after a long "
        f"pause, {len(kept) - expired} without one",
        assumptions=(*_WARM, "what was lost without a pause was on another machine, or dropped"),
    )


def _parallel_tools(requests: Sequence[RecordedRequest]) -> Saving:
    way = "tools side by side"
    several = [one.tools for one in requests if len(one.tools) > 1]
    if not any(one.tools for one in requests):
        because = "no calls of tools are in this log"
        return Saving(way=way, tokens=None, seconds=None, usd=None, kind="absent", because=because)
    timed = [spans for tools in several if (spans := spans_of(tools)) is not None]
    if several and not timed:
        because = f"{len(several)} answers called several tools; their times are not in this log"
        return Saving(way=way, tokens=None, seconds=None, usd=None, kind="absent", because=because)
    won = [busy_s(spans) - max(ended - began for began, ended in spans) for spans in timed]
    seconds = sum(one for one in won if one > 0)
    if seconds <= 0:
        return _nothing(way, "no answer called several tools that ran one after the other")
    return Saving(
        way=way,
        tokens=0,
        seconds=round(seconds, 3),
        usd=0.0,
        kind="estimated",
        because=f"{sum(one > 0 for one in won)} answers called several tools, which ran one after "
        "the other",
        assumptions=("tools that one answer calls do not wait for each other",),
    )


def _says_cached(requests: Sequence[RecordedRequest]) -> bool:
    return any(
        one.counts.cache_read.value is not None and not one.unknown_cache for one in requests
    )


def _apart_s(before: RecordedRequest, request: RecordedRequest) -> float | None:
    began, earlier = request.began_s.value, before.began_s.value
    return None if began is None or earlier is None else began - earlier


def _pings(gap_s: float) -> int:
    return max(0, math.ceil(gap_s / (_PING_EVERY * USUAL_TTL_S)) - 1)


def _sum(values: Sequence[float | None], digits: int) -> float | None:
    """Of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return round(sum(known), digits) if known else None


def _worst(rows: Sequence[BreakFound]) -> Kind:
    return "estimated" if any(one.kind == "estimated" for one in rows) else "derived"


def _nothing(way: str, because: str) -> Saving:
    return Saving(way=way, tokens=0, seconds=0.0, usd=0.0, kind="derived", because=because)
