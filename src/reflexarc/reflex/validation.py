"""Judging certificates on answers that came later: thresholds are frozen, nothing is chosen.

That is the strictest judgement there is. The models and their thresholds were fixed before these
tasks were seen, so an *exact* bound here is exact with no more assumed than that the tasks are
drawn independently, like those to come: one test per certificate, at the full delta.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.claims import CLASSES, CertificateClass, claim_of
from reflexarc.reflex.scopes import RECALLED, Granted, ScopedAnswers, belonging

Verdict = Literal["confirmed", "open", "refuted"]


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One certificate on later answers. `n` answers of `tasks` tasks reached its threshold,
    `errors` of them wrong, in `tasks_wrong` tasks. With `confidence_level` each: what the class
    claims is at most `bound`, and at least `lower`. `confirmed`: the bound is within `max_error`;
    `refuted`: even the lower limit is not; `open`: too little came to tell."""

    certificate_class: CertificateClass
    scope: str
    max_error: float
    confidence_level: float
    n: int
    errors: int
    tasks: int
    tasks_wrong: int
    bound: float
    lower: float
    verdict: Verdict


def validate(
    certificates: Sequence[Certificate], later: ScopedAnswers, delta: float
) -> tuple[Validation, ...]:
    """One for each certificate that was granted, class by class; 1 - delta is the confidence of
    each of its two limits. `later`: answers of the artifact that holds these certificates, on tasks
    it did not learn from. Raises ValueError unless 0 < delta < 1."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, not {delta}")
    found: list[Validation] = []
    for certificate_class in CLASSES:
        granted = Granted(certificates, certificate_class)
        members: dict[str, NDArray[np.bool_]] = {}
        for scope, here in belonging(later, granted):
            members[scope] = members.get(scope, np.zeros(len(later), np.bool_)) | here
        members[RECALLED] = later.recalled
        for one in certificates:
            if one.threshold is not None and one.certificate_class == certificate_class:
                reached = members.get(one.scope, np.zeros(len(later), np.bool_))
                reached = reached & (later.score >= one.threshold)
                found.append(_validated(one, later.part(reached), delta))
    return tuple(found)


def _validated(certificate: Certificate, answers: ScopedAnswers, delta: float) -> Validation:
    sizes, errors = answers.by_task()
    claim = claim_of(certificate.certificate_class)
    bound, lower = claim.bound(sizes, errors, delta), claim.lower(sizes, errors, delta)
    verdict: Verdict = "open"
    if claim.test(sizes, errors, certificate.max_error) <= delta:
        verdict = "confirmed"
    elif lower > certificate.max_error:
        verdict = "refuted"
    return Validation(
        certificate_class=certificate.certificate_class,
        scope=certificate.scope,
        max_error=certificate.max_error,
        confidence_level=round(1.0 - delta, 9),
        n=len(answers),
        errors=int(errors.sum()),
        tasks=len(sizes),
        tasks_wrong=int(np.count_nonzero(errors)),
        bound=round(bound, 6),
        lower=round(max(0.0, lower), 6),
        verdict=verdict,
    )
