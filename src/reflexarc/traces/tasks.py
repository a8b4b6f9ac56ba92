"""Telling tasks apart where nobody named them: sessions with near-duplicate openings are one task.

The opening is the system prompt and the first user message. Two sessions are of one task if both
are near-duplicates: Jaccard similarity of word pairs at least `SIMILAR`, and, in the user
message, the same words with digits (order numbers, names of files), times of day and dates aside.
Likeness is transitive. Merging too much only costs data; merging too little would let a task stand
on both sides of a split, so doubtful cases merge.

Near-duplicates are found by MinHash and banding (Broder 1997; Leskovec, Rajaraman & Ullman,
*Mining of Massive Datasets*, chapter 3), then verified: the cost grows with the number of
sessions, not with its square.
"""

import itertools
import re
from collections.abc import Sequence

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from reflexarc.steps import Session

SIMILAR = 0.7
_HASHES = 64
_BANDS = 16  # 16 bands of 4: a pair at .7 is a candidate with probability .988
_WORD = re.compile(r"\w+(?:[-_.@:/#]\w+)*")
_WHEN = re.compile(
    r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:z|[+-]\d\d:?\d\d)?"
    r"|\d\d?:\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?|\d\d?/\d\d?/\d{2,4}"
)


class Clustering(msgspec.Struct, frozen=True):
    """`tasks[i]` is the task of session i. `unnamed` sessions had none of their own; they fell
    into `clusters` tasks, those that joined a named task not counted."""

    tasks: list[str]
    unnamed: int
    clusters: int


class _Opening(msgspec.Struct, frozen=True):
    system: frozenset[int]
    user: frozenset[int]
    marks: frozenset[str]

    def like(self, other: "_Opening") -> bool:
        return (
            self.marks == other.marks
            and _jaccard(self.user, other.user) >= SIMILAR
            and _jaccard(self.system, other.system) >= SIMILAR
        )


def cluster_tasks(sessions: Sequence[Session]) -> Clustering:
    """Give every session without a task one; named tasks stay as they are.

    An unnamed session that opens like one of a named task joins that task. Names of new tasks are
    `~` and 12 hex digits of the opening, so that they do not depend on the order of the files.
    """
    texts = [_opening_texts(session) for session in sessions]
    by_text: dict[tuple[str, str], list[int]] = {}
    for index, text in enumerate(texts):
        by_text.setdefault(text, []).append(index)
    distinct = sorted(by_text)
    openings = [_opening(system, user) for system, user in distinct]
    roots = _linked(openings)

    members: dict[int, list[int]] = {}
    for position, root in enumerate(roots):
        members.setdefault(root, []).append(position)
    tasks = [session.task for session in sessions]
    unnamed = 0
    clusters = 0
    for positions in members.values():
        inside = [index for position in positions for index in by_text[distinct[position]]]
        without = [index for index in inside if not tasks[index]]
        if not without:
            continue
        unnamed += len(without)
        named = sorted({tasks[index] for index in inside} - {""})
        if named:
            name = named[0]
        else:
            clusters += 1
            name = f"~{_digest(distinct[positions[0]])[:12]}"
        for index in without:
            tasks[index] = name
    return Clustering(tasks, unnamed, clusters)


def _digest(text: tuple[str, str]) -> str:
    return xxhash.xxh3_64_hexdigest("\0".join(text).encode())


def _opening_texts(session: Session) -> tuple[str, str]:
    system: list[str] = []
    for message in session.messages:
        if message.role == "user":
            return _normal("\n".join(system)), _normal(message.content)
        if message.role in ("system", "developer"):
            system.append(message.content)
    return _normal("\n".join(system)), ""


def _normal(text: str) -> str:
    return " ".join(_WORD.findall(_WHEN.sub(" ", text.lower())))


def _opening(system: str, user: str) -> _Opening:
    words = user.split()
    marks = frozenset(word for word in words if any(c.isdigit() for c in word))
    return _Opening(_shingles(system.split()), _shingles(words), marks)


def _shingles(words: list[str]) -> frozenset[int]:
    pairs = words if len(words) < 2 else map(" ".join, itertools.pairwise(words))
    return frozenset(xxhash.xxh3_64_intdigest(pair.encode()) for pair in pairs)


def _jaccard(a: frozenset[int], b: frozenset[int]) -> float:
    if not a and not b:
        return 1.0
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def _linked(openings: Sequence[_Opening]) -> list[int]:
    """For each opening the least index of those it is linked to."""
    roots = list(range(len(openings)))

    def find(index: int) -> int:
        while roots[index] != index:
            roots[index] = roots[roots[index]]
            index = roots[index]
        return index

    masks, multipliers = _hash_family()
    heads: dict[tuple[int, bytes, frozenset[str]], list[int]] = {}
    for index, opening in enumerate(openings):
        for band, key in enumerate(_bands(opening.user, masks, multipliers)):
            bucket = heads.setdefault((band, key, opening.marks), [])
            # compare with one member of each cluster in the bucket: buckets of thousands of
            # near-duplicates stay cheap
            seen: set[int] = set()
            linked = False
            for other in bucket:
                root = find(other)
                if root in seen or root == find(index):
                    continue
                seen.add(root)
                if opening.like(openings[other]):
                    low, high = sorted((root, find(index)))
                    roots[high] = low
                    linked = True
            if not linked:
                bucket.append(index)
    return [find(index) for index in range(len(openings))]


def _hash_family() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    random = np.random.default_rng(20_1997)  # a fixed family: tasks must not change between runs
    masks = random.integers(0, 1 << 64, size=(_HASHES, 1), dtype=np.uint64)
    multipliers = random.integers(0, 1 << 64, size=(_HASHES, 1), dtype=np.uint64) | np.uint64(1)
    return masks, multipliers


def _bands(
    shingles: frozenset[int], masks: NDArray[np.uint64], multipliers: NDArray[np.uint64]
) -> list[bytes]:
    if not shingles:
        return [b""]
    values = np.fromiter(shingles, dtype=np.uint64, count=len(shingles))
    # multiply-shift hashing: the product wraps at 64 bits, its high half is the hash
    signature = (((values ^ masks) * multipliers) >> np.uint64(32)).min(axis=1)
    return [band.tobytes() for band in np.split(signature, _BANDS)]
