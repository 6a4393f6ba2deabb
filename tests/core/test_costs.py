"""What a confusion costs: the derivative of every index by putting its items right."""

from typing import Any

import numpy as np
import pytest

from rprime.core.comparison.attribution import Costs, costs
from rprime.core.values import Values
from tests.core.index_values import dense, values_of

KEYS = ("accuracy", "r_prime", "kappa", "mcc", "macro_f1", "weighted_precision", "recall", "f1")
COUNTS = np.array([[50.0, 4, 1], [3, 30, 7], [2, 6, 20]])
UNCLASSIFIED = np.array([5.0, 0, 3])
STEP = 1e-4


def found(*unclassified: Any) -> Costs:
    return costs(dense(COUNTS, *unclassified), KEYS)


def gains(true: int, predicted: int | None, *unclassified: Any) -> tuple[Any, Any]:
    """Return what the indices gain, by central differences, for each item that is put right."""

    def moved(items: float) -> Values:
        counts, silent = COUNTS.copy(), [vector.copy() for vector in unclassified]
        counts[true, true] += items
        if predicted is None:
            silent[0][true] -= items
        else:
            counts[true, predicted] -= items
        return values_of(dense(counts, *silent), indices=KEYS)

    more, less = moved(STEP), moved(-STEP)
    reported = more.selection.reported
    per_class = more.per_class[:reported] - less.per_class[:reported]
    return (more.overall - less.overall) / (2 * STEP), per_class / (2 * STEP)


@pytest.mark.parametrize("unclassified", [(), (UNCLASSIFIED,)])
@pytest.mark.parametrize(("true", "predicted"), [(0, 1), (1, 0), (1, 2), (2, 0)])
def test_a_confusion_costs_what_is_gained_by_putting_it_right(
    unclassified: tuple[Any, ...], true: int, predicted: int
) -> None:
    cell_costs = found(*unclassified)
    overall, per_class = gains(true, predicted, *unclassified)
    np.testing.assert_allclose(
        cell_costs.right[:, true] - cell_costs.wrong[:, predicted], overall, atol=1e-8
    )
    np.testing.assert_allclose(cell_costs.missed[:, true], per_class[:, true], atol=1e-8)
    np.testing.assert_allclose(cell_costs.taken[:, predicted], per_class[:, predicted], atol=1e-8)


@pytest.mark.parametrize("true", [0, 2])
def test_an_unclassified_item_costs_what_is_gained_by_putting_it_right(true: int) -> None:
    overall, _ = gains(true, None, UNCLASSIFIED)
    np.testing.assert_allclose(found(UNCLASSIFIED).silent[:, true], overall, atol=1e-8)


def test_accuracy_loses_the_same_by_every_confusion() -> None:
    cell_costs = found()
    place = [entry.key for entry in cell_costs.overall].index("accuracy")
    confusions = cell_costs.right[place][:, None] - cell_costs.wrong[place]
    np.testing.assert_allclose(confusions, 1 / COUNTS.sum())


def test_the_costs_have_the_indices_that_were_asked_for() -> None:
    cell_costs = found()
    assert {entry.key for entry in (*cell_costs.overall, *cell_costs.per_class)} == set(KEYS)
    assert cell_costs.right.shape == (len(cell_costs.overall), 3)
    assert cell_costs.missed.shape == cell_costs.taken.shape == (len(cell_costs.per_class), 3)


def test_costs_at_a_corner_of_an_index_are_undefined_without_a_word() -> None:
    cell_costs = costs(dense([[5, 0], [3, 0]]), KEYS)
    place = [entry.key for entry in cell_costs.overall].index("mcc")
    assert np.isnan(cell_costs.right[place]).all()
    assert np.isfinite(cell_costs.right[0]).all()
