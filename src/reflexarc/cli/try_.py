"""`reflexarc try`: what the work in these logs wastes, and what System 1 would do for its agent."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from reflexarc.accounts import Prices
from reflexarc.bench.readable import all_readable
from reflexarc.bench.trial import Trial, run_trial
from reflexarc.bench.waste import Waste, waste
from reflexarc.bench.waste_page import page
from reflexarc.cli.learn import confidence_option, effect_option, max_error_option
from reflexarc.cli.tables import (
    OutputFile,
    finish,
    json_option,
    out,
    progress,
    read,
    told_apart,
    write_json,
)
from reflexarc.cli.trial_show import show_trial
from reflexarc.cli.waste_show import show_waste
from reflexarc.sim import Profile, profile_named
from reflexarc.steps import Effect
from reflexarc.steps.errors import InputError, LearnError
from reflexarc.traces import Recording
from reflexarc.traces.formats import FORMATS
from reflexarc.traces.logs import UNKNOWN, Logs, read_logs
from reflexarc.traces.places import usual_places

SESSIONS = "sessions"
"""The format that System 1 learns from."""


@click.command(name="try")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@max_error_option
@confidence_option
@click.option("--seed", default=1, show_default=True, help="Another seed, another held-out part.")
@effect_option
@click.option(
    "--profile",
    default="gpu",
    show_default=True,
    help="Service of the forecast: one of those of `reflexarc sim`.",
)
@click.option(
    "--system1/--no-system1",
    "with_system_1",
    default=True,
    show_default=True,
    help="Learn from session files what System 1 would do, and judge it.",
)
@json_option
@click.option(
    "--html", "html_path", type=OutputFile(), help="Also write the report as one HTML page."
)
def command(
    paths: tuple[str, ...],
    max_error: float,
    confidence: float,
    seed: int,
    effects: tuple[tuple[str, Effect], ...],
    profile: str,
    with_system_1: bool,
    json_path: str | None,
    html_path: str | None,
) -> None:
    """Say what the work in these logs wastes: files and folders of any known format, told apart by
    themselves. For session files, learn from a part of the tasks, judge on the rest, and say what
    System 1 would and would not do. Without a path: what command-line agents keep on this machine.

    Needs no configuration and no network, and keeps nothing.
    """
    service = profile_named(profile)
    logs = _read(paths)
    recording: Recording | None = None
    trial: Trial | None = None
    lacking: LearnError | None = None
    sessions = [report.file for report in logs.files if report.format == SESSIONS]
    if sessions and with_system_1:
        recording = _sessions(sessions, logs)
    if recording is not None:
        try:
            trial = _tried(recording, service, seed, max_error, confidence, dict(effects))
        except LearnError as error:
            lacking = error
    with progress() as moved:
        report = waste(logs, Prices.load(), trial=trial, progress=moved)
    show_waste(out(), report)
    if trial is not None and recording is not None:
        out().print()
        show_trial(trial, told_apart(recording))
    write_json(json_path, _document(report, trial))
    if html_path is not None:
        _write(html_path, page(report, "What this log says"))
    if lacking is not None:
        raise lacking
    if recording is not None:
        finish(recording)
    _finish(logs)


def _read(paths: Sequence[str]) -> Logs:
    """Raises `InputError` where nothing under these paths is a log of a known format."""
    paths = paths or _usual()
    count = 0
    with Console(stderr=True).status("reading") as status:

        def tell(path: Path) -> None:
            nonlocal count
            count += 1
            status.update(f"reading: {count} files, {path.name}")

        logs = read_logs(paths, FORMATS, on_file=tell)
    if not any(report.format for report in logs.files):
        raise InputError(_nothing_in(paths, logs))
    return logs


def _nothing_in(paths: Sequence[str], logs: Logs) -> str:
    where = ", ".join(paths)
    if not logs.files:
        return f"there are no files in {where}"
    whys = sorted({note for report in logs.files for note in report.notes} - {UNKNOWN})
    because = f" ({'; '.join(whys[:3])})" if whys else ""
    known = ", ".join(format.name for format in FORMATS)
    return (
        f"no log of a known format in {where}{because}; known are {known} (docs/logs.md says what "
        "each looks like)"
    )


def _usual() -> Sequence[str]:
    """Where command-line agents keep their sessions on this machine. Raises `InputError` where none
    does."""
    places = usual_places(os.environ, Path.home())
    if not places:
        raise InputError(
            "name files or folders with logs: no agent that is known keeps sessions in its usual "
            "place on this machine"
        )
    for place in places:
        click.echo(f"reading {place.format}: {place.path}", err=True)
    return [str(place.path) for place in places]


def _sessions(files: Sequence[str], logs: Logs) -> Recording | None:
    """None where not one session can be read, but other logs can."""
    try:
        return read(files)
    except InputError:
        if not logs.requests:
            raise
        return None


def _tried(
    recording: Recording,
    service: Profile,
    seed: int,
    max_error: float,
    confidence: float,
    effects: dict[str, Effect],
) -> Trial:
    with progress() as moved:
        return run_trial(
            recording.sessions,
            profile=service,
            seed=seed,
            max_error=max_error,
            confidence=confidence,
            effects=effects,
            progress=moved,
        )


def _document(report: Waste, trial: Trial | None) -> dict[str, Any]:
    """Both in one; the trial's members are not there where there was none."""
    document: dict[str, Any] = {} if trial is None else msgspec.to_builtins(trial)
    return all_readable(document | msgspec.to_builtins(report))


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _finish(logs: Logs) -> None:
    """Exit status 3 where something in the middle of a log could not be read."""
    from reflexarc.cli import BAD_LINES

    broken = sum(report.at_least for report in logs.files)
    if broken:
        files = "1 file was" if broken == 1 else f"{broken} files were"
        click.echo(f"something in {files} unreadable; exit status {BAD_LINES}", err=True)
        click.get_current_context().exit(BAD_LINES)
