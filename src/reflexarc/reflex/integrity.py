"""Whether recorded tool results belong to the calls they stand behind.

Exporters mix things up: results joined to the wrong call, or to another conversation. A reflex
learned from such a log meets other contexts in production than the ones it was judged on, so its
certificate would mean nothing, however well it did on more of the same log.

The sign of it: words of a result that are rare (ids, names, amounts) occur elsewhere in its own
session far more often than in sessions of other tasks. Where they do not, results are mixed up.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from reflexarc.steps import Session

_WORD = re.compile(r"[\w@.+#-]{4,64}")
_MAX_CHARS = 20_000
_RARE = 0.2
_MIN_TASKS = 20
_TRIED = 12
_CLEAR = 5.0
"""How many standard errors apart the two shares must be. Nine public recordings of agents are 11 to
48 apart; the same with their results dealt out anew between sessions, 2.3 at most."""


class ResultsFit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`own`: the mean share of a result's rare words that its session mentions; `other`: the same
    for a result of the same tool from another task. `fits` is None where there was too little to
    tell (fewer than 20 tasks whose results hold rare words)."""

    outputs: int
    tasks: int
    own: float
    other: float
    fits: bool | None


class _Output(msgspec.Struct):
    task: str
    tool: str
    words: frozenset[str]
    mentioned: frozenset[str]


def results_fit(sessions: Sequence[Session]) -> ResultsFit:
    """Compare results with their own sessions and with others. Deterministic."""
    outputs = list(_outputs(sessions))
    tasks_with: defaultdict[str, set[str]] = defaultdict(set)
    for output in outputs:
        for word in output.words:
            tasks_with[word].add(output.task)
    rare = max(2.0, _RARE * len({output.task for output in outputs}))
    by_tool: defaultdict[str, list[_Output]] = defaultdict(list)
    for output in outputs:
        output.words = frozenset(word for word in output.words if len(tasks_with[word]) <= rare)
        if output.words:
            by_tool[output.tool].append(output)
    drawn = random.Random(0)
    own: list[float] = []
    other: list[float] = []
    differences: defaultdict[str, list[float]] = defaultdict(list)
    for same_tool in by_tool.values():
        for output in same_tool:
            tried = drawn.sample(same_tool, min(_TRIED, len(same_tool)))
            partner = next((one for one in tried if one.task != output.task), None)
            if partner is not None:
                own.append(len(output.words & output.mentioned) / len(output.words))
                other.append(len(partner.words & output.mentioned) / len(partner.words))
                differences[output.task].append(own[-1] - other[-1])
    if not own:
        return ResultsFit(0, 0, 0.0, 0.0, None)
    fits: bool | None = None
    if len(differences) >= _MIN_TASKS:
        # Per task, because the results of one task are not independent of each other.
        means = np.array([np.mean(values) for values in differences.values()])
        error = float(means.std(ddof=1)) / len(means) ** 0.5
        fits = float(means.mean()) > _CLEAR * error
    return ResultsFit(
        outputs=len(own),
        tasks=len(differences),
        own=round(float(np.mean(own)), 6),
        other=round(float(np.mean(other)), 6),
        fits=fits,
    )


def _outputs(sessions: Sequence[Session]) -> Iterator[_Output]:
    for session in sessions:
        said = [
            " ".join((message.content[:_MAX_CHARS], *(call.raw for call in message.tool_calls)))
            for message in session.messages
            if message.role != "tool"
        ]
        mentioned = frozenset[str]().union(*(_words(text) for text in said))
        names = {call.id: call.name for message in session.messages for call in message.tool_calls}
        for message in session.messages:
            if message.role == "tool":
                tool = names.get(message.tool_call_id or "") or message.name or ""
                yield _Output(session.task, tool, _words(message.content), mentioned)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".-+") for word in _WORD.findall(text[:_MAX_CHARS].lower()))
