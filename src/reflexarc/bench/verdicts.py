"""From figures to a word: enable for reads, shadow only, do not enable; per tool and overall."""

from collections.abc import Sequence

import msgspec

from reflexarc.lifecycle.advice import PROMISING_EXACT, Verdict
from reflexarc.reflex import Card, Evaluation, Outcome
from reflexarc.reflex.evaluation import level_name

RESULTS_MIXED_UP = (
    "the recorded tool results do not belong to the calls they stand behind (their ids and names "
    "occur in their own session no more than in others): mend the log, nothing is certified from it"
)
FEW_CALLS = 10
"""Fewer calls of a tool than this say nothing about it."""


class ToolVerdict(msgspec.Struct, frozen=True):
    """One tool, on held-out sessions: `calls` recorded, `exact` the share whose best guess was
    exact, `answered` the answers System 1 would have given under the asked error, `wrong` of them
    not what System 2 did."""

    name: str
    effect: str
    why: str
    calls: int
    exact: float
    answered: int
    wrong: int
    verdict: Verdict
    because: str


def tool_verdicts(
    card: Card, outcomes: Sequence[Outcome], max_error: float
) -> tuple[ToolVerdict, ...]:
    """A verdict for every tool of the card, in its order."""
    level = level_name(max_error)
    certified = any(one.granted and one.max_error <= max_error for one in card.reads)
    rows: list[ToolVerdict] = []
    for tool in card.tools:
        recorded = [
            one for one in outcomes if one.recorded is not None and one.recorded.name == tool.name
        ]
        answers = [
            one
            for one in outcomes
            if one.acted[level]
            and one.decision.call is not None
            and one.decision.call.name == tool.name
        ]
        exact = sum(one.exact for one in recorded) / len(recorded) if recorded else 0.0
        wrong = sum(not one.exact for one in answers)
        verdict, because = _judge(
            tool.effect, certified, len(recorded), exact, len(answers), wrong, max_error
        )
        rows.append(
            ToolVerdict(
                tool.name,
                tool.effect,
                tool.why,
                len(recorded),
                round(exact, 6),
                len(answers),
                wrong,
                verdict,
                because,
            )
        )
    return tuple(rows)


def _judge(
    effect: str, certified: bool, calls: int, exact: float, answered: int, wrong: int,
    max_error: float,
) -> tuple[Verdict, str]:  # fmt: skip
    if effect == "write":
        return "do not enable", "a write"
    if effect == "think":
        return "do not enable", "it only thinks"
    if certified and answered and wrong <= max(1.0, max_error * answered):
        return "enable for reads", "certified"
    if answered:
        return "shadow only", "certified, yet too often wrong here"
    if calls < FEW_CALLS:
        return "do not enable", f"{calls} calls are too few to tell"
    if exact >= PROMISING_EXACT:
        lack = "never sure enough" if certified else "not certified"
        return "shadow only", f"promising, but {lack}"
    return "do not enable", "its guesses are seldom exact"


def overall_verdict(
    card: Card, evaluation: Evaluation, tools: Sequence[ToolVerdict], max_error: float
) -> tuple[Verdict, str]:
    """One verdict for the agent, and why."""
    if card.results.fits is False:
        return "do not enable", RESULTS_MIXED_UP
    answers = evaluation.acting[level_name(max_error)]
    enabled = [tool.name for tool in tools if tool.verdict == "enable for reads"]
    reads = evaluation.read_only
    bound = f"{100 * max_error:g}%"
    wrong = f"{answers.errors} of {answers.answered}"
    if enabled and answers.errors <= max(1.0, max_error * answers.answered):
        return (
            "enable for reads",
            f"{answers.coverage_calls:.1%} of the calls of new tasks would be answered under a "
            f"certified error of at most {bound} ({wrong} wrong here), by {', '.join(enabled)}",
        )
    if answers.answered:
        return (
            "shadow only",
            f"something is certified at {bound}, yet {wrong} answers on new tasks were wrong",
        )
    if reads.n and reads.top1 >= PROMISING_EXACT:
        return (
            "shadow only",
            f"nothing may act at {bound} yet, but {reads.top1:.0%} of the best guesses at reads "
            "are exact: watch it in shadow while sessions gather",
        )
    if not reads.n:
        return "do not enable", "no read of the held-out sessions could be judged"
    return (
        "do not enable",
        f"nothing can be certified at {bound}: only {reads.top1:.0%} of the best guesses at reads "
        "are what System 2 did",
    )
