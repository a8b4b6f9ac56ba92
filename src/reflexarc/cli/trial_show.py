"""How a trial of System 1 on sessions is told on a terminal."""

from rich.console import Console

from reflexarc.bench.trial import Example, Facts, Learned, Trial
from reflexarc.cli.agreement import ITSELF, cell_with_itself, with_itself
from reflexarc.cli.tables import out, table
from reflexarc.reflex import Evaluation

_EXAMPLE_CHARS = 160
_ID_CHARS = 40


def show_trial(trial: Trial, note: str | None) -> None:
    """The whole report."""
    console = out()
    _show_facts(console, trial.facts)
    if note is not None:
        console.print(note)
    if trial.learned is not None:
        _show_learned(console, trial, trial.learned)
    console.print()
    console.print(f"[bold]Verdict: {trial.verdict}[/bold]: {_plain(trial.because)}.")
    if trial.verdict == "enable for reads":
        console.print(
            "Next: `reflexarc learn`, then `reflexarc serve --mode shadow`; go live when shadow "
            "agrees with this report."
        )
    elif trial.verdict == "shadow only":
        console.print("Next: `reflexarc learn`, then `reflexarc serve` (shadow is its default).")
    else:
        console.print("Next: nothing to do; System 1 would stay out of the way.")


def _show_facts(console: Console, facts: Facts) -> None:
    division = facts.division
    console.print(f"[bold]{facts.sessions} sessions of {facts.tasks} tasks[/bold]")
    console.print(
        f"System 2 took {division.steps} steps: {division.messages} were free text, the others "
        f"held {division.reads} reads and {division.writes} writes"
        + (f", and {division.thinks} calls that only think." if division.thinks else ".")
        + " System 1 may answer reads; it never writes and never invents text."
    )
    console.print(with_itself(facts.repeats))
    prompt = facts.redundancy
    if prompt.turns:
        console.print(
            f"Of each prompt, {prompt.median:.1%} (median; {prompt.weighted:.1%} of all characters "
            "sent) was already in the previous turn's."
        )


def _show_learned(console: Console, trial: Trial, learned: Learned) -> None:
    console.print(
        f"\nLearned from {learned.train_sessions} sessions, judged on {learned.test_sessions} of "
        f"{learned.evaluation.tasks} other tasks: the best guess was exactly System 2's call for "
        f"{learned.evaluation.call_exact_top1:.0%} of all calls, "
        f"{learned.evaluation.read_only.top1:.0%} among reads." + _at_best(learned.evaluation)
    )
    console.print(
        table(
            f"Certified now, with probability {trial.confidence:g}; what it does on new tasks",
            (
                "error at most",
                "status",
                "answered, new tasks",
                "wrong",
                "of calls",
                "it still needs",
            ),
            [
                (
                    f"{100 * level.certificate.max_error:g}%",
                    "certified" if level.certificate.threshold is not None else "not certified",
                    level.held_out.answered,
                    level.held_out.errors,
                    f"{level.held_out.coverage_calls:.1%}",
                    _need(level.more_sessions, level.certificate.threshold is not None),
                )
                for level in learned.levels
            ],
        )
    )
    _show_examples(console, learned)
    _show_forecast(console, learned)
    console.print(
        table(
            "Tool by tool, on new tasks",
            ("tool", "calls", "exact", ITSELF, "answered", "verdict", "because"),
            [
                (
                    tool.name,
                    tool.calls,
                    f"{tool.exact:.0%}" if tool.calls else "",
                    cell_with_itself(trial.facts.repeats.tools.get(tool.name)),
                    f"{tool.answered}, {tool.wrong} wrong" if tool.answered else "",
                    tool.verdict,
                    tool.because,
                )
                for tool in learned.tools
            ],
        )
    )


def _at_best(evaluation: Evaluation) -> str:
    """What that agreement has to be read by, on the very sessions it was judged on."""
    rate, modal = evaluation.repeat_rate, evaluation.modal_share
    if rate is None or modal is None:
        return ""
    return (
        f" On these tasks System 2 agrees with itself {rate:.0%} of the time, and a perfect "
        f"predictor with it {modal:.0%} at most."
    )


def _need(more_sessions: int | None, certified: bool) -> str:
    if certified:
        return ""
    if more_sessions is None:
        return "answers it is surer of"
    return f"about {_two_digits(more_sessions):,} sessions with no wrong answer"


def _two_digits(number: int) -> int:
    """An estimate is no count: 3,368 is said as 3,400."""
    return int(float(f"{number:.2g}"))


def _show_examples(console: Console, learned: Learned) -> None:
    if not learned.examples:
        console.print("It would have answered nothing wrongly on the new tasks.")
        return
    console.print(
        "What it would have answered wrongly, the surest first:"
        if learned.examples_certified
        else "It would answer nothing. Its surest wrong guesses show why:"
    )
    for number, example in enumerate(learned.examples, 1):
        _show_example(console, number, example)


def _show_example(console: Console, number: int, example: Example) -> None:
    session = _plain(_short(example.session, _ID_CHARS))
    where = f"session {session}, message {example.message}"
    console.print(f"  {number}. {where}, confidence {example.confidence:.2f}")
    for who, text in (
        ("after", example.after),
        ("System 1", example.system_1),
        ("System 2", example.system_2),
    ):
        console.print(f"     {who + ':':<10}{_plain(_short(text))}")


def _show_forecast(console: Console, learned: Learned) -> None:
    forecast = learned.forecast
    before, after = forecast.before, forecast.after
    level = f"an error of at most {100 * learned.card.max_error:g}%"
    if not forecast.answered:
        console.print(f"\nForecast at {level}: no step is answered, so no time or money is saved.")
        return
    seconds = before.model_s - after.model_s
    dollars = before.usd - after.usd
    console.print(
        f"\nForecast at {level}: System 1 answers "
        f"{forecast.answered} of {forecast.steps} steps of {forecast.sessions} sessions. Waiting "
        f"for models: {before.model_s:.0f} s without, {after.model_s:.0f} s with it "
        f"({_saved(seconds, before.model_s)}); tokens: ${before.usd:.4f} without, "
        f"${after.usd:.4f} with it ({_saved(float(dollars), float(before.usd))})."
    )
    if before.joules is not None and after.joules is not None and forecast.tasks:
        watt_hours = (before.joules / forecast.tasks / 3600, after.joules / forecast.tasks / 3600)
        console.print(
            f"System 2's energy a task (simulated): {watt_hours[0]:.3g} Wh without, "
            f"{watt_hours[1]:.3g} Wh with it "
            f"({_saved(before.joules - after.joules, before.joules)})."
        )
    console.print("Assumed: " + "; ".join(forecast.assumptions) + ".", style="dim")


def _saved(saved: float, whole: float) -> str:
    share = saved / whole if whole else 0.0
    return f"{share:.1%} saved" if share >= 0 else f"{-share:.1%} more"


def _short(text: str, chars: int = _EXAMPLE_CHARS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def _plain(text: str) -> str:
    """Text of others, safe from being read as markup."""
    return text.replace("[", "\\[")
