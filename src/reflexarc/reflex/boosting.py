"""Training boosted trees: the only place that needs lightgbm (the extra `[learn]`)."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.trees import DEPTH, Booster, Forest
from reflexarc.steps.errors import LearnError

_COMMON: dict[str, Any] = {
    "max_depth": DEPTH,
    "use_missing": False,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 1,
}

HISTORY_TREES: dict[str, Any] = {
    "num_leaves": 16,
    "learning_rate": 0.08,
    "min_data_in_leaf": 10,
    # By node: to draw the columns of each tree, lightgbm copies them, which takes most of the time.
    "feature_fraction_bynode": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 2.0,
    "max_bin": 63,
}
"""Of forests that read a whole history: many columns, most of them 0."""


def train(
    features: NDArray[np.float32], labels: NDArray[Any], parameters: dict[str, Any], rounds: int
) -> Forest:
    """A forest of `rounds` rounds over (n, width) features; `labels` are class indices."""
    try:
        import lightgbm
    except ImportError as missing:
        raise LearnError(
            "learning needs lightgbm, which is not installed: pip install 'reflexarc[learn]'"
        ) from missing
    settings: dict[str, Any] = {**_COMMON, **parameters}
    # lightgbm's annotations are partial; what is used of it here is this much.
    fit = cast("Callable[..., Booster]", lightgbm.train)  # pyright: ignore[reportUnknownMemberType]
    return Forest.from_lightgbm(
        fit(settings, lightgbm.Dataset(features, labels), num_boost_round=rounds)
    )
