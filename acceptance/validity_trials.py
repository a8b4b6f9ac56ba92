"""The trials of `acceptance.validity`, each a function of numbers alone, so that processes share
them."""

import numpy as np
from numpy.typing import NDArray

from acceptance.validity_worlds import (
    consistent_agent,
    cross_fitted,
    hindsight,
    mean,
    several_tools,
    true_error,
)
from reflexarc.reflex.certificate import certify
from reflexarc.reflex.claims import CertificateClass, claim_of
from reflexarc.reflex.context import Context
from reflexarc.reflex.per_task import acting, per_task
from reflexarc.reflex.recall import RecallLearner, call_hash, salt_of
from reflexarc.reflex.scopes import ScopedAnswers, certify_scopes
from reflexarc.reflex.simulate import Law, Trials, World, draw, violation_rate
from reflexarc.reflex.validation import validate
from reflexarc.steps import Message, ToolCall

DELTA = 0.1
LEVELS = (0.02, 0.05, 0.10)
_OUTCOMES = 4
_OVER = 1.0001
"""Every answer is wrong so much more often than allowed: any certificate is false."""


def hardest(
    certificate_class: CertificateClass,
    tasks: int,
    answers: float,
    correlation: float,
    alpha: float,
    law: Law,
    calibrated: bool,
    relearned: bool,
    spent: bool,
    repetitions: int,
    seed: int,
) -> Trials:
    """Where every certificate is false. `relearned`: from 30 tasks on, until one is granted."""

    def flat(score: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full_like(score, _OVER * alpha)

    return violation_rate(
        claim_of(certificate_class),
        World(answers=answers, correlation=correlation, curve=flat, law=law),
        tasks=tasks, alpha=alpha, delta=DELTA, repetitions=repetitions, seed=seed,
        calibrated=calibrated, relearned_from=min(30, tasks) if relearned else None, spent=spent,
    )  # fmt: skip


def rising(
    certificate_class: CertificateClass,
    tasks: int,
    answers: float,
    correlation: float,
    alpha: float,
    size_matters: float,
    drift: float,
    repetitions: int,
    seed: int,
) -> Trials:
    """Where surer answers are better, and the surer half has the error allowed."""
    return violation_rate(
        claim_of(certificate_class),
        World(
            answers=answers, correlation=correlation, curve=lambda score: 4 * alpha * (1 - score),
            size_matters=size_matters,
        ),
        tasks=tasks, alpha=alpha, delta=DELTA, repetitions=repetitions, seed=seed, drift=drift,
    )  # fmt: skip


def members(
    certificate_class: CertificateClass,
    tasks: int,
    features: int,
    memory: float,
    alpha: float,
    repetitions: int,
    seed: int,
) -> Trials:
    """Certificates of cross-fitted learners, compared with what their members do on new tasks."""
    random = np.random.default_rng(seed)
    violated, coverage = 0, list[float]()
    for _ in range(repetitions):
        learned = cross_fitted(random, tasks, features, memory)
        (one,) = certify(
            learned.score, learned.wrong, learned.task, alphas=(alpha,), delta=DELTA,
            certificate_class=certificate_class,
        )  # fmt: skip
        coverage.append(one.n / len(learned.score) if one.granted else 0.0)
        if one.threshold is not None:
            exact = certificate_class == "exact"
            violated += true_error(learned, one.threshold, exact=exact) > alpha
    granted = sum(share > 0.0 for share in coverage)
    return Trials(violated / repetitions, granted / repetitions, mean(coverage))


def recalled(
    requests: int,
    runs: int,
    unsure: float,
    alpha: float,
    repetitions: int,
    seed: int,
) -> Trials:
    """Certificates of a memory, judged by leaving out one session after the other, compared with
    what the whole memory does in further sessions. Some requests come oftener than others, `runs`
    times on average. A share `unsure` of them is answered otherwise every second time, the others
    always alike; at 0 all are answered otherwise slightly oftener than allowed: any certificate is
    false. A session has one answer, so both classes are the same."""
    random = np.random.default_rng(seed)
    asked = [Context() for _ in range(requests)]
    for number, context in enumerate(asked):
        context.extend([Message("user", f"request {number}")])
    calls = [ToolCall("", "look", {"at": at}) for at in range(_OUTCOMES)]
    hashes = [[call_hash(salt_of(context), call.key) for call in calls] for context in asked]
    violated, coverage = 0, list[float]()
    for _ in range(repetitions):
        often = random.dirichlet(np.full(requests, 2.0))
        halves = np.where(random.random(requests) < unsure, 0.5, 0.0)
        error = halves if unsure else np.full(requests, _OVER * alpha)
        request = random.choice(requests, requests * runs, p=often)
        others = random.integers(1, _OUTCOMES, len(request))
        made = np.where(random.random(len(request)) < error[request], others, 0)
        done: list[tuple[int, int]] = list(zip(request.tolist(), made.tolist(), strict=True))
        learner = RecallLearner()
        for session, (at, outcome) in enumerate(done):
            learner.observe(asked[at], (calls[outcome],), session)
        rows: list[tuple[float, bool, int]] = []
        for session, (at, outcome) in enumerate(done):
            found = learner.find(asked[at], session)
            if found is not None and found.agreed:
                rows.append((found.score, found.calls[0].call != hashes[at][outcome], session))
        score, wrong, unit = (np.array(column) for column in zip(*rows, strict=True))
        (one,) = certify(
            score, wrong, unit, alphas=(alpha,), delta=DELTA, unit="session",
        )  # fmt: skip
        coverage.append(one.n / len(request) if one.granted else 0.0)
        if one.threshold is None:
            continue
        memory = learner.finish(lambda _tool, _names: True)
        acts = errs = 0.0
        for at, context in enumerate(asked):
            found = memory.find(context)
            if found is not None and found.agreed and found.score >= one.threshold:
                usual = found.calls[0].call == hashes[at][0]
                acts += often[at]
                errs += often[at] * (error[at] if usual else 1 - error[at] / (_OUTCOMES - 1))
        violated += bool(errs > alpha * acts)
    granted = sum(share > 0.0 for share in coverage)
    return Trials(violated / repetitions, granted / repetitions, mean(coverage))


def scopes_falsely(tasks: int, correlation: float, repetitions: int, seed: int) -> float:
    """The largest share, over scopes, in which one was certified falsely, where every certificate
    is false and scores claim that all is well."""
    random = np.random.default_rng(seed)
    false: dict[str, int] = {}
    for _ in range(repetitions):
        judged = several_tools(random, tasks, correlation, _OVER * 0.05)
        for one in certify_scopes(judged, (0.05,), DELTA, classes=("model-based",)):
            false[one.scope] = false.get(one.scope, 0) + one.granted
    return max(false.values(), default=0) / repetitions


def frozen(
    certificate_class: CertificateClass, tasks: int, correlation: float, repetitions: int, seed: int
) -> float:
    """The share in which later answers confirm a certificate that is false."""
    random = np.random.default_rng(seed)
    law: Law = "touched" if certificate_class == "exact" else "beta"
    world = World(
        answers=5.0, correlation=correlation, law=law,
        curve=lambda score: np.full_like(score, _OVER * 0.05),
    )  # fmt: skip
    (held,) = certify(
        np.full(2_000, 0.5), np.zeros(2_000, np.bool_), np.arange(2_000), alphas=(0.05,),
        certificate_class=certificate_class,
    )  # fmt: skip
    confirmed = 0
    for _ in range(repetitions):
        score, wrong, task = draw(random, world, tasks)
        later = _reads(0.5 + score / 2, wrong, task)
        (one,) = validate([held], later, DELTA)
        confirmed += one.verdict == "confirmed"
    return confirmed / repetitions


def touched_missed(tasks: int, correlation: float, repetitions: int, seed: int) -> float:
    """How often the bound of the share of tasks touched misses the truth, among certificates that
    were chosen on the same answers."""
    return _missed(tasks, correlation, repetitions, seed)[0]


def wrong_missed(tasks: int, correlation: float, repetitions: int, seed: int) -> float:
    """The same for the bound of the wrong acts of a task."""
    return _missed(tasks, correlation, repetitions, seed)[1]


def _missed(tasks: int, correlation: float, repetitions: int, seed: int) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    world = World(answers=5.0, correlation=correlation, curve=lambda score: 0.12 * (1 - score))
    many = _reads(*draw(np.random.default_rng(seed + 1), world, 40_000))
    touched = wrong = granted = 0
    for _ in range(repetitions):
        judged = _reads(*draw(random, world, tasks))
        found = certify_scopes(judged, (0.05,), DELTA, classes=("model-based",))
        for one in per_task(judged, found, (0.05,), DELTA, "model-based"):
            acted = acting(many, found, 0.05, "model-based")
            acting_tasks = len(np.unique(many.task[acted]))
            errors = many.task[acted & many.wrong]
            touched += len(np.unique(errors)) / acting_tasks > one.touched_bound
            wrong += len(errors) / acting_tasks > one.wrong_per_task_bound
            granted += 1
    return touched / max(1, granted), wrong / max(1, granted)


def power(tasks: int, runs: int, repetitions: int, seed: int) -> dict[str, list[float]]:
    """Shares of the calls of a consistent agent: certified by each class, and in hindsight, at
    each of LEVELS."""
    random = np.random.default_rng(seed)
    shares: dict[str, list[list[float]]] = {"model-based": [], "exact": [], "hindsight": []}
    classes: tuple[CertificateClass, ...] = ("model-based", "exact")
    for _ in range(repetitions):
        drawn = consistent_agent(random, tasks, runs)
        acts = drawn.score >= 0.5
        for name in classes:
            found = certify(
                drawn.score[acts], drawn.wrong[acts], drawn.task[acts], alphas=LEVELS, delta=DELTA,
                calibrated=True, certificate_class=name,
            )  # fmt: skip
            shares[name].append([one.n / len(acts) if one.granted else 0.0 for one in found])
        shares["hindsight"].append([hindsight(drawn, level) for level in LEVELS])
    return {name: np.mean(rows, axis=0).tolist() for name, rows in shares.items()}


def clean(tasks: int, alpha: float) -> bool:
    """Whether so many tasks without an error certify a level (class exact)."""
    (one,) = certify(
        np.full(tasks, 0.9), np.zeros(tasks, np.bool_), np.arange(tasks), alphas=(alpha,),
        certificate_class="exact",
    )  # fmt: skip
    return one.granted


def _reads(
    score: NDArray[np.float64], wrong: NDArray[np.bool_], task: NDArray[np.int64]
) -> ScopedAnswers:
    no = np.zeros(len(score), np.bool_)
    return ScopedAnswers(
        score=score, wrong=wrong, task=task, recalled=no, write=no,
        tool=np.zeros(len(score), np.int64), tools=("read",),
    )  # fmt: skip
