"""Which columns of wide, mostly empty rows tell classes apart: trees are grown on those alone.

A history has a thousand words for a few thousand items. Most say nothing of what comes next, and
growing trees takes its time from looking at every column at every node. Words are kept by the
largest correlation with any class, as in screening by marginal correlation (Fan and Lv, "Sure
independence screening", J. R. Stat. Soc. B 70, 2008).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST = 1_000
"""Columns at most. On public recordings, cross-validated by session, trees of 500, 700 and all
1,400 columns rank alike: they differ by less than two seeds of the same do. Of 600 the writes of
one set were ranked first a little less often (.280 for .288), of so many they are not."""

SparseRow = tuple[NDArray[np.uint16], NDArray[np.float32]]
"""The places of a row that are not 0, and what stands there."""


def telling_columns(
    rows: Sequence[SparseRow],
    classes: NDArray[np.integer],
    width: int,
    *,
    always: int,
    least: int,
    most: int = MOST,
) -> NDArray[np.intp]:
    """At most `most` columns of `width`, ascending: the first `always`, which must be fewer, then
    those that go best with a class, if `least` rows have them. `classes`: (rows,), from 0."""
    if width <= most:
        return np.arange(width)
    count, n = int(classes.max()) + 1, len(rows)
    places = np.concatenate([places for places, _ in rows]).astype(np.intp)
    values = np.concatenate([values for _, values in rows]).astype(np.float64)
    of_row = np.repeat(classes, [len(places) for places, _ in rows])
    share = np.bincount(classes, minlength=count) / n
    together = np.bincount(places * count + of_row, values, width * count) / n
    together = together.reshape(width, count)
    mean = together.sum(axis=1)
    spread = np.bincount(places, values * values, width) / n - mean * mean
    scale = np.sqrt(np.maximum(spread, 1e-12)[:, None] * np.maximum(share * (1 - share), 1e-12))
    best = (np.abs(together - mean[:, None] * share) / scale).max(axis=1)
    best[np.bincount(places, minlength=width) < least] = 0.0
    best[:always] = np.inf
    return np.sort(np.argsort(-best, kind="stable")[:most])


def dense_rows(
    rows: Sequence[SparseRow], columns: NDArray[np.intp], width: int
) -> NDArray[np.float32]:
    """(rows, columns): those columns of rows that are `width` wide."""
    at = np.full(width, -1, dtype=np.intp)
    at[columns] = np.arange(len(columns))
    dense = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for row, (places, values) in zip(dense, rows, strict=True):
        to = at[places]
        kept = to >= 0
        row[to[kept]] = values[kept]
    return dense
