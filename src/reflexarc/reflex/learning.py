"""Learning a reflex: fit members, judge each on the tasks it has not seen, calibrate, certify."""

import gc
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.batch_learning import learn_batching
from reflexarc.reflex.card import Card, Certificate, ToolRow
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.confidence import fit_confidence
from reflexarc.reflex.context import Context
from reflexarc.reflex.effects import DECLARED, guess_effect, strictest
from reflexarc.reflex.familiarity_learning import FamiliarityLearner
from reflexarc.reflex.fit import fit_predictors
from reflexarc.reflex.identity import Identity
from reflexarc.reflex.integrity import results_fit
from reflexarc.reflex.judging import JudgedItem, Judging, answer_rows, scoped_answers
from reflexarc.reflex.member import LEAST_THRESHOLD, MEMBERS, Member
from reflexarc.reflex.partial import certify_partials
from reflexarc.reflex.per_task import per_task
from reflexarc.reflex.predictor import Predictor
from reflexarc.reflex.private import Private
from reflexarc.reflex.reach import reaches
from reflexarc.reflex.recall import RecallLearner
from reflexarc.reflex.reflex import Reflex, task_hash
from reflexarc.reflex.repeat import repeats
from reflexarc.reflex.replay import Replay, Replays, replay
from reflexarc.reflex.scopes import certify_scopes
from reflexarc.reflex.sensitive import MIN_TASKS
from reflexarc.reflex.spending import attempt_delta
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Effect, Item, Session, ToolSpec
from reflexarc.steps.errors import LearnError

LEVELS = (0.02, 0.05, 0.10)
LEAST_ERROR = 0.001
_COLLECT_AT = 50_000
_MIN_TASKS = 5
Progress = Callable[[str, float], None]


def learn(
    sessions: Sequence[Session],
    *,
    max_error: float = 0.05,
    confidence: float = 0.9,
    effects: Mapping[str, Effect] | None = None,
    certificate_class: CertificateClass = "model-based",
    attempt: int = 0,
    parts: bool = True,
    progress: Progress | None = None,
) -> Reflex:
    """Learn a reflex from recorded sessions.

    `max_error`: the largest share of wrong answers it may act under, in [0.001, 1); `confidence`:
    the probability, in (0, 1), that a certificate holds; `effects`: declared effects by tool,
    which win over guesses; `certificate_class`: that of the certificates it acts under;
    `attempt`: the number of this attempt, from 1, in a series that learns until something is
    certified (0: it stands alone); `parts`: whether one call may be answered where System 2 makes
    several at once, which leaves it the others; `progress` is called with a phase and the share of
    the work done. Raises LearnError where the sessions hold nothing that could be learned.
    """
    if not LEAST_ERROR <= max_error < 1.0 or not 0.0 < confidence < 1.0:
        raise LearnError(
            "max_error and confidence are shares: give numbers between 0 and 1, and no error "
            f"below {LEAST_ERROR}, which would take tens of thousands of answers to certify"
        )
    if attempt < 0:
        raise LearnError(f"attempt {attempt}: count them from 1; 0 stands for one that is alone")
    with _collecting_rarely():
        return _learned(
            sessions, max_error, confidence, effects or {}, certificate_class, attempt, parts,
            progress or _silent,
        )  # fmt: skip


@contextmanager
def _collecting_rarely() -> Generator[None]:
    """Learning makes few cycles and many objects that stay: looking through them again and again
    took a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AT, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _learned(
    sessions: Sequence[Session],
    max_error: float,
    confidence: float,
    effects: Mapping[str, Effect],
    certificate_class: CertificateClass,
    attempt: int,
    parts: bool,
    say: Progress,
) -> Reflex:
    """What `learn` gives, for arguments that are checked."""
    tasks = sorted({session.task for session in sessions})
    if len(tasks) < _MIN_TASKS:
        raise LearnError(
            f"{len(tasks)} tasks in {len(sessions)} sessions: at least {_MIN_TASKS} different "
            "tasks are needed to judge on some what was learned from others"
        )
    folds = _folds(tasks)
    say("reading what was said and called", 0.0)
    contexts = FamiliarityLearner(MEMBERS)
    replays = Replays()
    private = Private(sessions, lambda session: _read(session, replays, contexts, folds))
    found = _nameable(tool_effects(sessions, effects), private)
    thinking = {name for name, (effect, _) in found.items() if effect == "think"}
    reads = {name for name, (effect, _) in found.items() if effect == "read"}
    writes = {name for name, (effect, _) in found.items() if effect == "write"}
    familiar = [contexts.learned(fold) for fold in range(MEMBERS)]
    memory = RecallLearner()
    judging = Judging(memory, thinking, reads, writes, parts=parts, replay=replays)
    numbered = list(enumerate(sessions))
    left_out = [{task for task in tasks if folds[task] == fold} for fold in range(MEMBERS)]
    fitted = fit_predictors(
        sessions, left_out, thinking, private, _remembering(memory, thinking, replays), replays
    )
    predictors: list[Predictor] = []
    ends: list[Forest | None] = []
    judged: list[JudgedItem] = []
    for fold in range(MEMBERS):
        say(f"learning member {fold + 1} of {MEMBERS}", fold / MEMBERS)
        held_out = [pair for pair in numbered if folds[pair[1].task] == fold]
        learned = next(fitted)
        predictors.append(learned.predictor)
        ends.append(learned.ends)
        judged += judging.items(predictors[fold], ends[fold], familiar[fold], fold, held_out)
    features = np.concatenate([item.features for item in judged])
    right = np.array([item.right for item in judged], dtype=np.bool_)
    taught = np.array([parts or item.opens for item in judged], dtype=np.bool_)
    fold_of = np.array([item.fold for item in judged])
    scores = np.zeros(len(judged))
    confidences: list[Forest] = []
    for fold in range(MEMBERS):
        here = fold_of == fold
        confidences.append(fit_confidence(features[~here & taught], right[~here & taught]))
        if here.any():
            scores[here] = confidences[fold].probabilities(features[here])[:, 0]
    levels = sorted({*LEVELS, max_error})
    results = results_fit(sessions)
    whole, batching = learn_batching(
        judged, scores, fold_of, ends, writes, levels, attempt_delta(1 - confidence, attempt)
    )
    rows = answer_rows(judged, scores, whole, writes, LEAST_THRESHOLD)
    answers = scoped_answers(rows)
    certificates = certify_scopes(answers, levels, 1 - confidence, attempt=attempt)
    partial, partials = certify_partials(
        [item.partial for item in judged], np.where(whole >= LEAST_THRESHOLD, whole, scores),
        fold_of, _task_numbers(judged),
        levels=levels, confidence=confidence, certificate_class=certificate_class, attempt=attempt,
    )  # fmt: skip
    if results.fits is False:
        certificates, partial = _nothing_certified(certificates), _nothing_certified(partial)
    models = _models(sessions, private)
    turns = [
        one for session in sessions for one in session.messages
        if one.tool_calls and not one.by_system1
    ]  # fmt: skip
    card = Card(
        sessions=len(sessions),
        tasks=len(tasks),
        items=len(judged),
        calls=sum(item.call is not None for item in judged),
        exact=_share([item.exact for item in judged if item.call is not None]),
        max_error=max_error,
        confidence_level=confidence,
        models=models,
        prompts=0,
        results=results,
        tools=_tool_rows(sessions, judged, found),
        certificates=certificates,
        partial=partial,
        repeats=repeats(sessions, thinking).of_tools(found),
        certificate_class=certificate_class,
        per_task=per_task(
            answers, certificates, levels, 1 - confidence, certificate_class, attempt=attempt
        ),
        attempt=attempt,
        batches=sum(len(one.tool_calls) > 1 for one in turns),
        turns=len(turns),
        whole=bool(batching),
        parts=parts,
        reach=reaches(
            answers, np.array([row.tool_probability for row in rows]), certificates,
            certificate_class, levels,
        ),
    )  # fmt: skip
    identity = _identity(sessions, found, models)
    card = msgspec.structs.replace(card, prompts=len(identity.prompt.variants))
    say("done", 1.0)
    kinds: dict[str, Effect] = {name: effect for name, (effect, _) in found.items()}
    hashes = frozenset(task_hash(task) for task in tasks)
    members = tuple(
        Member(
            predictors[fold],
            confidences[fold],
            familiar[fold],
            partials.get(fold),
            batching.get(fold),
        )
        for fold in range(MEMBERS)
    )
    recall = memory.finish(lambda tool, names: tool in kinds and not _any_private(private, names))
    return Reflex(card, identity, kinds, members, hashes, recall)


def _silent(_phase: str, _share: float) -> None:
    """Progress that nobody watches."""


def tool_effects(
    sessions: Sequence[Session], declared: Mapping[str, Effect]
) -> dict[str, tuple[Effect, str]]:
    """Effect and why, for every tool that was offered or called; where sessions recorded several
    forms of one tool, the strictest counts. Raises LearnError where a
    declared tool occurs nowhere: a misspelt name must not leave a write unguarded."""
    tools: dict[str, dict[str, ToolSpec]] = {}
    for session in sessions:
        for tool in session.tools:
            tools.setdefault(tool.name, {})[f"{tool.schema_hash} {tool.effect}"] = tool
        for message in session.messages:
            for call in message.tool_calls:
                tools.setdefault(call.name, {})
    unknown = sorted(set(declared) - set(tools))
    if unknown:
        raise LearnError(
            f"an effect is declared for {', '.join(unknown)}, which no session offers or calls; "
            f"the tools are {', '.join(sorted(tools))}"
        )
    found = {
        name: strictest(guess_effect(tool) for tool in specs.values() or (ToolSpec(name),))
        for name, specs in sorted(tools.items())
    }
    found.update({name: (effect, DECLARED) for name, effect in declared.items()})
    return found


def _folds(tasks: Sequence[str]) -> dict[str, int]:
    order = np.random.default_rng(7).permutation(len(tasks))
    return {tasks[int(at)]: place % MEMBERS for place, at in enumerate(order)}


def _read(
    session: Session, replays: Replays, learner: FamiliarityLearner, folds: Mapping[str, int]
) -> Context:
    """The context of a whole session; `learner` sees what it looks like at each item."""
    context = replays.context(session)
    marks = [len(context.seen) for _ in replay(session, context)]
    learner.observe(context, marks, session.task, folds[session.task])
    context.extend(session.messages[context.length :])
    return context


def _remembering(memory: RecallLearner, thinking: Collection[str], replays: Replay) -> Replay:
    """Replays session after session, and remembers what was done in each situation."""
    numbers = count()

    def reading(session: Session) -> Iterator[tuple[Context, Item]]:
        number = next(numbers)
        for context, item in replays(session):
            memory.observe(context, item.calls if item.answers(thinking) else (), number)
            yield context, item

    return reading


def _any_private(private: Private, names: Iterable[str]) -> bool:
    return any(private.name(name) for name in names)


def _nameable(
    found: dict[str, tuple[Effect, str]], private: Private
) -> dict[str, tuple[Effect, str]]:
    """The tools whose names an artifact may hold: offered or called in three tasks, not private.
    Another tool is one never seen; its presence escalates."""
    return {name: one for name, one in found.items() if not private.tool(name)}


def _models(sessions: Sequence[Session], private: Private) -> tuple[str, ...]:
    """The models an artifact may name. Where one was recorded and none may be named, an empty name
    stands for it, which no request fits: no name at all would let any model pass."""
    tasks: defaultdict[str, set[str]] = defaultdict(set)
    for session in sessions:
        if session.model:
            tasks[session.model].add(session.task)
    kept = [name for name, of in tasks.items() if len(of) >= MIN_TASKS and not private.name(name)]
    return tuple(sorted(kept)) or (("",) if tasks else ())


def _identity(
    sessions: Sequence[Session], found: Mapping[str, object], models: tuple[str, ...]
) -> Identity:
    whole = Identity.of(sessions, found)
    schemas = {name: hashes for name, hashes in whole.schemas.items() if name in found}
    return msgspec.structs.replace(whole, schemas=schemas, models=models)


def _nothing_certified(certificates: tuple[Certificate, ...]) -> tuple[Certificate, ...]:
    return tuple(
        msgspec.structs.replace(
            one, threshold=None, bound=max(one.bound, one.max_error), missing=0, missing_tasks=0
        )
        for one in certificates
    )


def _task_numbers(judged: Sequence[JudgedItem]) -> NDArray[np.int64]:
    numbers = {task: at for at, task in enumerate(sorted({item.task for item in judged}))}
    return np.array([numbers[item.task] for item in judged], dtype=np.int64)


def _tool_rows(
    sessions: Sequence[Session], judged: Sequence[JudgedItem], found: dict[str, tuple[Effect, str]]
) -> tuple[ToolRow, ...]:
    right: defaultdict[str, list[bool]] = defaultdict(list)
    for item in judged:
        if item.call is not None:
            right[item.call].append(item.exact)
    calls: defaultdict[str, int] = defaultdict(int)
    tasks: defaultdict[str, set[str]] = defaultdict(set)
    for session in sessions:
        for message in session.messages:
            for call in message.tool_calls:
                calls[call.name] += 1
                tasks[call.name].add(session.task)
    rows = [
        ToolRow(name, effect, why, calls[name], len(tasks[name]), _share(right[name]))
        for name, (effect, why) in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.calls, row.name)))


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 6) if values else 0.0
