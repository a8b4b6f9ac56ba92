"""In which order the sessions of a stream come, and whether that can be the order of time."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from reflexarc.bench.stream_tally import share
from reflexarc.steps import Session
from reflexarc.steps.errors import InputError

Order = Literal["time", "file", "rounds"]
"""As they began; as they stand in the files; the first session of every task, then the second ones:
an order made up, for recordings that hold all runs of a task together."""


def in_order(
    sessions: Sequence[Session], order: Order | None = None
) -> tuple[list[Session], Order]:
    """The sessions in an order, and which it is; None: by the time they began where all tell it,
    else as they stand in the files. Raises InputError for "time" where one does not tell it."""
    if order == "rounds":
        seen: Counter[str] = Counter()
        rounds: list[int] = []
        for session in sessions:
            rounds.append(seen[session.task])
            seen[session.task] += 1
        by_round = sorted(range(len(sessions)), key=lambda at: rounds[at])
        return [sessions[at] for at in by_round], "rounds"
    untimed = sum(session.began_s is None for session in sessions)
    if order == "time" and untimed:
        raise InputError(
            f"{untimed} of {len(sessions)} sessions do not tell when they began (`began_unix_s`): "
            "take them as they stand in the files"
        )
    if order == "file" or untimed:
        return list(sessions), "file"
    return sorted(sessions, key=lambda session: session.began_s or 0.0), "time"


def adjacent_share(ordered: Sequence[Session], block: int) -> float:
    """Of the sessions whose task came before, those for which it came within the last `block`
    sessions only: what recurs so soon is hardly ever learned from before it recurs."""
    first: dict[str, int] = {}
    recurring = soon = 0
    for at, session in enumerate(ordered):
        begun = first.setdefault(session.task, at)
        recurring += begun < at
        soon += at - block < begun < at
    return share(soon, recurring)
