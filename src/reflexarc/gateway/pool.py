"""Which deployments there are, of a configuration, and which of them serve a request's model."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from reflexarc.accounts.prices import Price, Prices
from reflexarc.gateway.config import GatewayConfig, Route
from reflexarc.gateway.config_pool import TIERS, ProviderConfig, Served, Tier
from reflexarc.gateway.config_pool_checks import nearest
from reflexarc.gateway.config_urls import is_private, replica_of
from reflexarc.steps.errors import ConfigError, InputError
from reflexarc.upstream.deployments import Deployment, Secret
from reflexarc.upstream.providers import KINDS
from reflexarc.wire.models import Model

FREE = Price(input=Decimal(0), output=Decimal(0))
"""What runs on one's own machines and has no price."""


class NoModelError(InputError):
    """The model asked for is none that this route offers."""

    code = "model_not_found"
    status = 404


class LocalOnlyError(InputError):
    """What must not leave has nowhere to go."""

    code = "no_local_deployment"
    status = 403


class Pool:
    """Deployments of a configuration. Raises `ConfigError` for a key that is not there; with
    `environment` None keys are not looked for."""

    def __init__(
        self, config: GatewayConfig, environment: Mapping[str, str] | None, prices: Prices
    ) -> None:
        self._config = config
        self._prices = prices
        secrets = {
            name: _secret(name, provider, environment) for name, provider in config.provider.items()
        }
        self._served: dict[tuple[str, Tier], tuple[Deployment, ...]] = {}
        self._own_prices: dict[str, Price] = {}
        by_name: dict[str, Deployment] = {}
        for name, model in config.model.items():
            for tier in TIERS:
                found: list[Deployment] = []
                for served in model.of(tier):
                    provider = config.provider[served.provider]
                    for made in _deployments(served, provider, secrets[served.provider]):
                        found.append(by_name.setdefault(made.name, made))
                        if served.price is not None:
                            self._own_prices[made.kin] = served.price.of_tokens()
                self._served[name, tier] = tuple(found)
        self.deployments = tuple(by_name.values())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Variables that hold keys."""
        return tuple(one.key_env for one in self._config.provider.values() if one.key_env)

    def model_of(self, route: Route, asked: str) -> str:
        """The configured model that a name means on a route. Raises `NoModelError`."""
        named = self._config.alias.get(asked, asked)
        allowed = route.models
        if named in self._config.model and (not allowed or asked in allowed or named in allowed):
            return named
        known = [one.id for one in self.models(route)]
        shown = asked if len(asked) <= 80 else f"{asked[:77]}..."
        raise NoModelError(f"there is no model {shown!r} here; {nearest(asked, known)}")

    def served(self, model: str, tier: Tier, *, local_only: bool) -> tuple[Deployment, ...]:
        """The deployments of a model in a tier, in order of preference; of any of its tiers those
        that are local, where it must not leave. Raises `LocalOnlyError`."""
        if not local_only:
            return self._served[model, tier]
        ordered: list[Tier] = [tier, *(other for other in TIERS if other != tier)]
        found = {
            one.name: one for each in ordered for one in self._served[model, each] if one.local
        }
        if not found:
            raise LocalOnlyError(
                f"this request must not leave, and no deployment of {model!r} is local: give it "
                "one whose provider has local = true"
            )
        return tuple(found.values())

    def price(self, deployment: Deployment, service_tier: str = "") -> Price | None:
        """None where nobody knows it. What is local and nobody priced costs nothing. A deployment
        without a service tier takes what `service_tier` costs, if that is listed."""
        own = self._own_prices.get(deployment.kin)
        if own is not None:
            return own
        of = (deployment.charged_as, deployment.model)
        listed = self._prices.of(*of, deployment.service_tier or service_tier)
        if listed is None and service_tier:
            listed = self._prices.of(*of, deployment.service_tier)
        if listed is None and deployment.local:
            return FREE
        return listed

    def listed(self, base: str, model: str) -> Price | None:
        """What a model is listed to cost where a route with one upstream goes: at a provider that
        is always there."""
        host = urlsplit(base).hostname
        for kind in KINDS.values():
            if kind.url and not kind.local and urlsplit(kind.url).hostname == host:
                return self._prices.of(kind.charged_as, model)
        return None

    def models(self, route: Route) -> Iterator[Model]:
        """What clients of a route may ask for."""
        for name in (*self._config.model, *self._config.alias):
            if not route.models or name in route.models:
                yield Model(name)


def _deployments(
    served: Served, provider: ProviderConfig, secret: Secret | None
) -> list[Deployment]:
    """One for each replica."""
    events = provider.kv_events or ("",) * len(provider.places)
    return [
        _deployment(served, provider, place, told, secret)
        for place, told in zip(provider.places, events, strict=True)
    ]


def _deployment(
    served: Served,
    provider: ProviderConfig,
    place: str | None,
    events: str,
    secret: Secret | None,
) -> Deployment:
    kind = KINDS[provider.kind]
    base = place or kind.url or ""
    given = provider.dialect
    local = kind.local if provider.local is None else provider.local
    dialects = kind.dialects if given is None else (given,) if isinstance(given, str) else given
    private = provider.private if provider.private is not None else local
    usual = place is None and bool(kind.url) and bool(is_private(base))
    return Deployment(
        provider=served.provider,
        kind=provider.kind,
        base=base,
        dialects=dialects,
        model=served.model,
        service_tier=served.service_tier,
        key_header=kind.key_header,
        secret=secret,
        passes_key=not (provider.key_env or provider.key_file or local),
        local=local,
        private=private or usual or local,
        max_parallel=served.max_parallel or provider.max_parallel,
        call_ids=provider.call_ids,
        charged_as=provider.charged_as or kind.charged_as,
        timeouts=provider.timeouts,
        replica=replica_of(base) if len(provider.places) > 1 else "",
        metrics=provider.metrics,
        kv_events=events,
    )


def _secret(
    name: str, provider: ProviderConfig, environment: Mapping[str, str] | None
) -> Secret | None:
    if environment is None:
        return None
    if provider.key_file is not None:
        return Secret.of_file(Path(provider.key_file).expanduser(), f"provider.{name}")
    if provider.key_env is None:
        return None
    value = environment.get(provider.key_env)
    if not value:
        raise ConfigError(
            f"provider.{name}: the environment variable {provider.key_env} is not set"
        )
    return Secret(value)
