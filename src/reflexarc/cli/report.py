"""`reflexarc report`: what System 1 would have done on the routes of a gateway, and saved."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from reflexarc.cli.agreement import ITSELF, cell_with_itself
from reflexarc.cli.eval import show_evaluation
from reflexarc.cli.store import Day, as_json_option, opened, state_option
from reflexarc.cli.tables import Share, out, table
from reflexarc.lifecycle.report import Disagreement, Report, RouteReport, report, with_standings
from reflexarc.lifecycle.reported import Period
from reflexarc.lifecycle.standing_file import read_standings
from reflexarc.steps.errors import StoreError
from reflexarc.store.place import state_dir

_ARGUMENT_CHARS = 120
_ID_CHARS = 24


@click.command(name="report")
@click.option("--route", help="The path of one route, as configured. Default: all.")
@click.option("--since", "since_s", type=Day(), help="Steps that began then or later.")
@click.option("--until", "until_s", type=Day(), help="Steps that began before.")
@click.option(
    "--max-error",
    default=0.05,
    show_default=True,
    type=Share(),
    help="The error that the verdict, the days and the worst answers are about.",
)
@state_option
@as_json_option
def command(
    route: str | None,
    since_s: float | None,
    until_s: float | None,
    max_error: float,
    state: Path | None,
    as_json: bool,
) -> None:
    """Say what System 1 would have done beside what System 2 did, step by step as gateways
    recorded it: agreement, what would have been answered, time and tokens saved, a verdict.

    docs/report.md defines every figure. Exit status 1 where no step was judged.
    """
    with opened(state) as store, store.reading() as connection:
        found = report(
            connection, route=route, period=Period(since_s, until_s), max_error=max_error
        )
    found = with_standings(found, read_standings(state_dir(state)))
    if not found.routes:
        raise StoreError(_nothing(found, route, since_s is not None or until_s is not None))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    console = out()
    for number, one in enumerate(found.routes):
        if number:
            console.print()
        show_route(console, one)
    for name, reasons in found.silent.items():
        console.print(f"\nRoute {_plain(name)}: no step was judged: {_counts(reasons)}.")


def _nothing(found: Report, route: str | None, bounded: bool) -> str:
    when = " in that time" if bounded else ""
    if found.silent:
        told = "; ".join(f"{name}: {_counts(why)}" for name, why in found.silent.items())
        return (
            f"steps were recorded{when}, but none was judged ({told}): a step is judged on a route "
            "with a reflex, in mode shadow or live, when System 2 has answered it"
        )
    where = f" on {route}" if route is not None else ""
    return (
        f"no step was recorded{where}{when}: run `reflexarc serve` with a reflex, let agents work "
        "through it, and look again"
    )


def show_route(console: Console, one: RouteReport) -> None:
    """One route, as tables."""
    console.print(
        f"[bold]Route {_plain(one.route)}[/bold] ({', '.join(one.modes)}), "
        f"{_time(one.first_unix_s)} to {_time(one.last_unix_s)} UTC, "
        f"reflex {_plain(', '.join(one.reflexes)) or '-'}"
    )
    console.print(f"{one.steps_seen} steps recorded: {_counts(one.by)}.")
    if one.unjudged:
        console.print(f"Not judged: {_counts(one.unjudged)}.")
    show_evaluation(one.evaluation)
    _show_saved(console, one)
    console.print(
        table(
            "Tool by tool: the best guess was exactly System 2's call",
            ("tool", "effect", "calls", "tasks", "exact", "95% interval", ITSELF),
            [
                (
                    row.tool,
                    row.effect or "",
                    row.calls,
                    row.tasks,
                    f"{row.exact:.1%}",
                    f"{row.interval.low:.1%} - {row.interval.high:.1%}",
                    cell_with_itself(row.repeats),
                )
                for row in one.tools
            ],
        )
    )
    _show_worst(console, one)
    console.print(
        table(
            f"Day by day (UTC), error at most {_percent(one.level)}",
            ("day", "steps", "calls", "exact", "answered", "wrong"),
            [
                (
                    day.day,
                    day.steps,
                    day.calls,
                    f"{day.exact:.1%}" if day.calls else "",
                    day.answered,
                    day.errors,
                )
                for day in one.days
            ],
        )
    )
    console.print(
        f"Live, by all rules of the route, System 1 would have answered {one.would_act} of the "
        "judged steps."
    )
    if one.escalations:
        console.print(f"Why it would not act, by step: {_counts(one.escalations)}.")
    if one.audits:
        console.print(f"Acts put to System 2 as well: {_counts(one.audits)}.")
    for standing in one.standing:
        said = [f"{scope.scope} {scope.word} (by {scope.by})" for scope in standing.current.scopes]
        console.print(
            f"Standing of version {standing.in_use[:12]}: "
            f"{_plain(', '.join(said)) or 'as configured'}; reflexarc reflex list shows all."
        )
    console.print()
    console.print(f"[bold]Verdict: {one.verdict}[/bold]: {_plain(one.because)}.")
    console.print(f"Next: {_plain(one.next)}.")


def _show_saved(console: Console, one: RouteReport) -> None:
    console.print(
        table(
            "What that would have saved (steps answered whole and rightly)",
            ("error at most", "steps", "System 2's time", "prompt tokens", "written", "money",
             "error, 95% bound by task"),
            [
                (
                    _percent(level),
                    saved.steps,
                    f"{saved.system2_ms / 1e3:.1f} s",
                    saved.prompt_tokens,
                    saved.completion_tokens,
                    "-" if saved.cost_micro_usd is None else f"${saved.cost_micro_usd / 1e6:.4f}",
                    _bound(one, level),
                )
                for level, saved in one.saved.items()
            ],
        )
    )  # fmt: skip
    if any(saved.cost_micro_usd is None for saved in one.saved.values()):
        console.print("No money is told: the route has no price, only tokens are known.")
    if any(saved.tokens_estimated for saved in one.saved.values()):
        console.print("Some answers told no usage: their tokens are estimated.")


def _bound(one: RouteReport, level: str) -> str:
    answered = one.evaluation.acting[level].answered
    return f"{one.saved[level].error_upper95:.1%}" if answered else ""


def _show_worst(console: Console, one: RouteReport) -> None:
    if not one.worst:
        console.print("Its best guess was never wrong.")
        return
    answered = any(worst.answered for worst in one.worst)
    console.print(
        "What it would have answered wrongly, the surest first; then wrong guesses:"
        if answered
        else "It would have answered nothing wrongly. Its surest wrong guesses:"
    )
    for number, worst in enumerate(one.worst, 1):
        where = f"session {_plain(worst.session[:_ID_CHARS])}, message {worst.message}"
        console.print(f"  {number}. {where}, confidence {worst.confidence:.2f}")
        console.print(f"     System 1: {_plain(_call(worst.proposed_tool, worst.proposed))}")
        console.print(f"     System 2: {_plain(_system2(worst))}")
        if worst.differing and worst.proposed_tool == worst.recorded_tool:
            console.print(f"     differing: {_plain(', '.join(worst.differing))}")


def _system2(worst: Disagreement) -> str:
    if worst.recorded_tool is None:
        return "a message"
    return _call(worst.recorded_tool, worst.recorded)


def _call(tool: str, arguments: dict[str, Any] | None) -> str:
    if arguments is None:
        return tool
    text = msgspec.json.encode(arguments).decode()
    short = text if len(text) <= _ARGUMENT_CHARS else f"{text[: _ARGUMENT_CHARS - 1]}…"
    return f"{tool} {short}"


def _counts(counts: dict[str, int]) -> str:
    return _plain(", ".join(f"{name} {count}" for name, count in counts.items()))


def _percent(level: str) -> str:
    return f"{100 * float(level):g}%"


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M")


def _plain(text: str) -> str:
    """Without what a terminal or the console would take for a command."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))
