"""Contributions of features are Shapley values: checked against all coalitions, and they add up."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray

from reflexarc.reflex.contributions import contributions
from reflexarc.reflex.trees import SLOTS, Forest

FEATURES = 5


def forest(draw: np.random.Generator, trees: int = 6, outputs: int = 2) -> Forest:
    """Random trees over few features and thresholds, so that a path meets a feature twice."""
    slots = trees * SLOTS
    return Forest(
        draw.integers(0, FEATURES, slots).astype(np.intp),
        draw.integers(0, 3, slots).astype(np.float32),
        draw.normal(size=slots).astype(np.float32),
        n_features=FEATURES, n_outputs=outputs,
    )  # fmt: skip


def by_coalitions(
    of: Forest, output: int, row: NDArray[np.float32], reference: NDArray[np.float32]
) -> list[float]:
    def value(coalition: tuple[int, ...]) -> float:
        mixed = reference.copy()
        mixed[list(coalition)] = row[list(coalition)]
        return float(of.raw(mixed[None, :])[0, output])

    found: list[float] = []
    for feature in range(FEATURES):
        others = [other for other in range(FEATURES) if other != feature]
        total = 0.0
        for size in range(FEATURES):
            weight = factorial(size) * factorial(FEATURES - size - 1) / factorial(FEATURES)
            for coalition in combinations(others, size):
                total += weight * (value((*coalition, feature)) - value(coalition))
        found.append(total)
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("output", [0, 1])
def test_contributions_are_shapley_values(seed: int, output: int) -> None:
    draw = np.random.default_rng(seed)
    of = forest(draw)
    row, *references = draw.integers(0, 4, (4, FEATURES)).astype(np.float32)
    found = contributions(of, output, row, np.array(references))
    expected = np.mean([by_coalitions(of, output, row, one) for one in references], axis=0)
    assert found == pytest.approx(expected, abs=1e-9)


def test_they_add_up_to_the_distance_from_the_references() -> None:
    draw = np.random.default_rng(7)
    of = forest(draw, trees=60, outputs=3)
    rows = draw.integers(0, 4, (41, FEATURES)).astype(np.float32)
    for output in range(3):
        found = contributions(of, output, rows[0], rows[1:])
        raw = of.raw(rows)[:, output]
        assert found.sum() == pytest.approx(raw[0] - raw[1:].mean(), abs=1e-9)


def test_a_row_like_its_reference_was_moved_by_nothing() -> None:
    draw = np.random.default_rng(8)
    row = draw.integers(0, 4, FEATURES).astype(np.float32)
    assert not contributions(forest(draw), 0, row, row[None, :]).any()
