"""The part of the configuration that says which System 2 there is: providers, models, tiers."""

from decimal import Decimal
from typing import Literal

import msgspec

from reflexarc.upstream import Timeouts
from reflexarc.wire import price

Tier = Literal["interactive", "standard", "batch"]
TIERS: tuple[Tier, ...] = ("interactive", "standard", "batch")
MODELS = "models"
"""As a route's upstream: whatever the request's model names in `[model.NAME]`."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """System 2's, in dollars a million tokens. Without `cached`, cached input costs as the rest;
    without `cache_write` what is written to a cache does too, and without `cache_write_1h` what is
    kept there for an hour costs as what is kept for five minutes."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None

    def of_tokens(self) -> price.Price:
        """The same in exact decimals, as they stand in the file: 0.1 is a tenth."""

        def exact(value: float) -> Decimal:
            return Decimal(repr(value))

        def written(value: float | None) -> Decimal | None:
            return None if value is None else exact(value)

        return price.Price(
            exact(self.input), exact(self.output), written(self.cached), written(self.cache_write),
            written(self.cache_write_1h),
        )  # fmt: skip


class ProviderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A service with a URL and a key. What is left out is as usual for its `kind`.

    Its key is the value of the variable `key_env`, or what the file `key_file` holds; with neither
    the client's own key passes, unless it is a virtual one. `private`: its URL may lead into a
    private network; `local`: it runs on machines of one's own, so that what must not leave may go
    there. `max_parallel`: requests at work there at once. `charged_as`: its name in the prices.
    `urls` in place of `url`: replicas that serve the same; limits hold for each. `metrics`: it is
    asked for its own load; `kv_events`: where each replica tells of its prefix cache, in order.
    """

    kind: str = "compatible"
    url: str | None = None
    urls: tuple[str, ...] = ()
    dialect: str | tuple[str, ...] | None = None
    key_env: str | None = None
    key_file: str | None = None
    private: bool | None = None
    local: bool | None = None
    max_parallel: int | None = None
    call_ids: Literal["usual", "mistral"] = "usual"
    timeouts: Timeouts | None = None
    charged_as: str | None = None
    warm_connections: int = 0
    metrics: bool = False
    kv_events: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str | None, ...]:
        """Where it is said to be: each replica, or None where its kind says it."""
        return self.urls or (self.url,)


class Served(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A deployment: `model` as its provider calls it, asked for in `service_tier`. Without `price`
    it is what the prices list."""

    provider: str
    model: str
    service_tier: str = ""
    price: Price | None = None
    max_parallel: int | None = None


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name that clients ask for: its deployments by tier, in order of preference. A tier
    without any takes those of the next one in the order standard, interactive, batch."""

    interactive: tuple[Served, ...] = ()
    standard: tuple[Served, ...] = ()
    batch: tuple[Served, ...] = ()

    def of(self, tier: Tier) -> tuple[Served, ...]:
        found: tuple[Served, ...] = getattr(self, tier)
        return found or self.standard or self.interactive or self.batch


class TierConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Targets: p95 of the time to the first token and of the time a token takes, in ms. `hedge`: a
    second deployment is asked where the first is silent past its own p95. `first_token_s` bounds
    an attempt's wait for content, `attempts` their number for one request."""

    first_token_ms: float = 800.0
    token_ms: float = 30.0
    hedge: bool = False
    first_token_s: float = 60.0
    attempts: int = 3


class TiersConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    interactive: TierConfig = TierConfig()
    standard: TierConfig = TierConfig(first_token_ms=5_000.0, token_ms=100.0, first_token_s=120.0)
    batch: TierConfig = TierConfig(
        first_token_ms=600_000.0, token_ms=10_000.0, first_token_s=600.0, attempts=5
    )


class AccountsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`keys`: whether a virtual key (`reflexarc keys`) must come with each request. `prices`: a
    file of prices read over the shipped ones. `max_output_tokens`: what is reserved of a budget
    for the answer of a request that bounds it nowhere."""

    keys: Literal["off", "optional", "required"] = "off"
    prices: str | None = None
    max_output_tokens: int = 4096


class QueueConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of batch requests that nobody waits for (`Prefer: respond-async`): so many, and so many bytes
    of them and their answers, which are kept for `retention_hours`. `parallel` are at work at
    once."""

    max_entries: int = 10_000
    max_bytes: int = 1024**3
    retention_hours: float = 168.0
    parallel: int = 4
