"""Trees that read a history are grown on the columns that tell what comes next."""

import numpy as np
from numpy.typing import NDArray

from reflexarc.reflex.boosting import HISTORY_TREES, train
from reflexarc.reflex.telling import SparseRow, dense_rows, telling_columns

ITEMS, WIDTH, DENSE = 400, 300, 5


def history(seed: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """(ITEMS, WIDTH) rows of rare words, of which 250 goes with class 1, 251 with class 2."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((ITEMS, WIDTH)) < 0.05).astype(np.float32)
    classes = rng.integers(0, 3, ITEMS)
    rows[:, 250] = (classes == 1) & (rng.random(ITEMS) < 0.9)
    rows[:, 251] = (classes == 2) & (rng.random(ITEMS) < 0.4)
    rows[:, :DENSE] = 1.0
    return rows, classes


def sparse(rows: NDArray[np.float32]) -> list[SparseRow]:
    return [(row.nonzero()[0].astype(np.uint16), row[row.nonzero()[0]]) for row in rows]


def test_dense_columns_stay_and_those_that_tell() -> None:
    rows, classes = history(1)
    found = telling_columns(sparse(rows), classes, WIDTH, always=DENSE, least=10, most=20)
    assert len(found) == 20
    assert found.tolist() == sorted(set(found.tolist()))
    assert {*range(DENSE), 250, 251} <= set(found.tolist())


def test_they_are_those_of_the_largest_correlation() -> None:
    rows, classes = history(2)
    found = telling_columns(sparse(rows), classes, WIDTH, always=0, least=1, most=50)
    shares = np.stack([np.corrcoef(rows[:, DENSE:].T, classes == one)[-1, :-1] for one in range(3)])
    best = DENSE + np.argsort(-np.abs(shares).max(axis=0), kind="stable")[:50]
    assert set(found.tolist()) == set(best.tolist())


def test_what_hardly_any_row_has_tells_nothing() -> None:
    rows, classes = history(3)
    rows[:, 250] = 0.0
    rows[np.flatnonzero(classes == 1)[:9], 250] = 1.0
    found = telling_columns(sparse(rows), classes, WIDTH, always=DENSE, least=10, most=200)
    assert 250 not in found
    assert 251 in found


def test_narrow_rows_are_read_whole() -> None:
    rows, classes = history(4)
    found = telling_columns(sparse(rows), classes, WIDTH, always=DENSE, least=10, most=WIDTH)
    assert found.tolist() == list(range(WIDTH))


def test_a_forest_of_some_columns_answers_whole_rows_alike() -> None:
    rows, classes = history(5)
    columns = telling_columns(sparse(rows), classes, WIDTH, always=DENSE, least=10, most=40)
    narrow = dense_rows(sparse(rows), columns, WIDTH)
    np.testing.assert_array_equal(narrow, rows[:, columns])
    settings = {**HISTORY_TREES, "objective": "multiclass", "num_class": 3}
    forest = train(narrow, classes, settings, 10)
    np.testing.assert_array_equal(
        forest.over(columns, WIDTH).probabilities(rows), forest.probabilities(narrow)
    )
    assert (forest.probabilities(narrow).argmax(axis=1) == classes).mean() > 0.6
