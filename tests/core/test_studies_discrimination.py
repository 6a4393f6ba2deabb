"""Discrimination lines: what Labatut and Cherifi found, and exactness everywhere."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rprime.core.catalog import INDICES, find
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.studies import (
    DiscriminationLine,
    TracedIndex,
    discriminate,
    proportions,
    series_tables,
)
from rprime.core.values import compute

MULTICLASS = ("accuracy", "kappa", "scott_pi_true_margin", "maxwell_re")
IMBALANCES = [0.0, 0.25, 0.5, 0.75, 1.0]


def subject(key: str, class_: int | None = None) -> TracedIndex:
    index = find("overall" if class_ is None else "class", key)
    assert index is not None
    return TracedIndex(index, class_)


def line(key: str, class_: int | None = None, *, k: int = 3, p: float = 0.0) -> DiscriminationLine:
    (curve,) = discriminate([subject(key, class_)], k, [p], 101)
    return curve


def at(curve: DiscriminationLine, c_x: float) -> float:
    """Return c_y where the line crosses a value of the grid."""
    points = curve.coordinates
    return float(points[np.isclose(points[:, 0], c_x, rtol=0, atol=1e-12), 1].item())


def values_on(curve: DiscriminationLine) -> tuple[Any, Any]:
    """Compute the index at the points of its line, for series x and y."""
    shares = proportions(curve.k, np.array(curve.p))
    options = Options(indices=(curve.index,))
    values = []
    for axis in (0, 1):
        table = series_tables(shares, curve.coordinates[:, axis], np.array([axis == 1]))
        computed = compute(table, options, select(options))
        series = computed.lookup("overall" if curve.class_ is None else "class", curve.index)
        values.append(series if curve.class_ is None else series[:, curve.class_ - 1])
    return values[0], values[1]


@pytest.mark.parametrize("key", MULTICLASS)
def test_balanced_indices_of_the_whole_have_the_line_3x_minus_2(key: str) -> None:
    curve = line(key)
    np.testing.assert_allclose(curve.coordinates[:, 1], 3 * curve.coordinates[:, 0] - 2, atol=1e-9)
    np.testing.assert_allclose(curve.coordinates[[0, -1]], [[2 / 3, 0.0], [1.0, 1.0]], atol=1e-12)


def test_csi_lies_below_and_favours_series_y_more() -> None:
    curve = line("csi")
    # (2.7 - c)^2 = 4.09: sums of recall and precision of three classes, by hand.
    assert at(curve, 0.9) == pytest.approx(2.7 - 4.09**0.5, abs=1e-9)
    inner = curve.coordinates[1:-1]
    assert (inner[:, 1] < 3 * inner[:, 0] - 2).all()


@pytest.mark.parametrize("p", IMBALANCES)
def test_accuracy_scott_and_maxwell_coincide_for_every_imbalance(p: float) -> None:
    accuracy = line("accuracy", p=p).points
    for key in ("scott_pi_true_margin", "maxwell_re"):
        np.testing.assert_allclose(line(key, p=p).points, accuracy, atol=1e-9)


def test_kappa_leaves_them_as_imbalance_grows() -> None:
    away = [at(line("accuracy", p=p), 0.9) - at(line("kappa", p=p), 0.9) for p in IMBALANCES]
    assert away[0] == pytest.approx(0, abs=1e-9)
    assert (np.diff(away) > 1e-4).all()


@pytest.mark.parametrize("p", IMBALANCES)
@pytest.mark.parametrize("k", [2, 3, 10])
def test_recall_of_class_1_has_the_diagonal(p: float, k: int) -> None:
    points = line("recall", 1, k=k, p=p).coordinates
    np.testing.assert_allclose(points[:, 0], points[:, 1], atol=1e-9)
    np.testing.assert_allclose(points[:, 0], np.linspace(0, 1, 101), atol=1e-9)


@pytest.mark.parametrize("p", IMBALANCES)
def test_f1_and_jaccard_coincide(p: float) -> None:
    np.testing.assert_allclose(line("f1", 1, p=p).points, line("jaccard", 1, p=p).points, atol=1e-9)


@pytest.mark.parametrize(("k", "expected"), [(3, 0.825), (5, 0.80625)])
def test_accuracy_of_imbalanced_classes_passes_the_published_points(
    k: int, expected: float
) -> None:
    assert at(line("accuracy", k=k, p=1.0), 0.9) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("key", "class_", "prefers"),
    [
        ("recall", 2, "y"),
        ("precision", 1, "y"),
        ("false_positive_rate", 1, "y"),
        ("allocation_disagreement", None, "y"),
        ("quantity_disagreement", None, "x"),
    ],
)
def test_where_one_series_is_always_preferred_there_is_no_line(
    key: str, class_: int | None, prefers: str
) -> None:
    curve = line(key, class_)
    assert curve.points == []
    assert (curve.prefers, curve.reason) == (prefers, None)


@pytest.mark.parametrize(
    ("key", "class_", "reason"),
    [
        ("prevalence", 1, "indifferent"),
        ("no_information_rate", None, "indifferent"),
        ("gt_index", 1, "undefined"),
        ("positive_likelihood_ratio", 1, "undefined"),
    ],
)
def test_where_there_is_nothing_to_prefer_it_says_why(
    key: str, class_: int | None, reason: str
) -> None:
    curve = line(key, class_)
    assert curve.points == []
    assert (curve.prefers, curve.reason) == (None, reason)


def test_an_index_that_is_not_monotone_has_several_lines() -> None:
    """A classifier below chance is associated with the truth as much as one above it."""
    branches = discriminate([subject("cramers_v")], 3, [1.0], 101)
    assert len(branches) == 2
    below, above = (branch.coordinates for branch in branches)
    assert below[:, 0].max() < 1 / 3 < above[:, 0].min()
    assert (np.diff(below[:, 0]) >= 0).all()
    assert (np.diff(below[:, 1]) <= 0).all()


@pytest.mark.parametrize("k", [2, 3, 7, 50])
def test_both_series_have_the_same_value_on_every_line_of_the_catalog(k: int) -> None:
    subjects = [
        TracedIndex(entry, 1 if entry.scope == "class" else None)
        for entry in INDICES
        if entry.needs is None and (k < 50 or entry.reads not in ("macro", "weighted", "micro"))
    ]
    for curve in discriminate(subjects, k, [0.0, 0.6], 21):
        if len(curve.points):
            # At a rate of 0 or 1 precision does not exist, and close to it entropies are rounded.
            inner = ((curve.coordinates > 1e-9) & (curve.coordinates < 1 - 1e-9)).all(axis=-1)
            x, y = values_on(curve)
            np.testing.assert_allclose(
                x[inner], y[inner], rtol=1e-9, atol=1e-9, err_msg=curve.index
            )


@pytest.mark.parametrize("key", ["accuracy", "kappa", "csi", "mcc", "macro_f1"])
def test_points_are_exact_to_nine_digits(key: str) -> None:
    """Beside the point, closer than 1e-9, the preference has changed."""
    for curve in discriminate([subject(key)], 4, [0.0, 0.3, 1.0], 51):
        inner = (curve.coordinates[:, 1] > 1e-6) & (curve.coordinates[:, 1] < 1 - 1e-6)
        points = curve.coordinates[inner]
        for step, sign in ((1e-9, -1), (-1e-9, 1)):
            moved = replace(curve, points=(points + np.array([0, step])).tolist())
            x, y = values_on(moved)
            assert (np.sign(x - y) == sign).all()


def test_points_follow_the_line() -> None:
    points = line("kappa", p=1.0).points
    assert (np.diff(points, axis=0) >= 0).all()
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() < 0.02


def test_proportions_halve_from_class_to_class() -> None:
    shares = proportions(5, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-15)
    np.testing.assert_allclose(shares[0], 0.2, atol=1e-15)
    np.testing.assert_allclose(shares[2], np.array([16, 8, 4, 2, 1]) / 31, atol=1e-15)
    np.testing.assert_allclose(shares[1], (shares[0] + shares[2]) / 2, atol=1e-15)


def test_a_series_spreads_its_errors_evenly() -> None:
    shares = proportions(4, np.array(1.0))
    table = series_tables(shares, np.array([0.7, 0.7]), np.array([False, True]))
    counts = table.cells.counts
    np.testing.assert_allclose(counts.sum(axis=-1), np.stack((shares, shares)), atol=1e-15)
    np.testing.assert_allclose(np.diagonal(counts[0]), 0.7 * shares, atol=1e-15)
    np.testing.assert_allclose(counts[0, 2, [0, 1, 3]], 0.3 * shares[2] / 3, atol=1e-15)
    np.testing.assert_allclose(counts[1, 1:], np.diag(shares)[1:], atol=1e-15)
    np.testing.assert_allclose(counts[1, 0, 1:], 0.3 * shares[0] / 3, atol=1e-15)


def test_many_imbalances_give_what_each_gives_alone() -> None:
    many = [float(p) for p in np.linspace(0, 1, 60)]
    together = discriminate([subject("kappa"), subject("csi")], 11, many, 201)
    assert [curve.p for curve in together] == [*many, *many]
    alone = discriminate([subject("csi")], 11, many[33:34], 201)
    np.testing.assert_array_equal(together[60 + 33].points, alone[0].points)
