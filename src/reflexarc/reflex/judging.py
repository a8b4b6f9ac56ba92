"""Judging held-out sessions while learning: what a member, or the memory, would have answered."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.confidence import confidence_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.familiarity import Familiarity
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.partial import PartialItem, judge_item
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.recall import RecallLearner
from reflexarc.reflex.recalling import remembered
from reflexarc.reflex.replay import replay
from reflexarc.steps import Session


class RecalledItem(msgspec.Struct):
    """What the other runs of an item's situation say: a score, a call, whether it was right."""

    score: float
    tool: str
    right: bool
    may_act: bool


class JudgedItem(msgspec.Struct):
    """One cross-fitted item: features of its ranking, whether the best call was right.

    `tool` is the best call's, `call` the recorded one's, None where System 2 wrote a message.
    `may_act` only where no result is out: of a batch, System 1 answers at most the first call; and
    only where the context is familiar from the tasks of other folds. The ranking is that of a
    member that never saw the task; `recalled` is what the task's other sessions say."""

    task: str
    session: int
    fold: int
    features: NDArray[np.float32]
    right: bool
    tool: str | None
    call: str | None
    may_act: bool
    partial: PartialItem | None
    recalled: RecalledItem | None


class Judging:
    """Judges sessions by members. `thinking` names the tools that only think, `acting` those that
    may act; `memory` has observed every session."""

    def __init__(
        self, memory: RecallLearner, thinking: AbstractSet[str], acting: AbstractSet[str]
    ) -> None:
        self._memory = memory
        self._thinking = thinking
        self._acting = acting

    def items(
        self,
        predictor: Predictor,
        familiarity: Familiarity,
        fold: int,
        sessions: Sequence[tuple[int, Session]],
    ) -> Iterator[JudgedItem]:
        """Every item of the (numbered) sessions that were held out in a fold."""
        for number, session in sessions:
            offered = {tool.name for tool in offered_tools(session)}
            for context, item in replay(session):
                ranking = predictor.rank(context, offered)
                answers = item.answers(self._thinking)
                best = ranking.calls[0] if ranking.calls else None
                familiar = familiarity.fault(context) is None
                partial = judge_item(
                    predictor, context, ranking, item, self._thinking, self._acting
                )
                if partial is not None:
                    partial.may_act &= familiar
                found = self._memory.find(context, number)
                recalled = remembered(predictor, context, ranking, found, offered)
                yield JudgedItem(
                    task=session.task,
                    session=number,
                    fold=fold,
                    features=confidence_features(context, ranking),
                    right=best is not None and best.key in answers,
                    tool=None if best is None else best.name,
                    call=item.calls[0].name if answers else None,
                    may_act=self._may_act(context, best) and familiar,
                    partial=partial,
                    recalled=self._recalled(context, recalled, answers, familiar),
                )

    def _may_act(self, context: Context, best: RankedCall | None) -> bool:
        return best is not None and best.name in self._acting and not context.unanswered_calls

    def _recalled(
        self, context: Context, ranking: Ranking, answers: AbstractSet[str], familiar: bool
    ) -> RecalledItem | None:
        if ranking.recalled is None:
            return None
        best = ranking.calls[0]
        return RecalledItem(
            score=ranking.recalled.score,
            tool=best.name,
            right=best.key in answers,
            may_act=self._may_act(context, best) and familiar,
        )
