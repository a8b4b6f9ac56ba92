"""When a stream is learned from, and which of these learnings are attempts at a certificate.

Every attempt costs: the certificates of all attempts have to hold together. So the first is made
where the past holds as many sessions as an error-free certificate would take, were each a task of
its own, and further ones more seldom. Both are decided from counts, never from an error.
"""

import math
from collections.abc import Sequence

import msgspec

from reflexarc.reflex.spending import attempt_delta
from reflexarc.steps import Session

GROWTH = 1.25
"""Before the first attempt: learn again when there are so many times the sessions learned from
last. All learning together then costs about five times the last one, however long the stream."""

GROWTH_OF_ATTEMPTS = 1.5
"""The same from the first attempt on: three times the last one."""


class Learning(msgspec.Struct, frozen=True):
    """One learning from the first `sessions` of a stream, of `tasks` tasks. `attempt` at acting, 0:
    none; `confidence`: with which its certificates have to hold."""

    sessions: int
    tasks: int
    attempt: int
    confidence: float


def spent_confidence(confidence: float, attempt: int) -> float:
    """With which an attempt's certificates must hold, so that those of all attempts, however many,
    hold together with `confidence`: attempt k spends 1/(k(k+1)) of what may fail."""
    return 1.0 - attempt_delta(1.0 - confidence, attempt)


def least_sessions(max_error: float, confidence: float) -> int:
    """How many independent sessions without an error show, at that confidence, that at most
    `max_error` of sessions see one."""
    return math.ceil(math.log(1.0 - confidence) / math.log(1.0 - max_error))


def learning_plan(
    ordered: Sequence[Session],
    block: int,
    *,
    every: int | None,
    max_error: float,
    confidence: float,
) -> list[Learning]:
    """When to learn: every so many blocks, or (None) when the past has grown enough. Never after
    the last block: nothing would be judged by it."""
    plan: list[Learning] = []
    attempt, tasks, counted = 0, set[str](), 0
    least = least_sessions(max_error, spent_confidence(confidence, 1))
    for blocks, past in enumerate(range(block, len(ordered), block), 1):
        tasks.update(session.task for session in ordered[counted:past])
        counted = past
        growth = GROWTH_OF_ATTEMPTS if attempt else GROWTH
        due = blocks % every == 0 if every else not plan or past >= growth * plan[-1].sessions
        held = spent_confidence(confidence, attempt + 1)
        if due:
            attempt += past >= least or attempt > 0
            plan.append(Learning(past, len(tasks), attempt, held))
    return plan
