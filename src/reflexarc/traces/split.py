"""Splitting sessions into a part to learn from and a part to be judged on.

Whole groups go to one side. Which side depends on the seed and the group's name alone, never on
the order of files or lines.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec
import xxhash

from reflexarc.steps import Session
from reflexarc.steps.errors import InputError

SplitBy = Literal["task", "session", "family"]
SPLITS: tuple[SplitBy, ...] = get_args(SplitBy)


class Split(msgspec.Struct, frozen=True):
    """Indices of the sessions on each side, ascending, and how many groups that are."""

    by: SplitBy
    train: list[int]
    test: list[int]
    train_groups: int
    test_groups: int


def split_sessions(
    sessions: Sequence[Session], *, by: SplitBy = "task", test_share: float = 0.33, seed: int = 1
) -> Split:
    """Put `test_share` of the groups, at least one, on the test side and the rest, at least one,
    on the other.

    `by` task: no task on both sides. By session: recurring work, tasks may stand on both sides.
    By family: sessions must name a `family`. Raises `InputError` where that cannot be done.
    """
    if not 0.0 < test_share < 1.0:
        raise InputError(f"the test share must lie between 0 and 1, not {test_share}")
    names = [_group(session, by) for session in sessions]
    groups = sorted(set(names), key=lambda name: (_place(seed, name), name))
    if len(groups) < 2:
        raise InputError(
            f"there is nothing to split by {by}: {len(sessions)} sessions of {len(groups)} {by}"
            + ("; name more tasks, or split by session" if by == "task" and groups else "")
        )
    count = min(max(round(test_share * len(groups)), 1), len(groups) - 1)
    held_out = set(groups[:count])
    return Split(
        by=by,
        train=[i for i, name in enumerate(names) if name not in held_out],
        test=[i for i, name in enumerate(names) if name in held_out],
        train_groups=len(groups) - count,
        test_groups=count,
    )


def _place(seed: int, name: str) -> int:
    return xxhash.xxh3_64_intdigest(f"{seed}:{name}".encode())


def _group(session: Session, by: SplitBy) -> str:
    if by == "task":
        return session.task
    if by == "session":
        return session.id
    if session.family is None:
        raise InputError(
            f"session {session.id} names no family: splitting by family needs the key "
            '"family" in every session; split by task or session instead'
        )
    return session.family
