"""Certificates as tables: what may act, under which claim, what is missing, what a task sees."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from reflexarc.cli.tables import table
from reflexarc.reflex import Card, Certificate
from reflexarc.reflex.claims import CLASSES, CertificateClass

_OVER: dict[CertificateClass, str] = {
    "model-based": "over answers, errors of a task taken together (model-based)",
    "exact": "over tasks in which it acts, one wrong act in them (exact)",
}


def show_certificates(console: Console, card: Card) -> None:
    """Those of the class that acts first, then the other's, partials, what they mean for a task."""
    acting = card.certificate_class
    holding = f"each holding with probability {card.confidence_level:g}"
    if card.attempt:
        holding += f"; attempt {card.attempt} of a series that shares this"
    for certificate_class in sorted(CLASSES, key=lambda one: one != acting):
        of_class = [one for one in card.certificates if one.certificate_class == certificate_class]
        does = "Certificates that act" if certificate_class == acting else "To compare"
        console.print(_certificates(f"{does}: {_OVER[certificate_class]}; {holding}", of_class))
    if card.partial:
        console.print(_certificates("Reads whose free text is left open", card.partial))
    if card.per_task:
        console.print(_per_task(card))


def _certificates(title: str, certificates: Sequence[Certificate]) -> Table:
    """`from`: the confidence from which on it acts; `limit`: the error these answers prove."""
    return table(
        title,
        ("scope", "at most", "from", "limit", "wrong of", "touched of", "lacks right answers"),
        [
            (
                one.scope if at == 0 or certificates[at - 1].scope != one.scope else "",
                f"{100 * one.max_error:g}%",
                "nothing" if one.threshold is None else f"{one.threshold:.3f}",
                f"{100 * one.bound:.1f}%",
                f"{one.errors} of {one.n}",
                f"{one.tasks_wrong} of {_units(one.tasks, one)}",
                f"about {one.missing} in {_units(one.missing_tasks, one)}" if one.missing else "",
            )
            for at, one in enumerate(certificates)
        ],
    )


def _units(count: int, one: Certificate) -> str:
    return f"1 {one.unit}" if count == 1 else f"{count} {one.unit}s"


def _per_task(card: Card) -> Table:
    return table(
        "What that means for a task in which it acts; limits hold with the same probability",
        ("error at most", "answers are", "tasks", "touched", "share at most", "wrong a task",
         "at most"),
        [
            (
                f"{100 * one.max_error:g}%",
                one.origin,
                one.tasks,
                one.touched,
                f"{100 * one.touched_bound:.1f}%",
                f"{one.wrong_per_task:.3f}",
                f"{one.wrong_per_task_bound:.3f}",
            )
            for one in card.per_task
        ],
    )  # fmt: skip
