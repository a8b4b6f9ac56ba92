"""What recorded requests cost: as the log says, else by published prices; never by a guess."""

from datetime import UTC, date, datetime

from reflexarc.accounts import Price, Prices
from reflexarc.traces.models import bare, owner, provider
from reflexarc.traces.requests import ABSENT, Figure, RecordedRequest, derived, estimated
from reflexarc.wire.usage import Usage

MAKERS = (("claude-", "anthropic"), ("gpt-", "openai"), ("o1", "openai"), ("o3", "openai"),
          ("o4", "openai"), ("codex-", "openai"), ("gemini-", "gemini"))  # fmt: skip
"""Whose prices a model's name stands for where a log names no provider."""

NO_MODEL = "an unnamed model"
_YEAR_2000_S = 946_684_800


class Costs:
    """Prices of the requests of one report. `unpriced` gathers models without a price, as
    provider/model, each with its requests; `by_maker` those priced as their maker would."""

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
            self.unpriced[name] = self.unpriced.get(name, 0) + 1
            return ABSENT
        counts = request.counts
        if counts.prompt.value is None or counts.output.value is None:
            return ABSENT
        is_told = counts.cache_read.value is not None and not request.unknown_cache
        parts = (counts.prompt, counts.output, counts.cache_read, counts.cache_write)
        read = counts.cache_read.value or 0 if is_told else 0
        written = counts.cache_write.value or 0 if is_told else 0
        usd = price.micro_usd(
            Usage(
                input=int(counts.prompt.value),
                output=int(counts.output.value),
                cache_read=int(read),
                cache_write=int(written),
                cache_write_1h=int(counts.cache_write_1h.value or 0) if is_told else 0,
            )
        )
        if not request.provider:
            self.by_maker.add(request.model)
        is_sure = is_told and request.provider and all(part.kind != "estimated" for part in parts)
        return (derived if is_sure else estimated)(usd / 1e6)


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
