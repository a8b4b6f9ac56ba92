"""What the commands share in talking to people: reading files with progress, tables, JSON files.

Results go to stdout, progress and complaints to stderr.
"""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reflexarc.steps.errors import InputError, SessionLineError
from reflexarc.traces import Recording, read_recording

_MAX_BAD_LINES_SHOWN = 20
_SESSIONS_PER_SIGN = 100

OnProgress = Callable[[str, float], None]


def out() -> Console:
    """A console on stdout; plain and 100 columns wide where that is a file or a pipe, silent where
    the command was asked for JSON there."""
    command = click.get_current_context(silent=True)
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else 100,
        highlight=False,
        quiet=command is not None and command.params.get("json_path") == "-",
    )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table whose first column is text and whose other columns are numbers, right-aligned where
    every cell starts like one."""
    grid = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        cells = [str(row[index]) for row in rows]
        numeric = index > 0 and all(not c or c[0] in "0123456789.-<>~$" for c in cells)
        grid.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(str(cell) for cell in row))
    return grid


def read(files: Sequence[str]) -> Recording:
    """The sessions of these files; bad lines are told on stderr. Raises `InputError` where there
    is not one session."""
    shown = 0

    def tell(error: SessionLineError) -> None:
        nonlocal shown
        shown += 1
        if shown <= _MAX_BAD_LINES_SHOWN:
            click.echo(f"bad line: {error}", err=True)

    with Console(stderr=True).status("reading") as status:
        recording = read_recording(
            files,
            on_bad_line=tell,
            on_session=lambda count: (
                None if count % _SESSIONS_PER_SIGN else status.update(f"reading: {count} sessions")
            ),
        )
    if shown > _MAX_BAD_LINES_SHOWN:
        click.echo(f"and {shown - _MAX_BAD_LINES_SHOWN} more bad lines", err=True)
    if not recording.sessions:
        raise InputError(f"no session in {', '.join(files)}")
    return recording


def finish(recording: Recording) -> None:
    """End a command: with exit status 3 where lines were left out."""
    from reflexarc.cli import BAD_LINES

    if recording.bad_lines:
        count = len(recording.bad_lines)
        lines = "1 bad line was" if count == 1 else f"{count} bad lines were"
        click.echo(f"{lines} left out; exit status {BAD_LINES}", err=True)
        click.get_current_context().exit(BAD_LINES)


def told_apart(recording: Recording) -> str | None:
    """One sentence on tasks that were guessed, None where every session named its own."""
    clustering = recording.clustering
    if clustering is None:
        return None
    return (
        f"{clustering.unnamed} of {len(recording.sessions)} sessions name no task: they were put "
        f"into {clustering.clusters} tasks by the likeness of their system prompts and first "
        "messages. Runs of one task that open in other words count as other tasks, which makes "
        'figures look better than they are; a key "task" in each session is safer.'
    )


def write_json(path: str | None, value: Any) -> None:
    """Write a value as JSON where a file was asked for; `-` is stdout."""
    if path is None:
        return
    data = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


@contextmanager
def progress() -> Generator[OnProgress]:
    """A bar on stderr that calls `(what, share done)` move; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, done: bar.update(task, description=what, completed=done)


class Share(click.ParamType[float]):
    """A number between 0 and 1, both excluded, and not below `least`."""

    name = "SHARE"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0.0 < number < 1.0:
            self.fail(f"{value!r} is not a number between 0 and 1", param, ctx)
        if number < self._least:
            self.fail(f"{value!r} is too small: {self._least:g} is the least", param, ctx)
        return number


class OutputFile(click.ParamType[str]):
    """A file to be written, refused before any work where it cannot be. `dash`: `-` is stdout.
    `replaced`: written beside and renamed, so nothing but a plain file may stand there."""

    name = "FILE"

    def __init__(self, *, dash: bool = False, replaced: bool = False) -> None:
        self._dash = dash
        self._replaced = replaced

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if self._dash and text == "-":
            return text
        path = Path(text)
        try:
            fault = self._fault(text, path)
        except OSError as error:  # a name that is too long
            fault = f"{text!r}: {error}"
        if fault is not None:
            self.fail(fault, param, ctx)
        return text

    def _fault(self, text: str, path: Path) -> str | None:
        folder = path.parent
        if not text or path.is_dir() or text.endswith("/"):
            return f"{text!r} is a folder; name a file"
        if not folder.is_dir():
            return f"there is no folder {str(folder)!r} to write {path.name!r} to"
        if self._replaced and path.exists() and not path.is_file():
            return f"{text!r} is no plain file"
        into = path if path.exists() and not self._replaced else folder
        return None if os.access(into, os.W_OK) else f"{text!r} may not be written"


class OutputFolder(click.ParamType[str]):
    """A folder to write to, made where it is missing; refused before any work where it cannot
    be."""

    name = "DIR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text:
            self.fail("name a folder", param, ctx)
        path = Path(text)
        try:
            there = next(one for one in (path, *path.absolute().parents) if one.exists())
            if not there.is_dir():
                self.fail(f"{str(there)!r} is no folder", param, ctx)
        except OSError as error:
            self.fail(f"{text!r}: {error}", param, ctx)
        if not os.access(there, os.W_OK):
            self.fail(f"{str(there)!r} may not be written to", param, ctx)
        return text


files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path()
)
json_option = click.option(
    "--json",
    "json_path",
    type=OutputFile(dash=True),
    help="Also write the figures as JSON ('-': to stdout, and nothing else there).",
)
