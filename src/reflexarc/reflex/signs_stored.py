"""The choice of tools and the cues as arrays of an artifact, and checks that learning made them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.associations import MAX_SIGNS, MAX_WEIGHTS, Table
from reflexarc.reflex.choice import TABLES, ToolChoice, ToolFit
from reflexarc.reflex.cues import MAX_CUES, MAX_WORDS, Cues
from reflexarc.reflex.record_cues import MAX_RECORD_CUES
from reflexarc.reflex.trees import Forest
from reflexarc.steps.errors import ArtifactCorruptError

_PREFIX = "choice."
_LARGEST = 1e4
PRIOR = f"{_PREFIX}prior"
CUES = ("cues.signs", "cues.weights")
NAMES = (
    PRIOR,
    *CUES,
    *(f"{_PREFIX}{table}.{part}" for table in TABLES for part in ("signs", "weights")),
)
"""All of them, beside the forest `choice`."""


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
        signs = _hashes(arrays[f"{_PREFIX}{name}.signs"])
        if len(signs) > max(1, min(MAX_SIGNS, MAX_WEIGHTS // len(tools))):
            raise _corrupt(f"it holds {len(signs)} signs, more than are learned")
        tables[name] = Table(
            signs, _numbers(arrays[f"{_PREFIX}{name}.weights"], (len(signs), len(tools)))
        )
    return ToolChoice(ToolFit(tools, tables, prior), forest)


def cue_arrays(cues: Cues) -> dict[str, NDArray[Any]]:
    """What `stored_cues` reads."""
    signs = sorted(cues.weights)
    weights = [cues.weights[one] for one in signs]
    arrays = (np.array(signs, dtype=np.uint64), np.array(weights, dtype=np.float32))
    return dict(zip(CUES, arrays, strict=True))


def stored_cues(arrays: Mapping[str, NDArray[Any]]) -> Cues:
    """The inverse. Raises ArtifactCorruptError."""
    signs, weights = (arrays[name] for name in CUES)
    if len(_hashes(signs)) > 2 * MAX_CUES + MAX_WORDS + MAX_RECORD_CUES + 1:
        raise _corrupt(f"{len(signs)} cues, more than are learned")
    weights = _numbers(weights, (len(signs),))
    return Cues(dict(zip(signs.tolist(), weights.tolist(), strict=True)))


def _hashes(signs: NDArray[Any]) -> NDArray[np.uint64]:
    if signs.dtype != np.uint64 or signs.ndim != 1 or bool((signs[1:] <= signs[:-1]).any()):
        raise _corrupt("its signs are not a sorted list of hashes")
    return signs


def _numbers(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    if array.dtype != np.float32 or array.shape != shape:
        raise _corrupt(f"weights of shape {array.shape}, not {shape}")
    if not bool((np.abs(array) < _LARGEST).all()):
        raise _corrupt("a weight that no count gives")
    return array


def _corrupt(why: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(
        f"not a sound .reflex file: what was learned of words: {why}; learn it again"
    )
