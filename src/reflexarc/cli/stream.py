"""`reflexarc stream`: a cold start, learning only from the past, judged on what comes next."""

from typing import get_args

import click
from rich.console import Console

from reflexarc.bench.stream import Block, Stream, run_stream
from reflexarc.bench.stream_order import Order
from reflexarc.bench.stream_tally import StreamLevel
from reflexarc.cli.agreement import with_itself
from reflexarc.cli.learn import confidence_option, effect_option, max_error_option
from reflexarc.cli.tables import (
    files_argument,
    finish,
    json_option,
    out,
    progress,
    read,
    table,
    told_apart,
    write_json,
)
from reflexarc.steps import Effect

_ORDERS = {
    "time": "as they began", "file": "as they stand in the files",
    "rounds": "one of every task, then the next (an order made up)",
}  # fmt: skip
_MOST_ADJACENT = 0.8
_KINDS = {"all": "all", "new": "new to it", "recurring": "learned from before"}


@click.command(name="stream")
@files_argument
@click.option(
    "--block", default=12, show_default=True, type=click.IntRange(min=1),
    help="Sessions that come before what was learned is looked at anew.",
)  # fmt: skip
@click.option(
    "--every", type=click.IntRange(min=1), metavar="K",
    help="Learn again after every K blocks. Default: when the past has grown by a quarter, and "
    "by half once something may act.",
)  # fmt: skip
@click.option(
    "--order", type=click.Choice(get_args(Order)),
    help="time: as they began; file: as they stand; rounds: the first session of every task, then "
    "the second ones. Default: time where all tell it, else file.",
)  # fmt: skip
@max_error_option
@confidence_option
@effect_option
@json_option
def command(
    files: tuple[str, ...],
    block: int,
    every: int | None,
    order: Order | None,
    max_error: float,
    confidence: float,
    effects: tuple[tuple[str, Effect], ...],
    json_path: str | None,
) -> None:
    """Replay the sessions of FILEs as they came: learn from the past alone, judge on the next
    block, and say how much would have been answered, and how wrongly, up to then.

    docs/stream.md has more.
    """
    recording = read(files)
    with progress() as moved:
        stream = run_stream(
            recording.sessions,
            block=block,
            every=every,
            order=order,
            max_error=max_error,
            confidence=confidence,
            effects=dict(effects),
            progress=moved,
        )
    write_json(json_path, stream)
    if json_path != "-":
        show_stream(out(), stream, told_apart(recording))
    finish(recording)


def show_stream(console: Console, stream: Stream, note: str | None) -> None:
    """The whole report."""
    console.print(
        f"[bold]{stream.sessions} sessions of {stream.tasks} tasks[/bold], "
        f"{_ORDERS[stream.order]}, in blocks of {stream.block}; learned {len(stream.learned)} "
        "times, always from the past alone. All certificates together hold with probability "
        f"{stream.confidence:g}."
    )
    if note is not None:
        console.print(note)
    if stream.order == "file" and stream.adjacent >= _MOST_ADJACENT:
        console.print(
            f"[bold]Careful:[/bold] {stream.adjacent:.0%} of the sessions whose task came before "
            "follow it closely. These files seem sorted by task, not by time: here hardly anything "
            "is learned before it recurs. `--order rounds` takes one session of every task first."
        )
    console.print(with_itself(stream.repeats))
    levels = list(stream.blocks[-1].so_far["all"].levels)
    rows = [block for block in stream.blocks if block.relearned or block is stream.blocks[-1]]
    console.print(
        table(
            "The stream up to the end of a block: share of calls answered (wrong of answered)",
            (
                "block",
                "sessions",
                "learned from",
                "exact",
                *(f"at {_percent(one)}" for one in levels),
            ),
            [_row(block, levels) for block in rows],
        )
    )
    console.print(
        table(
            "The whole stream",
            ("tasks", "error at most", "answered", "wrong", "error", "95% bound", "of calls", ""),
            [
                _whole(name, level, one)
                for kind, name in _KINDS.items()
                if stream.blocks[-1].so_far[kind].sessions
                for level, one in stream.blocks[-1].so_far[kind].levels.items()
            ],
        )
    )
    console.print(
        table(
            "What was learned",
            ("before block", "sessions", "tasks", "attempt", "confidence", "certified"),
            [
                (
                    one.before_block, one.sessions, one.tasks,
                    one.attempt or "none: too little", f"{one.confidence:.4f}",
                    _certified(one.certified)
                    + (", so the one before was kept" if one.kept else ""),
                )
                for one in stream.learned
            ],
        )
    )  # fmt: skip
    if not stream.learned:
        console.print("Nothing could be learned: `reflexarc learn` on these files says why.")


def _certified(certified: dict[str, list[str]]) -> str:
    told = [f"{scope} at {', '.join(map(_percent, at))}" for scope, at in certified.items()]
    return "; ".join(told) or "nothing"


def _row(block: Block, levels: list[str]) -> tuple[object, ...]:
    so_far = block.so_far["all"]
    return (
        block.block,
        block.sessions,
        block.learned_from,
        f"{so_far.exact:.1%}",
        *(_answered(so_far.levels[level]) for level in levels),
    )


def _answered(one: StreamLevel) -> str:
    return f"{one.coverage_calls:.1%} ({one.errors}/{one.answered})" if one.answered else "-"


def _whole(name: str, level: str, one: StreamLevel) -> tuple[object, ...]:
    within = "" if not one.answered else ("within" if one.error <= float(level) else "above")
    return (
        name,
        _percent(level),
        one.answered,
        one.errors,
        f"{one.error:.1%}" if one.answered else "",
        f"{one.error_upper95:.1%}" if one.answered else "",
        f"{one.coverage_calls:.1%}",
        within,
    )


def _percent(level: str) -> str:
    return f"{100 * float(level):g}%"
