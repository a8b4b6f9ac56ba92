"""How often System 2 makes the same call again: the ceiling of any agreement with it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from reflexarc.steps import Session


class Repeats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Over calls at the same point of several runs of one task (the same calls so far).

    `repeat_rate` is the chance that another run makes the same call (the sum of squared shares, a
    run not being compared with itself). `modal_share` is the share of the most common call, what
    always guessing it would get: counted on the very runs it was found in, so on average more than
    a perfect predictor can reach. `modal_share_left_out` is the same, the most common call being
    found among the *other* runs (ties guessed among): on average less than that. `calls` were
    compared, in `tasks` tasks; None where nothing recurs.
    """

    repeat_rate: float | None
    modal_share: float | None
    modal_share_left_out: float | None
    calls: int
    tasks: int


NOTHING_RECURS = Repeats(None, None, None, 0, 0)


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
    total = agreeing = modal = left_out = 0.0
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
        left_out += _modal_left_out(counts)
    if not total:
        return NOTHING_RECURS
    return Repeats(
        round(agreeing / total, 6), round(modal / total, 6), round(left_out / total, 6),
        int(total), len(tasks),
    )  # fmt: skip


def _modal_left_out(counts: Counter[str]) -> float:
    """How many runs make the call that is most common among the others, each tie being guessed."""
    sizes = sorted(counts.values(), reverse=True)
    most, second = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if most - 1 < second:
        return 0.0  # without the run itself its call stands behind another, whichever it is
    return float(most) if most - 1 > second else most / (1 + sizes.count(second))
