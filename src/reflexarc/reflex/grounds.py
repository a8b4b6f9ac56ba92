"""On what an answer would be given: the memory or a prediction, and the certificate about it."""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from reflexarc.reflex.card import Card, Certificate
from reflexarc.reflex.member import Answer
from reflexarc.reflex.ranking import Ranking
from reflexarc.reflex.reach import least_tool_probability
from reflexarc.reflex.scopes import Acting, Granted, pool_name
from reflexarc.steps import Effect


class Ground(msgspec.Struct, frozen=True):
    """A ranking, what is answered by it, and the loosest certificate of its scope within the error
    allowed, None without one. `within_reach`: see `Grounds.beyond`."""

    ranking: Ranking
    answer: Answer
    scope: str
    certificate: Certificate | None
    within_reach: bool

    @property
    def holds(self) -> bool:
        """Whether the certificate is about answers as sure as this one."""
        least = None if self.certificate is None else self.certificate.threshold
        return least is not None and self.within_reach and self.answer.confidence >= least

    @property
    def keys(self) -> tuple[str, ...]:
        """The calls that would be made."""
        return tuple(call.key for call in self.answer.calls)


class Grounds:
    """The certificates of a reflex, looked up for what it would answer. Immutable."""

    def __init__(self, card: Card, effects: Mapping[str, Effect]) -> None:
        self._max_error = card.max_error
        self._reach = card.reach
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
        unaided = ranking.unaided
        if first.holds or unaided is None or self.beyond(unaided, max_error, writes) is not None:
            return first
        if ranking.predicted is None:
            return first
        other = self._of(unaided, answer(unaided), max_error, writes)
        return other if other.holds and other.keys == first.keys else first

    def beyond(
        self, ranking: Ranking, max_error: float | None, writes: Collection[str]
    ) -> str | None:
        """Why no call predicted here could act, however it is filled: the reason of an escalation;
        None where one might. What is recalled is known already."""
        if ranking.recalled is not None:
            return None
        limit = self._max_error if max_error is None else max_error
        effects: tuple[Acting, ...] = ("read", "write") if writes else ("read",)
        if not any(self._granted.any("new", effect, limit) for effect in effects):
            return "no_certificate"
        least = least_tool_probability(self._reach, limit)
        # To mend the probabilities of tools costs something, and leaves that of a message alone.
        if 1.0 - ranking.message_probability < least or ranking.tool_probability < least:
            return "free_text" if ranking.verdict is None else "below_threshold"
        return None

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
        within_reach = self.beyond(ranking, max_error, writes) is None
        return Ground(ranking, answer, scope, self.certificate(max_error, scope), within_reach)
