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
from reflexarc.reflex.scopes import ScopedAnswers
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
    """Judges sessions by members. `thinking` names the tools that only think, `reads` and `writes`
    those of which calls may act; `memory` has observed every session."""

    def __init__(
        self,
        memory: RecallLearner,
        thinking: AbstractSet[str],
        reads: AbstractSet[str],
        writes: AbstractSet[str],
    ) -> None:
        self._memory = memory
        self._thinking = thinking
        self._reads = reads
        self._acting = reads | writes

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
                # Nothing is proposed there, but what it looks like teaches the confidence.
                asked = not ranking.is_message
                best = ranking.calls[0] if ranking.calls else None
                familiar = familiarity.fault(context) is None
                partial = judge_item(predictor, context, ranking, item, self._thinking, self._reads)
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
                    may_act=asked and self._may_act(context, best) and familiar,
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


def scoped_answers(
    judged: Sequence[JudgedItem],
    scores: NDArray[np.float64],
    writes: AbstractSet[str],
    least: float,
) -> ScopedAnswers:
    """What could have acted, as certificates are judged on it: an item's new answer, with its
    cross-fitted score, where that is at least `least`; and its recalled one. `writes` names the
    tools that write."""
    tools: dict[str, int] = {}
    tasks = {task: at for at, task in enumerate(sorted({item.task for item in judged}))}
    rows: list[tuple[float, bool, int, bool, bool, int]] = []
    for item, score in zip(judged, scores.tolist(), strict=True):
        if item.may_act and item.tool is not None and score >= least:
            tool = tools.setdefault(item.tool, len(tools))
            write = item.tool in writes
            rows.append((score, not item.right, tasks[item.task], False, write, tool))
        again = item.recalled
        if again is not None and again.may_act and again.score >= least:
            tool = tools.setdefault(again.tool, len(tools))
            write = again.tool in writes
            rows.append((again.score, not again.right, item.session, True, write, tool))
    return ScopedAnswers(
        score=np.array([row[0] for row in rows], np.float64),
        wrong=np.array([row[1] for row in rows], np.bool_),
        task=np.array([row[2] for row in rows], np.int64),
        recalled=np.array([row[3] for row in rows], np.bool_),
        write=np.array([row[4] for row in rows], np.bool_),
        tool=np.array([row[5] for row in rows], np.int64),
        tools=tuple(tools),
    )
