"""`reflexarc serve`: the gateway on a port of this machine."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config import (
    ACTING_MODES,
    DEFAULT_MAX_ERROR,
    DEFAULT_PORT,
    EMBEDDED,
    GatewayConfig,
    Mode,
    Route,
)
from reflexarc.gateway.config_reading import checked, load_config, uses_embedded, with_embedded
from reflexarc.gateway.serving import listen, serve
from reflexarc.gateway.state import Registered
from reflexarc.gateway.tls import listening
from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import state_dir
from reflexarc.upstream.embedded import MODEL, Embedded

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
@click.option(
    "--local",
    is_flag=True,
    help="System 2 is a very small model that runs here: for trying things; docs/local.md.",
)
@click.option(
    "--dialect",
    default=None,
    help="What System 2 speaks: chat, responses, messages or gemini. Clients may speak any.  "
    "[default: chat]",
)
@click.option("--reflex", default=None, help="A learned reflex (.reflex).")
@click.option(
    "--mode",
    default=None,
    type=click.Choice(["off", "shadow", "managed", "live"]),
    help="off: only pass on; shadow: compare, never act; managed: act once promoted; live: act.  "
    "[default: shadow]",
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
@click.option(
    "--record",
    default=None,
    type=click.Choice(["full", "hashed", "none"]),
    help="What is kept of each step: by value, by keyed hash, or nothing.  [default: hashed]",
)
@click.option(
    "--canary",
    default=None,
    type=click.FloatRange(0, 1),
    help="live: act for this share of the sessions only.  [default: 1]",
)
@click.option(
    "--audit",
    default=None,
    type=click.FloatRange(0, 1),
    help="Ask System 2 as well for this share of the acts.  [default: adaptive]",
)
@click.option(
    "--state",
    default=None,
    type=click.Path(file_okay=False),
    help="The directory of the store and of what is switched off.",
)
@click.option(
    "--tls-cert",
    default=None,
    type=click.Path(dir_okay=False),
    help="Listen with TLS: the certificate in PEM, intermediates after it.",
)
@click.option(
    "--tls-key",
    default=None,
    type=click.Path(dir_okay=False),
    help="Its private key in PEM.",
)
def command(
    config_path: Path | None,
    host: str | None,
    port: int | None,
    state: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    local: bool,
    **route_options: Any,
) -> None:
    """Serve the gateway: POST /v1/chat/completions, /v1/responses, /v1/messages, Gemini's
    generateContent, GET /v1/models, POST /api/v1/reflex, /healthz, /readyz, /metrics, /admin. One
    of --config, --upstream and --local is needed. Ctrl-C stops it."""
    given = {name: value for name, value in route_options.items() if value is not None}
    if local:
        if config_path is not None or "upstream" in given:
            other = "--upstream" if config_path is None else "--config"
            hint = "" if config_path is None else f'; set upstream = "{EMBEDDED}" in {config_path}'
            raise ConfigError(f"--local cannot be given beside {other}{hint}")
        given["upstream"] = EMBEDDED
    config = _configuration(config_path, given)
    config = msgspec.structs.replace(
        config,
        host=config.host if host is None else host,
        port=config.port if port is None else port,
        state=config.state if state is None else state,
    )
    if (tls_cert, tls_key) != (None, None):
        # Both from here: half of a pair never belongs to the other half of another.
        tls = msgspec.structs.replace(config.tls, cert=tls_cert, key=tls_key)
        config = msgspec.structs.replace(config, tls=tls)
    checked(config, "command line" if config_path is None else str(config_path))
    _check_files(config)
    with _embedded(config) as engine:

        def again() -> GatewayConfig:
            """The file as it is by now. Raises `ConfigError`."""
            assert config_path is not None
            return _ready(load_config(config_path), engine)

        read = None if config_path is None else again
        _serve(_ready(config, engine), engine, read)
    click.echo("stopped")


def _ready(config: GatewayConfig, engine: Embedded | None) -> GatewayConfig:
    _check_files(config)
    if engine is not None:
        return with_embedded(config, engine.base_url)
    if uses_embedded(config):
        raise ConfigError("the embedded engine is not running: it takes a restart")
    return config


def _serve(
    config: GatewayConfig,
    engine: Embedded | None,
    read: Callable[[], GatewayConfig] | None,
) -> None:
    tls = listening(config.tls)
    scheme = "http" if tls is None else "https"
    gateway = Gateway(config)
    listener = listen(config.host, config.port)
    address = cast(tuple[str, int], listener.getsockname())
    shown = config.host if ":" not in config.host else f"[{config.host}]"
    local = shown if config.host not in ("0.0.0.0", "::") else "127.0.0.1"
    registered = Registered(
        gateway.state.directory,
        f"{scheme}://{local}:{address[1]}",
        time.time(),
        None if tls is None else tls.fingerprint,
    )
    base = f"{scheme}://{shown}:{address[1]}"
    with listener, registered:
        serve(
            gateway,
            listener,
            lambda: _say(gateway, base, engine),
            None if tls is None else tls.context,
            read,
        )


def _embedded(config: GatewayConfig) -> AbstractContextManager[Embedded | None]:
    """The engine, where a route asks for it. It starts with the block, and ends with it."""
    if not uses_embedded(config):
        return nullcontext()
    hidden = [route.api_key_env for route in config.route if route.api_key_env]
    hidden += [one.key_env for one in config.provider.values() if one.key_env]
    return Embedded(
        options=config.engine,
        hidden_variables=hidden,
        state_directory=state_dir(config.state, os.environ),
    )


def _check_files(config: GatewayConfig) -> None:
    """A name that is not there is a slip of the pen. A file that cannot be used is none: then the
    gateway serves without it, and says so, as it does when that happens while it runs."""
    for route in config.route:
        if route.reflex is not None and not Path(route.reflex).exists():
            raise ConfigError(f"route {route.path}: there is no reflex {route.reflex}")


def _configuration(path: Path | None, given: dict[str, Any]) -> GatewayConfig:
    if path is not None:
        if given:
            named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ConfigError(f"{named} cannot be given beside --config: set it in {path}")
        return load_config(path)
    if "upstream" not in given:
        raise ConfigError(
            "where is System 2? give --upstream http://127.0.0.1:9100/v1, --local or "
            "--config reflexarc.toml"
        )
    mode = cast(Mode, given.pop("mode", "shadow"))
    return checked(GatewayConfig(route=(Route(mode=mode, **given),)), "command line")


def _say(gateway: Gateway, base: str, engine: Embedded | None) -> None:
    config = gateway.config
    click.echo(f"reflexarc listens on {base}")
    for route in config.route:
        reflex = route.reflex or "no reflex"
        if route.path in gateway.system1.unusable:
            reflex = "WITHOUT SYSTEM 1: the reflex cannot be used, see the message above"
        bound = f", error at most {route.max_error:g}" if route.mode in ACTING_MODES else ""
        is_local = engine is not None and route.upstream == engine.base_url
        upstream = f"{MODEL}, run here" if is_local else route.upstream
        if route.pooled:
            names = route.models or tuple(config.model)
            upstream = f"models {', '.join(names)}"
        click.echo(f"  {base}{route.path} -> {upstream}  [{route.mode}{bound}] {reflex}")
    if engine is not None:
        click.echo(f"  {MODEL} is PLUMBING-GRADE: what it says is not to be relied on")
    if config.host not in _LOCAL and config.accounts.keys != "required":
        click.echo("  anyone who reaches this address can use it: nothing here asks for a key")
    if gateway.state.directory is not None:
        policies = ", ".join(dict.fromkeys(route.record for route in config.route))
        click.echo(f"  recorded ({policies}) in {gateway.state.directory}")
    for entry in gateway.acting.switch.off.entries:
        click.echo(f"  {entry} is OFF, by {entry.who}; reflexarc on switches it on")
    click.echo("Ctrl-C stops it.")
