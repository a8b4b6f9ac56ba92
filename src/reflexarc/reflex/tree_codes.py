"""From rows to the codes of all trees: all comparisons at once, whatever the number of trees.

Of few rows the sixteen answers of a tree lie side by side and are packed. Of many rows, every
distinct comparison is made once (trees ask the same again and again: of those in a forest, an
eighth to a sixteenth are distinct), and laid out slot by slot, rows side by side.
"""

import numpy as np
from numpy.typing import NDArray

SLOTS = 16
"""Comparisons per tree (15 and one that nobody reads), and leaves per tree."""

_LEVELS = 4
MANY_ROWS = 20
"""From so many rows on, it is faster to lay the comparisons out by slot, rows side by side."""


class Codes:
    """The comparisons of a forest. Immutable, but for a layout made when it is first needed."""

    __slots__ = ("_feature", "_layout", "_leaf", "_n_trees", "_threshold")

    def __init__(
        self,
        feature: NDArray[np.intp],
        threshold: NDArray[np.float32],
        leaf: NDArray[np.float32],
    ) -> None:
        """Takes arrays of T*16 entries each."""
        self._n_trees = len(feature) // SLOTS
        self._feature = feature
        self._threshold = threshold
        self._leaf = leaf
        self._layout: _Layout | None = None

    def of_few(self, x: NDArray[np.float32]) -> NDArray[np.uint16]:
        """(n, T) codes of rows (n, features): bit i is set where comparison i holds."""
        # mode="clip" throughout: indices were checked once, when the forest was made.
        answers = x.take(self._feature, axis=1, mode="clip") <= self._threshold
        packed = np.packbits(answers.reshape(-1), bitorder="little")
        return packed.view("<u2").reshape(len(x), self._n_trees)

    def of_many(self, x: NDArray[np.float32]) -> NDArray[np.uint16]:
        """(T, n) codes of rows (n, features)."""
        layout = self._layout
        if layout is None:
            layout = self._layout = _Layout(self._feature, self._threshold, self._leaf)
        columns = np.ascontiguousarray(x.T).take(layout.feature, axis=0, mode="clip")
        distinct = (columns <= layout.threshold).view(np.uint8)
        bits = distinct.take(layout.by_slot, axis=0, mode="clip").reshape(SLOTS - 1, -1)
        # Each byte of a code is put together by doubling and adding, one slot at a time.
        codes = np.zeros((bits.shape[1], 2), np.uint8)
        for half in range(2):
            byte = np.zeros(bits.shape[1], np.uint8)
            for slot_bits in bits[8 * half : 8 * half + 8][::-1]:
                byte += byte
                byte |= slot_bits
            codes[:, half] = byte
        return codes.view("<u2").reshape(self._n_trees, len(x))


class _Layout:
    """The distinct comparisons, and by slot (all trees' first comparisons, then all second ones,
    ...) which of them is made there."""

    __slots__ = ("by_slot", "feature", "threshold")

    def __init__(
        self,
        feature: NDArray[np.intp],
        threshold: NDArray[np.float32],
        leaf: NDArray[np.float32],
    ) -> None:
        # What decides nothing (it pads a shallower tree) may have any answer.
        deciding = np.flatnonzero(_decides(leaf))
        slots = deciding[np.lexsort((threshold[deciding], feature[deciding]))]
        features, thresholds = feature[slots], threshold[slots]
        new = np.ones(len(slots), dtype=np.bool_)
        new[1:] = (features[1:] != features[:-1]) | (thresholds[1:] != thresholds[:-1])
        of_slot = np.zeros(len(feature), dtype=np.intp)
        of_slot[slots] = np.cumsum(new) - 1
        # Where nothing decides anything there is one comparison, which does not matter either.
        self.feature = features[new] if len(slots) else feature[:1]
        self.threshold = (thresholds[new] if len(slots) else threshold[:1])[:, None]
        self.by_slot = np.ascontiguousarray(of_slot.reshape(-1, SLOTS)[:, :-1].T).reshape(-1)


def _decides(leaf: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(T*16,): whether a slot's comparison matters, that is, whether the leaves below it differ."""
    leaves = leaf.reshape(-1, SLOTS)
    decides = np.zeros(leaves.shape, dtype=np.bool_)
    for level in range(_LEVELS):
        below = leaves.reshape(len(leaves), -1, SLOTS >> level)
        first, after = (1 << level) - 1, (2 << level) - 1
        decides[:, first:after] = below.max(axis=2) != below.min(axis=2)
    return decides.reshape(-1)


def _leaf_table() -> NDArray[np.uint8]:
    """Leaf 0..15 for each of the 65,536 codes; bit i of a code is set where comparison i holds.
    A byte each: the table has to stay in the processor's cache."""
    codes = np.arange(1 << SLOTS)
    slot = np.zeros_like(codes)
    for _ in range(_LEVELS):
        slot = 2 * slot + 2 - (codes >> slot & 1)
    return (slot - (SLOTS - 1)).astype(np.uint8)


LEAF_OF_CODE = _leaf_table()
