"""`reflexarc explain`: one decision of a reflex taken apart, acted or escalated."""

import difflib
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from reflexarc.cli.eval import load_reflex
from reflexarc.cli.tables import Share, files_argument, finish, json_option, out, read, table
from reflexarc.cli.tables import write_json as write
from reflexarc.reflex.explain import Explanation, explain
from reflexarc.reflex.explain_arguments import ArgumentWhy, Option
from reflexarc.reflex.explain_choice import Why
from reflexarc.steps import Session
from reflexarc.steps.errors import InputError

_VALUE_CHARS = 60
_NEAR = 3


@click.command(name="explain")
@click.argument("reflex_path", metavar="REFLEX", type=click.Path())
@files_argument
@click.option("--session", "session_id", required=True, metavar="ID", help="Which session.")
@click.option(
    "--step",
    required=True,
    type=click.IntRange(min=0),
    help="Which step: 0 is System 2's first turn after the user's first message.",
)
@click.option(
    "--call",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Which call of a turn that makes several.",
)
@click.option("--max-error", type=Share(), help="Accepted error. Default: what REFLEX learned for.")
@json_option
def command(
    reflex_path: str,
    files: tuple[str, ...],
    session_id: str,
    step: int,
    call: int,
    max_error: float | None,
    json_path: str | None,
) -> None:
    """Explain what REFLEX makes of one step of a session in FILEs: why this tool, where each
    argument came from, which gates passed, and what would have made it act or escalate.

    What speaks for a tool is said compared with other steps of FILEs. docs/explain.md has more.
    """
    reflex = load_reflex(reflex_path)
    recording = read(files)
    session = find_session(recording.sessions, session_id)
    others = [one for one in recording.sessions if one is not session]
    found = explain(reflex, session, step, call=call, max_error=max_error, others=others)
    if found.learned_from:
        click.echo(
            f"careful: task {found.task} was learned from, so that this looks surer and better "
            "than a new task would",
            err=True,
        )
    write(json_path, found)
    if json_path != "-":
        show(out(), found)
    finish(recording)


def find_session(sessions: Sequence[Session], wanted: str) -> Session:
    """The session of an id; InputError with the nearest ids where there is none."""
    for session in sessions:
        if session.id == wanted:
            return session
    ids = [session.id for session in sessions]
    near = difflib.get_close_matches(wanted, ids, n=_NEAR, cutoff=0.3) or ids[:_NEAR]
    raise InputError(
        f"no session {wanted!r} among {len(ids)}: did you mean {', '.join(near)}? "
        "(`id` of its line, or file:line where it has none)"
    )


def show(console: Console, found: Explanation) -> None:
    """The whole explanation."""
    where = f"step {found.step} of {found.steps}, message {found.message}"
    where += f", call {found.call}" if found.call else ""
    console.print(f"[bold]Session {_plain(found.session)}, {where}[/bold]")
    proposed = found.proposed
    if proposed is None:
        console.print("System 1 has no call to propose.")
    else:
        console.print(
            f"System 1: {_plain(_call(proposed.name, proposed.arguments))}, "
            f"confidence {found.confidence:.3f}"
        )
        for other in found.together:
            console.print(f"  together with {_plain(_call(other.name, other.arguments))}")
    console.print(f"System 2: {_plain(_system2(found))}")
    decided = "It would act" if found.action == "act" else f"It escalates ({found.reason})"
    console.print(f"[bold]{_plain(decided)}[/bold], at an error of at most "
                  f"{100 * found.max_error:g}%.")  # fmt: skip
    _show_memory(console, found)
    _show_gates(console, found)
    _show_choice(console, found)
    _show_arguments(console, found)
    _show_recorded(console, found)


def _system2(found: Explanation) -> str:
    recorded = found.recorded
    if recorded.call is None:
        agrees = "; System 1 took that for likeliest, too" if recorded.agrees else ""
        return f"a message{agrees}"
    if recorded.agrees:
        return "the same call"
    rank = "not ranked" if recorded.rank is None else f"ranked number {recorded.rank}"
    return f"{_call(recorded.call.name, recorded.call.arguments)} ({rank})"


def _show_memory(console: Console, found: Explanation) -> None:
    console.print(f"Answered by member {found.member} of the reflex.")
    memory = found.recalled
    if memory is None:
        return
    did = "wrote a message" if memory.tool is None else f"made one call of {_plain(memory.tool)}"
    then = (
        "that is the call proposed" if memory.used
        else "that speaks against any other call" if memory.against
        else "they disagree too much to be followed"
    )  # fmt: skip
    console.print(
        f"Memory: of {memory.runs} earlier runs of this very situation {memory.agreeing} {did}; "
        f"{then}."
    )


def _show_gates(console: Console, found: Explanation) -> None:
    rows = [
        (gate.asks, "yes" if gate.passed else f"no: {_plain(gate.reason or '')}")
        for gate in found.gates
    ]
    console.print(table("What a call has to pass", ("gate", "passed"), rows))
    console.print(
        "What would have made it act:" if found.action == "escalate" else "It would not act if:"
    )
    for change in found.changes:
        console.print(f"  - {_plain(change)}")
    rows = [
        (
            f"{100 * one.max_error:g}% of {one.scope}",
            "none" if one.threshold is None else f"{one.threshold:.3f}",
            "" if one.short is None else f"{one.short:+.3f}",
            "yes" if one.enough else "no",
            f"about {one.missing} right answers" if one.missing else "",
        )
        for one in found.levels
    ]
    columns = ("error at most", "confidence needed", "lacks", "enough", "still missing")
    console.print(table("How near it is to each level", columns, rows))


def _show_choice(console: Console, found: Explanation) -> None:
    chances = [(_tool(one.tool), f"{one.probability:.3f}") for one in found.tools]
    console.print(table("Which tool, or a message", ("", "probability"), chances))
    if found.over is not None:
        _show_why(
            console, f"Why {_tool(found.verdict)} rather than {_tool(found.over.tool)}",
            found.why_tool,
        )  # fmt: skip
        if found.why_fit:
            told = "; ".join(f"{one.of} ({one.says}): {one.adds:+.2f}" for one in found.why_fit)
            console.print(f"  the fit of the tools, in its own log-odds: {_plain(told)}")
    ranked = [(_call(one.name, one.arguments), f"{one.probability:.3f}") for one in found.ranked]
    console.print(table("Whole calls, as ranked", ("call", "probability"), _safe(ranked)))
    if found.recalled is not None and found.recalled.used:
        console.print("How sure it is says how far those earlier runs agree.")
    else:
        _show_why(console, "What made it more or less sure than usual", found.why_sure)


def _show_why(console: Console, title: str, why: Why) -> None:
    if not why.compared_with:
        console.print(f"{_plain(title)}: there are no other steps to compare with.")
        return
    rows = [(one.of, one.says, f"{one.adds:+.2f}") for one in why.drivers]
    groups = ", ".join(f"{of} {adds:+.2f}" for of, adds in why.groups.items())
    console.print(
        table(
            f"{_plain(title)} (log-odds, beside {why.compared_with} other steps)",
            ("what", "it says", "adds"),
            [*_safe(rows), ("all together", _plain(groups), f"{why.lead:+.2f}")],
        )
    )


def _show_arguments(console: Console, found: Explanation) -> None:
    if found.proposed is None:
        return
    for one in found.arguments:
        console.print(
            table(
                f"{_plain(found.proposed.name)}.{_plain(one.name)}: {_plain(_told(one))}",
                ("value", "probability", "where it stands", "how made", "fills it in"),
                _safe([_option(option) for option in _options(one)]),
            )
        )
        if one.because and one.others:
            told = "; ".join(f"{why.of} ({why.says}): {why.adds:+.2f}" for why in one.because)
            console.print(f"  rather than the next: {_plain(told)}")


def _told(one: ArgumentWhy) -> str:
    if one.chosen is None:
        return "nothing to choose from, left out" if not one.candidates else "not chosen"
    return "the only candidate" if one.candidates == 1 else f"{one.candidates} candidates"


def _options(one: ArgumentWhy) -> list[Option]:
    return ([one.chosen] if one.chosen is not None else []) + list(one.others)


def _option(one: Option) -> tuple[str, str, str, str, str]:
    return (
        "(left out)" if one.absent else _value(one.value),
        "-" if one.probability is None else f"{one.probability:.3f}",
        _where(one),
        one.made,
        "" if one.hit_rate is None else f"{one.hit_rate:.0%} of calls",
    )


def _where(one: Option) -> str:
    source = one.source
    if source is None or source.kind == "constant":
        return "" if source is None else "constant"
    at = "" if source.message is None else f" {source.message}"
    return f"{source.kind.replace('_', ' ')}{at}: {source.path or one.place or ''}"


def _show_recorded(console: Console, found: Explanation) -> None:
    recorded = found.recorded
    if recorded.call is None or recorded.agrees:
        return
    if recorded.tool_probability is None:
        console.print(f"{_plain(recorded.call.name)} is no tool that was learned.")
        return
    console.print(
        table(
            f"What System 2 called: {_plain(recorded.call.name)}, its tool taken for "
            f"{recorded.tool_probability:.3f} probable",
            ("argument", "value", "probability", "why"),
            _safe([
                (
                    one.name, "(left out)" if one.absent else _value(one.value),
                    "-" if one.probability is None else f"{one.probability:.3f}", one.why,
                )
                for one in recorded.arguments
            ]),
        )
    )  # fmt: skip


def _call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {_value(arguments)}"


def _tool(name: str | None) -> str:
    return "a message" if name is None else _plain(name)


def _value(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _VALUE_CHARS else f"{text[: _VALUE_CHARS - 1]}…"


def _safe(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(_plain(cell) for cell in row) for row in rows]


def _plain(text: str) -> str:
    """Without what a terminal or the console would take for a command."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))
