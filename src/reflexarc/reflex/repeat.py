"""How often System 2 makes the same call again: the ceiling of any agreement with it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from reflexarc.steps import Session


class Repeats(msgspec.Struct, frozen=True):
    """Over calls at the same point of several runs of one task (the same calls so far).

    `repeat_rate` is the chance that another run makes the same call (the sum of squared shares, a
    run not being compared with itself), `modal_share` the share of the most common call, which is
    what a perfect predictor could reach. `calls` were compared, in `tasks` tasks; None where
    nothing recurs.
    """

    repeat_rate: float | None
    modal_share: float | None
    calls: int
    tasks: int


def repeats(sessions: Sequence[Session], ignore: Iterable[str] = ()) -> Repeats:
    """Compare the runs of each task; `ignore` names the tools that only think."""
    skipped = set(ignore)
    return repeats_of(
        (
            session.task,
            [
                (call.key, True)
                for message in session.messages
                for call in message.tool_calls
                if call.name not in skipped
            ],
        )
        for session in sessions
    )


def repeats_of(sessions: Iterable[tuple[str, Sequence[tuple[str, bool]]]]) -> Repeats:
    """The same for the calls of each session, in order, with its task: what is equal stands for the
    same call; calls that are not System 2's own are no evidence, but say where a session stands."""
    calls_after: defaultdict[tuple[str, tuple[str, ...]], Counter[str]] = defaultdict(Counter)
    for task, calls in sessions:
        made: list[str] = []
        for key, own in calls:
            if own:
                calls_after[task, tuple(made)][key] += 1
            made.append(key)
    total = agreeing = modal = 0.0
    tasks: set[str] = set()
    for (task, _), counts in calls_after.items():
        runs = sum(counts.values())
        if runs < 2:
            continue
        tasks.add(task)
        total += runs
        pairs = sum(count * (count - 1) for count in counts.values())
        agreeing += pairs / (runs - 1)
        modal += max(counts.values())
    if not total:
        return Repeats(None, None, 0, 0)
    return Repeats(round(agreeing / total, 6), round(modal / total, 6), int(total), len(tasks))
