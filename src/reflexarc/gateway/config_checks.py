"""Whether a configuration can be meant: ranges, names that must exist, URLs."""

import re
from functools import partial

from reflexarc.gateway.config import ACTING_MODES, EMBEDDED, GatewayConfig, Route
from reflexarc.gateway.config_lines import Lines
from reflexarc.gateway.config_pool import MODELS, TIERS
from reflexarc.gateway.config_pool_checks import check_dialects, check_pool
from reflexarc.gateway.config_ranges import check_ranges
from reflexarc.gateway.config_urls import check_url
from reflexarc.lifecycle.standing_file import name_of
from reflexarc.steps.errors import ConfigError

_OWN_PATHS = ("/admin", "/healthz", "/readyz", "/metrics", "/api/v1")
_SECTIONS = ("limits", "timeouts", "system1", "store", "lifecycle", "tls", "accounts", "queue")


def checked(config: GatewayConfig, where: str, lines: Lines | None = None) -> GatewayConfig:
    """The same configuration if it can be meant. `lines`: of the text it was read from. Raises
    `ConfigError`."""

    def at(*path: str | int) -> str:
        line = lines.of(path) if lines is not None else None
        return where if line is None else f"{where}:{line}"

    if not config.route:
        raise ConfigError(f"{where}: at least one [[route]] is needed")
    paths: set[str] = set()
    audits: dict[str, float | str] = {}
    for index, route in enumerate(config.route):
        here = f"{at('route', index)}: route {index + 1}"

        def keyed(name: str, index: int = index) -> str:
            return f"{at('route', index, name)}: route {index + 1}"

        _check_dialects(route, here)
        if route.pooled:
            _check_pooled(route, here)
        elif route.upstream != EMBEDDED:
            check_url(route.upstream, here, f"{EMBEDDED} or {MODELS}")
            _check_not_pooled(route, here)
        elif route.api_key_env is not None:
            raise ConfigError(f"{here}: api_key_env has no use: upstream {EMBEDDED} takes no key")
        if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", route.path):
            raise ConfigError(f"{here}: path must look like /v1 or /agents/returns/v1")
        if {".", ".."} & set(route.path.split("/")):
            raise ConfigError(f"{here}: path holds . or .., which clients resolve on their own")
        if any(f"{route.path}/".startswith(f"{own}/") for own in _OWN_PATHS):
            raise ConfigError(f"{here}: path {route.path} is the gateway's own")
        if route.path in paths:
            raise ConfigError(f"{here}: another route has the path {route.path}")
        paths.add(route.path)
        if not 0 < route.max_error < 1:
            raise ConfigError(f"{here}: max_error must be between 0 and 1, not {route.max_error}")
        check_ranges(route, keyed, "")
        if route.price is not None:
            check_ranges(route.price, lambda _: keyed("price"), "price.")
        if route.prune is not None:
            check_ranges(route.prune, lambda _: keyed("prune"), "prune.")
        if route.mode in ACTING_MODES and route.reflex is None:
            raise ConfigError(f"{here}: mode {route.mode} needs a reflex")
        if route.mode in ACTING_MODES and route.reflex is not None:
            other = audits.setdefault(name_of(route.reflex), route.audit)
            if other != route.audit:
                # Its acts are watched together, wherever they are made.
                raise ConfigError(
                    f"{here}: audit is {route.audit}, but {other} where else {route.reflex} may act"
                )
        if len(set(route.writes)) < len(route.writes) or not all(route.writes):
            raise ConfigError(f"{here}: writes names tools, each once")
    if not 0 <= config.port <= 65535:
        raise ConfigError(f"{where}: port must be from 0 to 65535, not {config.port}")
    if not config.host or config.host != config.host.strip():
        raise ConfigError(f"{where}: host must name an address, not {config.host!r}")
    check_ranges(config, at, "")
    for section in _SECTIONS:
        check_ranges(getattr(config, section), partial(at, section), f"{section}.")
    for tier in TIERS:
        check_ranges(getattr(config.tier, tier), partial(at, "tier", tier), f"tier.{tier}.")
    check_pool(config, at)
    return config


_DECIDED_BY_MODELS = ("api_key_env", "price", "warm_connections", "call_ids", "dialect", "partial")
_OF_MODELS = ("models", "tier", "local_only")


def _check_pooled(route: Route, here: str) -> None:
    """What belongs to providers and deployments is given there."""
    usual = Route(upstream=MODELS)
    for name in _DECIDED_BY_MODELS:
        if getattr(route, name) != getattr(usual, name):
            raise ConfigError(
                f'{here}: {name} has no use beside upstream = "{MODELS}": its providers have it'
            )
    if route.repair.keep_warm:
        raise ConfigError(
            f'{here}: repair.keep_warm has no use beside upstream = "{MODELS}": a ping must go '
            "where the prompt is"
        )


def _check_not_pooled(route: Route, here: str) -> None:
    usual = Route(upstream="")
    for name in _OF_MODELS:
        if name != "local_only" and getattr(route, name) != getattr(usual, name):
            raise ConfigError(f'{here}: {name} is for upstream = "{MODELS}"')
    if route.local_only:
        raise ConfigError(
            f'{here}: local_only is for upstream = "{MODELS}": a route with one upstream goes there'
        )


def _check_dialects(route: Route, here: str) -> None:
    check_dialects(route.dialects, here)
    if route.upstream == EMBEDDED and route.dialects != ("chat",):
        raise ConfigError(f"{here}: upstream {EMBEDDED} speaks chat; leave dialect out")
