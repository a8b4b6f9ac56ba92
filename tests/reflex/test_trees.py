"""Trees served by numpy answer as lightgbm does, thresholds hit exactly included."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflexarc.reflex.trees import Forest
from reflexarc.steps.errors import ArtifactCorruptError, LearnError

lightgbm: Any = pytest.importorskip("lightgbm", reason="training needs the extra [learn]")

SETTINGS = {
    "max_depth": 4,
    "num_leaves": 16,
    "use_missing": False,
    "zero_as_missing": False,
    "verbose": -1,
    "num_threads": 1,
    "min_data_in_leaf": 5,
}
OBJECTIVES = {
    "binary": {"objective": "binary"},
    "multiclass": {"objective": "multiclass", "num_class": 7},
    "lambdarank": {"objective": "lambdarank"},
}


def rows(n: int, n_features: int, seed: int) -> NDArray[np.float32]:
    """Small counts, sentinels of -1, and reals: what history features look like."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(-1, 6, (n, n_features)).astype(np.float32)
    reals = rng.normal(size=(n, n_features)).astype(np.float32)
    return np.where(np.arange(n_features) % 3 == 0, reals, counts).astype(np.float32)


def booster_of(objective: str, n_features: int, rounds: int, **changes: Any) -> Any:
    x = rows(700, n_features, seed=n_features)
    signal = x[:, 0] + x[:, 1 % n_features] * x[:, 2 % n_features]
    noisy = signal + np.random.default_rng(1).normal(size=len(x))
    ranks = np.argsort(np.argsort(noisy)) * 7 // len(x)
    label = ranks if objective == "multiclass" else (noisy > np.median(noisy)).astype(int)
    data = lightgbm.Dataset(x, label, group=[10] * 70 if objective == "lambdarank" else None)
    return lightgbm.train({**SETTINGS, **OBJECTIVES[objective], **changes}, data, rounds)


@cache
def trained(objective: str, n_features: int, rounds: int) -> tuple[Any, Forest]:
    booster = booster_of(objective, n_features, rounds)
    return booster, Forest.from_lightgbm(booster)


def lightgbm_raw(booster: Any, x: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(booster.predict(x, raw_score=True)).reshape(len(x), -1)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("n_features", "rounds"), [(1, 1), (3, 30), (80, 120)])
@pytest.mark.parametrize("n", [1, 8, 31, 32, 33, 700])
def test_raw_scores_equal_those_of_lightgbm(
    objective: str, n_features: int, rounds: int, n: int
) -> None:
    booster, forest = trained(objective, n_features, rounds)
    x = rows(n, n_features, seed=99)
    np.testing.assert_allclose(forest.raw(x), lightgbm_raw(booster, x), rtol=1e-6, atol=1e-6)
    assert forest.raw(x).shape == (n, forest.n_outputs)


@pytest.mark.parametrize("objective", ["binary", "multiclass"])
def test_probabilities_equal_those_of_lightgbm(objective: str) -> None:
    booster, forest = trained(objective, 80, 120)
    x = rows(100, 80, seed=5)
    expected = np.asarray(booster.predict(x)).reshape(100, -1)
    np.testing.assert_allclose(forest.probabilities(x), expected, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_that_hit_thresholds_exactly_fall_on_the_side_lightgbm_puts_them(data: Any) -> None:
    booster, forest = trained("multiclass", 3, 30)
    thresholds = split_points(booster)
    n = data.draw(st.sampled_from([1, 40]), label="rows")
    x = rows(n, 3, seed=data.draw(st.integers(0, 1000), label="seed"))
    for row in x[:5]:
        for feature in range(3):
            point = np.float32(data.draw(st.sampled_from(thresholds[feature]), label="threshold"))
            step = data.draw(st.sampled_from([-np.inf, 0.0, np.inf]), label="neighbour")
            row[feature] = point if step == 0.0 else np.nextafter(point, np.float32(step))
    np.testing.assert_allclose(forest.raw(x), lightgbm_raw(booster, x), rtol=1e-6, atol=1e-6)


def split_points(booster: Any) -> list[list[float]]:
    found = [set[float]() for _ in range(int(booster.num_feature()))]

    def walk(node: Any) -> None:
        if "threshold" in node:
            found[int(node["split_feature"])].add(node["threshold"])
            walk(node["left_child"])
            walk(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return [sorted(points) for points in found]


def test_a_threshold_between_two_float32_numbers_is_not_rounded_over_the_upper_one() -> None:
    # As float32, 1 + 2^-24 * 1.5 rounds up to 1 + 2^-23, which would then wrongly count as <= it.
    above = np.float32(1.0) + np.float32(2.0**-23)
    forest = Forest.from_lightgbm(Stump(threshold=1.0 + 1.5 * 2.0**-24))
    assert forest.raw(np.array([[1.0], [above]], np.float32)).ravel().tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_lightgbm_reads_as_zero_falls_on_the_side_of_zero(sign: int) -> None:
    booster, forest = trained("multiclass", 3, 30)
    edge = np.float32(sign * 1e-35)  # also a threshold of this booster
    assert float(edge) in split_points(booster)[1]
    for value in (edge, edge / np.float32(2), np.nextafter(edge, np.float32(sign))):
        x = np.full((1, 3), value, np.float32)
        np.testing.assert_allclose(forest.raw(x), lightgbm_raw(booster, x), rtol=1e-6, atol=1e-6)


def test_an_infinite_row_value_goes_right_of_every_threshold() -> None:
    forest = Forest.from_lightgbm(Stump(threshold=1e300))
    x = np.array([[np.inf], [-np.inf], [3e38]], np.float32)
    assert forest.raw(x).ravel().tolist() == [1.0, -1.0, -1.0]


def test_many_rows_give_what_each_row_gives_alone() -> None:
    _, forest = trained("multiclass", 80, 120)
    x = rows(1500, 80, seed=3)  # several blocks
    together = forest.raw(x)
    alone = np.concatenate([forest.raw(x[i : i + 1]) for i in range(0, 1500, 50)])
    np.testing.assert_allclose(together[::50], alone, rtol=0, atol=1e-12)


def test_no_rows_give_no_scores() -> None:
    _, forest = trained("multiclass", 3, 30)
    assert forest.raw(np.zeros((0, 3), np.float32)).shape == (0, 7)


def test_a_forest_of_constant_labels_gives_a_constant() -> None:
    x = rows(100, 3, seed=0)
    data = lightgbm.Dataset(x, np.zeros(100))
    booster = lightgbm.train({**SETTINGS, "objective": "binary"}, data, 3)
    got = Forest.from_lightgbm(booster).raw(x)
    np.testing.assert_allclose(got, lightgbm_raw(booster, x), atol=1e-6)


def test_early_stopping_serves_the_best_iteration() -> None:
    x = rows(300, 3, seed=1)
    label = (x[:, 0] + np.random.default_rng(0).normal(size=300) > 0).astype(int)
    train, valid = lightgbm.Dataset(x[:200], label[:200]), lightgbm.Dataset(x[200:], label[200:])
    stop = lightgbm.early_stopping(3, verbose=False)
    parameters = {**SETTINGS, "objective": "binary"}
    booster = lightgbm.train(
        parameters, train, 50, valid_sets=[valid], callbacks=[stop], keep_training_booster=True
    )
    assert booster.num_trees() > booster.best_iteration
    forest = Forest.from_lightgbm(booster)
    assert forest.n_trees == booster.best_iteration
    np.testing.assert_allclose(forest.raw(x), lightgbm_raw(booster, x), atol=1e-6)


def test_a_float64_row_is_refused_since_rounding_could_cross_a_threshold() -> None:
    _, forest = trained("binary", 3, 30)
    with pytest.raises(TypeError, match="float32"):
        forest.raw(np.zeros((1, 3)))  # pyright: ignore[reportArgumentType]  # the point of the test


def test_a_row_of_another_width_is_refused() -> None:
    _, forest = trained("binary", 3, 30)
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        forest.raw(np.zeros((1, 4), np.float32))


def test_a_deeper_tree_is_refused() -> None:
    with pytest.raises(LearnError, match="deeper than 4"):
        Forest.from_lightgbm(booster_of("binary", 80, 5, max_depth=6, num_leaves=40))


def test_a_sigmoid_other_than_one_is_refused() -> None:
    with pytest.raises(LearnError, match="sigmoid"):
        Forest.from_lightgbm(booster_of("binary", 3, 2, sigmoid=2.0))


def test_a_model_that_averages_its_trees_is_refused() -> None:
    forest_mode = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    with pytest.raises(LearnError, match="averaged"):
        Forest.from_lightgbm(booster_of("binary", 3, 2, **forest_mode))


def test_a_rule_for_missing_values_is_refused() -> None:
    x = rows(300, 3, seed=1)
    x[::5, 1] = np.nan
    label = (x[:, 0] > 0) ^ np.isnan(x[:, 1])
    data = lightgbm.Dataset(x, label)
    booster = lightgbm.train({**SETTINGS, "objective": "binary", "use_missing": True}, data, 5)
    with pytest.raises(LearnError, match="use_missing=false"):
        Forest.from_lightgbm(booster)


def test_categorical_splits_are_refused() -> None:
    x = rows(300, 3, seed=1)
    x[:, 1] = np.arange(300) % 7
    data = lightgbm.Dataset(x, x[:, 1] == 3, categorical_feature=[1])
    booster = lightgbm.train({**SETTINGS, "objective": "binary"}, data, 5)
    with pytest.raises(LearnError, match="not supported"):
        Forest.from_lightgbm(booster)


@pytest.mark.parametrize("objective", ["binary", "multiclass"])
def test_arrays_read_back_give_the_same_forest_bit_for_bit(objective: str) -> None:
    _, forest = trained(objective, 80, 120)
    again = Forest.from_arrays(forest.arrays())
    x = rows(200, 80, seed=7)
    np.testing.assert_array_equal(forest.raw(x), again.raw(x))
    np.testing.assert_array_equal(forest.raw(x[:3]), again.raw(x[:3]))


def damaged(name: str, value: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    _, forest = trained("multiclass", 3, 30)
    arrays = forest.arrays()
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    return arrays


def with_entry(name: str, index: int, value: float) -> dict[str, NDArray[Any]]:
    _, forest = trained("multiclass", 3, 30)
    array = forest.arrays()[name].copy()
    array[index] = value
    return damaged(name, array)


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        (damaged("leaf", None), "has the arrays"),
        (damaged("extra", np.zeros(3, np.float32)), "has the arrays"),
        (damaged("leaf", np.zeros(3, np.float32)), "differ in length"),
        (damaged("leaf", np.zeros((210, 16), np.float32)), "not one row"),
        (damaged("threshold", np.zeros(210 * 16)), "not one row of float32"),
        (damaged("shape", np.array([3, 7, 1], np.int32)), "3 entries"),
        (damaged("shape", np.array([0, 7], np.int32)), "out of range"),
        (damaged("shape", np.array([3, -1], np.int32)), "out of range"),
        (damaged("shape", np.array([3, 11], np.int32)), "do not fit 11 outputs"),
        (damaged("feature", np.zeros(17, np.uint16)), "do not fit"),
        (with_entry("feature", 5, 3), "feature 3 is beyond"),
        (with_entry("threshold", 5, np.nan), "not a finite"),
        (with_entry("leaf", 5, np.inf), "not a finite"),
    ],
)
def test_damaged_arrays_are_refused(arrays: dict[str, NDArray[Any]], why: str) -> None:
    with pytest.raises(ArtifactCorruptError, match=why):
        Forest.from_arrays(arrays)


class Stump:
    """A booster of one tree with one split, for thresholds that training does not reach."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def model_to_string(self) -> str:
        head = "tree\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
        tree = (
            "num_leaves=2\nsplit_feature=0\n"
            f"threshold={self.threshold!r}\ndecision_type=0\nleft_child=-1\nright_child=-2\n"
            "leaf_value=-1 1\n"
        )
        return f"{head}\nTree=0\n{tree}\n\nend of trees\n"
