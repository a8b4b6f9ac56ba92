"""`reflexarc audit verify|show`: the audit trail, whether it is whole, and what it says."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from reflexarc.cli.store import as_json_option, opened, state_option
from reflexarc.cli.tables import out, table
from reflexarc.steps.errors import StoreError
from reflexarc.store.trail import links, verify

_HASH_DIGITS = 64


class _Head(click.ParamType[str]):
    """A hash as `audit verify` prints it."""

    name = "HASH"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value).lower()
        if len(text) != _HASH_DIGITS or not all(digit in "0123456789abcdef" for digit in text):
            self.fail(f"{value!r} is not {_HASH_DIGITS} hexadecimal digits", param, ctx)
        return text


@click.group(name="audit")
def command() -> None:
    """The audit trail: every act of System 1 and every change of what it may do."""


@command.command(name="verify")
@click.option("--head", type=_Head(), help="A head noted earlier: it must stand in the chain.")
@state_option
@as_json_option
def verify_command(head: str | None, state: Path | None, as_json: bool) -> None:
    """Check the whole chain. Exit status 1 where an entry was changed, moved or taken out."""
    with opened(state) as store, store.reading() as connection:
        found = verify(connection, head)
    if as_json:
        click.echo(
            msgspec.json.encode(
                {
                    "whole": not found.fault,
                    "entries": found.entries,
                    "head": found.head,
                    "fault": found.fault,
                }
            ).decode()
        )
    elif not found.fault:
        click.echo(f"{found.entries} entries, unbroken; head {found.head}")
    if found.fault:
        raise StoreError(f"the audit trail is broken: {found.fault}")


@command.command(name="show")
@click.option(
    "--last", type=click.IntRange(1), default=20, show_default=True, help="So many entries."
)
@click.option("--what", help="Only entries of this kind: act, mode, off, on, purge, ...")
@state_option
@as_json_option
def show_command(last: int, what: str | None, state: Path | None, as_json: bool) -> None:
    """Show the last entries, oldest first."""
    with opened(state) as store, store.reading() as connection:
        found = list(links(connection, what=what, last=last))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found:
        click.echo("no entry" if what is None else f"no entry of kind {what!r}")
        return
    rows = [
        (
            str(link.seq),
            datetime.fromtimestamp(link.at_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
            link.what,
            link.who,
            ", ".join(f"{name}={value}" for name, value in link.evidence.items()),
        )
        for link in found
    ]
    out().print(table("Audit trail", ("entry", "when", "what", "who", "evidence"), rows))
