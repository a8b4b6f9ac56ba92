"""`reflexarc reflex list|promote|demote|rollback`: what a reflex may do, and who said so."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from sqlalchemy.exc import DatabaseError

from reflexarc.cli.gateways import confirmations, refuse_silence, user
from reflexarc.cli.store import as_json_option, state_option
from reflexarc.cli.tables import out, table
from reflexarc.lifecycle.by_hand import Changed, demote, promote, roll_back
from reflexarc.lifecycle.standing import ReflexState, Version, checked_scope
from reflexarc.lifecycle.standing_file import FILE, name_of, read_standings
from reflexarc.steps.errors import ConfigError, ReflexarcError, StoreError
from reflexarc.store.place import DATABASE, make_private, state_dir
from reflexarc.store.records import TrailEntry
from reflexarc.store.store import Store, said
from reflexarc.store.trail import append

_BUSY_MS = 5_000
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

_why = click.option("--why", default="", help="For the audit trail.")
_by = click.option("--by", default=None, help="Who says so.  [default: your user name]")


@click.command(name="promote")
@click.argument("file", type=_FILE)
@click.option(
    "--scope",
    default="reads",
    show_default=True,
    help="reads, reads:TOOL or writes:TOOL. A write needs --by.",
)
@click.option("--version", help="Begin of a kept version's digest: it takes the file's place.")
@_by
@_why
@state_option
@as_json_option
def promote_command(
    file: Path,
    scope: str,
    version: str | None,
    by: str | None,
    why: str,
    state: Path | None,
    as_json: bool,
) -> None:
    """Let a scope of a reflex act, on routes whose mode is managed or live.

    Without a certificate for the scope nothing would act, so that is refused. A write also needs
    the name of who answers for it here, and its tool's name under `writes` on the route.
    """
    kind, _ = checked_scope(scope)
    if kind == "writes" and by is None:
        raise ConfigError(f"{scope}: somebody has to answer for a write: name who with --by")
    who = user() if by is None else by
    _do(state, "promote", who, as_json, scope, why, lambda directory, now_s: promote(
        directory, file, scope, who, why, now_s, version
    ))  # fmt: skip


@click.command(name="demote")
@click.argument("file", type=_FILE)
@click.option(
    "--scope", default="all", show_default=True, help="all, reads, reads:TOOL or writes:TOOL."
)
@_by
@_why
@state_option
@as_json_option
def demote_command(
    file: Path, scope: str, by: str | None, why: str, state: Path | None, as_json: bool
) -> None:
    """Let a scope act no longer, until it is promoted again or another version takes over.

    It goes on being compared. To stop everything at once, whatever the reflex: reflexarc off.
    """
    who = user() if by is None else by
    _do(state, "demote", who, as_json, scope, why, lambda directory, now_s: demote(
        directory, file, scope, who, why, now_s
    ))  # fmt: skip


@click.command(name="rollback")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--to", help="Begin of a kept version's digest.  [default: the one before]")
@_by
@_why
@state_option
@as_json_option
def rollback_command(
    file: Path, to: str | None, by: str | None, why: str, state: Path | None, as_json: bool
) -> None:
    """Put the version before this one back, with the standing it had. Gateways hold it ready."""
    who = user() if by is None else by
    _do(state, "rollback", who, as_json, "all", why, lambda directory, now_s: roll_back(
        directory, file, who, why, now_s, to
    ))  # fmt: skip


@click.command(name="list")
@state_option
@as_json_option
def list_command(state: Path | None, as_json: bool) -> None:
    """Every reflex that was promoted, demoted or in use here: versions, standings, audits."""
    directory = state_dir(state)
    standings = read_standings(directory)
    if standings.fault:
        raise ReflexarcError(f"{standings.fault}; while it is so nothing acts")
    if as_json:
        click.echo(msgspec.json.encode({"reflexes": standings.reflexes}).decode())
        return
    if not standings.reflexes:
        click.echo(f"no reflex was promoted or in use with {directory}")
    for one in standings.reflexes:
        show_standing(one)


def standing_of(file: str | Path, state: Path | None) -> ReflexState | None:
    """What the state directory says of this artifact; None where it says nothing."""
    return read_standings(state_dir(state)).of(name_of(file))


def show_standing(one: ReflexState) -> None:
    """The versions of a reflex, and for that in use scopes and audits, as tables."""
    console = out()
    rows = [
        (
            version.digest[:12], "in use" if version.digest == one.in_use else "kept",
            version.origin, _day(version.since_unix_s),
            ", ".join(f"{at.scope} {at.word}" for at in version.scopes) or "shadow",
        )
        for version in one.versions
    ]  # fmt: skip
    columns = ("version", "", "from", "since", "standing")
    console.print(table(f"{one.artifact}", columns, rows))
    current = one.current
    if current.scopes:
        standing = [(at.scope, at.word, at.by, _day(at.at_unix_s), at.why) for at in current.scopes]
        console.print(table("Standing", ("scope", "standing", "by", "since", "why"), standing))
    if current.watched:
        console.print(table("Audits", _AUDIT_COLUMNS, _audits(current)))


_AUDIT_COLUMNS = ("of", "acts", "audited", "wrong", "error of all acts", "against it")


def _audits(version: Version) -> list[tuple[object, ...]]:
    return [
        (
            stream, one.acts, one.evidence.answered, one.evidence.wrong,
            "-" if one.evidence.error is None else f"{one.evidence.error:.1%}",
            f"{min(one.evidence.against, 1e12):.3g} to 1",
        )
        for stream, one in version.watched.items()
    ]  # fmt: skip


def _do(
    state: Path | None, what: str, who: str, as_json: bool, scope: str, why: str,
    work: Callable[[Path, float], Changed],
) -> None:  # fmt: skip
    """Changes the state, writes the trail, and waits for the gateways that run here."""
    directory = make_private(state_dir(state))
    now_s = time.time()
    try:
        changed = work(directory, now_s)
    except OSError as error:
        raise ReflexarcError(f"{directory / FILE} cannot be written: {error}") from error
    now = changed.now
    evidence = {
        "artifact": now.artifact,
        "scope": scope,
        "version": now.in_use,
        "version_before": changed.was.in_use if changed.was is not None else None,
        "why": why,
    }
    unwritten = noted(directory, what, who, evidence, now_s)
    seen_ns = (directory / FILE).stat().st_mtime_ns
    confirmed, silent = confirmations(
        directory, lambda said: int(said.get("standing_seen_ns") or 0) >= seen_ns
    )
    if as_json:
        shown = {"state": now, "confirmed": confirmed, "silent": silent}
        click.echo(msgspec.json.encode(shown).decode())
    else:
        show_standing(now)
        for one in confirmed:
            click.echo(f"{one.url} (pid {one.pid}) has taken it over")
        if not confirmed and not silent:
            click.echo("no gateway of this directory runs; the next one will find it")
    refuse_silence(silent)
    if unwritten:
        raise StoreError(f"done, but it does not stand in the audit trail: {unwritten}")


def noted(directory: Path, what: str, who: str, evidence: dict[str, Any], now_s: float) -> str:
    """Writes an entry of the trail; gives why it could not."""
    entry = TrailEntry(f"{what}-{secrets.token_hex(8)}", now_s, what, who, evidence)
    try:
        store = Store.open(directory / DATABASE, busy_ms=_BUSY_MS)
        try:
            with store.writing(durable=True) as connection:
                append(connection, [entry])
        finally:
            store.close()
    except DatabaseError as error:
        return said(error)
    except StoreError as error:
        return str(error)
    return ""


def _day(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M")
