"""Correlations of differences: those of simulated differences, and of the items one by one."""

import numpy as np
import pytest

from rprime.core.arrays import Array
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.index import IndexScope
from rprime.core.options import Options
from tests.core.comparison_sides import side_of, table_side

Targets = list[tuple[IndexScope, str, str | None]]

TARGETS: Targets = [
    ("class", "recall", "0"),
    ("class", "r_prime", "0"),
    ("class", "f1", "0"),
    ("class", "recall", "2"),
    ("overall", "accuracy", None),
    ("overall", "kappa", None),
    ("overall", "macro_f1", None),
]
OPTIONS = Options(indices=tuple(key for _, key, _ in TARGETS))


def models(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """Draw true classes, and predictions of two models that share most errors."""
    true = rng.integers(0, 3, n)
    errors = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), true)
    new = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), errors)
    return true, errors, new


def value_of(comparison: Comparison, _: IndexScope, key: str, label: str | None) -> float:
    if label is None:
        return float(comparison.of_overall(key).value)
    return float(comparison.of_classes(key, (label,)).value[0])


@pytest.mark.parametrize("paired", [True, False])
def test_correlations_are_those_of_simulated_differences(*, paired: bool) -> None:
    rng = np.random.default_rng(2)

    def drawn() -> Comparison:
        true, old, new = models(rng, 1500)
        if paired:
            return compare(side_of(true, new, 3), side_of(true, old, 3), OPTIONS, attributed=())
        other, before, _ = models(rng, 1500)
        sides = side_of(true, new, 3), side_of(other, before, 3)
        ours, theirs = (table_side(side.table) for side in sides)
        return compare(ours, theirs, OPTIONS, attributed=())

    comparisons = [drawn() for _ in range(600)]
    values = [[value_of(comparison, *target) for target in TARGETS] for comparison in comparisons]
    expected = np.corrcoef(np.array(values).T)
    np.testing.assert_allclose(comparisons[0].aligned.correlation(TARGETS), expected, atol=0.15)


def test_nearly_one_test_is_nearly_one() -> None:
    true, old, new = models(np.random.default_rng(3), 2000)
    correlation = compare(
        side_of(true, new, 3), side_of(true, old, 3), OPTIONS
    ).aligned.correlation(TARGETS)
    assert correlation[0, 1] > 0.8
    assert abs(correlation[0, 3]) < 0.1
    np.testing.assert_allclose(np.diag(correlation), 1)
    np.testing.assert_allclose(correlation, correlation.T)
    assert np.linalg.eigvalsh(correlation)[0] > -1e-9


def test_groups_are_summed_first() -> None:
    true, old, new = models(np.random.default_rng(4), 400)
    once = compare(side_of(true, new, 3), side_of(true, old, 3), OPTIONS)
    groups = np.repeat(np.arange(400), 3)
    three = (np.repeat(part, 3) for part in (true, old, new))
    true, old, new = three
    thrice = compare(side_of(true, new, 3, groups), side_of(true, old, 3, groups), OPTIONS)
    np.testing.assert_allclose(
        thrice.aligned.correlation(TARGETS), once.aligned.correlation(TARGETS), atol=1e-9
    )


def test_what_has_no_influences_has_no_correlation() -> None:
    true = np.repeat([0, 1, 2], 50)
    old = np.where(np.arange(150) % 7 == 0, 0, true)
    options = Options(indices=("recall", "cramers_v", "accuracy"))
    comparison = compare(side_of(true, old, 3), side_of(true, old.copy(), 3), options)
    targets: Targets = [
        ("class", "recall", "0"),
        ("overall", "cramers_v", None),
        ("overall", "accuracy", None),
    ]
    expected = np.array([[1.0, np.nan, 0.0], [np.nan] * 3, [0.0, np.nan, 1.0]])
    np.testing.assert_array_equal(comparison.aligned.correlation(targets), expected)
