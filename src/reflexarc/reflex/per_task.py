"""What certificates mean for a task: how many wrong acts to expect, how many tasks see one.

A bound on the share of wrong answers says little to whom a whole task matters. At each level, over
the tasks in which anything acts, all scopes of one origin together (recalled answers: over sessions
of requests that recur):

- the share of tasks touched by a wrong act, with its Clopper-Pearson bound (class *exact*: no
  assumption on how errors of a task hang together);
- the wrong acts of a task, with a bound that takes how many acts tasks have as it was seen, times
  the bound of the share of wrong ones (class *model-based*).

The thresholds were chosen on the same answers, as far as errors were few; such a choice flatters.
So these bounds are taken at half of delta, which `acceptance/validity.py` shows to be enough.
"""

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.claims import CertificateClass, touched_bound
from reflexarc.reflex.clustered import clustered_bound
from reflexarc.reflex.scopes import Granted, Origin, ScopedAnswers, belonging
from reflexarc.reflex.spending import attempt_delta


class PerTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Under one level, certified by the class that acts, for answers of one origin.

    Of `tasks` tasks in which anything acts, `touched` see a wrong act: a share of at most
    `touched_bound` (exact). They hold `acts` acts, `wrong` of them wrong: at most
    `wrong_per_task_bound` a task (model-based). Bounds hold with `confidence_level` each.
    """

    origin: Origin
    max_error: float
    certificate_class: CertificateClass
    confidence_level: float
    tasks: int
    touched: int
    touched_bound: float
    acts: int
    wrong: int
    wrong_per_task: float
    wrong_per_task_bound: float


def per_task(
    judged: ScopedAnswers,
    certificates: Sequence[Certificate],
    levels: Sequence[float],
    delta: float,
    certificate_class: CertificateClass,
    *,
    attempt: int = 0,
) -> tuple[PerTask, ...]:
    """One for every origin and level at which anything acts under certificates of this class.
    `attempt`: see `spending`; its bounds spend as much as its certificates."""
    half = attempt_delta(delta, attempt) / 2
    found: list[PerTask] = []
    origins: tuple[Origin, ...] = ("new", "recalled")
    for origin, level in itertools.product(origins, levels):
        acted = acting(judged, certificates, level, certificate_class)
        acted &= judged.recalled == (origin == "recalled")
        if not acted.any():
            continue
        sizes, errors = judged.part(acted).by_task()
        share = clustered_bound(sizes, errors, half)
        tasks, acts, wrong = len(sizes), int(sizes.sum()), int(errors.sum())
        found.append(
            PerTask(
                origin=origin,
                max_error=level,
                certificate_class=certificate_class,
                confidence_level=round(1.0 - delta, 9),
                tasks=tasks,
                touched=int(np.count_nonzero(errors)),
                touched_bound=round(touched_bound(sizes, errors, half), 6),
                acts=acts,
                wrong=wrong,
                wrong_per_task=round(wrong / tasks, 6),
                wrong_per_task_bound=round(share * acts / tasks, 6),
            )
        )
    return tuple(found)


def acting(
    judged: ScopedAnswers,
    certificates: Sequence[Certificate],
    max_error: float,
    certificate_class: CertificateClass,
) -> NDArray[np.bool_]:
    """Which of the answers would act under this limit."""
    granted = Granted(certificates, certificate_class)
    acted = np.zeros(len(judged), np.bool_)
    for scope, here in belonging(judged, granted):
        one = granted.within(scope, max_error)
        if one is not None and one.threshold is not None:
            acted |= here & (judged.score >= one.threshold)
    return acted
