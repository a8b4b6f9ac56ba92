"""`reflexarc reflex`: what a reflex holds, whether something stands in it that should not, and what
it may do."""

import json
from pathlib import Path
from typing import Any

import click

from reflexarc.cli.agreement import ITSELF, at_once, cell_with_itself, with_itself
from reflexarc.cli.certificates import show_certificates
from reflexarc.cli.reflex_life import (
    demote_command,
    list_command,
    promote_command,
    rollback_command,
    show_standing,
    standing_of,
)
from reflexarc.cli.store import state_option
from reflexarc.cli.tables import json_option, out, table, write_json
from reflexarc.reflex import Reflex
from reflexarc.reflex.scan import Finding, scan_patterns, scan_values
from reflexarc.steps.errors import InputError

FOUND = 1
_FILE = click.Path(exists=True, dir_okay=False)


@click.group()
def command() -> None:
    """What a reflex holds, whether something stands in it that should not, and what it may do."""


for _one in (list_command, promote_command, demote_command, rollback_command):
    command.add_command(_one)


@command.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=_FILE)
@click.option("--value", "values", multiple=True, help="Look for this value; may be repeated.")
@click.option("--values-file", type=_FILE, help="Look for every line of this file.")
@json_option
def scan(
    files: tuple[str, ...], values: tuple[str, ...], values_file: str | None, json_path: str | None
) -> None:
    """Look for values, or for whatever looks personal or secret, in artifacts or other files.

    Exit status 0: nothing found; 1: something was.
    """
    wanted = [*values, *_lines(values_file)]
    found: list[Finding] = []
    for file in files:
        found += scan_values(file, wanted) if wanted else scan_patterns(file)
    write_json(json_path, {"files": list(files), "found": found})
    if json_path != "-":
        rows = [(one.file, one.where, one.kind, one.begins) for one in found]
        if rows:
            out().print(table("Found", ("file", "where", "kind", "begins"), rows))
        else:
            what = f"none of {len(wanted)} values" if wanted else "nothing personal or secret"
            out().print(f"{what} in {len(files)} file{'s' * (len(files) > 1)}")
    if found:
        click.get_current_context().exit(FOUND)


def _lines(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from error
    return [line for line in lines if line.strip()]


@command.command()
@click.argument("file", type=_FILE)
@state_option
@json_option
def show(file: str, state: Path | None, json_path: str | None) -> None:
    """Show what a reflex was learned from, its certificates, tools and constants, and what it may
    do."""
    reflex = Reflex.load(file)
    standing = standing_of(file, state)
    found: dict[tuple[str, str], tuple[Any, float]] = {}
    for member in reflex.members:
        for tool in member.predictor.sources.tools:
            for argument in tool.arguments:
                for one in argument.constants:
                    key = (f"{tool.name}.{argument.name}", json.dumps(one.value, sort_keys=True))
                    found[key] = (one.value, max(one.share, found.get(key, (None, 0.0))[1]))
    constants = [(name, value, round(share, 4)) for (name, _), (value, share) in found.items()]
    looks = reflex.members[0].familiarity.looks
    write_json(
        json_path,
        {
            "card": reflex.card,
            "constants": [
                {"argument": name, "value": value, "share": share}
                for name, value, share in constants
            ],
            "unfamiliar_share": looks.flagged,
            "situations": len(reflex.recall),
            "standing": standing,
        },
    )
    if json_path == "-":
        return
    card, console = reflex.card, out()
    console.print(
        f"{file}: learned from {card.calls} calls in {card.sessions} sessions of {card.tasks} "
        f"tasks; models: {', '.join(card.models) or 'not recorded'}; {looks.flagged:.1%} of "
        "held-out contexts looked unlike the others"
    )
    console.print(with_itself(card.repeats))
    if card.batches:
        console.print(at_once(card))
    show_certificates(console, card)
    tools = [
        (
            one.name, one.effect, one.why, one.calls, f"{one.exact:.1%}",
            cell_with_itself(card.repeats.tools.get(one.name)),
        )
        for one in card.tools
    ]  # fmt: skip
    console.print(table("Tools", ("tool", "effect", "why", "calls", "exact", ITSELF), tools))
    if constants:
        shown = [(name, str(value)[:60], f"{share:.0%}") for name, value, share in constants]
        console.print(table("Constants", ("argument", "value", "of the tasks"), shown))
    if standing is not None:
        show_standing(standing)
