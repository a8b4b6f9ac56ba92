"""`reflexarc eval`: a reflex judged on sessions it has not learned from."""

from collections.abc import Sequence

import click

from reflexarc.cli.agreement import rows_with_itself
from reflexarc.cli.tables import (
    files_argument,
    finish,
    json_option,
    out,
    progress,
    read,
    table,
    write_json,
)
from reflexarc.reflex import Evaluation, Reflex, evaluate
from reflexarc.steps import Session
from reflexarc.steps.errors import ArtifactError, InputError


@click.command(name="eval")
@click.argument("reflex_path", metavar="REFLEX", type=click.Path())
@files_argument
@json_option
def command(reflex_path: str, files: tuple[str, ...], json_path: str | None) -> None:
    """Judge REFLEX on sessions none of whose tasks it has learned from.

    docs/metrics.md defines every figure.
    """
    reflex = load_reflex(reflex_path)
    recording = read(files)
    for caution in cautions(reflex, recording.sessions):
        click.echo(f"careful: {caution}", err=True)
    with progress() as moved:
        evaluation = evaluate(
            reflex, recording.sessions, progress=lambda done: moved("judging", done)
        )
    show_evaluation(evaluation)
    write_json(json_path, evaluation)
    finish(recording)


def cautions(reflex: Reflex, sessions: Sequence[Session]) -> list[str]:
    """What the figures of these sessions do not say, in sentences without a full stop."""
    found: list[str] = []
    tasks = {session.task for session in sessions}
    known = sum(reflex.learned_from(task) for task in tasks)
    if known:
        found.append(
            f"{known} of {len(tasks)} tasks were learned from: these figures say nothing about "
            "new tasks"
        )
    offered = {tool.name for session in sessions for tool in session.tools}
    offered |= {c.name for s in sessions for message in s.messages for c in message.tool_calls}
    if not offered & {row.name for row in reflex.card.tools}:
        found.append("none of the tools of this reflex occurs in these sessions")
    return found


def load_reflex(path: str) -> Reflex:
    """The reflex of a file; errors name the file."""
    try:
        return Reflex.load(path)
    except ArtifactError as error:
        raise type(error)(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def show_evaluation(evaluation: Evaluation) -> None:
    """The figures of an evaluation as tables."""
    console = out()
    reads, writes, latency = evaluation.read_only, evaluation.writes, evaluation.latency_ms
    console.print(
        f"{evaluation.sessions} sessions of {evaluation.tasks} tasks: {evaluation.steps} steps, "
        f"{evaluation.tool_steps} with calls, {evaluation.calls} calls."
    )
    console.print(
        table(
            "Agreement with what System 2 did",
            ("figure", "value", "over"),
            [
                ("tool or message, by name", f"{evaluation.name_accuracy:.1%}", "all decisions"),
                ("best call exact", f"{evaluation.call_exact_top1:.1%}", "all calls"),
                ("exact among the best three", f"{evaluation.call_exact_top3:.1%}", "all calls"),
                ("best read exact", f"{reads.top1:.1%}", f"{reads.n} reads"),
                ("exact among the best three reads", f"{reads.top3:.1%}", f"{reads.n} reads"),
                ("best call exact, writes", f"{writes.top1:.1%}", f"{writes.n} writes"),
                *rows_with_itself(evaluation),
                ("confidence is off by (ECE)", f"{evaluation.ece:.3f}", "all decisions"),
                (
                    "CPU of one decision, p50 / p99 / max",
                    f"{latency.p50:.2f} / {latency.p99:.2f} / {latency.max:.2f} ms",
                    "",
                ),
            ],
        )
    )
    console.print(
        table(
            "What certificates cover, writes included: those act only where that is allowed",
            (
                "error at most",
                "answered",
                "wrong",
                "error",
                "95% bound",
                "of calls",
                "of steps",
                "tasks touched wrong",
                "reads alone",
            ),
            [
                (
                    f"{100 * float(level):g}%",
                    one.answered,
                    one.errors,
                    f"{one.error:.1%}" if one.answered else "",
                    f"{one.error_ucb95:.1%}" if one.answered else "",
                    f"{one.coverage_calls:.1%}",
                    f"{one.coverage_steps:.1%}",
                    f"{one.tasks_touched_wrong:.1%}",
                    f"{evaluation.acting[level].coverage_calls:.1%}",
                )
                for level, one in evaluation.certified.items()
            ],
        )
    )
