"""`reflexarc serve`: the gateway on a port of this machine."""

from pathlib import Path
from typing import Any, cast

import click
import msgspec

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config import (
    DEFAULT_MAX_ERROR,
    DEFAULT_PORT,
    GatewayConfig,
    Mode,
    Route,
    checked,
    load_config,
)
from reflexarc.gateway.serving import listen, serve
from reflexarc.steps.errors import ArtifactError, ConfigError

_LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command(name="serve")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="reflexarc.toml; docs/configuration.md lists its keys.",
)
@click.option("--host", default=None, help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    default=None,
    type=click.IntRange(0, 65535),
    help=f"0 takes a free one.  [default: {DEFAULT_PORT}]",
)
@click.option("--upstream", default=None, help="Base URL of System 2, with its /v1.")
@click.option("--dialect", default=None, help="What clients speak.  [default: chat]")
@click.option("--reflex", default=None, help="A learned reflex (.reflex).")
@click.option(
    "--mode",
    default=None,
    type=click.Choice(["off", "shadow", "live"]),
    help="off: only pass on; shadow: compare, never act; live: act.  [default: shadow]",
)
@click.option(
    "--max-error",
    default=None,
    type=float,
    help=f"Largest certified error to act under.  [default: {DEFAULT_MAX_ERROR}]",
)
@click.option(
    "--api-key-env",
    default=None,
    help="Environment variable whose value replaces the client's API key.",
)
def command(
    config_path: Path | None, host: str | None, port: int | None, **route_options: Any
) -> None:
    """Serve the gateway: POST /v1/chat/completions, GET /v1/models, POST /api/v1/reflex, /healthz,
    /readyz, /metrics. Either --config or --upstream is needed. Ctrl-C stops it."""
    given = {name: value for name, value in route_options.items() if value is not None}
    config = _configuration(config_path, given)
    config = msgspec.structs.replace(
        config,
        host=config.host if host is None else host,
        port=config.port if port is None else port,
    )
    checked(config, "command line" if config_path is None else str(config_path))
    gateway = Gateway(config)
    listener = listen(config.host, config.port)
    address = cast(tuple[str, int], listener.getsockname())
    shown = config.host if ":" not in config.host else f"[{config.host}]"
    with listener:
        try:
            serve(gateway, listener, lambda: _say(config, f"http://{shown}:{address[1]}"))
        except ArtifactError as error:
            raise ConfigError(str(error)) from error
    click.echo("stopped")


def _configuration(path: Path | None, given: dict[str, Any]) -> GatewayConfig:
    if path is not None:
        if given:
            named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ConfigError(f"{named} cannot be given beside --config: set it in {path}")
        return load_config(path)
    if "upstream" not in given:
        raise ConfigError(
            "where is System 2? give --upstream http://127.0.0.1:9100/v1 or --config reflexarc.toml"
        )
    mode = cast(Mode, given.pop("mode", "shadow"))
    return checked(GatewayConfig(route=(Route(mode=mode, **given),)), "command line")


def _say(config: GatewayConfig, base: str) -> None:
    click.echo(f"reflexarc listens on {base}")
    for route in config.route:
        reflex = route.reflex or "no reflex"
        bound = f", error at most {route.max_error:g}" if route.mode == "live" else ""
        click.echo(f"  {base}{route.path} -> {route.upstream}  [{route.mode}{bound}] {reflex}")
    if config.host not in _LOCAL:
        click.echo("  anyone who reaches this address can use it: nothing here asks for a key")
    click.echo("Ctrl-C stops it.")
