"""What a shadow report comes to: one verdict, why, and what to do next."""

from typing import Literal

from reflexarc.reflex.evaluation import Evaluation

Verdict = Literal["enable for reads", "shadow only", "do not enable"]
PROMISING_EXACT = 0.6
"""Share of exact best guesses at reads from which watching in shadow is worth it."""


def verdict_on(evaluation: Evaluation, level: str, upper: float) -> tuple[Verdict, str]:
    """`upper`: with 95% confidence, the most that the error under the level's certificate is."""
    one, reads = evaluation.acting[level], evaluation.read_only
    bound = f"{100 * float(level):g}%"
    wrong = f"{one.errors} of {one.answered}"
    if one.answered and upper <= float(level):
        return "enable for reads", (
            f"{one.coverage_calls:.1%} of the calls would have been answered, {wrong} wrongly: "
            f"with 95% confidence, calls of a task taken together, at most {upper:.1%}"
        )
    if one.answered and one.errors <= max(1.0, float(level) * one.answered):
        return "shadow only", (
            f"{wrong} answers would have been wrong: too few answers to be sure that it is at most "
            f"{bound}; with 95% confidence it is at most {upper:.1%}"
        )
    if one.answered:
        return "do not enable", f"{wrong} answers would have been wrong, more than {bound}"
    if reads.n and reads.top1 >= PROMISING_EXACT:
        return "shadow only", (
            f"nothing may act at {bound} yet, but {reads.top1:.0%} of the best guesses at reads "
            "are exact"
        )
    if not reads.n:
        return "do not enable", "System 2 made no call of a read that could be judged"
    return "do not enable", (
        f"nothing may act at {bound}: only {reads.top1:.0%} of the best guesses at reads are what "
        "System 2 did"
    )


def advice(verdict: Verdict, live: bool) -> str:
    """What to do next, on a route that is live or not."""
    if verdict == "enable for reads":
        return (
            "nothing to change; audits go on watching" if live else 'set mode = "live" on the route'
        )
    if verdict == "shadow only":
        back = 'set mode = "shadow" again, ' if live else ""
        return f"{back}let sessions gather, learn anew, look again"
    off = "switch System 1 off here" if live else "leave it in shadow or set mode off"
    return f"{off}; System 2 goes on as before"
