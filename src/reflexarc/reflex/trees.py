"""Boosted trees served by numpy alone: trained with lightgbm elsewhere, run here as bit codes.

Every tree is padded to a complete tree of depth 4. All comparisons of all trees are made at once,
the answers of one tree are packed into a 16-bit code, and one static table says which leaf a code
means. A handful of numpy calls per batch, whatever the number of trees; see docs/adr/0002.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.booster_text import Booster as Booster
from reflexarc.reflex.booster_text import Model, Tree, read_booster
from reflexarc.reflex.tree_codes import LEAF_OF_CODE, MANY_ROWS, Codes
from reflexarc.reflex.tree_codes import SLOTS as SLOTS
from reflexarc.steps.errors import ArtifactCorruptError, LearnError

DEPTH = 4
"""Train with `max_depth=4` (and so at most 16 leaves)."""

MAX_FEATURES = 65_536
MAX_OUTPUTS = 4_096
MAX_TREES = 65_536

_LEAST_BLOCK = 64
_BLOCK = 1 << 19
"""Comparisons made at once: the intermediate arrays of a block stay in the processor's cache."""


class Forest:
    """Trees as flat arrays. Immutable; safe to use from several threads.

    Trees are ordered by output: with T trees and K outputs, trees `k*T/K .. (k+1)*T/K` add up to
    output k. Slot `16*t + i` is comparison i of tree t in heap order (children of i are 2i+1, taken
    where `x[feature] <= threshold`, and 2i+2) or leaf i of tree t, from left to right.
    """

    __slots__ = (
        "_base",
        "_codes",
        "_feature",
        "_leaf",
        "_threshold",
        "n_features",
        "n_outputs",
        "n_trees",
    )

    def __init__(
        self,
        feature: NDArray[np.intp],
        threshold: NDArray[np.float32],
        leaf: NDArray[np.float32],
        *,
        n_features: int,
        n_outputs: int,
    ) -> None:
        """Takes the arrays as they are (each of T*16 entries); `from_arrays` checks them."""
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.n_trees = len(feature) // SLOTS
        self._feature = feature
        self._threshold = threshold
        # Values have float32 precision, as in the file; their sums are made in float64.
        self._leaf = leaf
        self._base = np.arange(0, len(feature), SLOTS, dtype=np.intp)
        self._codes = Codes(self._feature, threshold, leaf)

    @classmethod
    def from_lightgbm(cls, booster: Booster) -> "Forest":
        """The trees of a trained booster, to its best iteration if it stopped early.

        Raises LearnError where the booster holds something this evaluator does not do: splits other
        than `x <= number`, rules for missing values, trees deeper than 4, averaged outputs, a
        sigmoid other than 1.
        """
        model = _read(booster)
        n_outputs, trees = model.outputs, model.trees
        feature = np.zeros((len(trees), SLOTS), np.intp)
        threshold = np.zeros((len(trees), SLOTS), np.float64)
        leaf = np.zeros((len(trees), SLOTS), np.float64)
        # lightgbm grows one tree per output and round: tree i belongs to output i % K.
        ordered = [t for k in range(n_outputs) for t in trees[k::n_outputs]]
        for row, tree in enumerate(ordered):
            root = 0 if tree.features else -1
            _lay_out(tree, root, feature[row], threshold[row], leaf[row], slot=0, depth=0)
        return cls(
            feature.reshape(-1),
            _float32_thresholds(threshold.reshape(-1)),
            leaf.reshape(-1).astype(np.float32),
            n_features=model.features,
            n_outputs=n_outputs,
        )

    def over(self, columns: NDArray[np.intp], n_features: int) -> "Forest":
        """The same trees over rows of `n_features`, of which they read these columns in place of
        the first, the second and so on."""
        return Forest(
            columns[self._feature], self._threshold, self._leaf,
            n_features=n_features, n_outputs=self.n_outputs,
        )  # fmt: skip

    def raw(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sums of leaf values, shape (n, n_outputs), of rows x, shape (n, n_features), float32.

        Rows must hold no NaN (train with `use_missing=false` and a number for "absent"). Raises
        TypeError for another dtype, since rounding could carry a value over a threshold, and
        ValueError for another width.
        """
        if x.dtype != np.float32:
            raise TypeError(f"rows must be float32, as in training, and are {x.dtype}")
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise ValueError(f"rows must have shape (n, {self.n_features}) and have {x.shape}")
        n, step = len(x), max(_LEAST_BLOCK, _BLOCK // max(1, len(self._feature)))
        if n <= step:
            return self._block(x)
        return np.concatenate([self._block(x[i : i + step]) for i in range(0, n, step)])

    def probabilities(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Shape (n, n_outputs): the sigmoid of one output, the softmax over several."""
        scores = self.raw(x)
        if self.n_outputs == 1:
            return 1.0 / (1.0 + np.exp(-np.maximum(scores, -500.0)))
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything `from_arrays` needs: `shape` (n_features, n_outputs), and `feature`,
        `threshold`, `leaf` of T*16 entries each."""
        return {
            "shape": np.array([self.n_features, self.n_outputs], np.int32),
            "feature": self._feature.astype(np.uint16),
            "threshold": self._threshold,
            "leaf": self._leaf,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Forest":
        """The inverse of `arrays`. Trusts nothing: raises ArtifactCorruptError unless every name,
        dtype, length, index and number is one that `arrays` could have written."""
        if set(arrays) != {"shape", "feature", "threshold", "leaf"}:
            raise _corrupt(f"has the arrays {', '.join(sorted(arrays)) or 'none'}")
        shape, feature = arrays["shape"], arrays["feature"]
        threshold, leaf = arrays["threshold"], arrays["leaf"]
        for name, dtype in (
            ("shape", "i4"),
            ("feature", "u2"),
            ("threshold", "f4"),
            ("leaf", "f4"),
        ):
            if arrays[name].ndim != 1 or arrays[name].dtype != np.dtype(dtype):
                raise _corrupt(f"{name} is not one row of {np.dtype(dtype)}")
        if len(shape) != 2:
            raise _corrupt(f"shape has {len(shape)} entries, not 2")
        n_features, n_outputs = int(shape[0]), int(shape[1])
        if not 1 <= n_features <= MAX_FEATURES or not 1 <= n_outputs <= MAX_OUTPUTS:
            raise _corrupt(f"{n_features} features and {n_outputs} outputs are out of range")
        n_trees, rest = divmod(len(feature), SLOTS)
        if rest or n_trees % n_outputs or n_trees > MAX_TREES:
            raise _corrupt(f"{len(feature)} comparisons do not fit {n_outputs} outputs")
        if len(threshold) != len(feature) or len(leaf) != len(feature):
            raise _corrupt("feature, threshold and leaf differ in length")
        if n_trees and int(feature.max()) >= n_features:
            raise _corrupt(f"feature {int(feature.max())} is beyond the {n_features} there are")
        if not np.isfinite(threshold).all() or not np.isfinite(leaf).all():
            raise _corrupt("a threshold or leaf value is not a finite number")
        return cls(
            feature.astype(np.intp), threshold, leaf, n_features=n_features, n_outputs=n_outputs
        )

    def _block(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        n, n_outputs, each = len(x), self.n_outputs, self.n_trees // self.n_outputs
        if not self.n_trees:
            return np.zeros((n, n_outputs))
        # Indices were checked once, when the forest was made.
        if n < MANY_ROWS:
            index = LEAF_OF_CODE.take(self._codes.of_few(x), mode="clip") + self._base
            values = self._leaf.take(index, mode="clip")
            return values.reshape(n, n_outputs, each).sum(axis=2, dtype=np.float64)
        index = LEAF_OF_CODE.take(self._codes.of_many(x), mode="clip") + self._base[:, None]
        values = self._leaf.take(index, mode="clip")
        return values.reshape(n_outputs, each, n).sum(axis=1, dtype=np.float64).T


def _read(booster: Booster) -> Model:
    model = read_booster(booster)
    objective = model.objective.split()
    if any(o.startswith("sigmoid:") and float(o[8:]) != 1.0 for o in objective):
        raise LearnError(f"the objective {model.objective!r} scales its sigmoid: train with 1")
    if objective[:1] == ["multiclassova"]:
        raise LearnError("multiclassova is not supported: train with objective=multiclass")
    if model.features > MAX_FEATURES or len(model.trees) > MAX_TREES:
        raise LearnError(f"at most {MAX_FEATURES} features and {MAX_TREES} trees are supported")
    return model


def _lay_out(
    tree: Tree,
    node: int,
    feature: NDArray[np.intp],
    threshold: NDArray[np.float64],
    leaf: NDArray[np.float64],
    *,
    slot: int,
    depth: int,
) -> None:
    """Writes the subtree at heap slot `slot`; a leaf above the last level fills all below it."""
    if node < 0:
        width = SLOTS >> depth
        first = (slot + 1 - (1 << depth)) * width
        leaf[first : first + width] = tree.leaves[~node]
        return
    if depth == DEPTH:
        raise LearnError(f"a tree is deeper than {DEPTH}: train with max_depth={DEPTH}")
    feature[slot], threshold[slot] = tree.features[node], tree.thresholds[node]
    left, right = tree.left[node], tree.right[node]
    _lay_out(tree, left, feature, threshold, leaf, slot=2 * slot + 1, depth=depth + 1)
    _lay_out(tree, right, feature, threshold, leaf, slot=2 * slot + 2, depth=depth + 1)


def _float32_thresholds(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Thresholds that answer `x <= t` for every float32 x as lightgbm answers it in float64.

    That is the largest float32 <= t, once it is seen that lightgbm reads every x of at most
    `kZeroThreshold` as 0 (include/LightGBM/meta.h), so that all of those fall on one side.
    """
    limit = float(np.finfo(np.float32).max)
    clipped = np.clip(numbers, -limit, limit)
    rounded = clipped.astype(np.float32)
    down = np.nextafter(rounded, np.float32(-np.inf))
    exact = np.where(rounded.astype(np.float64) > clipped, down, rounded)
    zero = np.float32(1e-35)
    exact = np.where((exact >= -zero) & (numbers < 0), np.nextafter(-zero, -limit), exact)
    return np.where((exact < zero) & (numbers >= 0), zero, exact).astype(np.float32)


def _corrupt(why: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(f"a forest in the artifact is damaged: {why}; learn it again")
