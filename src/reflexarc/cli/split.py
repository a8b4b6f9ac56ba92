"""`reflexarc split`: writes train.jsonl.gz and test.jsonl.gz, whole tasks to one side."""

from pathlib import Path

import click

from reflexarc.cli.tables import OutputFolder, Share, files_argument, finish, read, told_apart
from reflexarc.steps.errors import InputError
from reflexarc.traces import SplitBy, split_sessions, write_sessions
from reflexarc.traces.split import SPLITS

_PLURALS = {"task": "tasks", "session": "sessions", "family": "families"}


@click.command(name="split")
@files_argument
@click.option(
    "--test-share",
    default=0.33,
    show_default=True,
    type=Share(),
    help="Share of the groups to test.",
)
@click.option("--seed", default=1, show_default=True, help="Another seed, another split.")
@click.option(
    "--by",
    type=click.Choice(SPLITS),
    default="task",
    show_default=True,
    help="What must not stand on both sides. By session is for work that recurs.",
)
@click.option(
    "-o", "folder", required=True, type=OutputFolder(), help="Folder to write to; made if missing."
)
def command(files: tuple[str, ...], test_share: float, seed: int, by: SplitBy, folder: str) -> None:
    """Split sessions into DIR/train.jsonl.gz and DIR/test.jsonl.gz.

    The same sessions and seed give the same bytes, whatever the order of the files.
    """
    recording = read(files)
    split = split_sessions(recording.sessions, by=by, test_share=test_share, seed=seed)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror})") from error
    sides = (
        ("train", split.train, split.train_groups),
        ("test", split.test, split.test_groups),
    )
    for name, indices, groups in sides:
        chosen = sorted(
            indices, key=lambda i: (recording.sessions[i].task, recording.sessions[i].id)
        )
        path = target / f"{name}.jsonl.gz"
        write_sessions(path, [recording.raw[i] for i in chosen])
        click.echo(f"{path}: {len(indices)} sessions of {groups} {_PLURALS[by]}")
    if (note := told_apart(recording)) is not None:
        click.echo(note)
    finish(recording)
