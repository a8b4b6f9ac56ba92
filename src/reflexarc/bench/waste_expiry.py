"""What caches of two times to live would miss of recorded prompts, and what the work would cost."""

from collections.abc import Sequence

import msgspec

from reflexarc.bench.waste_cost import Costs
from reflexarc.bench.waste_prompts import TTLS_S, Known
from reflexarc.context.expiry import added
from reflexarc.traces.requests import Kind, RecordedRequest
from reflexarc.wire.usage import Usage

_HOUR_S = 3600.0


class CacheExpiry(msgspec.Struct, frozen=True):
    """A cache that holds every prefix for `ttl_s` after its last use, over all earlier prompts of a
    session: the share of all prompt tokens that it misses; `cold_share` of them no cache can have.
    `cost_usd`: what the requests would cost so, each token that is missed charged as written to the
    cache; None where one of them has no price. Estimated where tokens are, and where a log holds a
    part of the prompts: what it does not hold is taken to stay the same."""

    ttl_s: float
    requests: int
    prompt_tokens: int
    missed_tokens: int
    share: float
    cold_share: float
    cost_usd: float | None
    kind: Kind


def cache_expiry(
    requests: Sequence[RecordedRequest], found: Sequence[Known], costs: Costs
) -> list[CacheExpiry]:
    """For 5 minutes and for an hour; nothing where no prompt with its time is in a log."""
    places = [at for at, one in enumerate(found) if one.missed is not None]
    missed = [one.missed for one in found if one.missed is not None]
    if not missed:
        return []
    timed = [requests[at] for at in places]
    is_sure = all(_is_sure(request, found[at]) for request, at in zip(timed, places, strict=True))
    return [
        CacheExpiry(
            one.ttl_s,
            one.requests,
            round(one.prompt_tokens),
            round(one.missed_tokens),
            round(one.share, 6),
            round(one.cold_tokens / one.prompt_tokens, 6) if one.prompt_tokens else 0.0,
            _cost_usd(timed, [m.at[number] for m in missed], costs, one.ttl_s),
            "derived" if is_sure else "estimated",
        )
        for number, one in enumerate(added(missed, TTLS_S))
    ]


def _is_sure(request: RecordedRequest, one: Known) -> bool:
    is_counted = request.counts.prompt.kind in ("measured", "derived")
    return is_counted and one.sent is not None and not one.sent.hidden_tokens


def _cost_usd(
    requests: Sequence[RecordedRequest], missed: Sequence[float], costs: Costs, ttl_s: float
) -> float | None:
    micro_usd = 0
    for request, tokens in zip(requests, missed, strict=True):
        price = costs.price(request)
        sent, output = request.counts.prompt.value, request.counts.output.value
        if price is None or sent is None or output is None:
            return None
        anew = min(int(tokens), int(sent))
        usage = Usage(
            input=int(sent),
            output=int(output),
            cache_read=int(sent) - anew,
            cache_write=anew,
            cache_write_1h=anew if ttl_s >= _HOUR_S else 0,
        )
        micro_usd += price.micro_usd(usage)
    return micro_usd / 1e6
