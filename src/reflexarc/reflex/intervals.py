"""Bounds and intervals of a share whose cases cluster in tasks.

Runs of one task go right or wrong together, so calls are worth less than their number: intervals
that take them as independent are too narrow. Here the law of the sum is that of `clustered.py` (a
beta-binomial in each task), its intra-class correlation about the likeliest under the share in
question, and the bounds are the shares at which so few or so many cases become improbable (the
inversion of a test, as Clopper & Pearson did it, Biometrika 26, 1934).
"""

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.clustered import clustered_bound


class Interval(msgspec.Struct, frozen=True):
    """Both ends, 0 and 1 where there is nothing to tell from."""

    low: float
    high: float


def clustered_upper(cases: Iterable[tuple[str, bool]], delta: float = 0.05) -> float:
    """One-sided upper bound, with confidence 1 - delta, of the share of cases that are true; each
    case comes with its task. 1.0 where there is none."""
    sizes, hits = _by_task(cases)
    return clustered_bound(sizes, hits, delta)


def clustered_interval(cases: Iterable[tuple[str, bool]], delta: float = 0.05) -> Interval:
    """Two-sided interval of that share: half of delta on each side."""
    sizes, hits = _by_task(cases)
    return Interval(
        round(1.0 - clustered_bound(sizes, sizes - hits, delta / 2), 6),
        round(clustered_bound(sizes, hits, delta / 2), 6),
    )


def _by_task(
    cases: Iterable[tuple[str, bool]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes: dict[str, int] = {}
    hits: dict[str, int] = {}
    for task, hit in cases:
        sizes[task] = sizes.get(task, 0) + 1
        hits[task] = hits.get(task, 0) + hit
    return (
        np.array(list(sizes.values()), dtype=np.int64),
        np.array(list(hits.values()), dtype=np.int64),
    )
