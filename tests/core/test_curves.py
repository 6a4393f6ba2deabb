"""Curves keep their hull in few points, and thresholds give the tables they stand for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import ConvexHull
from sklearn import metrics

from rprime.core.scores.curves import (
    MOST_POINTS,
    Detections,
    errors,
    rejection_sweep,
    risk_coverage,
    tables_at,
    thinned,
    values_at,
)
from rprime.core.scores.scores import Scores
from tests.core.score_values import drawn

RNG = np.random.default_rng(2006)


def rounded(scores: Scores, digits: int) -> Scores:
    return Scores(scores.true, np.round(scores.values, digits))


@pytest.mark.parametrize("digits", [2, 12])
def test_short_curves_are_those_of_scikit_learn(digits: int) -> None:
    scores = rounded(drawn(RNG, 150, 3), digits)
    detections = Detections.of(scores, 1)
    fpr, tpr, thresholds = metrics.roc_curve(
        scores.true == 1, scores.values[:, 1], drop_intermediate=False
    )
    roc = detections.roc()
    np.testing.assert_allclose(roc["false_positive_rate"], fpr, atol=1e-12)
    np.testing.assert_allclose(roc["recall"], tpr, atol=1e-12)
    np.testing.assert_array_equal(roc["threshold"][1:], thresholds[1:])
    assert np.isnan(roc["threshold"][0])
    precision, recall, thresholds = metrics.precision_recall_curve(
        scores.true == 1, scores.values[:, 1]
    )
    curve = detections.precision_recall()
    np.testing.assert_allclose(curve["precision"][1:], precision[-2::-1], atol=1e-12)
    np.testing.assert_allclose(curve["recall"][1:], recall[-2::-1], atol=1e-12)
    np.testing.assert_array_equal(curve["threshold"][1:], thresholds[::-1])


def corners(x: Any, y: Any) -> set[tuple[float, float]]:
    points = np.column_stack((x, y)).astype(float)
    return {tuple(points[i]) for i in ConvexHull(points).vertices}


def test_thinned_curves_keep_their_hull() -> None:
    scores = drawn(RNG, 30_000, 3)
    detections = Detections.of(scores, 0)
    assert len(detections.tp) > 10 * MOST_POINTS
    kept = thinned(detections.fp, detections.tp)
    assert len(kept) <= MOST_POINTS
    assert kept[0] == 0
    assert kept[-1] == len(detections.tp) - 1
    assert corners(detections.fp, detections.tp) == corners(
        detections.fp[kept], detections.tp[kept]
    )
    for curve in (detections.roc(), detections.precision_recall(), risk_coverage(*errors(scores))):
        sizes = {len(column) for column in curve.values()}
        assert len(sizes) == 1
        assert max(sizes) <= MOST_POINTS


@example(np.array([0, 0, 0, 1, -1, 0]), 2)
@given(arrays(np.int64, st.integers(3, 60), elements=st.integers(-9, 9)), st.integers(0, 2))
def test_the_hull_of_any_curve_is_kept(y: Any, step: int) -> None:
    x = np.arange(len(y)) // (step + 1)
    kept = thinned(x, y, 3)
    spread = np.ptp(x) and np.ptp(y)
    if not spread or np.linalg.matrix_rank(np.column_stack((x - x[0], y - y[0]))) < 2:
        return
    whole = corners(x, y)
    # The ends are kept besides.
    if len(whole | {(x[0], y[0]), (x[-1], y[-1])}) <= 3:
        assert whole <= corners(x[kept], y[kept]) | {(x[i], y[i]) for i in kept}


def test_between_the_corners_a_thinned_curve_stays_close() -> None:
    scores = drawn(RNG, 30_000, 2)
    detections = Detections.of(scores, 1)
    roc = detections.roc()
    at = np.interp(detections.fp / detections.fp[-1], roc["false_positive_rate"], roc["recall"])
    # Where the curve is upright, it has many heights, and these are compared with the highest.
    assert np.abs(at - detections.tp / detections.tp[-1]).max() < 0.02


def test_every_point_is_the_table_at_its_threshold() -> None:
    scores = rounded(drawn(RNG, 200, 3), 2)
    roc = Detections.of(scores, 2).roc()
    thresholds = roc["threshold"][1:]
    tables = tables_at(scores, np.full(len(thresholds), 2), thresholds)
    values = values_at(tables)
    np.testing.assert_allclose(values["recall"], roc["recall"][1:])
    np.testing.assert_allclose(1 - values["specificity"], roc["false_positive_rate"][1:])
    assert (tables.total == 200).all()


def test_risk_falls_where_only_sure_answers_are_given() -> None:
    scores = drawn(RNG, 500, 3)
    curve = risk_coverage(*errors(scores))
    for coverage, risk, threshold in zip(*(curve[c] for c in curve), strict=True):
        answered = scores.confidence >= threshold
        assert answered.mean() == pytest.approx(coverage)
        assert (~scores.correct)[answered].mean() == pytest.approx(risk)
    assert curve["coverage"][-1] == 1


def test_leaving_items_out_raises_r_prime_while_accuracy_falls() -> None:
    scores = drawn(RNG, 500, 3)
    sweep = rejection_sweep(scores)
    assert sweep["r_prime"][0] == 1
    assert sweep["coverage"][0] == 0
    assert sweep["r_prime"][-1] == sweep["accuracy"][-1] == scores.correct.mean()
    assert (np.diff(sweep["r_prime"]) <= 0).all()
    assert (np.diff(sweep["accuracy"]) >= 0).all()
    shares = sweep["accuracy"] + 1 - sweep["coverage"]
    np.testing.assert_allclose(sweep["r_prime"], shares, atol=1e-12)


def test_a_hull_of_more_corners_than_points_is_thinned_itself() -> None:
    x = np.arange(5000.0)
    kept = thinned(x, -((x - 2500) ** 2), 100)
    assert len(kept) == 100
    assert kept[0] == 0
    assert kept[-1] == 4999
