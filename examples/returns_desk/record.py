"""Record returns-desk sessions with the scripted System 2: `record.py --tasks 60 -o FILE`.

The file is session JSONL, one session a line (gzip where its name ends in `.gz`); `reflexarc try`
and `reflexarc learn` read it. The same seed gives the same bytes.
"""

import asyncio
import gzip
from pathlib import Path

import click
import msgspec

from reflexarc.bench.desk.record import record, session_line


@click.command()
@click.option("--tasks", default=60, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--seed", default="learn", show_default=True, help="Names the tasks.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def main(tasks: int, seed: str, output: Path) -> None:
    """Record TASKS queues, each run once and verified, as session JSONL."""
    runs = asyncio.run(record([f"{seed}-{number}" for number in range(tasks)]))
    data = b"".join(msgspec.json.encode(session_line(run)) + b"\n" for run in runs)
    output.write_bytes(gzip.compress(data, mtime=0) if output.suffix == ".gz" else data)
    verified = sum(not run.faults for run in runs)
    click.echo(f"{output}: {len(runs)} sessions, {verified} verified")


if __name__ == "__main__":
    main()
