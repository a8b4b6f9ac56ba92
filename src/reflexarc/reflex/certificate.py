"""Which answers may act: the loosest confidence threshold with a certified bound on errors.

Two classes of claims (`claims.py`): *model-based*, over answers, and *exact*, over tasks.

Procedure of both: fixed-sequence testing (Angelopoulos et al., "Learn then test", 2021; Wiens,
Pharm. Stat. 2, 2003). A sequence of thresholds, from strict to loose, is laid down from scores and
tasks alone, before any error is looked at (`answers.py`); each is tested at the full level; the
first that fails ends the sequence. One threshold, fixed before the answers were seen, is judged by
`validation.py`.

Assumes of both: tasks are independent, and those to come are like those judged on. Scores and
errors of a task come from a model that did not learn from that task. Where several models were each
judged on the tasks left out for it (cross-fitting), the claim is about an answer of one of them
drawn at random, and what is left is that these models share most of their tasks: their errors on
different folds are not quite independent. For models that change little when one task is exchanged
the law of the sum is as if they were (Bayle, Bayle, Janson & Mackey, "Cross-validation confidence
intervals for test error", 2020); `acceptance/validity.py` shows what it does to models that do.
Of *model-based*: within a task errors are exchangeable, with an intra-class correlation of at most
.5. A change of work breaks either: docs/certificate.md.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.answers import Answers, fixed_sequence
from reflexarc.reflex.claims import CertificateClass, Claim, claim_of
from reflexarc.reflex.clustered import binomial_upper as binomial_upper
from reflexarc.reflex.clustered import correlation_under, design_effect
from reflexarc.reflex.spending import attempt_delta

Unit = Literal["task", "session"]


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on the error of what a scope answers, or what is missing for one.

    With probability `confidence_level` over the draw of the tasks judged on, of the answers with
    confidence >= `threshold` (class `model-based`), or of the tasks with such answers (`exact`: a
    wrong one in them), at most the share `max_error` is not what System 2 would have done. Judged
    on `n` answers, `errors` of them wrong, in `tasks` tasks, `tasks_wrong` of them with an error;
    none of these was learned from by the model that answered. Where `unit` is "session", read
    sessions for tasks: each was left out of the memory that it was judged by.

    `bound` is the upper limit that these very answers reach, at most `max_error` with a
    certificate. `threshold` is None where nothing could be certified: then the counts are of the
    answers that came nearest, and about `missing` further right ones, in `missing_tasks` further
    tasks, would have done. `design_effect`: by how much clustering inflates the variance (1.0: not
    at all).
    """

    certificate_class: CertificateClass
    scope: str
    unit: Unit
    max_error: float
    confidence_level: float
    threshold: float | None
    bound: float
    n: int
    errors: int
    tasks: int
    tasks_wrong: int
    design_effect: float
    procedure: str
    missing: int
    missing_tasks: int

    @property
    def granted(self) -> bool:
        """Whether any answer may act under it."""
        return self.threshold is not None


def certify(
    score: NDArray[np.floating[Any]],
    wrong: NDArray[np.bool_],
    task: NDArray[np.integer[Any]],
    *,
    alphas: Sequence[float] = (0.02, 0.05, 0.10),
    delta: float = 0.1,
    calibrated: bool = False,
    promising: float | None = None,
    certificate_class: CertificateClass = "model-based",
    scope: str = "reads",
    attempt: int = 0,
    unit: Unit = "task",
) -> list[Certificate]:
    """One certificate per level of error in `alphas`, in that order.

    `score`, `wrong` and `task`, each of n entries: the confidence of an answer (higher is surer),
    whether System 2 did otherwise, and its task. Only answers that may act belong here. An answer
    is whatever acts as one: a call, or a whole parallel batch, which is wrong if any call in it is.
    `calibrated`: the scores are probabilities of being right, and may say where to begin; where
    they mislead, less is certified, never more. `promising`: of scores that are none, where to
    begin; it must not depend on what was answered rightly. `attempt`: see `spending.attempt_delta`.
    Each level holds with probability 1 - delta; that all hold at once is not claimed. Raises
    ValueError for lengths that differ, scores that are not finite, and levels outside (0, 1).
    """
    answers = Answers(score, wrong, task, calibrated=calibrated, promising=promising)
    if not 0.0 < delta < 1.0 or not all(0.0 < a < 1.0 for a in alphas):
        raise ValueError(f"levels must lie between 0 and 1: alphas {tuple(alphas)}, delta {delta}")
    claim = claim_of(certificate_class)
    spent = attempt_delta(delta, attempt)
    found: list[Certificate] = []
    for alpha in alphas:
        n, failed = fixed_sequence(answers, alpha, spent, claim.test, claim.promise)
        missing = (0, 0)
        threshold = float(answers.score[n - 1]) if n else None
        if not n:
            *missing, n = _nearest(claim, answers, alpha, spent, failed or len(answers))
        sizes, errors = answers.sizes(n), answers.errors(n)
        effect = design_effect(sizes, correlation_under(sizes, errors, alpha))
        found.append(
            Certificate(
                certificate_class=certificate_class,
                scope=scope,
                unit=unit,
                max_error=alpha,
                confidence_level=round(1.0 - delta, 9),
                threshold=threshold,
                bound=_bound(claim, sizes, errors, alpha, spent, granted=threshold is not None),
                n=n,
                errors=int(errors.sum()),
                tasks=len(sizes),
                tasks_wrong=int(np.count_nonzero(errors)),
                design_effect=round(effect, 3),
                procedure=claim.procedure,
                missing=missing[0],
                missing_tasks=missing[1],
            )
        )
    return found


def _bound(
    claim: Claim,
    sizes: NDArray[np.int64],
    errors: NDArray[np.int64],
    alpha: float,
    delta: float,
    *,
    granted: bool,
) -> float:
    """The limit reached, rounded up; never on the other side of alpha than the test said."""
    bound = min(1.0, float(np.ceil(claim.bound(sizes, errors, delta) * 1e5) / 1e5))
    return min(bound, alpha) if granted else max(bound, alpha)


def _nearest(
    claim: Claim, answers: Answers, alpha: float, delta: float, failed: int
) -> tuple[int, int, int]:
    """(answers missing, tasks missing, n) of the prefix, not longer than the one that failed, that
    lacks least: further answers, all right, in further tasks of the usual size, until the test
    would pass."""
    if not failed:
        nothing = np.zeros(0, np.int64)
        missing, tasks = _missing(claim, nothing, nothing, alpha, delta, None) or (0, 0)
        return missing, tasks, 0
    found: tuple[int, int, int] | None = None
    for n in answers.prefixes(answers.prefix_from(min(failed, 10)), coarse=True):
        if n <= failed:
            less_than = found[0] if found else None
            lacks = _missing(claim, answers.sizes(n), answers.errors(n), alpha, delta, less_than)
            found = (*lacks, n) if lacks is not None else found
    return found or (0, 0, failed)


def _missing(
    claim: Claim,
    sizes: NDArray[np.int64],
    errors: NDArray[np.int64],
    alpha: float,
    delta: float,
    less_than: int | None,
) -> tuple[int, int] | None:
    """(answers, tasks) that this prefix lacks; None where that is not less than `less_than`."""
    usual = max(1, round(float(sizes.mean()))) if len(sizes) else 1
    passes = claim.lacking(sizes, errors, alpha, delta, usual)
    if less_than is None:
        low, high = 0, 1
        while not passes(high):
            low, high = high, 2 * high
    else:
        low, high = 0, (less_than - 1) // usual
        if high < 1 or not passes(high):
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high * usual, high
