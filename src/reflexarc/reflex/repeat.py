"""How often System 2 makes the same call again: the ceiling of any agreement with it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from reflexarc.steps import Session


class ToolRepeats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of `Repeats` over the compared calls of one tool: of those runs that made a call
    of it, whatever the others did."""

    repeat_rate: float
    modal_share: float
    modal_share_left_out: float
    calls: int


class Repeats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Over calls at the same point of several runs of one task (the same calls so far).

    `repeat_rate` is the chance that another run makes the same call (the sum of squared shares, a
    run not being compared with itself). `modal_share` is the share of the most common call, what
    always guessing it would get: counted on the very runs it was found in, so on average more than
    a perfect predictor can reach. `modal_share_left_out` is the same, the most common call being
    found among the *other* runs: on average less than that. Ties are guessed among. `calls` were
    compared, in `tasks` tasks; None where nothing recurs. `tools`: the same by tool.
    """

    repeat_rate: float | None
    modal_share: float | None
    modal_share_left_out: float | None
    calls: int
    tasks: int
    tools: dict[str, ToolRepeats] = {}

    def of_tools(self, names: Collection[str]) -> "Repeats":
        """The same, by tool for these alone: an artifact may not name every tool."""
        kept = {name: tool for name, tool in self.tools.items() if name in names}
        return msgspec.structs.replace(self, tools=kept)


NOTHING_RECURS = Repeats(None, None, None, 0, 0)
Call = tuple[str, str, bool]
"""(tool, key, own): what is equal in key stands for the same call; calls that are not System 2's
own are no evidence, but say where a session stands."""


def repeats(sessions: Sequence[Session], ignore: Iterable[str] = ()) -> Repeats:
    """Compare the runs of each task; `ignore` names the tools that only think."""
    skipped = set(ignore)
    return repeats_of(
        (
            session.task,
            [
                (call.name, call.key, not message.by_system1)
                for message in session.messages
                for call in message.tool_calls
                if call.name not in skipped
            ],
        )
        for session in sessions
    )


class _Sums:
    """Sums over compared calls."""

    __slots__ = ("again", "calls", "left_out", "modal")

    def __init__(self) -> None:
        self.calls = 0
        self.again = self.modal = self.left_out = 0.0

    def shares(self) -> tuple[float, float, float]:
        again, modal, left_out = (
            round(found / self.calls, 6) for found in (self.again, self.modal, self.left_out)
        )
        return again, modal, left_out


def repeats_of(sessions: Iterable[tuple[str, Sequence[Call]]]) -> Repeats:
    """The same for the calls of each session, in order, with its task."""
    calls_after: defaultdict[tuple[str, tuple[str, ...]], Counter[tuple[str, str]]]
    calls_after = defaultdict(Counter)
    for task, calls in sessions:
        made: list[str] = []
        for tool, key, own in calls:
            if own:
                calls_after[task, tuple(made)][tool, key] += 1
            made.append(key)
    total = _Sums()
    by_tool: defaultdict[str, _Sums] = defaultdict(_Sums)
    tasks: set[str] = set()
    for (task, _), counts in calls_after.items():
        if counts.total() > 1:
            tasks.add(task)
            for tool, key in counts:
                for sums in (total, by_tool[tool]):
                    _add(sums, counts, counts[tool, key])
    if not total.calls:
        return NOTHING_RECURS
    tools = {
        name: ToolRepeats(*sums.shares(), sums.calls) for name, sums in sorted(by_tool.items())
    }
    return Repeats(*total.shares(), total.calls, len(tasks), tools)


def _add(sums: _Sums, counts: Counter[tuple[str, str]], made: int) -> None:
    """Add one of the calls at a point, that `made` runs made."""
    sizes = list(counts.values())
    runs, most = sum(sizes), max(sizes)
    sums.calls += made
    sums.again += made * (made - 1) / (runs - 1)
    if made == most:
        sums.modal += made / sizes.count(most)
    sizes.remove(made)
    others = max(sizes, default=0)  # the most common of the other calls
    if made - 1 == others:
        sums.left_out += made / (1 + sizes.count(others))
    elif made - 1 > others:
        sums.left_out += made
