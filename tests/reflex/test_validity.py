"""The short form of `make validity`: certificates keep their promise, and what guards it is needed.

Deterministic: seeds are fixed. The long form tries every setting more often.
"""

import pytest
from acceptance import validity
from acceptance.lines import Lines
from acceptance.validity import Trial, planned, report, run, tolerated

REPETITIONS = 100
SLOW = ("4a", "4c", "4d", "5")
REPETITIONS_IF_SLOW = 30
LEFT_TO_THE_LONG_FORM = ("1000 tasks", "2000 tasks", "x 27", "nearest case", "300 to 2000")


def short_form() -> list[Trial]:
    """Of every kind of trial the first and the last that are quick: the ends of the correlation;
    of slow kinds the first."""
    kinds: dict[str, list[Trial]] = {}
    for trial in planned(validity.PARTS):
        if not any(text in trial.what for text in LEFT_TO_THE_LONG_FORM):
            kinds.setdefault(f"{trial.identity} {trial.arguments[0]}", []).append(trial)
    chosen: list[Trial] = []
    for kind in kinds.values():
        ends = kind[:1] if len(kind) == 1 or kind[0].identity in SLOW else [kind[0], kind[-1]]
        chosen += ends
    return chosen


@pytest.mark.parametrize("trial", short_form(), ids=lambda trial: f"{trial.identity} {trial.what}")
def test_the_promise(trial: Trial) -> None:
    lines = Lines("validity", cores=1)
    repetitions = REPETITIONS_IF_SLOW if trial.identity in SLOW else REPETITIONS
    report(lines, trial, run(trial, repetitions, seed=3), repetitions)
    assert lines.finish(write=False) == 0


def test_a_procedure_without_a_bound_is_short() -> None:
    """The check itself can fail: of certificates that are false every second time it says so."""
    trial = Trial("0", "a false procedure", lambda _repetitions, _seed: 0.5, ())
    lines = Lines("validity", cores=1)
    report(lines, trial, run(trial, REPETITIONS, 1), REPETITIONS)
    assert lines.finish(write=False) == 1


def test_every_part_is_planned() -> None:
    assert {trial.identity[0] for trial in planned(validity.PARTS)} == {*"123456"}
    assert tolerated(500) < 0.15
