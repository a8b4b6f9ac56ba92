"""Parallel calls: where the batch of one LLM call ends, and all that is called together.

After the call that is ranked first, and after each further one, a forest says whether the batch
ends with it: from the history the tool forest read, and from the call (are there values beside
those it took that no call took yet?). Where the batch goes on, the next call is ranked in a context
that holds the calls so far, without their results. An agent that was not seen to call several tools
at once has no such forest: each of its batches is one call, and asking costs nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.boosting import HISTORY_TREES, train
from reflexarc.reflex.candidates import COPIED, Candidate
from reflexarc.reflex.context import Context
from reflexarc.reflex.fork import fork
from reflexarc.reflex.predictor import Predictor, RankedCall, Ranking
from reflexarc.reflex.recalling import recalled_rest
from reflexarc.reflex.trees import Forest
from reflexarc.steps import Session, ToolCall

MAX_CALLS = 8
"""Calls of one batch at most; where more would follow, nothing is answered as a whole."""
MIN_TASKS = 5
"""An agent is seen to call several tools at once if it did so in this many tasks."""

CALL_FEATURES = (
    "tool", "form", "calls_so_far", "same_tool", "most_left", "least_left", "copied", "beside",
)  # fmt: skip
"""What the forest of ends reads of a call, after the history. `left`: values that stand beside one
it took and that no call took yet."""

_ENDS = 0.5
_TREES: dict[str, Any] = {**HISTORY_TREES, "objective": "binary"}
_ROUNDS = 80


class Batch:
    """What would be called together. `ends`: the probability that the batch ends with its last
    call, `goes_on` that it ended with none before."""

    __slots__ = ("calls", "ends", "goes_on")

    def __init__(self, calls: Sequence[RankedCall], ends: float = 1.0, goes_on: float = 1.0):
        self.calls = tuple(calls)
        self.ends = ends
        self.goes_on = goes_on

    def __len__(self) -> int:
        return len(self.calls)

    def is_turn(self, calls: Sequence[ToolCall]) -> bool:
        """Whether these very calls were made, all of them and no other, in whatever order."""
        return sorted(call.key for call in self.calls) == sorted(call.key for call in calls)


class EndLearner:
    """Gathers the rows of the forest of ends; none where the sessions show no batches."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        tasks = {session.task for session in sessions if _batches(session)}
        self.asked = len(tasks) >= MIN_TASKS
        self._rows: list[tuple[NDArray[np.uint16], NDArray[np.float32], NDArray[np.float32]]] = []
        self._ends: list[bool] = []

    def add(
        self,
        context: Context,
        history: tuple[NDArray[np.uint16], NDArray[np.float32]],
        call: ToolCall,
        tool: int,
        form: int,
        chosen: Mapping[str, Candidate],
        ends: bool,
    ) -> None:
        """A recorded call, about to be made in this context, and whether it ended its batch; `tool`
        is the class of its tool, `history` the places of the vector that are not 0, and what stands
        there."""
        if self.asked:
            told = call_features(context, tool, call.name, form, chosen)
            self._rows.append((*history, told))
            self._ends.append(ends)

    def finish(self, width: int) -> Forest | None:
        """None where batches always end with their first call; `width`: that of a history."""
        if not self.asked or all(self._ends) or not any(self._ends):
            return None
        rows = np.zeros((len(self._rows), width + len(CALL_FEATURES)), dtype=np.float32)
        for row, (places, values, told) in zip(rows, self._rows, strict=True):
            row[places] = values
            row[width:] = told
        return train(rows, np.array(self._ends), _TREES, _ROUNDS)


def _batches(session: Session) -> bool:
    return any(
        len(message.tool_calls) > 1 and not message.by_system1 for message in session.messages
    )


def call_features(
    context: Context, tool: int, name: str, form: int, chosen: Mapping[str, Candidate]
) -> NDArray[np.float32]:
    """(CALL_FEATURES,) of a call that would be made now; `tool`: the class of its tool."""
    left: list[int] = []
    beside = 0
    for argument, candidate in chosen.items():
        if candidate.made != COPIED or not candidate.entries:
            continue
        entry = candidate.entries[-1]
        texts = {
            other.text
            for other in context.slots.get(entry.slot, ())
            if other.origin is entry.origin and other.text != candidate.text
        }
        beside = max(beside, len(texts))
        left.append(len(texts - context.used.get((name, argument), set())))
    last = context.last_call
    same = context.open_calls > 0 and last is not None and last.name == name
    told = (
        tool, form, context.open_calls, same, max(left, default=-1), min(left, default=-1),
        len(left), beside,
    )  # fmt: skip
    return np.array(told, dtype=np.float32)


def batch_of(
    predictor: Predictor,
    ends: Forest | None,
    context: Context,
    ranking: Ranking,
    offered: Collection[str],
) -> Batch:
    """All that would be called together, the best-ranked call of this context first; one call
    where results are out, or a message is likelier. `ends` says where batches end (None: after one
    call). The context is left as it was."""
    first = ranking.best
    if first is None:
        return Batch(())
    if context.unanswered_calls or ranking.is_message:
        return Batch((first,))
    if ranking.recalled is not None:
        rest = recalled_rest(predictor, context, first, ranking.recalled, offered)
        each_once = len({first.key, *(call.key for call in rest)}) == 1 + len(rest)
        return Batch((first, *rest) if each_once else (first,))
    if ends is None:
        return Batch((first,))
    return _predicted(predictor, ends, context, ranking, offered)


def _predicted(
    predictor: Predictor,
    end_forest: Forest,
    context: Context,
    ranking: Ranking,
    offered: Collection[str],
) -> Batch:
    here = context
    calls: list[RankedCall] = []
    goes_on = 1.0
    while True:
        made = {call.key for call in calls}
        call = next((one for one in ranking.calls if one.key not in made), None)
        if call is None or ranking.history is None:
            return Batch(calls, 0.0, goes_on)
        calls.append(call)
        tool = predictor.classes.index(call.name)
        told = call_features(here, tool, call.name, call.form, call.chosen)
        row = np.concatenate((ranking.history, told))
        ends = float(end_forest.probabilities(row[None, :])[0, 0])
        if ends >= _ENDS or len(calls) == MAX_CALLS:
            return Batch(calls, ends, goes_on)
        goes_on *= 1.0 - ends
        here = fork(context) if here is context else here
        here.append_call(ToolCall("", call.name, call.arguments))
        ranking = predictor.rank(here, offered)
