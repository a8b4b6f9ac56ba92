"""`reflexarc store stats|export|purge`: what was recorded."""

import getpass
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from sqlalchemy.exc import DatabaseError

from reflexarc.cli.tables import OutputFile, out, table
from reflexarc.lifecycle.purging import Relearned, artifacts_after
from reflexarc.steps.errors import ConfigError, ReflexarcError, StoreError
from reflexarc.store.kept import forget_kept
from reflexarc.store.place import DATABASE, secret, state_dir
from reflexarc.store.purging import Conditions, doomed, empty, remove
from reflexarc.store.queued import forget_queued
from reflexarc.store.reading import kept_sessions, stats
from reflexarc.store.store import Store, said
from reflexarc.store.tenants import tenants_of
from reflexarc.traces.sessions import write_sessions
from reflexarc.upstream.embedded import forget_states

_BUSY_MS = 10_000

state_option = click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), help="The state directory."
)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@contextmanager
def opened(state: Path | None) -> Generator[Store]:
    """The store of a state directory. What the database says becomes a `StoreError`."""
    path = state_dir(state) / DATABASE
    store = Store.open(path, create=False, busy_ms=_BUSY_MS)
    try:
        yield store
    except DatabaseError as error:
        raise StoreError(f"{path}: {said(error)}") from error
    finally:
        store.close()


class Day(click.ParamType[float]):
    """A day (YYYY-MM-DD) or a time (YYYY-MM-DDTHH:MM[:SS][Z]), UTC where no zone is given."""

    name = "DATE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a date like 2026-11-30 or 2026-11-30T12:00", param, ctx)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


@click.group(name="store")
def command() -> None:
    """What gateways recorded: how much there is, taking it out, removing it."""


@command.command(name="stats")
@state_option
@as_json_option
def stats_command(state: Path | None, as_json: bool) -> None:
    """Say how much is recorded."""
    with opened(state) as store, store.reading() as connection:
        found = stats(connection)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    when = (
        "nothing yet"
        if found.oldest_unix_s is None or found.newest_unix_s is None
        else f"{_shown(found.oldest_unix_s)} to {_shown(found.newest_unix_s)}"
    )
    by = ", ".join(f"{who} {number}" for who, number in sorted(found.by.items()))
    rows: list[tuple[str, object]] = [
        ("recorded", when),
        ("size", f"{found.bytes / 1e6:.1f} MB"),
        ("sessions", found.sessions),
        ("of them in full", found.in_full),
        ("tasks", found.tasks),
        ("tenants", found.tenants),
        ("steps", found.steps),
        ("decided by", by),
        ("decisions compared", found.decisions),
        ("audits", found.audits),
        ("entries of the trail", found.trail),
        ("prompt tokens", found.prompt_tokens),
        ("of them cached", found.cached_tokens),
        ("completion tokens", found.completion_tokens),
    ]
    out().print(table(f"Store {store.path}", ("what", ""), rows))
    if found.routes:
        routes = [(one.route, one.sessions, one.steps, one.system1) for one in found.routes]
        out().print(table("By route", ("route", "sessions", "steps", "System 1"), routes))


@command.command(name="export")
@click.option(
    "-o", "path", required=True, type=OutputFile(replaced=True), help="Where to write the sessions."
)
@click.option("--route", help="Only sessions of this route.")
@click.option("--since", type=Day(), help="Only sessions that went on then or later.")
@state_option
@as_json_option
def export_command(
    path: str, route: str | None, since: float | None, state: Path | None, as_json: bool
) -> None:
    """Write sessions recorded in full as JSONL (gzipped where FILE ends in .gz)."""
    with opened(state) as store, store.reading() as connection:
        kept, gone = kept_sessions(connection, route=route, since_s=since)
    write_sessions(path, [one.line for one in kept])
    if as_json:
        said_ = {"file": path, "sessions": len(kept), "left_out": gone}
        click.echo(msgspec.json.encode(said_).decode())
        return
    click.echo(f"written: {path}, {_number(len(kept), 'session')}")
    if gone.not_in_full:
        click.echo(
            f"left out: {_number(gone.not_in_full, 'session')} not recorded in full (record = "
            '"full" on a route keeps messages as sent)'
        )
    if gone.no_answer:
        click.echo(f"left out: {_number(gone.no_answer, 'session')} without a readable answer")


@command.command(name="purge")
@click.option("--session", help="This session: its id here, or the name its client gave.")
@click.option("--tenant", help="This tenant's sessions: the hash that is stored.")
@click.option("--tenant-key-env", help="The same by its key: the variable that holds it.")
@click.option("--before", type=Day(), help="Sessions whose last step was before this day.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@state_option
@as_json_option
def purge_command(
    session: str | None,
    tenant: str | None,
    tenant_key_env: str | None,
    before: float | None,
    dry_run: bool,
    yes: bool,
    state: Path | None,
    as_json: bool,
) -> None:
    """Remove sessions: no byte of their values stays in the store or in an artifact it knows.

    Conditions given together must all hold. Exit status 1 where it cannot be proven.
    """
    if session is None and tenant is None and tenant_key_env is None and before is None:
        raise ConfigError("say what to remove: --session, --tenant, --tenant-key-env or --before")
    tenants = [] if tenant is None else [tenant]
    if tenant_key_env is not None:
        if tenant is not None:
            raise ConfigError("--tenant or --tenant-key-env, not both")
        key = os.environ.get(tenant_key_env)
        if not key:
            raise ConfigError(f"the environment has no {tenant_key_env}")
        tenants = tenants_of(secret(state_dir(state)), key)
    wanted = Conditions(session, tenants, before)
    key_of_hashes = secret(state_dir(state))
    with opened(state) as store:
        if dry_run or not yes:
            with store.reading() as connection:
                found = doomed(connection, wanted, key_of_hashes)
            if dry_run:
                _say(found.sessions, found.steps, [], "", dry_run, as_json)
                return
            count = _number(len(found.sessions), "session")
            click.confirm(f"Remove {count} for good?", abort=True)
        gone = remove(store, wanted, key_of_hashes, _who(), time.time)
        emptied = empty(store, gone.values)
        # Of a tenant's other sessions nothing goes where one was named.
        whose, older = (tenants, before) if session is None else ((), None)
        forget_kept(state_dir(state), gone.values, whose, older)
        forget_queued(state_dir(state), gone.values, whose, older, unix_time=time.time)
        # Whose they are stands nowhere in the open: all of them go. Their sessions are read anew.
        forget_states(state_dir(state))
        relearned = artifacts_after(store, gone, time.time())
    _say(gone.sessions, gone.steps, relearned, emptied.fault, False, as_json)
    faults = [emptied.fault] if emptied.fault else []
    faults += [f"{one.path}: {one.fault}" for one in relearned if one.fault]
    if faults:
        raise ReflexarcError("the rows are gone, but: " + "; ".join(faults))


def _say(
    ids: list[str], steps: int, relearned: list[Relearned], fault: str, dry: bool, as_json: bool
) -> None:
    if as_json:
        said_ = {
            "dry_run": dry,
            "sessions": ids,
            "steps": steps,
            "proven": not dry and not fault,
            "fault": fault,
            "artifacts": relearned,
        }
        click.echo(msgspec.json.encode(said_).decode())
        return
    verb = "would go" if dry else "gone"
    click.echo(f"{verb}: {_number(len(ids), 'session')}, {_number(steps, 'step')}")
    if dry or not ids:
        return
    if not fault:
        click.echo("neither the store nor its log holds a value of them")
    for one in relearned:
        if not one.fault:
            click.echo(f"{one.path}: {one.what}")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _shown(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"
