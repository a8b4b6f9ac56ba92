"""A member of a reflex: what was learned on all folds of the tasks but one, and judged on that.

A reflex holds one member per fold. A conversation is answered by one of them, drawn by a hash of
its opening, from first to last. So an answer to a task to come is that of a model drawn at random
among the very models that were judged, each on tasks it had not seen: the share of wrong answers
measured over all folds is that of what acts. Nothing is fitted again on everything afterwards,
which nobody could have judged.
"""

from collections.abc import Collection, Sequence

import msgspec

from reflexarc.reflex.batches import batch_of
from reflexarc.reflex.confidence import confidence_features, whole_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.familiarity import Familiarity
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.trees import Forest

MEMBERS = 5
LEAST_THRESHOLD = 0.5
"""No answer acts that is likelier wrong than right."""


class Batching(msgspec.Struct, frozen=True):
    """Where the batches of an agent end, and how sure a whole batch is."""

    ends: Forest
    confidence: Forest


class Answer(msgspec.Struct, frozen=True):
    """What would be answered: one call, or a whole batch, and the calibrated probability that it is
    right: that System 2 makes this call next, or just these calls together."""

    calls: tuple[RankedCall, ...]
    confidence: float


class Member(msgspec.Struct, frozen=True):
    """Ranks calls, says how sure it is of the best, and tells contexts unlike those learned from.
    `partial` is the confidence of partial decisions, None where none were learned; `batching` is
    None where it never answers with several calls."""

    predictor: Predictor
    confidence: Forest
    familiarity: Familiarity
    partial: Forest | None = None
    batching: Batching | None = None

    def answer(
        self, context: Context, ranking: Ranking, offered: Collection[str], *, parts: bool
    ) -> Answer:
        """A batch where that is likelier right than wrong, else the best-ranked call; `parts`: it
        may be one of several that System 2 makes."""
        ends = self.batching.ends if self.batching is not None else None
        batch = batch_of(self.predictor, ends, context, ranking, offered)
        if len(batch) > 1:
            if ranking.recalled is not None:
                return Answer(batch.calls, ranking.recalled.whole_score)
            if self.batching is not None:
                row = whole_features(context, ranking, batch)
                confidence = float(self.batching.confidence.probabilities(row)[0, 0])
                if confidence >= LEAST_THRESHOLD:
                    return Answer(batch.calls, confidence)
        if ranking.recalled is not None and not parts:
            return Answer(batch.calls[:1], ranking.recalled.whole_score)
        return Answer(batch.calls[:1], self.confidence_of(context, ranking))

    def confidence_of(self, context: Context, ranking: Ranking) -> float:
        """The calibrated probability that the best-ranked call is what System 2 does next."""
        if ranking.recalled is not None:
            return ranking.recalled.score
        features = confidence_features(context, ranking)
        return float(self.confidence.probabilities(features)[0, 0])


def drawn(members: Sequence[Member], context: Context) -> Member:
    """The member that answers this conversation."""
    return members[context.opening % len(members)]
