"""`reflexarc keys create|list|show|set|revoke|usage`: virtual keys, and what they spent."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from reflexarc.accounts.book import Book, Standing
from reflexarc.accounts.budgets import Budget, usd
from reflexarc.accounts.database import FILE
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey, session_hash
from reflexarc.accounts.spending import GROUPS, By, Filter, Spent, spending
from reflexarc.cli.key_options import ANY, NEVER, NONE, changed, changes_of, settings
from reflexarc.cli.store import Day, as_json_option, state_option
from reflexarc.cli.tables import out, table
from reflexarc.steps.errors import ConfigError, StoreError
from reflexarc.store.place import make_private, secret, state_dir


@contextmanager
def _opened(state: Path | None, *, create: bool = False) -> Generator[tuple[Book, Keyring]]:
    directory = state_dir(state)
    path = directory / FILE
    if not create and not path.exists():
        raise StoreError(
            f"there are no accounts at {path}: no key was made yet (reflexarc keys create), or "
            "--state names another directory"
        )
    make_private(directory)
    book = Book.open(path, time.time)
    try:
        yield book, Keyring(book.database, secret(directory), time.time)
    finally:
        book.close()


@click.group(name="keys")
def command() -> None:
    """Virtual keys: who may ask for what, how fast, and for how much money."""


@command.command(name="create")
@click.argument("name")
@settings
@state_option
@as_json_option
def create_command(name: str, state: Path | None, as_json: bool, **given: Any) -> None:
    """Make a key. Its secret goes to stdout, once: nobody can read it again."""
    wanted = changed(VirtualKey("", name, ""), changes_of(given))
    with _opened(state, create=True) as (_, ring):
        key, shown = ring.create(wanted)
    if as_json:
        click.echo(msgspec.json.encode({"key": key, "secret": shown}).decode())
        return
    click.echo(f"made: {key.name} ({key.id}); keep its secret, it is not shown again", err=True)
    click.echo(shown)


@command.command(name="list")
@state_option
@as_json_option
def list_command(state: Path | None, as_json: bool) -> None:
    """Name the keys there are, revoked ones too."""
    with _opened(state) as (_, ring):
        keys = ring.all()
    if as_json:
        click.echo(msgspec.json.encode(keys).decode())
        return
    rows = [
        (key.name, _tenant(key), _state(key), _budgets(key.budgets), _all_or(key.models),
         _all_or(key.tiers))
        for key in keys
    ]  # fmt: skip
    columns = ("key", "tenant", "", "budgets", "models", "tiers")
    out().print(table("Virtual keys", columns, rows))


@command.command(name="show")
@click.argument("name")
@state_option
@as_json_option
def show_command(name: str, state: Path | None, as_json: bool) -> None:
    """Say what a key may do, and what is left of its budgets."""
    with _opened(state) as (book, ring):
        key = ring.named(name)
        standing = book.standing(key)
    _show(key, standing, as_json)


@command.command(name="set")
@click.argument("name")
@settings
@state_option
@as_json_option
def set_command(name: str, state: Path | None, as_json: bool, **given: Any) -> None:
    """Change what a key may do; what no option names stays. Budgets are given all anew.

    Gateways that run take it over within a second.
    """
    changes = changes_of(given)
    if not changes:
        raise ConfigError("say what to change: reflexarc keys set --help names what there is")
    with _opened(state) as (book, ring):
        key = ring.change(name, lambda was: changed(was, changes))
        standing = book.standing(key)
    _show(key, standing, as_json)


@command.command(name="revoke")
@click.argument("name")
@state_option
@as_json_option
def revoke_command(name: str, state: Path | None, as_json: bool) -> None:
    """Refuse a key from now on, for good. What it spent stays known."""
    with _opened(state) as (_, ring):
        key = ring.change(name, lambda was: msgspec.structs.replace(was, revoked=True))
    if as_json:
        click.echo(msgspec.json.encode(key).decode())
    else:
        click.echo(f"revoked: {key.name} ({key.id})")


class _By(click.ParamType[tuple[By, ...]]):
    """What to sum up by, with commas between."""

    name = "WHAT,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[By, ...]:
        wanted = [name.strip() for name in str(value).split(",") if name.strip()]
        known: dict[str, By] = {one: one for one in GROUPS}
        unknown = [name for name in wanted if name not in known]
        if unknown:
            self.fail(f"{unknown[0]!r} is none of {', '.join(GROUPS)}", param, ctx)
        return tuple(known[name] for name in dict.fromkeys(wanted))


@command.command(name="usage")
@click.option("--by", type=_By(), default="key,tier,provider,model", show_default=True)
@click.option("--key", "name", help="Only this key's.")
@click.option("--tenant", help="Only this tenant's.")
@click.option("--session", help="Only this session's: the name its client gave.")
@click.option("--since", type=Day(), help="Only from then on.")
@click.option("--until", type=Day(), help="Only before then.")
@state_option
@as_json_option
def usage_command(
    by: tuple[By, ...],
    name: str | None,
    tenant: str | None,
    session: str | None,
    since: float | None,
    until: float | None,
    state: Path | None,
    as_json: bool,
) -> None:
    """Say what was spent, by key, session, tier, provider, model and more."""
    with _opened(state) as (book, ring):
        key = None if name is None else ring.named(name).id
        hashed = None if session is None else session_hash(secret(state_dir(state)), session)
        found = spending(book.database, by, Filter(key, tenant, hashed, since, until))
        names = {one.id: one.name for one in ring.all()}
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    rows = [(_what(one, names), *_figures(one)) for one in found]
    if not rows:
        click.echo("nothing was spent")
        return
    columns = (
        " / ".join(by) or "all", "requests", "attempts", "prompt", "cached", "written", "output",
        "spent", "not certain",
    )  # fmt: skip
    out().print(table("What was spent (tokens; written: to a cache)", columns, rows))


def _what(one: Spent, names: dict[str, str]) -> str:
    told = [names.get(value, value) if by == "key" else value for by, value in one.group.items()]
    return " / ".join(value or "-" for value in told) or "all"


def _figures(one: Spent) -> tuple[object, ...]:
    remarks = [
        f"${usd(micro_usd)} {what}"
        for count, micro_usd, what in (
            (one.estimated, one.estimated_micro_usd, "estimated"),
            (one.partial, one.partial_micro_usd, "cut off"),
        )
        if count
    ]
    if one.unpriced:
        remarks.append(f"{one.unpriced} without a price")
    return (
        one.requests, one.attempts, one.input, one.cache_read, one.cache_write, one.output,
        f"${usd(one.micro_usd)}", ", ".join(remarks),
    )  # fmt: skip


def _show(key: VirtualKey, standing: list[Standing], as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"key": key, "budgets": standing}).decode())
        return
    rows: list[tuple[str, object]] = [
        ("id", key.id),
        ("tenant", _tenant(key)),
        ("made", _shown(key.created_unix_s)),
        ("state", _state(key)),
        ("requests a minute", _limit(key.requests_per_minute)),
        ("tokens a minute", _limit(key.tokens_per_minute)),
        ("requests at once", _limit(key.max_parallel)),
        ("models", _all_or(key.models)),
        ("tiers", _all_or(key.tiers)),
        ("default tier", key.default_tier or NONE),
        ("System 1 may act on", _all_or(key.reflexes)),
        ("stays local", "yes" if key.local_only else "no"),
    ]
    out().print(table(f"Key {key.name}", ("what", ""), rows))
    if standing:
        budgets = [
            (one.budget, f"${usd(one.spent_micro_usd)}", f"${usd(one.reserved_micro_usd)}",
             f"${usd(one.left_micro_usd)}",
             NEVER if one.renews_unix_s is None else _shown(one.renews_unix_s))
            for one in standing
        ]  # fmt: skip
        columns = ("budget", "spent", "kept back", "left", "renews")
        out().print(table("Budgets (of sessions: the one that spent most)", columns, budgets))


def _tenant(key: VirtualKey) -> str:
    return "its own" if key.tenant == key.id else key.tenant


def _state(key: VirtualKey) -> str:
    if key.revoked:
        return "revoked"
    if key.expires_unix_s is None:
        return "in use"
    verb = "expired" if key.expires_unix_s <= time.time() else "expires"
    return f"{verb} {_shown(key.expires_unix_s)}"


def _budgets(budgets: tuple[Budget, ...]) -> str:
    return ", ".join(str(one) for one in budgets) or NONE


def _all_or(names: tuple[str, ...] | None) -> str:
    return ANY if names is None else ", ".join(names) or NONE


def _limit(value: int | None) -> object:
    return ANY if value is None else value


def _shown(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%MZ")
