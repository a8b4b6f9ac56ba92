"""`reflexarc doctor`: is everything there that a gateway needs, and what to do where not."""

import os
import time
from pathlib import Path

import click
import msgspec

from reflexarc.gateway.doctor import examine


@click.command(name="doctor")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The reflexarc.toml to check, with its routes, keys, reflexes and upstreams.",
)
@click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), help="The state directory."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_path: Path | None, state: Path | None, as_json: bool) -> None:
    """Check install, configuration, keys, reflexes, upstreams, time, disk, permissions and store;
    say what to do. Changes nothing. Exit status 1 where something fails."""
    found = examine(config_path, state, os.environ, time.time())
    failed = any(one.level == "fail" for one in found)
    if as_json:
        click.echo(msgspec.json.encode({"ok": not failed, "findings": found}).decode())
    else:
        for one in found:
            click.echo(f"{one.level:<4}  {one.what}: {one.found}")
            if one.do:
                click.echo(f"      -> {one.do}")
    if failed:
        raise click.exceptions.Exit(1)
