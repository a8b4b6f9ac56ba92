"""Reads the trees of a lightgbm booster from the text it writes of itself: a third of the time that
its JSON takes, which says much more of each node.
"""

from typing import NamedTuple, Protocol

from reflexarc.steps.errors import LearnError

_CATEGORICAL = 1
_MISSING = 12
"""Bits of a split's type that say what becomes of missing values; nothing where all are 0."""


class Booster(Protocol):
    """What is needed of `lightgbm.Booster`."""

    def model_to_string(self) -> str: ...


class Tree(NamedTuple):
    """Splits `x[features] <= thresholds`, by number; a child below 0 is leaf `~child`. A tree of
    one leaf has no splits."""

    features: list[int]
    thresholds: list[float]
    left: list[int]
    right: list[int]
    leaves: list[float]


class Model(NamedTuple):
    """A booster: rounds of `outputs` trees each."""

    outputs: int
    features: int
    objective: str
    trees: list[Tree]


def read_booster(booster: Booster) -> Model:
    """The trees, to the best iteration if training stopped early. Raises LearnError where the text
    is not of the form known here, and where trees are averaged, or split by category or with a
    rule for missing values."""
    head, *trees = booster.model_to_string().split("\nTree=")
    said = _fields(head)
    if "average_output" in said:
        raise LearnError("averaged trees are not supported: train with boosting=gbdt")
    try:
        return Model(
            int(said["num_tree_per_iteration"]),
            int(said["max_feature_idx"]) + 1,
            said.get("objective", ""),
            [_tree(_fields(tree.partition("\n\n")[0])) for tree in trees],
        )
    except (KeyError, ValueError) as e:
        raise LearnError(f"lightgbm describes its model in a form not known here: {e!r}") from e


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def _tree(said: dict[str, str]) -> Tree:
    leaves = [float(one) for one in said["leaf_value"].split()]
    if int(said["num_leaves"]) == 1:
        return Tree([], [], [], [], leaves)
    kinds = [int(one) for one in said["decision_type"].split()]
    if any(kind & _CATEGORICAL for kind in kinds):
        raise LearnError("splits by category are not supported: numbers only")
    if any(kind & _MISSING for kind in kinds):
        raise LearnError("splits with a rule for missing values: train with use_missing=false")
    return Tree(
        [int(one) for one in said["split_feature"].split()],
        [float(one) for one in said["threshold"].split()],
        [int(one) for one in said["left_child"].split()],
        [int(one) for one in said["right_child"].split()],
        leaves,
    )
