"""A member of a reflex: what was learned on all folds of the tasks but one, and judged on that.

A reflex holds one member per fold. A conversation is answered by one of them, drawn by a hash of
its opening, from first to last. So an answer to a task to come is that of a model drawn at random
among the very models that were judged, each on tasks it had not seen: the share of wrong answers
measured over all folds is that of what acts. Nothing is fitted again on everything afterwards,
which nobody could have judged.
"""

from collections.abc import Sequence

import msgspec

from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.familiarity import Familiarity
from reflexarc.reflex.predictor import Predictor, Ranking
from reflexarc.reflex.trees import Forest

MEMBERS = 5


class Member(msgspec.Struct, frozen=True):
    """Ranks calls, says how sure it is of the best, and tells contexts unlike those learned from.
    `partial` is the confidence of partial decisions, None where none were learned."""

    predictor: Predictor
    confidence: Forest
    familiarity: Familiarity
    partial: Forest | None = None

    def confidence_of(self, context: Context, ranking: Ranking) -> float:
        """The calibrated probability that the best-ranked call is what System 2 does next."""
        if ranking.recalled is not None:
            return ranking.recalled.score
        features = confidence_features(context, ranking)
        return float(self.confidence.probabilities(features)[0, 0])


def drawn(members: Sequence[Member], context: Context) -> Member:
    """The member that answers this conversation."""
    return members[context.opening % len(members)]
