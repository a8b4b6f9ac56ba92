"""`reflexarc off` and `reflexarc on`: stop System 1 from acting, at once, on all gateways that
share a state directory; and let it again."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from reflexarc.cli.gateways import confirmations, refuse_silence, user
from reflexarc.lifecycle.off import Off, What, entry_of, switch_off, switch_on
from reflexarc.steps.errors import ConfigError, ReflexarcError
from reflexarc.store.place import make_private, state_dir

_target = click.option("--tool", help="Only this tool.")
_reflex = click.option("--reflex", help="Only this reflex: its file, or its route's path.")
_state = click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), help="The state directory."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(name="off")
@_target
@_reflex
@click.option("--why", default="", help="For the audit trail.")
@_state
@_as_json
def off(tool: str | None, reflex: str | None, why: str, state: Path | None, as_json: bool) -> None:
    """Stop System 1 from acting. Without options: everywhere. Requests go on, to System 2; it
    stays off over restarts, until `reflexarc on`."""
    what, name = _what(tool, reflex)
    directory = make_private(state_dir(state))
    entry = entry_of(what, name, time.time(), user(), why)
    try:
        now = switch_off(directory, entry)
    except OSError as error:
        raise ReflexarcError(
            f"off.json in {directory} cannot be written ({error}); ask the gateway itself: "
            "curl -X POST http://127.0.0.1:8411/admin/off"
        ) from error
    _say(directory, now, lambda said: _lists(said, what, name), f"{entry} is off", as_json)


@click.command(name="on")
@_target
@_reflex
@_state
@_as_json
def on(tool: str | None, reflex: str | None, state: Path | None, as_json: bool) -> None:
    """Take back what `reflexarc off` did with the same options; without options all of it."""
    what, name = _what(tool, reflex)
    directory = state_dir(state)
    try:
        now = switch_on(directory, what, name, time.time(), user())
    except OSError as error:
        raise ReflexarcError(f"off.json in {directory} cannot be written: {error}") from error
    shown = "everything" if what == "all" else f"{what} {name}"
    _say(
        directory,
        now,
        lambda said: not said if what == "all" else not _lists(said, what, name),
        f"{shown} is on",
        as_json,
    )


def _what(tool: str | None, reflex: str | None) -> tuple[What, str]:
    if tool is not None and reflex is not None:
        raise ConfigError("--tool or --reflex, not both: call it twice")
    if tool is not None:
        return "tool", tool
    return ("reflex", reflex) if reflex is not None else ("all", "")


def _say(
    directory: Path, now: Off, seen: Callable[[list[dict[str, Any]]], bool], said: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Waits until every gateway that runs here says that it has seen it."""
    confirmed, silent = confirmations(
        directory, lambda said: "off" in said and seen(_entries(said))
    )
    if as_json:
        click.echo(
            msgspec.json.encode(
                {
                    "off": now.entries,
                    "confirmed": confirmed,
                    "silent": silent,
                }
            ).decode()
        )
    else:
        click.echo(f"{said} ({directory})")
        for one in confirmed:
            click.echo(f"  {one.url} (pid {one.pid}) has taken it over")
        if not confirmed and not silent:
            click.echo("  no gateway of this directory runs; the next one will find it")
        still = [str(entry) for entry in now.entries]
        click.echo(f"  off now: {', '.join(still)}" if still else "  nothing is off now")
    refuse_silence(silent)


def _entries(said: dict[str, Any]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", said["off"])


def _lists(entries: list[dict[str, Any]], what: str, name: str) -> bool:
    return any((entry["what"], entry["name"]) == (what, name) for entry in entries)


command = off
