"""`reflexarc learn`: from sessions to a reflex, and what a person should review in it."""

import time
from pathlib import Path
from typing import Any, get_args

import click

from reflexarc.bench.verdicts import RESULTS_MIXED_UP
from reflexarc.cli.agreement import ITSELF, at_once, cell_with_itself, with_itself
from reflexarc.cli.certificates import show_certificates
from reflexarc.cli.store import Day, opened, state_option
from reflexarc.cli.tables import (
    OutputFile,
    Share,
    finish,
    json_option,
    out,
    progress,
    read,
    table,
    told_apart,
    write_json,
)
from reflexarc.lifecycle.from_store import Learning, note_learned, sessions_of
from reflexarc.reflex import Card, learn
from reflexarc.reflex.claims import CLASSES, CertificateClass
from reflexarc.reflex.learning import LEAST_ERROR
from reflexarc.steps import Effect, Session
from reflexarc.steps.errors import InputError, LearnError
from reflexarc.traces import Recording

_EFFECTS: tuple[Effect, ...] = get_args(Effect)


class _EffectPair(click.ParamType[tuple[str, Effect]]):
    """TOOL=read, TOOL=write or TOOL=think."""

    name = "TOOL=EFFECT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Effect]:
        tool, _, effect = str(value).rpartition("=")
        if not tool or effect not in _EFFECTS:
            self.fail(f"{value!r} is not TOOL=read, TOOL=write or TOOL=think", param, ctx)
        return tool, effect


max_error_option = click.option(
    "--max-error",
    type=Share(LEAST_ERROR),
    default=0.05,
    show_default=True,
    help="Largest share of answers that may not be what System 2 would have done.",
)
confidence_option = click.option(
    "--confidence",
    type=Share(),
    default=0.9,
    show_default=True,
    help="Probability with which a certificate must hold.",
)
effect_option = click.option(
    "--effect",
    "effects",
    multiple=True,
    type=_EffectPair(),
    metavar="TOOL=EFFECT",
    help="Declare what a tool does: read, write or think. May be repeated.",
)


@click.command(name="learn")
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@click.option("--from-store", is_flag=True, help="Learn from what gateways recorded in full.")
@click.option("--route", help="With --from-store: only sessions of this route.")
@click.option(
    "--since", type=Day(), help="With --from-store: only sessions that went on then or later."
)
@state_option
@click.option(
    "-o",
    "path",
    required=True,
    type=OutputFile(replaced=True),
    help="Where to write the reflex.",
)
@max_error_option
@confidence_option
@click.option(
    "--certificate",
    "certificate_class",
    type=click.Choice(CLASSES),
    default="model-based",
    show_default=True,
    help="What acts is certified over answers (model-based), or over tasks (exact).",
)
@click.option(
    "--attempt",
    type=click.IntRange(min=0),
    default=0,
    help="Number of this attempt, from 1, where you learn anew until something is certified: the "
    "attempts share one error budget.  [default: it stands alone]",
)
@click.option("--only-verified", is_flag=True, help="Keep sessions whose reward is full (1).")
@effect_option
@json_option
def command(
    files: tuple[str, ...],
    from_store: bool,
    route: str | None,
    since: float | None,
    state: Path | None,
    path: str,
    max_error: float,
    confidence: float,
    certificate_class: CertificateClass,
    attempt: int,
    only_verified: bool,
    effects: tuple[tuple[str, Effect], ...],
    json_path: str | None,
) -> None:
    """Learn a reflex from sessions: those in FILEs, or with --from-store those that gateways
    recorded. What System 1 itself did there is context, never an example.

    Review what it prints: a tool taken for a read may be called without asking once it is
    certified. What is declared with --effect wins over the guess.
    """
    how = Learning(max_error, confidence, dict(effects), route, since, certificate_class, attempt)
    if not from_store:
        if not files:
            raise click.UsageError("Missing argument 'FILE...'.")
        if route is not None or since is not None or state is not None:
            raise click.UsageError("--route, --since and --state go with --from-store")
        recording = read(files)
    else:
        if files:
            raise click.UsageError("FILEs or --from-store, not both")
        if only_verified:
            raise click.UsageError("--only-verified: a store records no rewards")
        recording = _recorded(state, how)
    sessions = _verified(recording.sessions) if only_verified else recording.sessions
    with progress() as moved:
        reflex = learn(
            sessions,
            max_error=max_error,
            confidence=confidence,
            effects=dict(effects),
            certificate_class=certificate_class,
            attempt=attempt,
            progress=moved,
        )
    try:
        reflex.save(path)
    except OSError as error:  # a full disk, a folder that went away meanwhile
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    if from_store:
        with opened(state) as store:
            note_learned(store, Path(path), how, sessions, time.time())
    if (note := told_apart(recording)) is not None:
        out().print(note)
    show_card(reflex.card)
    out().print(f"written: {path}")
    write_json(json_path, reflex.card)
    finish(recording)


def _recorded(state: Path | None, how: Learning) -> Recording:
    with opened(state) as store, store.reading() as connection:
        recording, gone = sessions_of(connection, how)
    for error in recording.bad_lines:
        click.echo(f"bad session: {error}", err=True)
    click.echo(
        f"{len(recording.sessions)} sessions recorded in full; left out: {gone.not_in_full} kept "
        f"as hashes, {gone.no_answer} without a readable answer",
        err=True,
    )
    return recording


def _verified(sessions: list[Session]) -> list[Session]:
    kept = [session for session in sessions if session.reward is not None and session.reward >= 1]
    if not kept:
        rewarded = sum(session.reward is not None for session in sessions)
        raise LearnError(
            f"--only-verified leaves nothing: {rewarded} of {len(sessions)} sessions record a "
            "reward, none of them a full one"
        )
    click.echo(f"kept {len(kept)} of {len(sessions)} sessions: those with full reward", err=True)
    return kept


def show_card(card: Card) -> None:
    """What was learned, as tables: the tools to review, the certificates, what is missing."""
    console = out()
    console.print(
        f"Learned from {card.sessions} sessions of {card.tasks} tasks: {card.items} decisions, "
        f"{card.calls} calls, of which {card.exact:.1%} were guessed exactly by models that had "
        "not seen their task."
    )
    console.print(with_itself(card.repeats))
    if card.batches:
        console.print(at_once(card))
    console.print(
        table(
            "Tools, for review: what each is taken for and why",
            ("tool", "effect", "why", "calls", "tasks", "exact", ITSELF),
            [
                (
                    row.name,
                    row.effect,
                    row.why,
                    row.calls,
                    row.tasks,
                    _share(row.exact, row.calls),
                    cell_with_itself(card.repeats.tools.get(row.name)),
                )
                for row in card.tools
            ],
        )
    )
    show_certificates(console, card)
    if card.results.fits is False:
        console.print(f"[bold]Careful:[/bold] {RESULTS_MIXED_UP}.")
    if not any(one.granted for one in (*card.reads, *card.partial)):
        console.print("Nothing is certified: this reflex only ever escalates.")


def _share(share: float, count: int) -> str:
    return f"{share:.1%}" if count else ""
