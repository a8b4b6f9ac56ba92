"""The exact class, the budget of repeated learning, frozen thresholds, figures per task."""

from typing import cast

import msgspec
import numpy as np
import pytest

from reflexarc.reflex.certificate import Certificate, certify
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.clustered import binomial_upper
from reflexarc.reflex.per_task import per_task
from reflexarc.reflex.scopes import RECALLED, ScopedAnswers, certify_scopes
from reflexarc.reflex.spending import attempt_delta
from reflexarc.reflex.validation import Validation, validate


def reads(
    tasks: int, each: int, wrong_tasks: int = 0, wrong_each: int = 1, score: float = 0.95
) -> ScopedAnswers:
    """`each` answers of every task, of the first `wrong_tasks` tasks so many wrong."""
    n = tasks * each
    task = np.repeat(np.arange(tasks), each)
    place = np.tile(np.arange(each), tasks)
    no = np.zeros(n, np.bool_)
    return ScopedAnswers(
        score=np.full(n, score),
        wrong=(task < wrong_tasks) & (place < wrong_each),
        task=task,
        recalled=no,
        write=no,
        tool=np.zeros(n, np.int64),
        tools=("find",),
    )


def exact(answers: ScopedAnswers, alpha: float, *, attempt: int = 0) -> Certificate:
    (one,) = certify(
        answers.score, answers.wrong, answers.task, alphas=(alpha,), delta=0.1,
        certificate_class="exact", attempt=attempt,
    )  # fmt: skip
    return one


@pytest.mark.parametrize(("tasks", "alpha"), [(45, 0.05), (114, 0.02), (22, 0.10)])
@pytest.mark.parametrize("each", [1, 7])
def test_so_many_clean_tasks_give_a_level_and_one_less_does_not(
    tasks: int, alpha: float, each: int
) -> None:
    assert exact(reads(tasks, each), alpha).granted
    short = exact(reads(tasks - 1, each), alpha)
    assert not short.granted
    assert (short.missing_tasks, short.missing) == (1, each)


def test_the_exact_class_counts_tasks_however_wrong_they_are() -> None:
    """Four of 100 tasks: the same bound with one error in each as with nothing right."""
    once, always = (exact(reads(100, 6, 4, wrong), 0.10) for wrong in (1, 6))
    assert once.granted
    assert always.granted
    assert once.bound == always.bound == pytest.approx(binomial_upper(4, 100, 0.1), abs=1e-5)
    assert (always.errors, always.tasks_wrong) == (24, 4)


def test_more_answers_of_the_same_tasks_help_the_model_based_class_alone() -> None:
    few, many = reads(40, 1), reads(40, 6)
    assert exact(few, 0.05).bound == exact(many, 0.05).bound
    model = [certify(a.score, a.wrong, a.task, alphas=(0.05,))[0].bound for a in (few, many)]
    assert model[1] < 0.6 * model[0]


def test_every_certificate_says_its_class_and_keeps_within_its_level() -> None:
    for one in certify_scopes(reads(150, 4, 3), (0.02, 0.05, 0.10), 0.1):
        assert one.certificate_class in ("exact", "model-based")
        assert one.certificate_class.split("-")[0] in ("exact", "model")
        assert one.granted == (one.bound <= one.max_error)


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(ValueError, match="no class of certificates"):
        certify(
            np.zeros(1), np.zeros(1, np.bool_), np.zeros(1, np.int64),
            certificate_class=cast(CertificateClass, "sure"),
        )  # fmt: skip


def test_the_attempts_of_a_series_never_spend_more_than_the_budget() -> None:
    spent = [attempt_delta(0.1, attempt) for attempt in range(1, 10_000)]
    assert spent == sorted(spent, reverse=True)
    assert 0.0999 < sum(spent) <= 0.1
    assert attempt_delta(0.1, 0) == 0.1
    with pytest.raises(ValueError, match="counted from 1"):
        attempt_delta(0.1, -1)


def test_a_later_attempt_takes_more_and_says_how_much() -> None:
    found = [exact(reads(45, 1), 0.05, attempt=attempt) for attempt in (0, 1, 2, 3)]
    assert [one.granted for one in found] == [True, False, False, False]
    lacking = [one.missing_tasks for one in found]
    assert lacking == sorted(lacking)
    assert exact(reads(45 + lacking[2], 1), 0.05, attempt=2).granted
    assert {one.confidence_level for one in found} == {0.9}


@pytest.mark.parametrize(
    ("later", "verdict"),
    [
        (reads(120, 2), "confirmed"),
        (reads(20, 2), "open"),
        (reads(120, 2, 60, 2), "refuted"),
        (reads(0, 2), "open"),
        (reads(120, 2, 60, 2, score=0.5), "open"),
    ],
    ids=["clean", "few", "wrong", "none", "below the threshold"],
)
def test_later_answers_confirm_or_refute_what_was_certified(
    later: ScopedAnswers, verdict: str
) -> None:
    held = certify_scopes(reads(150, 4), (0.05,), 0.1)
    found = validate(held, later, 0.1)
    assert [one.certificate_class for one in found] == ["model-based", "exact"]
    assert {one.verdict for one in found} == {verdict}
    for one in found:
        assert one.lower <= one.bound
        assert msgspec.json.decode(msgspec.json.encode(one), type=Validation) == one


@pytest.mark.parametrize(("wrong", "verdict"), [(0.0, "confirmed"), (0.4, "refuted")])
def test_what_is_recalled_is_validated_together_too(wrong: float, verdict: str) -> None:
    judged = reads(300, 2)
    both = msgspec.structs.replace(
        judged, recalled=~judged.recalled, write=judged.task % 2 == 0, tool=judged.task % 2,
        tools=("find", "change"),
    )  # fmt: skip
    held = certify_scopes(both, (0.05,), 0.1)
    later = msgspec.structs.replace(both, wrong=both.task < wrong * 300)
    verdicts = {one.scope: one.verdict for one in validate(held, later, 0.1)}
    assert verdicts[RECALLED] == verdict


def test_what_was_not_granted_is_not_validated() -> None:
    assert validate(certify_scopes(reads(5, 1), (0.05,), 0.1), reads(100, 2), 0.1) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        validate((), reads(1, 1), 1.0)


def test_figures_per_task_are_those_of_the_answers_that_act() -> None:
    judged = reads(200, 5, 3, 2)
    held = certify_scopes(judged, (0.02, 0.05), 0.1)
    one = next(p for p in per_task(judged, held, (0.02, 0.05), 0.1, "model-based")
               if p.max_error == 0.05)  # fmt: skip
    assert (one.origin, one.tasks, one.touched, one.acts, one.wrong) == ("new", 200, 3, 1000, 6)
    assert one.wrong_per_task == pytest.approx(0.03)
    assert one.touched_bound == pytest.approx(binomial_upper(3, 200, 0.05), abs=1e-6)
    assert one.wrong_per_task < one.wrong_per_task_bound <= 0.25


def test_figures_per_task_spend_as_much_as_their_attempt() -> None:
    judged = reads(400, 5, 3, 2)
    held = certify_scopes(judged, (0.05,), 0.1, attempt=2)
    (alone,) = per_task(judged, held, (0.05,), 0.1, "model-based")
    (second,) = per_task(judged, held, (0.05,), 0.1, "model-based", attempt=2)
    assert second.touched_bound == pytest.approx(binomial_upper(3, 400, 0.1 / 6 / 2), abs=1e-6)
    assert second.wrong_per_task_bound > alone.wrong_per_task_bound
    assert second.confidence_level == alone.confidence_level == 0.9


def test_where_nothing_acts_there_are_no_figures_per_task() -> None:
    judged = reads(10, 1)
    assert per_task(judged, certify_scopes(judged, (0.02,), 0.1), (0.02,), 0.1, "exact") == ()
