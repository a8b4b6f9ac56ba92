"""Record returns-desk sessions with the scripted System 2: `record.py --tasks 60 -o FILE`.

The file is session JSONL, one session a line (gzip where its name ends in `.gz`); `reflexarc try`
and `reflexarc learn` read it. The same seed gives the same bytes.
"""

import asyncio
from pathlib import Path

import click
import msgspec

from reflexarc.bench.desk.record import record, session_line
from reflexarc.traces import write_sessions


@click.command()
@click.option("--tasks", default=60, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--seed", default="learn", show_default=True, help="Names the tasks.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def main(tasks: int, seed: str, output: Path) -> None:
    """Record TASKS queues, each run once and verified, as session JSONL."""
    runs = asyncio.run(record([f"{seed}-{number}" for number in range(tasks)]))
    write_sessions(output, [msgspec.json.encode(session_line(run)) for run in runs])
    verified = sum(not run.faults for run in runs)
    click.echo(f"{output}: {len(runs)} sessions, {verified} verified")


if __name__ == "__main__":
    main()
