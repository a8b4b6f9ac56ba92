"""Which predictions can be sure enough to act, told before their calls are filled.

To fill the calls of a turn costs more than everything else in a decision, and most decisions
escalate. Of the answers that were certified, the least probability of the likeliest tool is kept:
where it is below that, no call is looked for.

That limit comes from confidences and probabilities alone, never from errors. Every answer a
certificate was judged on is within reach; of those to come fewer act than without the limit (one in
n + 1 by luck, where n were certified), never others.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.scopes import Granted, ScopedAnswers, belonging

_MOST = 0.8
"""More is never asked of a tool: an agent that does always the same gives its tools .99, and of its
odder conversations nothing is known to be wrong with .9."""


class Reach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the predictions certified within `max_error`, the least probability that the likeliest
    tool had; .8 at most."""

    max_error: float
    tool_probability: float


def reaches(
    answers: ScopedAnswers,
    tool_probability: NDArray[np.float64],
    certificates: Sequence[Certificate],
    certificate_class: CertificateClass,
    levels: Sequence[float],
) -> tuple[Reach, ...]:
    """One per level at which predictions are certified, the tightest first. `tool_probability`: of
    the likeliest tool where each answer was given, (n,)."""
    granted = Granted(certificates, certificate_class)
    scopes = list(belonging(answers, granted))
    found: list[Reach] = []
    for level in sorted(levels):
        acts = np.zeros(len(answers), np.bool_)
        for scope, here in scopes:
            certificate = granted.within(scope, level)
            if certificate is not None and certificate.threshold is not None:
                acts |= here & ~answers.recalled & (answers.score >= certificate.threshold)
        if acts.any():
            found.append(Reach(level, min(_MOST, float(tool_probability[acts].min()))))
    return tuple(found)


def least_tool_probability(reaches: Sequence[Reach], max_error: float) -> float:
    """What the likeliest tool has to have within this error; 0.0 where nothing is known of it."""
    within = [reach.tool_probability for reach in reaches if reach.max_error <= max_error]
    return min(within, default=0.0)
