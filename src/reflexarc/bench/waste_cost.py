"""What recorded requests cost: as the log says, else by published prices; never by a guess."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec

from reflexarc.accounts import USUAL_TIERS, Price, Prices
from reflexarc.traces.models import bare, owner, provider
from reflexarc.traces.requests import ABSENT, Figure, RecordedRequest, derived, estimated
from reflexarc.wire.usage import Usage

MAKERS = (("claude-", "anthropic"), ("gpt-", "openai"), ("o1", "openai"), ("o3", "openai"),
          ("o4", "openai"), ("codex-", "openai"), ("gemini-", "gemini"))  # fmt: skip
"""Whose prices a model's name stands for where a log names no provider."""

NO_MODEL = "an unnamed model"
_YEAR_2000_S = 946_684_800


class Money(msgspec.Struct, frozen=True):
    """Dollars at published prices, of `requests` that have tokens and a price: prompts read anew
    and from caches, written to caches, answers. None without any. Where a log does not tell what
    was cached, all of a prompt is read anew: at most so much."""

    requests: int
    read_anew_usd: float | None = None
    from_cache_usd: float | None = None
    to_cache_usd: float | None = None
    output_usd: float | None = None


class Costs:
    """Prices of the requests of one report. `unpriced` gathers models without a price, as
    provider/model and a service tier of its own, each with its requests; `by_maker` those priced as
    their maker would."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._known: dict[tuple[str, str, str, date | None], Price | None] = {}
        self.unpriced: dict[str, int] = {}
        self.by_maker: set[str] = set()

    def price(self, request: RecordedRequest) -> Price | None:
        """Of the day on which it was sent; today's where times are relative or unknown."""
        made_by, model = maker(request)
        day = _day(request)
        key = (made_by, model, request.service_tier, day)
        if key not in self._known:
            self._known[key] = self._prices.of(made_by, model, request.service_tier, on=day)
        return self._known[key]

    def of(self, request: RecordedRequest) -> Figure:
        """In dollars. Estimated where cached tokens are not known (all are then charged as input:
        at most so much) or where tokens are; absent without a price or without tokens."""
        if request.cost_usd.value is not None:
            return request.cost_usd
        price = self.price(request)
        if price is None:
            name = "/".join(filter(None, (request.provider, request.model))) or NO_MODEL
            if request.service_tier not in USUAL_TIERS:
                name += f" ({request.service_tier})"
            self.unpriced[name] = self.unpriced.get(name, 0) + 1
            return ABSENT
        usage = _usage(request)
        if usage is None:
            return ABSENT
        if not request.provider:
            self.by_maker.add(request.model)
        counts = request.counts
        parts = (counts.prompt, counts.output, counts.cache_read, counts.cache_write)
        is_sure = (
            _tells_cached(request)
            and request.provider
            and all(part.kind != "estimated" for part in parts)
        )
        return (derived if is_sure else estimated)(price.micro_usd(usage) / 1e6)

    def money(self, requests: Iterable[RecordedRequest]) -> Money:
        """Where the money of those goes that have tokens and a price."""
        anew = read = written = output = Decimal(0)
        number = 0
        for request in requests:
            price, usage = self.price(request), _usage(request)
            if price is None or usage is None:
                continue
            number += 1
            at = _at(price, usage.input)
            from_cache = min(usage.cache_read, usage.input)
            to_cache = min(usage.cache_write, usage.input - from_cache)
            hour = min(usage.cache_write_1h, to_cache)
            anew += at.input * (usage.input - from_cache - to_cache)
            read += at.of_read * from_cache
            written += at.of_write * (to_cache - hour) + at.of_hour_write * hour
            output += at.output * usage.output
        if not number:
            return Money(0)
        return Money(number, *(round(float(one) / 1e6, 6) for one in (anew, read, written, output)))


def _tells_cached(request: RecordedRequest) -> bool:
    return request.counts.cache_read.value is not None and not request.unknown_cache


def _usage(request: RecordedRequest) -> Usage | None:
    """Without what is not known of its cache: all of it is then input."""
    counts = request.counts
    if counts.prompt.value is None or counts.output.value is None:
        return None
    prompt, output = int(counts.prompt.value), int(counts.output.value)
    if not _tells_cached(request):
        return Usage(prompt, output)
    return Usage(
        input=prompt,
        output=output,
        cache_read=int(counts.cache_read.value or 0),
        cache_write=int(counts.cache_write.value or 0),
        cache_write_1h=int(counts.cache_write_1h.value or 0),
    )


def maker(request: RecordedRequest) -> tuple[str, str]:
    """Provider and model as prices name them."""
    model = bare(request.model)
    if request.provider:
        return provider(request.provider) or request.provider.lower(), model
    name = model.lower().removeprefix("models/")
    made_by = next((of for begins, of in MAKERS if name.startswith(begins)), "")
    return owner(request.model) or made_by, model


def anew_usd(price: Price, tokens: float, prompt_tokens: float) -> float:
    """What so many tokens of a prompt cost more for being read anew instead of from a cache."""
    at = _at(price, prompt_tokens)
    return float((at.input - at.of_read) * round(tokens)) / 1e6


def again_usd(price: Price, tokens: float) -> float:
    """What reading a prompt of so many tokens from a cache costs."""
    return float(_at(price, tokens).of_read * round(tokens)) / 1e6


def _at(price: Price, prompt_tokens: float) -> Price:
    is_long = price.long_from is not None and prompt_tokens > price.long_from
    return price.long if is_long and price.long is not None else price


def _day(request: RecordedRequest) -> date | None:
    for moment in (request.began_s, request.ended_s):
        if moment.value is not None and _YEAR_2000_S < moment.value < 4 * _YEAR_2000_S:
            return datetime.fromtimestamp(moment.value, UTC).date()
    return None
