"""Judging held-out sessions while learning: what a member, or the memory, would have answered."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.batches import Batch, batch_of
from reflexarc.reflex.confidence import FEATURES, confidence_features, whole_features
from reflexarc.reflex.context import Context
from reflexarc.reflex.familiarity import Familiarity
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.partial import PartialItem, judge_item
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.recall import RecallLearner
from reflexarc.reflex.recalling import remembered
from reflexarc.reflex.replay import Replay, replay
from reflexarc.reflex.scopes import ScopedAnswers, pool_name
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Item, Session

SURELY_A_MESSAGE = 0.8
"""From this probability on, far above that at which no call is proposed, calls are only filled
where one was recorded, to compare with. The confidence learns of such an item that nothing is
called there: without these plain cases it tells less well how sure the others are."""

_NOTHING_CALLED = np.zeros((1, len(FEATURES)), dtype=np.float32)


class RecalledItem(msgspec.Struct):
    """What the other runs of an item's situation say: a score, what they called (`tool`, `write`:
    see `AnswerRow`), whether it was right."""

    score: float
    tool: str
    write: bool
    right: bool
    may_act: bool


class BatchItem(msgspec.Struct):
    """The batch of several calls that was predicted at an item: features, whether System 2 made
    just these calls together, and what `AnswerRow` says of it."""

    features: NDArray[np.float32]
    right: bool
    tool: str
    write: bool
    calls: int
    may_act: bool


class JudgedItem(msgspec.Struct):
    """One cross-fitted item: features of its ranking, whether the best call was right.

    `tool` is the best call's, `call` the recorded one's, None where System 2 wrote a message.
    `exact`: the best call was made; `right`: and could be answered by itself. `opens`: no call of
    its turn stands before it. `filled`: it was looked at for the confidence; where a message is
    sure it was not: features are 0 and no call is right. `may_act` only where no result is out,
    and only where the context is familiar from the tasks of other folds.
    `tool_probability` is that of the likeliest tool. The ranking is that of a
    member that never saw the task; `recalled` is what the task's other sessions say."""

    task: str
    session: int
    fold: int
    features: NDArray[np.float32]
    exact: bool
    right: bool
    opens: bool
    filled: bool
    tool: str | None
    call: str | None
    may_act: bool
    tool_probability: float
    partial: PartialItem | None
    recalled: RecalledItem | None
    batch: BatchItem | None


class Judging:
    """Judges sessions by members. `thinking` names the tools that only think, `reads` and `writes`
    those of which calls may act; `memory` has observed every session; `parts`: see `Card`."""

    def __init__(
        self,
        memory: RecallLearner,
        thinking: AbstractSet[str],
        reads: AbstractSet[str],
        writes: AbstractSet[str],
        *,
        parts: bool,
        replay: Replay = replay,
    ) -> None:
        """`replay` replays the sessions that are judged."""
        self._memory = memory
        self._thinking = thinking
        self._reads = reads
        self._writes = writes
        self._parts = parts
        self._replay = replay

    def items(
        self,
        predictor: Predictor,
        ends: Forest | None,
        familiarity: Familiarity,
        fold: int,
        sessions: Sequence[tuple[int, Session]],
    ) -> Iterator[JudgedItem]:
        """Every item of the (numbered) sessions that were held out in a fold; `ends` says where
        batches end."""
        for number, session in sessions:
            offered = {tool.name for tool in offered_tools(session)}
            for context, item in self._replay(session):
                ranking = predictor.rank(context, offered)
                answers = item.answers(self._thinking)
                # Nothing is proposed there, but what it looks like teaches the confidence.
                asked = not ranking.is_message
                filled = ranking.message_probability < SURELY_A_MESSAGE
                calls = ranking.calls if filled or answers else ()
                best = calls[0] if calls else None
                exact = best is not None and best.key in answers
                familiar = familiarity.fault(context) is None
                partial = judge_item(predictor, context, ranking, item, self._thinking, self._reads)
                if partial is not None:
                    partial.may_act &= familiar
                batch = None if best is None or not asked else batch_of(
                    predictor, ends, context, ranking, offered
                )  # fmt: skip
                found = self._memory.find(context, number)
                recalled = remembered(predictor, context, ranking, found, offered)
                yield JudgedItem(
                    task=session.task,
                    session=number,
                    fold=fold,
                    features=confidence_features(context, ranking) if filled else _NOTHING_CALLED,
                    exact=exact,
                    right=filled and exact and self._alone(item),
                    opens=not item.position,
                    filled=filled,
                    tool=None if best is None else best.name,
                    call=item.calls[0].name if answers else None,
                    may_act=asked and best is not None and familiar
                    and self._may_act(context, (best,)),
                    tool_probability=ranking.tool_probability if filled else 0.0,
                    partial=partial,
                    recalled=self._recalled(predictor, context, recalled, item, offered, familiar),
                    batch=self._batch(context, ranking, batch, item, familiar),
                )  # fmt: skip

    def _alone(self, item: Item) -> bool:
        """Whether one right call of an item is a right answer."""
        return self._parts or item.is_last

    def _may_act(self, context: Context, calls: Iterable[RankedCall]) -> bool:
        acting = self._reads | self._writes
        return not context.unanswered_calls and all(call.name in acting for call in calls)

    def _batch(
        self, context: Context, ranking: Ranking, batch: Batch | None, item: Item, familiar: bool
    ) -> BatchItem | None:
        if batch is None or len(batch) < 2:
            return None
        return BatchItem(
            features=whole_features(context, ranking, batch),
            right=batch.is_turn(item.calls),
            tool=pool_name(call.name for call in batch.calls),
            write=any(call.name in self._writes for call in batch.calls),
            calls=len(batch),
            may_act=familiar and self._may_act(context, batch.calls),
        )

    def _recalled(
        self,
        predictor: Predictor,
        context: Context,
        ranking: Ranking,
        item: Item,
        offered: AbstractSet[str],
        familiar: bool,
    ) -> RecalledItem | None:
        found = ranking.recalled
        if found is None:
            return None
        batch = batch_of(predictor, None, context, ranking, offered)
        whole = len(batch) > 1
        if whole:
            right = batch.is_turn(item.calls)
        else:
            right = batch.calls[0].key in item.answers(self._thinking) and self._alone(item)
        return RecalledItem(
            score=found.score if self._parts and not whole else found.whole_score,
            tool=pool_name(call.name for call in batch.calls),
            write=any(call.name in self._writes for call in batch.calls),
            right=right,
            may_act=familiar and self._may_act(context, batch.calls),
        )


class AnswerRow(msgspec.Struct, frozen=True):
    """An answer that could have acted. `tool`: that of its calls (`pool_name`); `write`: one of
    them writes; `unit`: the number of its task, or of its session where it was recalled;
    `tool_probability`: that of the likeliest tool."""

    score: float
    wrong: bool
    unit: int
    recalled: bool
    write: bool
    tool: str
    calls: int
    tool_probability: float = 1.0


def answer_rows(
    judged: Sequence[JudgedItem],
    scores: NDArray[np.float64],
    whole: NDArray[np.float64],
    writes: AbstractSet[str],
    least: float,
) -> list[AnswerRow]:
    """What could have acted: of each item its new answer, a batch where the score of that (`whole`,
    0 where there is none) is at least `least`, else its best call where the score of that is; and
    its recalled answer. `writes` names the tools that write."""
    tasks = {task: at for at, task in enumerate(sorted({item.task for item in judged}))}
    rows: list[AnswerRow] = []
    for item, score, together in zip(judged, scores.tolist(), whole.tolist(), strict=True):
        unit, batch = tasks[item.task], item.batch
        if batch is not None and together >= least:
            if batch.may_act and item.may_act:
                rows.append(AnswerRow(
                    together, not batch.right, unit, False, batch.write, batch.tool, batch.calls,
                    item.tool_probability,
                ))  # fmt: skip
        elif item.may_act and item.tool is not None and score >= least:
            write = item.tool in writes
            rows.append(AnswerRow(
                score, not item.right, unit, False, write, item.tool, 1, item.tool_probability
            ))  # fmt: skip
        again = item.recalled
        if again is not None and again.may_act and again.score >= least:
            rows.append(AnswerRow(
                again.score, not again.right, item.session, True, again.write, again.tool, 1
            ))  # fmt: skip
    return rows


def scoped_answers(rows: Sequence[AnswerRow]) -> ScopedAnswers:
    """The same as certificates are judged on it."""
    tools: dict[str, int] = {}
    for row in rows:
        tools.setdefault(row.tool, len(tools))
    return ScopedAnswers(
        score=np.array([row.score for row in rows], np.float64),
        wrong=np.array([row.wrong for row in rows], np.bool_),
        task=np.array([row.unit for row in rows], np.int64),
        recalled=np.array([row.recalled for row in rows], np.bool_),
        write=np.array([row.write for row in rows], np.bool_),
        tool=np.array([tools[row.tool] for row in rows], np.int64),
        tools=tuple(tools),
    )
