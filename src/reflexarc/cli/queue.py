"""`reflexarc queue`: the batch queue of a state directory, for its operator."""

import os
import time
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import state_dir
from reflexarc.store.queued import FILE, Queue
from reflexarc.store.queued_entries import Entry

_STATE = click.option(
    "--state", default=None, type=click.Path(file_okay=False), help="The state directory."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(name="queue")
def command() -> None:
    """Batch requests that wait, run or were answered; docs/queue.md."""


@command.command(name="list")
@_STATE
@_JSON
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
def list_(state: str | None, as_json: bool, limit: int) -> None:
    """The newest requests, and how many there are."""
    queue = _opened(state)
    if queue is None:
        click.echo('{"counts":null,"data":[]}' if as_json else "nothing was ever queued here")
        return
    found = [_told(queue, one) for one in queue.listed(limit=limit)]
    counts = queue.counts()
    queue.close()
    if as_json:
        click.echo(msgspec.json.encode({"counts": counts, "data": found}).decode())
        return
    table = Table("id", "status", "place", "starts in s", "route", "tries", "age s", "answer")
    for one in found:
        shown = [one[name] for name in ("id", "status", "place", "expected_start_s", "route")]
        shown += [one["tries"], one["age_s"], one["answer"] or None]
        table.add_row(*("" if value is None else str(value) for value in shown))
    console = Console()
    console.print(table)
    console.print(
        f"{counts.waiting} wait, {counts.running} run, {counts.done} were answered, "
        f"{counts.cancelled} cancelled; {counts.size_bytes:,} bytes"
    )


@command.command()
@_STATE
@_JSON
@click.argument("identity", metavar="ID")
def show(state: str | None, as_json: bool, identity: str) -> None:
    """One request, without what was asked or answered."""
    queue = _opened(state)
    one = None if queue is None else _found(queue, identity)
    if queue is None or one is None:
        raise click.ClickException(f"there is no request {identity}")
    told = _told(queue, one)
    queue.close()
    if as_json:
        click.echo(msgspec.json.encode(told).decode())
        return
    for name, value in told.items():
        click.echo(f"{name}: {'' if value is None else value}")


@command.command()
@_STATE
@click.argument("identity", metavar="ID")
def cancel(state: str | None, identity: str) -> None:
    """End a request that waits or runs; an answer that still comes is not kept."""
    queue = _opened(state)
    one = None if queue is None else _found(queue, identity)
    if queue is None or one is None:
        raise click.ClickException(f"there is no request {identity}")
    cancelled = queue.cancel(identity, one.tenant)
    queue.close()
    if not cancelled:
        raise click.ClickException(f"{identity} is over already")
    click.echo(f"{identity} is cancelled")


def _opened(state: str | None) -> Queue | None:
    """None where there is none: looking makes no file."""
    directory = state_dir(state, os.environ)
    if not Path(directory).is_dir():
        raise ConfigError(f"there is no state directory {directory}")
    path = directory / FILE
    return Queue.open(path, time.time) if path.exists() else None


def _found(queue: Queue, identity: str) -> Entry | None:
    return next((one for one in queue.listed(limit=1_000_000) if one.id == identity), None)


def _told(queue: Queue, one: Entry) -> dict[str, Any]:
    starts_s = queue.starts_in_s(one.id, time.time())
    return {
        "id": one.id,
        "status": one.state,
        "place": queue.place(one.id),
        "expected_start_s": None if starts_s is None else round(starts_s, 1),
        "route": one.route,
        "path": one.path,
        "tenant": one.tenant,
        "key": one.key,
        "tries": one.tries,
        "age_s": round(time.time() - one.put_unix_s, 1),
        "answer": one.status,
    }
