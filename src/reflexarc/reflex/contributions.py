"""How much each feature moved the output of a forest: exact Shapley values against references.

The value of a coalition of features is what the forest says where these are as in the row explained
and all others as in a reference row; a feature's contribution is its Shapley value, averaged over
the references. The contributions add up to the output at the row less the mean output at the
references (Lundberg et al., "From local explanations to global understanding with explainable AI
for trees", Nat. Mach. Intell. 2, 2020: interventional TreeSHAP). Nothing is sampled: a tree of
depth 4 asks about four features on the way to a leaf, so its coalitions can be counted.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.trees import DEPTH, SLOTS, Forest

_LEAVES = np.arange(SLOTS)
_LEVELS = np.arange(DEPTH)
_NODE = (1 << _LEVELS)[None, :] - 1 + (_LEAVES[:, None] >> (DEPTH - _LEVELS)[None, :])
"""(leaf, level): the comparison met at that level on the way to that leaf, in heap order."""

_LEFT = (_LEAVES[:, None] >> (DEPTH - 1 - _LEVELS)[None, :]) & 1 == 0
"""(leaf, level): whether the way goes left there, that is where the comparison holds."""


def _shares(row: int, reference: int) -> float:
    """The Shapley weight of one of `row` features that have to be as in the row, where further
    `reference` features have to be as in the reference, for a leaf to be reached."""
    if not row:
        return 0.0
    return factorial(row - 1) * factorial(reference) / factorial(row + reference)


_COUNTS = range(DEPTH + 1)
_SHARE = np.array([[_shares(a, b) for b in _COUNTS] for a in _COUNTS])


def contributions(
    forest: Forest, output: int, row: NDArray[np.float32], references: NDArray[np.float32]
) -> NDArray[np.float64]:
    """(features,): what each feature of `row` (features,) adds to an output (log-odds, or the
    score before the softmax), compared with `references` (m, features), m at least 1."""
    arrays = forest.arrays()
    each = forest.n_trees // forest.n_outputs
    trees = slice(output * each, (output + 1) * each)
    feature = arrays["feature"].reshape(-1, SLOTS)[trees].astype(np.intp)[:, _NODE]
    threshold = arrays["threshold"].reshape(-1, SLOTS)[trees][:, _NODE]
    leaf = arrays["leaf"].reshape(-1, SLOTS)[trees].astype(np.float64)
    same = feature[..., :, None] == feature[..., None, :]
    first = same.argmax(axis=-1) == _LEVELS
    from_row = _as_in(row, feature, threshold, same)
    added = np.zeros(forest.n_features)
    for reference in references:
        from_reference = _as_in(reference, feature, threshold, same)
        needs_row = first & from_row & ~from_reference
        needs_reference = first & from_reference & ~from_row
        reached = leaf * (from_row | from_reference).all(axis=-1)
        a, b = needs_row.sum(axis=-1), needs_reference.sum(axis=-1)
        weight = needs_row * _SHARE[a, b][..., None] - needs_reference * _SHARE[b, a][..., None]
        moved = (weight * reached[..., None]).reshape(-1)
        added += np.bincount(feature.reshape(-1), weights=moved, minlength=forest.n_features)
    return added / len(references)


def _as_in(
    row: NDArray[np.float32],
    feature: NDArray[np.intp],
    threshold: NDArray[np.float32],
    same: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """(tree, leaf, level): whether a row passes every comparison of that level's feature on the way
    to that leaf."""
    passes = (row[feature] <= threshold) == _LEFT
    return (passes[..., None, :] | ~same).all(axis=-1)
