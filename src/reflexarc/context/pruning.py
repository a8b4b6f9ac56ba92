"""Whether to cut now: what may go of a conversation is cut when that is cheaper than to go on
sending it. Pure: items, prices and chances in, cuts out.

A cut changes the prompt from its place on, so that all behind it is written to the cache once more
instead of being read from it. That pays where what is left out, over the turns still to come, costs
more; and is free where the cache is gone anyway. So cuts are made in few steps, from one place on
to the end, and stay made.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from reflexarc.context.horizon import Horizon
from reflexarc.context.pruning_found import Candidate, Found, ImageBudget
from reflexarc.context.pruning_items import Item, Path
from reflexarc.context.pruning_text import Cut, cut_of


class Terms(msgspec.Struct, frozen=True):
    """What a token of the prompt costs (in any unit of money) that a cache holds, and one that it
    does not hold and then does. `cold`: the chance that the cache is gone at the next turn."""

    read: float
    write: float
    cold: float

    def __post_init__(self) -> None:
        if self.read < 0 or self.write < self.read or not 0 <= self.cold <= 1:
            raise ValueError("reading costs from 0 to what writing costs, a chance is from 0 to 1")


class Rules(msgspec.Struct, frozen=True):
    """`keep_turns`: nothing of the last so many turns of the model's is cut. `least_tokens`: a
    shorter value is left. `least_step_tokens`: a step that breaks the cache saves as much at least.
    `margin`: by which share a step must save more than it costs."""

    keep_turns: int = 3
    least_tokens: int = 64
    least_step_tokens: int = 512
    margin: float = 0.25
    images: ImageBudget = ImageBudget()

    def __post_init__(self) -> None:
        if self.keep_turns < 1 or min(self.least_tokens, self.least_step_tokens) < 0:
            raise ValueError("the last turn is always kept, and sizes are not negative")
        if self.margin < 0:
            raise ValueError("the margin must not be negative")


class Step(msgspec.Struct, frozen=True):
    """What would go, as one: the candidates from the one numbered `first` on. `saved_tokens` of
    each later prompt; `again_tokens` are written to the cache once more."""

    first: int
    saved_tokens: int
    again_tokens: int


Chooser = Callable[[Sequence[Step], float, bool], Step | None]
"""Of the steps that could be made, the one that is: with the turns still to come, and whether the
cache is gone now."""


def worthwhile(terms: Terms, rules: Rules) -> Chooser:
    """The step that saves most, of those that pay."""

    def choose(steps: Sequence[Step], remaining: float, cold: bool) -> Step | None:
        best, most = None, 0.0
        for step in steps:
            won = _won(step, terms, rules, remaining, cold=cold)
            if won > most:
                best, most = step, won
        return best

    return choose


def _won(step: Step, terms: Terms, rules: Rules, remaining: float, *, cold: bool) -> float:
    """What a step wins over waiting for the cache to go by itself; 0 where it does not pay."""
    usual = terms.cold * terms.write + (1 - terms.cold) * terms.read
    later = remaining * usual
    if cold:
        return step.saved_tokens * (terms.write + later)
    if step.again_tokens and step.saved_tokens < rules.least_step_tokens:
        return 0.0
    # Waiting costs nothing, and saves from the first turn on that finds no cache.
    stays = 1 - terms.cold
    none_yet = (1 - stays**remaining) / terms.cold if terms.cold else remaining
    waited = (1 - stays**remaining) * terms.write + (remaining - none_yet) * usual
    gain = step.saved_tokens * (terms.read + later - waited)
    cost = step.again_tokens * (terms.write - terms.read)
    return gain - cost if gain > (1 + rules.margin) * cost else 0.0


class Walk:
    """A conversation as it grew. What was decided at each request depends on what stood there then,
    and on nothing later: going through the same history again decides the same, but for caches that
    were found to be gone."""

    def __init__(self, rules: Rules, horizon: Horizon, choose: Chooser) -> None:
        self.cuts: dict[tuple[int, Path], Cut] = {}
        self.turns = 0
        self.saved_tokens = 0
        self._rules = rules
        self._horizon = horizon
        self._choose = choose
        self._found = Found(rules.images)
        self._made: dict[tuple[int, Path], Cut] = {}
        self._tokens: list[int] = []
        self._begins: list[int] = []
        self._in_turn = False
        self._decided = 0

    def __len__(self) -> int:
        """Items it went through."""
        return len(self._tokens)

    def add(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.turn and not self._in_turn:
                self.decide()  # this turn answers a request that ended here
                self.turns += 1
                self._begins.append(len(self._tokens))
            self._in_turn = item.turn
            self._found.add(len(self._tokens), item)
            self._tokens.append(item.tokens)

    def decide(self, *, cold: bool = False) -> None:
        """At a request with all items so far. Once for each: asked again, it stands."""
        before, self._decided = self._decided, len(self._tokens)
        if before == self._decided:
            return
        listed, steps = self._steps(before)
        if steps:
            remaining = self._horizon.remaining(self.turns + 1)
            step = self._choose(steps, remaining, cold)
            for cut in listed[step.first :] if step is not None else ():
                value = cut.candidate.value
                saving = self._saving(cut)
                self._tokens[cut.candidate.at] -= saving
                self.saved_tokens += saving
                self.cuts[cut.candidate.at, value.path] = cut
                self._found.went(cut.candidate.at, value.path)

    def _steps(self, cached: int) -> tuple[list[Cut], list[Step]]:
        """From each place on, all that may go; `cached` items were in the prompt before this."""
        keep = self._rules.keep_turns
        until = self._begins[-keep] if len(self._begins) >= keep else 0
        listed = [
            cut
            for candidate in self._found.candidates()
            if candidate.at < until
            if self._saving(cut := self._cut_of(candidate)) >= self._rules.least_tokens
        ]
        if not listed:
            return [], []
        ends = [0, *accumulate(self._tokens)]
        steps: list[Step] = []
        saved = saved_cached = 0
        for at in range(len(listed) - 1, -1, -1):
            cut = listed[at]
            saving = self._saving(cut)
            saved += saving
            saved_cached += saving if cut.candidate.at < cached else 0
            again = max(0, ends[cached] - ends[cut.candidate.at] - saved_cached)
            steps.append(Step(at, saved, again))
        return listed, steps

    def _cut_of(self, candidate: Candidate) -> Cut:
        """Made once: a candidate is looked at again at every request until it goes."""
        key = (candidate.at, candidate.value.path)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = cut_of(candidate)
        return made

    def _saving(self, cut: Cut) -> int:
        """Tokens, less what went of it already."""
        at, value = cut.candidate.at, cut.candidate.value
        gone = (
            sum(
                inner.saves_tokens
                for (where, path), inner in self.cuts.items()
                if where == at
                and len(path) > len(value.path)
                and path[: len(value.path)] == value.path
            )
            if value.shows
            else 0
        )
        return cut.saves_tokens - gone
