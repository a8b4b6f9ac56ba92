"""Whether providers, models, aliases and tiers of a configuration fit together."""

import difflib
import re
from collections.abc import Callable, Iterable

from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.config_pool import TIERS, ProviderConfig, Served
from reflexarc.gateway.config_ranges import check_ranges
from reflexarc.gateway.config_urls import check_url, is_private, replica_of
from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.providers import KINDS
from reflexarc.wire.dialects import NAMES

MAX_REPLICAS = 64
"""Of one provider."""
TELLS_LOAD = ("vllm", "sglang", "llamacpp", "compatible")
"""Kinds with metrics that are known; behind a compatible one it may be any of them."""
TELLS_EVENTS = ("vllm", "compatible")
_ENDPOINT = re.compile(r"tcp://(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


def check_pool(config: GatewayConfig, at: Callable[..., str]) -> None:
    """Raises `ConfigError`. `at` gives where a key stands, by its path."""
    for name, provider in config.provider.items():
        _check_provider(name, provider, at)
    for name, model in config.model.items():
        if not any(getattr(model, tier) for tier in TIERS):
            raise ConfigError(
                f"{at('model', name)}: model.{name} has no deployment: give standard = "
                '[{ provider = "...", model = "..." }]'
            )
        for tier in TIERS:
            here = f"{at('model', name, tier)}: model.{name}.{tier}"
            _check_served(config, here, getattr(model, tier))
        passing = sorted(
            {
                served.provider
                for tier in TIERS
                for served in getattr(model, tier)
                if _takes_clients_key(config.provider[served.provider])
            }
        )
        if len(passing) > 1:
            raise ConfigError(
                f"{at('model', name)}: model.{name}: {' and '.join(passing)} would both be sent "
                "the client's own key: give one of them key_env or key_file"
            )
    for name, target in config.alias.items():
        if name in config.model:
            raise ConfigError(f"{at('alias', name)}: alias {name!r} is a model's own name")
        if target not in config.model:
            hint = nearest(target, config.model)
            raise ConfigError(f"{at('alias', name)}: there is no model {target!r}; {hint}")
    names = [*config.model, *config.alias]
    for index, route in enumerate(config.route):
        if not route.pooled:
            continue
        if not config.model:
            raise ConfigError(
                f'{at("route", index, "upstream")}: upstream = "models" needs a [model.NAME]'
            )
        for name in route.models:
            if name not in names:
                hint = nearest(name, names)
                raise ConfigError(
                    f"{at('route', index, 'models')}: there is no model {name!r}; {hint}"
                )


def check_dialects(dialects: tuple[str, ...], here: str) -> None:
    """Raises `ConfigError` where one is not known, or given twice."""
    known = ", ".join(NAMES)
    if not dialects or len(set(dialects)) < len(dialects):
        raise ConfigError(f"{here}: dialect names what the upstream speaks, each once: {known}")
    for name in dialects:
        if name not in NAMES:
            raise ConfigError(f"{here}: there is no dialect {name!r}; {nearest(name, NAMES)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(names)}" if names else "none is configured"


def _check_provider(name: str, provider: ProviderConfig, at: Callable[..., str]) -> None:
    here = f"{at('provider', name)}: provider.{name}"
    kind = KINDS.get(provider.kind)
    if kind is None:
        said = at("provider", name, "kind")
        raise ConfigError(
            f"{said}: provider.{name}: there is no kind {provider.kind!r}; "
            f"{nearest(provider.kind, KINDS)}"
        )
    if provider.kind == "embedded":
        if provider.key_env or provider.key_file:
            raise ConfigError(f"{here}: the embedded engine takes no key")
        if provider.urls:
            raise ConfigError(f"{here}: the embedded engine is one: it has no urls")
    elif not provider.urls and provider.url is None and kind.url is None:
        raise ConfigError(f"{here}: url is needed: a {provider.kind} provider has no usual one")
    if provider.urls and provider.url is not None:
        raise ConfigError(f"{here}: url or urls, not both")
    _check_places(name, provider, at)
    _check_kv_events(name, provider, at)
    if provider.metrics and provider.kind not in TELLS_LOAD:
        raise ConfigError(
            f"{at('provider', name, 'metrics')}: provider.{name}: {provider.kind} tells no load: "
            f"metrics is for {', '.join(TELLS_LOAD)}"
        )
    if provider.key_env and provider.key_file:
        raise ConfigError(f"{here}: key_env or key_file, not both")
    if provider.dialect is not None:
        given = provider.dialect
        check_dialects((given,) if isinstance(given, str) else given, here)

    def keyed(key: str) -> str:
        return f"{at('provider', name, key)}: provider.{name}"

    check_ranges(provider, keyed, "")
    if provider.timeouts is not None:
        check_ranges(provider.timeouts, lambda _: keyed("timeouts"), "timeouts.")


def _check_kv_events(name: str, provider: ProviderConfig, at: Callable[..., str]) -> None:
    if not provider.kv_events:
        return
    here = f"{at('provider', name, 'kv_events')}: provider.{name}"
    if provider.kind not in TELLS_EVENTS:
        raise ConfigError(f"{here}: kv_events is for {' and '.join(TELLS_EVENTS)}")
    if len(provider.kv_events) != len(provider.places):
        raise ConfigError(f"{here}: kv_events has one endpoint for each url, in the same order")
    for endpoint in provider.kv_events:
        if not _ENDPOINT.fullmatch(endpoint):
            raise ConfigError(f"{here}: {endpoint!r} is no endpoint such as tcp://10.1.2.4:5557")


def _check_places(name: str, provider: ProviderConfig, at: Callable[..., str]) -> None:
    kind = KINDS[provider.kind]
    is_local = kind.local if provider.local is None else provider.local
    may = (is_local if provider.private is None else provider.private) or is_local
    placed = f"{at('provider', name, 'urls' if provider.urls else 'url')}: provider.{name}"
    if len(provider.urls) > MAX_REPLICAS:
        raise ConfigError(f"{placed}: urls has more than {MAX_REPLICAS} replicas")
    for at_place, place in enumerate(provider.places):
        url = place or kind.url
        if url is None:
            continue
        key = f"urls[{at_place}]" if provider.urls else "url"
        check_url(url, placed, name=key)
        private = is_private(url)
        if private and not may and place is not None:
            raise ConfigError(
                f"{placed}: {key} leads into a private network: set private = true if that is meant"
            )
        if private is False and is_local:
            usual = "" if provider.local else f" (which is usual for {provider.kind})"
            raise ConfigError(
                f"{placed}: local = true{usual}, but its {key} leads out into the world: set "
                "local = false"
            )
        if url.startswith("http://") and private is False:
            raise ConfigError(f"{placed}: {key} is http: a key would travel in the open; use https")
    names = [replica_of(url) for url in provider.urls]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise ConfigError(f"{placed}: urls has {', '.join(twice)} twice: each replica once")


def _takes_clients_key(provider: ProviderConfig) -> bool:
    kind = KINDS[provider.kind]
    local = kind.local if provider.local is None else provider.local
    return not (provider.key_env or provider.key_file or local)


def _check_served(config: GatewayConfig, here: str, deployments: tuple[Served, ...]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for served in deployments:
        provider = config.provider.get(served.provider)
        if provider is None:
            hint = nearest(served.provider, config.provider)
            raise ConfigError(f"{here}: there is no provider {served.provider!r}; {hint}")
        if not served.model:
            raise ConfigError(f"{here}: model says nothing")
        tiers = KINDS[provider.kind].service_tiers
        if served.service_tier and tiers and served.service_tier not in tiers:
            raise ConfigError(
                f"{here}: {provider.kind} has no service_tier "
                f"{served.service_tier!r}; {nearest(served.service_tier, tiers)}"
            )
        if served.service_tier and not tiers and provider.kind != "compatible":
            raise ConfigError(f"{here}: {provider.kind} has no service tiers")
        key = served.provider, served.model, served.service_tier
        if key in seen:
            raise ConfigError(f"{here}: {'/'.join(key[:2])} is there twice")
        seen.add(key)
        check_ranges(served, lambda _: here, "")
        if served.price is not None:
            check_ranges(served.price, lambda _: here, "price.")
