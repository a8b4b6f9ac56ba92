"""Learning what contexts look like, and how far those of other tasks may be from it: on held-out
tasks, each compared with what the tasks of other folds showed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from reflexarc.reflex.context import Context
from reflexarc.reflex.familiarity import (
    Check,
    Familiarity,
    Limits,
    Looks,
    Sizes,
    ToolLooks,
    result_counts,
    sizes_of,
    words_surprise,
)
from reflexarc.reflex.looks import CALL, USER, Look, look_of

MIN_TASKS = 3
CHECKS: tuple[Check, ...] = ("words", "forms", "places", "shapes", "missing")
_BUDGET = 0.01
"""Of held-out contexts, the share that may be flagged."""
_BUDGET_RARE = 0.02
"""The same with signs of orders and with results of tools that were hardly seen."""
_RARE_PLACES = (2, 4, 8, 16, 1 << 30)
_SLACKS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 1e9)
_DROPPED = 0.002
_LEAST_WORDS = 4.0
_FEW = 10
_UNKNOWN_KIND = 3
_USUAL = 0.98
_MIN_RATE, _MAX_RATE = 0.02, 0.6
_MIN_USUAL_RESULTS = 10

Slacks = dict[tuple[str, Check], float]
"""By tool and check, how far its limit is eased."""


class _Figures(msgspec.Struct):
    """One message of a held-out session: what the checks found, before limits."""

    tool: str
    sizes: Sizes
    counts: tuple[float, float, float, float]
    injected: bool


class _Watched(msgspec.Struct):
    """One session: its task's fold, its messages, how many of them stood before each item."""

    fold: int
    looks: list[Look]
    marks: list[int]
    figures: list[_Figures] = []


class FamiliarityLearner:
    """Counts what contexts show, by task; `learned()` says what is familiar.

    `observe` every session once, then ask. A task is held out in its fold."""

    def __init__(self, folds: int) -> None:
        self._folds = range(folds)
        self._fold_of: dict[str, int] = {}
        self._tasks: defaultdict[int, set[str]] = defaultdict(set)
        self._results: defaultdict[str, set[str]] = defaultdict(set)
        self._sessions: list[_Watched] = []
        self._slack: Slacks | None = None
        self._flagged = 0.0
        self._rare_places = _RARE_PLACES[0]

    def observe(self, context: Context, marks: Sequence[int], task: str, fold: int) -> None:
        """One session: its whole context, and the `len(context.seen)` at each decision item."""
        self._fold_of[task] = fold
        looks = [look_of(seen) for seen in context.seen]
        for look in looks:
            self._results[look.tool].add(task)
            for feature in look.features():
                self._tasks[feature].add(task)
        self._sessions.append(_Watched(fold, looks, list(marks)))

    def learned(self, without: int | None = None) -> Familiarity:
        """What is familiar, from every fold but one, or from all of them."""
        if self._slack is None:
            self._measure()
        return self._build(without)

    def _measure(self) -> None:
        known = [self._known(fold) for fold in self._folds]
        usual = [self._usual(fold) for fold in self._folds]
        for session in self._sessions:
            held = known[session.fold]
            of_tools = usual[session.fold]
            said: set[int] = set()
            for look in session.looks:
                session.figures.append(
                    _Figures(
                        look.tool,
                        sizes_of(look, held, said if look.tool != USER else frozenset()),
                        result_counts(look, held, of_tools.get(look.tool, ())),
                        look.tool not in (USER, CALL) and bool(look.cues - held - said),
                    )
                )
                if look.tool in (USER, CALL):
                    said.update(look.cues, *look.segments)
        self._slack = {}
        items = sum(len(session.marks) for session in self._sessions)
        tools = [self._tools(fold, usual[fold]) for fold in self._folds]
        while True:
            flags = self._flags(tools)
            if sum(flags.values()) <= _BUDGET * items:
                break
            # Ease the limit that flags most held-out contexts until few are flagged.
            worst = max(sorted(flags), key=lambda key: flags[key])
            at = _SLACKS.index(self._slack.get(worst, 0.0)) + 1
            self._slack[worst] = _SLACKS[at]
        flagged = 0
        for self._rare_places in _RARE_PLACES:
            flagged = sum(self._flags(tools, self._rare_places).values())
            if flagged <= _BUDGET_RARE * items:
                break
        self._flagged = round(flagged / max(1, items), 6)

    def _flags(
        self, tools: Sequence[Mapping[str, ToolLooks]], rare_places: int | None = None
    ) -> Counter[tuple[str, Check]]:
        """By tool and check, how many held-out contexts are flagged under the slack of now;
        with `rare_places` also for signs of instructions and for tools too rare to know."""
        assert self._slack is not None
        count = Counter[tuple[str, Check]]()
        for session in self._sessions:
            of_tools = tools[session.fold]
            found = _first_flagged(session.figures, of_tools, self._slack, rare_places)
            if found is not None:
                at, key = found
                flagged = sum(mark > at for mark in session.marks)
                if flagged:
                    count[key] += flagged
        return count

    def _build(self, without: int | None) -> Familiarity:
        known = self._known(without)
        tools = self._tools(without, self._usual(without))
        assert self._slack is not None
        slack = self._slack
        eased = {
            name: msgspec.structs.replace(tool, limits=_eased(name, tool.limits, slack))
            for name, tool in tools.items()
        }
        array = np.array(sorted(known), dtype=np.uint64)
        return Familiarity(Looks(eased, self._rare_places, self._flagged), array)

    def _known(self, without: int | None) -> frozenset[int]:
        fold_of = self._fold_of
        return frozenset(
            feature
            for feature, tasks in self._tasks.items()
            if sum(fold_of[task] != without for task in tasks) >= MIN_TASKS
        )

    def _usual(self, without: int | None) -> dict[str, tuple[int, ...]]:
        """By tool: the commonest form of its results and the places that nearly all such show."""
        forms: defaultdict[tuple[str, int], list[Look]] = defaultdict(list)
        for session in self._sessions:
            if session.fold != without:
                for look in session.looks:
                    if look.tool not in (USER, CALL):
                        forms[look.tool, look.form].append(look)
        usual: dict[str, tuple[int, ...]] = {}
        for (tool, form), looks in sorted(forms.items(), key=lambda pair: len(pair[1])):
            if len(looks) < _MIN_USUAL_RESULTS:
                continue
            counts: defaultdict[int, int] = defaultdict(int)
            for look in looks:
                for place in look.places:
                    counts[place] += 1
            enough = _USUAL * len(looks)
            found = sorted(p for p, n in counts.items() if n >= enough)
            usual[tool] = (form, *found)
        return usual

    def _tools(
        self, without: int | None, usual: Mapping[str, tuple[int, ...]]
    ) -> dict[str, ToolLooks]:
        """Rates and limits, of what the folds but one showed when they were held out."""
        figures: defaultdict[str, list[_Figures]] = defaultdict(list)
        sessions = [session for session in self._sessions if session.fold != without]
        for session in sessions:
            for one in session.figures:
                figures[one.tool].append(one)
        rates = {tool: _rate(found) for tool, found in figures.items()}
        tools: dict[str, ToolLooks] = {}
        for tool, found in figures.items():
            tasks = {task for task in self._results[tool] if self._fold_of[task] != without}
            if tool in (USER, CALL) or len(tasks) < MIN_TASKS:
                continue
            few = 1.0 if len(found) < _FEW else 0.0
            forms, places, shapes, missing = (
                max(few, _most([one.counts[at] for one in found])) for at in range(4)
            )
            surprises = [words_surprise(one.sizes, rates[tool]) for one in found]
            words = max(_LEAST_WORDS * (1 + few), _most(surprises))
            limits = (words, min(forms, few), places, shapes, missing)
            tools[tool] = ToolLooks(rates[tool], limits, usual.get(tool, ()))
        if USER in figures:
            rate = rates[USER]
            peaks = [max(_running(session, rate), default=0.0) for session in sessions]
            limit = max(_LEAST_WORDS, _most(peaks))
            tools[USER] = ToolLooks(rate, (limit, 0.0, 0.0, 0.0, 0.0))
        return tools


def _first_flagged(
    figures: Sequence[_Figures],
    tools: Mapping[str, ToolLooks],
    slack: Slacks,
    rare_places: int | None,
) -> tuple[int, tuple[str, Check]] | None:
    """Index, tool and check of the first message that is over a limit; None where none is."""
    surprise = 0.0
    for at, one in enumerate(figures):
        if one.tool == CALL:
            continue
        tool = tools.get(one.tool)
        strange = one.counts[0] > _UNKNOWN_KIND or one.counts[1] > (rare_places or 0)
        if rare_places is not None and (one.injected or (tool is None and strange)):
            return at, (one.tool, "places")
        if tool is None:
            continue
        words = words_surprise(one.sizes, tool.word_rate, user=one.tool == USER)
        if one.tool == USER:
            words = surprise = max(0.0, surprise + words)
        limits = _eased(one.tool, tool.limits, slack)
        for check, value, limit in zip(CHECKS, (words, *one.counts), limits, strict=True):
            if value > limit:
                return at, (one.tool, check)
    return None


def _eased(tool: str, limits: Limits, slack: Slacks) -> Limits:
    a, b, c, d, e = (
        limit + slack.get((tool, check), 0.0) * (limit + 2.0)
        for check, limit in zip(CHECKS, limits, strict=True)
    )
    return a, b, c, d, e


def _running(session: _Watched, rate: float) -> list[float]:
    """The surprise at each of a user's messages."""
    surprise = 0.0
    found: list[float] = []
    for one in session.figures:
        if one.tool == USER:
            surprise = max(0.0, surprise + words_surprise(one.sizes, rate, user=True))
            found.append(surprise)
    return found


def _rate(figures: Sequence[_Figures]) -> float:
    unknown = sum(unknown for one in figures for unknown, _ in one.sizes)
    words = sum(size for one in figures for _, size in one.sizes)
    return min(_MAX_RATE, max(_MIN_RATE, (unknown + 1) / (words + 20)))


def _most(values: Sequence[float]) -> float:
    """The largest, of many values without the largest of every five hundred."""
    ordered = sorted(values, reverse=True)
    return ordered[int(_DROPPED * len(ordered))] if ordered else 0.0
