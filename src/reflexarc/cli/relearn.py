"""`reflexarc relearn`: learn a reflex again from what was recorded, judged on later work."""

import time
from pathlib import Path

import click

from reflexarc.cli.reflex_life import noted
from reflexarc.cli.store import state_option
from reflexarc.cli.tables import json_option, out, progress, write_json
from reflexarc.lifecycle.later import Later
from reflexarc.lifecycle.relearning import (
    CPU_S,
    MEMORY_BYTES,
    Limits,
    Relearned,
    evidence_of,
    options_of,
    relearn,
)
from reflexarc.steps.errors import StoreError
from reflexarc.store.place import state_dir

_MIB = 1024**2
NOTHING = 1


@click.command(name="relearn")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--route", help="Only sessions of this route's path.")
@click.option(
    "--automatic", is_flag=True, help="Let a version that later sessions bear out take over."
)
@click.option("--cpu-s", default=CPU_S, show_default=True, type=click.IntRange(1, 86_400))
@click.option(
    "--memory-mib",
    default=MEMORY_BYTES // _MIB,
    show_default=True,
    type=click.IntRange(256, 1_048_576),
)
@state_option
@json_option
def command(
    file: Path,
    route: str | None,
    automatic: bool,
    cpu_s: int,
    memory_mib: int,
    state: Path | None,
    json_path: str | None,
) -> None:
    """Learn FILE again from the store, as it was learned before, in a process of its own.

    It learns from the earlier three quarters of the sessions and is judged on the later quarter. A
    version that these bear out waits for `reflexarc reflex promote FILE --version DIGEST`, or takes
    over with --automatic. Each attempt spends a share of the error budget of the certificates.

    Exit status 0: there is a new version; 1: there is none, and it says why.
    """
    directory = state_dir(state)
    how = options_of(directory, file, route)
    with progress() as moved:
        found = relearn(
            directory,
            file,
            how,
            promote="automatic" if automatic else "by_hand",
            limits=Limits(cpu_s, memory_mib * _MIB),
            on_progress=moved,
        )
    unwritten = noted(directory, "relearn", "reflexarc relearn", evidence_of(found), time.time())
    write_json(json_path, found)
    if json_path != "-":
        _say(file, found)
    if unwritten:
        raise StoreError(f"done, but it does not stand in the audit trail: {unwritten}")
    if not found.version:
        click.get_current_context().exit(NOTHING)


def _say(file: Path, found: Relearned) -> None:
    console = out()
    console.print(
        f"attempt {found.attempt}, certificates at {found.confidence:.2%}: learned from "
        f"{found.sessions} sessions of {found.tasks} tasks"
    )
    if found.verdict is not None:
        console.print(f"{found.verdict.sessions} later sessions: {_later(found.verdict.new)}")
        if found.verdict.old is not None:
            console.print(f"  the one in use there: {_later(found.verdict.old)}")
    if found.took_over:
        console.print(f"version {found.version[:12]} has taken over")
    elif found.version:
        console.print(
            f"version {found.version[:12]}: {found.why_not}; reflexarc reflex promote {file} "
            f"--version {found.version[:12]}"
        )
    else:
        console.print(f"no new version: {found.why_not}")


def _later(one: Later) -> str:
    return f"{one.answered} calls answered, {one.right} of them rightly"
