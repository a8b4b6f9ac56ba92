"""Prefix breaks in recorded work, found in texts, in blocks, or in counts of cached tokens alone.

What the text shows is named. Where there are only counts a break can be dated, and its cause only
suggested: the provider's side is always possible.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from reflexarc.bench.waste_cost import Costs, anew_usd
from reflexarc.bench.waste_prompts import Known, context_tokens, held_tokens
from reflexarc.bench.waste_time import Rates
from reflexarc.context.breaks import Break, compare
from reflexarc.context.lineage import SHRUNK
from reflexarc.context.prefixes import same_end, shared
from reflexarc.context.reuse import share_of
from reflexarc.steps.prompt import Prompt
from reflexarc.traces.requests import Kind, RecordedRequest

Source = Literal["text", "blocks", "counts"]

MAX_BREAKS = 200
"""Breaks listed one by one: the costliest."""
BLOCK_TOKENS = 128
"""Counts of cached tokens move in steps of up to so many."""
MIN_CACHED_TOKENS = 1024
"""Providers cache no shorter prompts."""
USUAL_TTL_S, LONG_TTL_S = 300.0, 3600.0


class BreakFound(msgspec.Struct, frozen=True, kw_only=True):
    """One break: `lost_tokens` had been sent before and were read anew, at `usd` more than from a
    cache and in `seconds` more (None where prices or times do not tell). `why` is a sentence.
    `gap_s` is the time since the prompt it goes on from ended."""

    session: str
    agent: str
    request: str
    file: str
    at_s: float | None
    model: str
    cause: str
    why: str
    source: Source
    lost_tokens: int
    prompt_tokens: int
    usd: float | None
    seconds: float | None
    gap_s: float | None
    path: str
    kind: Kind


class _Lost(msgspec.Struct, frozen=True):
    tokens: float
    cause: str
    why: str
    source: Source
    kind: Kind
    path: str = ""


def breaks(
    requests: Sequence[RecordedRequest], found: Sequence[Known], costs: Costs, rates: Rates
) -> list[BreakFound]:
    """All of them, the costliest first: by money, then by tokens."""
    last: dict[tuple[str, str], int] = {}
    by_model: dict[tuple[str, str, str], int] = {}
    made: list[BreakFound] = []
    for at, request in enumerate(requests):
        thread = (request.session, request.agent)
        before = last.get(thread)
        last[thread] = at
        own = by_model.get((*thread, request.model))
        by_model[*thread, request.model] = at
        one = found[at]
        lost = None
        if one.followed is not None and one.followed.how == "broken" and one.before is not None:
            before = one.before
            lost = _in_prompts(requests[before], request, found[before], one)
        elif one.followed is not None:
            before = one.before  # none where a conversation of its own begins
        if lost is None and before is not None:
            lost = _in_counts(requests[before], request) or _by_model(
                requests[before], request, one, None if own is None else found[own]
            )
        if lost is not None and before is not None and round(lost.tokens) > 0:
            made.append(_row(requests[before], request, lost, costs, rates))
    made.sort(key=lambda one: (-(one.usd or 0.0), -one.lost_tokens, one.session, one.request))
    return made


def _in_prompts(
    before: RecordedRequest, request: RecordedRequest, of_before: Known, one: Known
) -> _Lost | None:
    assert one.followed is not None
    was, now = before.prompt, request.prompt
    if isinstance(was, Prompt) and isinstance(now, Prompt):
        named = compare(was, now)
        if named is None:
            return None
        whole = max(1, named.before_bytes)
        again_bytes = max(named.again_bytes, same_end(was, now))
        tokens = again_bytes / whole * held_tokens(before, of_before)
        is_whole = was.complete and now.complete
        is_counted = context_tokens(before).kind in ("measured", "derived")
        lost = _Lost(
            tokens, named.cause, _why(named, is_whole), "text",
            "derived" if is_whole and is_counted else "estimated", named.path,
        )  # fmt: skip
    else:
        lost = _Lost(
            one.followed.lost_tokens, *_by_blocks(before, request, one), "blocks", "estimated"
        )
    cached = request.counts.cache_read.value
    if cached is None or request.unknown_cache:
        return lost
    # What was read from a cache all the same was not lost.
    read_anew = max(0.0, (context_tokens(request).value or 0.0) - cached)
    return msgspec.structs.replace(lost, tokens=min(lost.tokens, read_anew))


def _by_blocks(before: RecordedRequest, request: RecordedRequest, one: Known) -> tuple[str, str]:
    assert one.followed is not None
    place = f"from token {round(one.followed.shared_tokens):,} on the prompt is another"
    if before.model != request.model:
        return "model", f"another model, {request.model} after {before.model}"
    tokens, sent = context_tokens(request).value or 0.0, context_tokens(before).value or 0.0
    if tokens < SHRUNK * sent:
        return (
            "history_truncated",
            f"{place}, and shorter: {round(tokens):,} after {round(sent):,} tokens",
        )
    return "unknown", f"{place}; its text is not in this log"


def _why(named: Break, is_whole: bool) -> str:
    where = named.path or named.kind
    text = f"{where}: {named.was!r} became {named.now!r}" if named.was or named.now else where
    if named.names:
        text += f" ({', '.join(named.names)})"
    return text if is_whole else f"{text}; in the part of the prompt that is in this log"


def _by_model(
    before: RecordedRequest, request: RecordedRequest, one: Known, own: Known | None
) -> _Lost | None:
    """What another model had read before this one did not, but for what it read last itself."""
    if before.model == request.model or one.followed is None or one.sent is None:
        return None
    if request.counts.cache_read.value is not None and not request.unknown_cache:
        return None  # counts told
    tokens = one.followed.shared_tokens + one.sent.hidden_tokens
    if own is not None and own.sent is not None:
        held = share_of(one.sent, shared(own.sent.prompt, one.sent.prompt)) * one.sent.tokens
        tokens -= held + one.sent.hidden_tokens
    if tokens < MIN_CACHED_TOKENS:
        return None
    source = "text" if isinstance(request.prompt, Prompt) else "blocks"
    why = f"another model, {request.model} after {before.model}"
    return _Lost(tokens, "model", why, source, "estimated")


def _in_counts(before: RecordedRequest, request: RecordedRequest) -> _Lost | None:
    """Less was read from the cache than was in it, by more than a block. Where tokens written to it
    are not told, only what had been read from it before was surely in it."""
    if request.starts or request.unknown_cache or before.unknown_cache:
        return None
    was, now = before.counts, request.counts
    if was.context.value is not None or now.context.value is not None:
        return None  # sums over several passes do not say what one of them had cached
    sent, length, cached = was.prompt.value, now.prompt.value, now.cache_read.value
    if sent is None or length is None or cached is None or was.cache_read.value is None:
        return None
    held = min(sent, was.cache_read.value + (was.cache_write.value or 0))
    held = min(held, length)
    if held < MIN_CACHED_TOKENS or cached >= held - BLOCK_TOKENS:
        return None
    cause, why = _suggested(before, request)
    return _Lost(min(sent, length) - cached, cause, why, "counts", "derived")


def _suggested(before: RecordedRequest, request: RecordedRequest) -> tuple[str, str]:
    if before.model != request.model:
        return "model", f"another model, {request.model} after {before.model}"
    gap_s = _gap_s(before, request)
    # What only read from its cache asked for as long a life as what writes there next.
    asks = before if before.counts.cache_write.value else request
    is_long = bool(asks.counts.cache_write_1h.value)
    ttl_s = LONG_TTL_S if is_long else USUAL_TTL_S
    if gap_s is not None and gap_s > ttl_s:
        lives = "an hour, as this log asks for" if is_long else "usually 5 minutes"
        return "expired", f"{_minutes(gap_s)} after the last use; caches live {lives}"
    why = "the provider's side is possible (another machine, no room in its cache)"
    if not (isinstance(request.prompt, Prompt) and request.prompt.complete):
        why += ", or a part of the prompt that is not in this log"
    return "unknown", why


def _gap_s(before: RecordedRequest, request: RecordedRequest) -> float | None:
    began = request.began_s.value if request.began_s.value is not None else request.ended_s.value
    ended = before.ended_s.value if before.ended_s.value is not None else before.began_s.value
    return None if began is None or ended is None else max(0.0, began - ended)


def _row(
    before: RecordedRequest, request: RecordedRequest, lost: _Lost, costs: Costs, rates: Rates
) -> BreakFound:
    price = costs.price(request)
    length = context_tokens(request).value or 0.0
    seconds = rates.seconds(request.model, lost.tokens).value
    gap_s = _gap_s(before, request)
    return BreakFound(
        session=request.session,
        agent=request.agent,
        request=request.id,
        file=request.file,
        at_s=request.began_s.value if request.began_s.value is not None else request.ended_s.value,
        model=request.model,
        cause=lost.cause,
        why=lost.why,
        source=lost.source,
        lost_tokens=round(lost.tokens),
        prompt_tokens=round(length),
        usd=None if price is None else anew_usd(price, lost.tokens, length),
        seconds=None if seconds is None else round(seconds, 3),
        gap_s=None if gap_s is None else round(gap_s, 3),
        path=lost.path,
        kind=lost.kind,
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
