"""Which answers share a certificate: origin and effect, and a tool of its own where data are rich.

A scope is a set of answers with thresholds of its own. Answers of another origin (*recalled*: the
same situation was recorded; *new*: predicted) or another effect never share one. Within "reads",
"writes", "recalled reads" and "recalled writes", a tool gets a scope of its own ("reads:get_order")
where, by the scores, it is expected to lose nothing by that, nor what remains pooled. (Of recalled
answers no tool is set apart: their scores are no probabilities, and promise only that what two runs
agree on is worth a try: there the tests begin.) That choice
and the sequence of thresholds come from scores, tasks and tools alone, before any error is looked
at; so each scope's certificate holds with its confidence whatever was chosen (conditional on a
partition that errors had no part in, nothing was selected). That those of all scopes hold at once
is not claimed.

A pool of writes that holds one tool only bears its name: a write whose certificate is about it
alone may be allowed where others may not.

Recalled answers are also judged together, reads and writes ("recalled"): why runs of a request
disagree has little to do with the effect of what they do, and recurring requests are few. That
certificate is about acts of both. So it acts only where every write may act, and where writes have
a certificate of their own besides, at whatever level: otherwise reads alone would act under what
was judged of both. Else each acts in its own scope.

There is no way back from a tool's own scope to the pool: a tool whose own certificate was refused
would enter the pool because of its errors.
"""

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.answers import Answers, promised
from reflexarc.reflex.certificate import Certificate, certify
from reflexarc.reflex.claims import CLASSES, MODEL_BASED, CertificateClass
from reflexarc.reflex.recall import TWO_AGREE
from reflexarc.reflex.spending import attempt_delta

Origin = Literal["new", "recalled"]
Acting = Literal["read", "write"]
ORIGINS: tuple[Origin, ...] = ("new", "recalled")
EFFECTS: tuple[Acting, ...] = ("read", "write")

RECALLED = "recalled"
"""The scope of all recalled answers together."""

SEVERAL = "several tools"
"""Stands for the tool of an answer whose calls are of several; no tool can be called that. It is
never set apart: who allows a tool's writes allows nothing else by that."""

ALWAYS = "reads"
"""The scope that is shown even where it has no answers: what it lacks is what people ask first."""

_LOSS = 0.1
"""The share of what the pool is expected to certify that setting a tool apart may cost, even with
the bad luck of `Answers.with_bad_luck`."""

_LEAST_TASKS = 45
"""A tool of fewer tasks is pooled: so many clean ones are the least that certify 5%, and of fewer
the clustering of errors cannot be told from bad luck."""


class ScopedAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Judged answers, and what scope each belongs to; all arrays of one length, n.

    `score`: of a new answer the probability of being right; of a recalled one, how far runs agree:
    both in [0, 1]. `wrong`: whether System 2 did otherwise; `task`: the number of its unit, the
    task, or of a recalled answer the session; `recalled`, `write`: its origin and effect; `tool`:
    index into `tools`.
    An answer is what acts as one. Where a parallel batch acts as a whole, it is one entry: wrong
    unless System 2 made just these calls, a write if any call is, with the score of the batch, and
    of the tool SEVERAL if its calls are of several. Raises ValueError where the arrays do not fit.
    """

    score: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    task: NDArray[np.int64]
    recalled: NDArray[np.bool_]
    write: NDArray[np.bool_]
    tool: NDArray[np.int64]
    tools: tuple[str, ...]

    def __post_init__(self) -> None:
        arrays = (self.score, self.wrong, self.task, self.recalled, self.write, self.tool)
        if len({len(array) for array in arrays}) > 1:
            raise ValueError(f"arrays of {', '.join(str(len(array)) for array in arrays)} answers")
        if len(self.tool) and not 0 <= self.tool.min() <= self.tool.max() < len(self.tools):
            raise ValueError(f"a tool's index is none of {len(self.tools)} tools")

    def __len__(self) -> int:
        return len(self.score)

    def part(self, chosen: NDArray[np.bool_]) -> "ScopedAnswers":
        """Those chosen."""
        return ScopedAnswers(
            score=self.score[chosen], wrong=self.wrong[chosen], task=self.task[chosen],
            recalled=self.recalled[chosen], write=self.write[chosen], tool=self.tool[chosen],
            tools=self.tools,
        )  # fmt: skip

    def by_task(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(answers, errors) of each task that has any."""
        numbers = np.unique(self.task, return_inverse=True)[1].reshape(-1)
        return np.bincount(numbers), np.bincount(numbers, weights=self.wrong).astype(np.int64)

    def ordered(self) -> Answers:
        """In the order of their scores, taken for probabilities: of new answers only."""
        return Answers(self.score, self.wrong, self.task, calibrated=True)


def pool_name(tools: Iterable[str]) -> str:
    """What stands for the tool of an answer that calls these."""
    names = set(tools)
    return names.pop() if len(names) == 1 else SEVERAL


def parent_scope(origin: Origin, effect: Acting) -> str:
    """The pool of an origin and an effect: "reads", "writes", "recalled reads", ..."""
    return f"recalled {effect}s" if origin == "recalled" else f"{effect}s"


def scope_of(scopes: Container[str], origin: Origin, effect: Acting, tool: str) -> str:
    """The scope an answer belongs to, where these scopes are told apart: the tool's own if there
    is one, else the pool."""
    pool = parent_scope(origin, effect)
    own = f"{pool}:{tool}"
    return own if own in scopes else pool


def certify_scopes(
    judged: ScopedAnswers,
    levels: Sequence[float],
    delta: float,
    *,
    attempt: int = 0,
    classes: Sequence[CertificateClass] = CLASSES,
) -> tuple[Certificate, ...]:
    """Certificates of every scope that has answers, and of ALWAYS, at every level, of every class
    asked for.

    The unit of new answers is the task. That of recalled ones is the session: requests that recur
    are the ones remembered, and other runs of them are drawn, not further ones of their kind.
    Each holds with probability 1 - delta by itself (at the `attempt`: see `spending`). Which class
    acts has to be decided beforehand: the better of the two, chosen after the fact, would hold with
    1 - 2 delta only.
    """
    found: list[Certificate] = []
    for scope, answers in scopes_apart(judged, levels, attempt_delta(delta, attempt)):
        for certificate_class in classes:
            recalled = bool(answers.recalled.any())
            found += certify(
                answers.score, answers.wrong, answers.task,
                alphas=levels, delta=delta, calibrated=not recalled,
                promising=TWO_AGREE if recalled else None,
                certificate_class=certificate_class, scope=scope, attempt=attempt,
                unit="session" if recalled else "task",
            )  # fmt: skip
    return tuple(found)


class Granted:
    """Certificates of one class, looked up at every decision. Immutable."""

    def __init__(
        self, certificates: Iterable[Certificate], certificate_class: CertificateClass
    ) -> None:
        self._by_scope: dict[str, list[Certificate]] = {}
        for one in certificates:
            if one.certificate_class == certificate_class:
                self._by_scope.setdefault(one.scope, []).append(one)
        for scope, held in self._by_scope.items():
            granted = [one for one in held if one.granted]
            self._by_scope[scope] = sorted(granted, key=lambda one: -one.max_error)
        self._tightest = {
            (origin, effect): min(found)
            for origin in ORIGINS
            for effect in EFFECTS
            if (found := self._levels(parent_scope(origin, effect)))
        }
        pool = parent_scope("recalled", "write")
        self._together = RECALLED in self._by_scope and any(
            held and scope.split(":", 1)[0] == pool for scope, held in self._by_scope.items()
        )

    def _levels(self, pool: str) -> list[float]:
        """The errors certified in a pool or for a tool of it."""
        return [
            one.max_error
            for scope, held in self._by_scope.items()
            if scope.split(":", 1)[0] == pool
            for one in held
        ]

    def any(self, origin: Origin, effect: Acting, max_error: float) -> bool:
        """Whether any answer of this origin and effect is certified within `max_error`."""
        return self._tightest.get((origin, effect), math.inf) <= max_error

    def scope(self, origin: Origin, effect: Acting, tool: str) -> str:
        """The scope of such an answer."""
        return scope_of(self._by_scope, origin, effect, tool)

    def together(self, scope: str) -> str:
        """Where all writes may act: RECALLED in place of a scope of recalled answers, if these may
        act together, and this one among them; else the scope itself."""
        acts = scope == parent_scope("recalled", "read") or self._by_scope.get(scope)
        return RECALLED if self._together and acts else scope

    def within(self, scope: str, max_error: float) -> Certificate | None:
        """The loosest certificate of a scope granted within `max_error`; None without one."""
        held = self._by_scope.get(scope, ())
        return next((one for one in held if one.max_error <= max_error), None)


def belonging(answers: ScopedAnswers, granted: Granted) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """(scope, which answers belong to it), where these certificates tell scopes apart."""
    for recalled, write in itertools.product((False, True), repeat=2):
        for at, tool in enumerate(answers.tools):
            here = (answers.recalled == recalled) & (answers.write == write) & (answers.tool == at)
            if here.any():
                origin: Origin = "recalled" if recalled else "new"
                yield granted.scope(origin, "write" if write else "read", tool), here


def scopes_apart(
    judged: ScopedAnswers, levels: Sequence[float], delta: float
) -> list[tuple[str, ScopedAnswers]]:
    """(scope, its answers) of every scope that has answers, and of ALWAYS: pools, each before its
    tools."""
    found: list[tuple[str, ScopedAnswers]] = []
    for origin in ORIGINS:
        for effect in EFFECTS:
            pool = judged.part(
                (judged.recalled == (origin == "recalled")) & (judged.write == (effect == "write"))
            )
            name = parent_scope(origin, effect)
            if not len(pool):
                found += [(name, pool)] if name == ALWAYS else []
                continue
            apart = _rich_tools(pool, levels, delta) if origin == "new" else []
            rest = ~np.isin(pool.tool, apart)
            if rest.any():
                left: list[int] = np.unique(pool.tool[rest]).tolist()
                # A write that shares with nobody has a certificate of its own, and says so.
                only: str = pool.tools[left[0]]
                by_itself = effect == "write" and len(left) == 1 and only != SEVERAL
                alone = f":{only}" if by_itself else ""
                found.append((name + alone, pool.part(rest)))
            found += [(f"{name}:{pool.tools[at]}", pool.part(pool.tool == at)) for at in apart]
    together = judged.part(judged.recalled)
    if together.write.any() and not together.write.all():
        found.append((RECALLED, together))
    return found


def _rich_tools(pool: ScopedAnswers, levels: Sequence[float], delta: float) -> list[int]:
    """Tools that get a scope of their own, those of most answers first; one remains in the pool."""
    apart: list[int] = []
    rest = pool
    counts = np.bincount(pool.tool, minlength=len(pool.tools))
    for tool in np.argsort(-counts, kind="stable").tolist():
        own = rest.tool == tool
        if (
            pool.tools[tool] == SEVERAL
            or own.all()
            or len(np.unique(rest.task[own])) < _LEAST_TASKS
        ):
            continue
        if _loses_nothing(rest, own, levels, delta):
            apart.append(tool)
            rest = rest.part(~own)
    return apart


def _loses_nothing(
    pool: ScopedAnswers, own: NDArray[np.bool_], levels: Sequence[float], delta: float
) -> bool:
    """Whether the tool by itself, and the rest without it, are expected to have as much certified
    as they have together, at every level at which they have anything."""
    together = pool.ordered()
    alone = pool.part(own).ordered().with_bad_luck()
    others = pool.part(~own).ordered()
    any_level = False
    for alpha in levels:
        held = promised(together, alpha, delta, MODEL_BASED.promise)
        if not held:
            continue
        any_level = True
        of_tool = int(np.count_nonzero(pool.score[own] >= together.score[held - 1]))
        for part, needed in ((alone, of_tool), (others, held - of_tool)):
            least = math.floor((1.0 - _LOSS) * needed)
            if least and promised(part, alpha, delta, MODEL_BASED.promise, least) < least:
                return False
    return any_level
