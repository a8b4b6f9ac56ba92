"""`reflexarc config`: whether a configuration can be meant, and what it comes to."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from reflexarc.accounts.prices import Prices
from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.config_pool import TIERS
from reflexarc.gateway.config_reading import load_config
from reflexarc.gateway.pool import Pool
from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.providers import KINDS

_PATH = click.argument(
    "path", type=click.Path(path_type=Path, dir_okay=False), default=Path("reflexarc.toml")
)


@click.group(name="config")
def command() -> None:
    """Check a configuration, or show what it comes to."""


@command.command()
@_PATH
@click.option("--no-keys", is_flag=True, help="Do not ask for variables and files that hold keys.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(path: Path, no_keys: bool, as_json: bool) -> None:
    """Read PATH as `serve` would; exit status 2 and one line that says what is wrong, and where.
    Asks nobody anything."""
    config = load_config(path)
    if not no_keys:
        _with_keys(config)
    said = {"ok": True, "path": str(path), "routes": len(config.route), "models": len(config.model)}
    if as_json:
        click.echo(msgspec.json.encode(said).decode())
        return
    click.echo(f"{path}: {len(config.route)} routes, {len(config.model)} models: fine")


@command.command()
@_PATH
@click.option("--json", "as_json", is_flag=True, help="Everything, with every default, as JSON.")
def show(path: Path, as_json: bool) -> None:
    """Show what PATH comes to: routes, models with their deployments, what each costs."""
    config = load_config(path)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_told(config))).decode())
        return
    console = Console()
    routes = Table("path", "upstream", "mode", "tier", "models", title="Routes")
    for route in config.route:
        names = ", ".join(route.models) if route.models else "all" if route.pooled else ""
        routes.add_row(route.path, route.upstream, route.mode, route.tier or "", names)
    console.print(routes)
    if config.model:
        console.print(_models(config))


def _models(config: GatewayConfig) -> Table:
    listed = config.accounts.prices
    pool = Pool(config, None, Prices.load(None if listed is None else Path(listed)))
    table = Table(
        "model", "tier", "deployment", "dialect", "key", "local", "$/M in", "cached", "out",
        title="Models, each tier's deployments in order",
    )  # fmt: skip
    for name in config.model:
        for tier in TIERS:
            for one in pool.served(name, tier, local_only=False):
                provider = config.provider[one.provider]
                key = provider.key_env or provider.key_file
                price = pool.price(one)
                costs = ("?", "?", "?")
                if price is not None:
                    costs = tuple(f"{x:f}" for x in (price.input, price.of_read, price.output))
                table.add_row(
                    name, tier, one.name, " ".join(one.dialects),
                    key or ("client's" if one.passes_key else ""), "yes" if one.local else "",
                    *costs,
                )  # fmt: skip
    return table


def _told(config: GatewayConfig) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(config)
    for name, provider in config.provider.items():
        kind = KINDS[provider.kind]
        usual = told["provider"][name]
        if not provider.urls:
            usual["url"] = provider.url or kind.url
        usual["dialect"] = provider.dialect or kind.dialects
        usual["local"] = kind.local if provider.local is None else provider.local
        usual["charged_as"] = provider.charged_as or kind.charged_as
    return told


def _with_keys(config: GatewayConfig) -> None:
    """Raises `ConfigError` for a key that is not where it should be."""
    listed = config.accounts.prices
    Pool(config, os.environ, Prices.load(None if listed is None else Path(listed)))
    for index, route in enumerate(config.route, 1):
        if route.api_key_env is not None and not os.environ.get(route.api_key_env):
            raise ConfigError(
                f"route {index}: the environment variable {route.api_key_env} is not set"
            )
