"""On what an answer would be given: the memory or a prediction, and the certificate about it."""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from reflexarc.reflex.card import Card, Certificate
from reflexarc.reflex.member import Answer
from reflexarc.reflex.ranking import Ranking
from reflexarc.reflex.scopes import Acting, Granted, pool_name
from reflexarc.steps import Effect


class Ground(msgspec.Struct, frozen=True):
    """A ranking, what is answered by it, and the loosest certificate of its scope within the error
    allowed, None without one."""

    ranking: Ranking
    answer: Answer
    scope: str
    certificate: Certificate | None

    @property
    def holds(self) -> bool:
        """Whether the certificate is about answers as sure as this one."""
        least = None if self.certificate is None else self.certificate.threshold
        return least is not None and self.answer.confidence >= least

    @property
    def keys(self) -> tuple[str, ...]:
        """The calls that would be made."""
        return tuple(call.key for call in self.answer.calls)


class Grounds:
    """The certificates of a reflex, looked up for what it would answer. Immutable."""

    def __init__(self, card: Card, effects: Mapping[str, Effect]) -> None:
        self._max_error = card.max_error
        self._granted = Granted(card.certificates, card.certificate_class)
        self._effects = effects
        self._writes = {name for name, effect in effects.items() if effect == "write"}

    def find(
        self,
        ranking: Ranking,
        answer: Callable[[Ranking], Answer],
        max_error: float | None = None,
        writes: Collection[str] = (),
    ) -> Ground:
        """The memory, where the best call is remembered; but the prediction where that is the very
        same and only that is certified. `writes`: those that may act."""
        first = self._of(ranking, answer(ranking), max_error, writes)
        if first.holds or ranking.predicted is None:
            return first
        other = self._of(ranking.predicted, answer(ranking.predicted), max_error, writes)
        return other if other.holds and other.keys == first.keys else first

    def certificate(self, max_error: float | None, scope: str) -> Certificate | None:
        """The loosest certificate of a scope within `max_error` (None: the error learned for), of
        the class that acts; None where there is none."""
        return self._granted.within(scope, self._max_error if max_error is None else max_error)

    def scope_of(self, ranking: Ranking, tools: Sequence[str], writes: Collection[str] = ()) -> str:
        """The scope of the certificate under which calls of these tools, ranked so, would be made.
        Where all writes may act, all that is recalled acts together."""
        effect: Acting = "read"
        if any(self._effects.get(tool, "write") != "read" for tool in tools):
            effect = "write"
        if ranking.recalled is None:
            return self._granted.scope("new", effect, pool_name(tools))
        own = self._granted.scope("recalled", effect, pool_name(tools))
        return self._granted.together(own) if writes and self._writes <= set(writes) else own

    def _of(
        self, ranking: Ranking, answer: Answer, max_error: float | None, writes: Collection[str]
    ) -> Ground:
        scope = self.scope_of(ranking, [call.name for call in answer.calls], writes)
        return Ground(ranking, answer, scope, self.certificate(max_error, scope))
