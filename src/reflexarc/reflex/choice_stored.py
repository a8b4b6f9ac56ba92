"""The choice of tools as arrays of an artifact, and checks that learning could have made them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.associations import MAX_SIGNS, MAX_WEIGHTS, Table
from reflexarc.reflex.choice import TABLES, ToolChoice, ToolFit
from reflexarc.reflex.trees import Forest
from reflexarc.steps.errors import ArtifactCorruptError

_PREFIX = "choice."
_LARGEST = 1e4
PRIOR = f"{_PREFIX}prior"
NAMES = (
    PRIOR,
    *(f"{_PREFIX}{table}.{part}" for table in TABLES for part in ("signs", "weights")),
)
"""The arrays, beside the forest `choice`."""


def choice_arrays(choice: ToolChoice) -> dict[str, NDArray[Any]]:
    """What `stored_choice` reads, the forest apart."""
    arrays: dict[str, NDArray[Any]] = {PRIOR: choice.fit.prior}
    for name in TABLES:
        arrays[f"{_PREFIX}{name}.signs"] = choice.fit.tables[name].keys
        arrays[f"{_PREFIX}{name}.weights"] = choice.fit.tables[name].rows
    return arrays


def stored_choice(
    tools: Sequence[str], arrays: Mapping[str, NDArray[Any]], forest: Forest
) -> ToolChoice:
    """The inverse, with a forest that `check_forests` passed. Raises ArtifactCorruptError."""
    prior = _numbers(arrays[PRIOR], (len(tools),))
    tables: dict[str, Table] = {}
    for name in TABLES:
        signs = arrays[f"{_PREFIX}{name}.signs"]
        if signs.dtype != np.uint64 or signs.ndim != 1 or bool((signs[1:] <= signs[:-1]).any()):
            raise _corrupt("its signs are not a sorted list of hashes")
        if len(signs) > max(1, min(MAX_SIGNS, MAX_WEIGHTS // len(tools))):
            raise _corrupt(f"it holds {len(signs)} signs, more than are learned")
        tables[name] = Table(
            signs, _numbers(arrays[f"{_PREFIX}{name}.weights"], (len(signs), len(tools)))
        )
    return ToolChoice(ToolFit(tools, tables, prior), forest)


def _numbers(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    if array.dtype != np.float32 or array.shape != shape:
        raise _corrupt(f"weights of shape {array.shape}, not {shape}")
    if not bool((np.abs(array) < _LARGEST).all()):
        raise _corrupt("a weight that no count gives")
    return array


def _corrupt(why: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(
        f"not a sound .reflex file: the choice of tools: {why}; learn it again"
    )
