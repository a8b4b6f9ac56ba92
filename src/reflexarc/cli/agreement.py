"""How System 2 agrees with itself, as the commands say it beside every agreement with it."""

from reflexarc.reflex import Evaluation, Repeats
from reflexarc.reflex.card import Card
from reflexarc.reflex.repeat import ToolRepeats

ITSELF = "S2 itself, at best"
"""Heads a column of `cell_with_itself`."""


def cell_with_itself(repeats: ToolRepeats | None) -> str:
    """How System 2 agrees with itself in the calls of a tool, and how a perfect predictor would,
    most favourably counted; empty where no task recurs."""
    return "" if repeats is None else f"{repeats.repeat_rate:.0%}, {repeats.modal_share:.0%}"


def at_once(card: Card) -> str:
    """One sentence on turns of several calls; nothing where there were none."""
    if not card.batches:
        return ""
    how = "answered with whole turns where sure" if card.whole else "answered one call at a time"
    return (
        f"Of {card.turns} turns that call tools, {card.batches} call several at once: this agent "
        f"is {how}."
    )


def with_itself(repeats: Repeats) -> str:
    """One sentence."""
    rate, modal, left_out = repeats.repeat_rate, repeats.modal_share, repeats.modal_share_left_out
    if rate is None or modal is None or left_out is None:
        return "No task recurs here, so how often System 2 repeats itself cannot be told."
    return (
        f"Where tasks recur ({repeats.calls} calls in {repeats.tasks} tasks), System 2 makes "
        f"the call another run of its own made {rate:.0%} of the time. Always guessing its most "
        f"common call would be right {left_out:.0%} of the time where the guess is taken from the "
        f"other runs, {modal:.0%} where from the same: a perfect predictor lies between."
    )


def rows_with_itself(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """(figure, value, over) for the table of agreements."""
    rate, modal = evaluation.repeat_rate, evaluation.modal_share
    left_out = evaluation.modal_share_left_out
    if rate is None or modal is None or left_out is None:
        return [("System 2 agrees with itself", "-", "no task recurs")]
    calls = f"{evaluation.repeat_calls} calls of tasks that recur"
    return [
        ("System 2 agrees with itself", f"{rate:.1%}", calls),
        ("a perfect predictor would agree", f"{left_out:.1%} - {modal:.1%}", "the same calls"),
    ]
