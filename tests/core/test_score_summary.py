"""The summary of scores stays within its bounds of the curves and bins of scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve

from rprime.core.arrays import Array
from rprime.core.scores.curves import MOST_CLASSES, POINTS, Detections, ScoreSummary
from rprime.core.scores.scores import Scores
from rprime.store import packing
from tests.core.score_values import drawn

RNG = np.random.default_rng(1975)
STEP = 2 / (POINTS - 1)
LARGEST = 105_000
"""Bytes of a summary, whatever is summarised."""


def distance(x: Array, y: Array, to_x: Array, to_y: Array) -> float:
    """How far points are from a rising line between others, across or up, at most."""
    up = np.abs(np.interp(x, to_x, to_y) - y)
    across = np.abs(np.interp(y, to_y, to_x) - x)
    return float(np.minimum(up, across).max())


def samples() -> dict[str, Scores]:
    rng = np.random.default_rng(3)
    true = rng.integers(0, 3, 20_000)
    perfect = np.eye(3)[true]
    rare = (np.arange(20_000) < 7).astype(int)
    uneven = rng.random(20_000)
    return {
        "random": Scores(true, rng.dirichlet(np.ones(3), 20_000)),
        "good": drawn(rng, 20_000, 3),
        "tied": Scores(true, rng.multinomial(10, (perfect + 1) / 4) / 10),
        "two values": Scores(true, rng.integers(0, 2, (20_000, 3)).astype(float)),
        "constant": Scores(true, np.full((20_000, 3), 1 / 3)),
        "perfect": Scores(true, perfect),
        "reversed": Scores(true, 1 - perfect),
        "logits": Scores(true, rng.normal(size=(20_000, 3)) * 40 + 3 * perfect),
        "rare": Scores(rare, np.column_stack((1 - uneven, uneven))),
        "few": Scores(np.array([0, 1, 1]), np.array([[0.4, 0.6], [0.4, 0.6], [0.2, 0.8]])),
    }


@pytest.mark.parametrize("name", samples())
def test_the_curves_are_close_to_those_of_scikit_learn(name: str) -> None:
    scores = samples()[name]
    summary = ScoreSummary.of(scores)
    assert summary.classes.tolist() == [*np.unique(scores.true), scores.k]
    for place, (code, detections) in enumerate(summary.detections()):
        if code == scores.k:
            truth = (scores.true[:, None] == np.arange(code)).ravel()
            values = scores.values.ravel()
        else:
            truth, values = scores.true == code, scores.values[:, code]
        fpr, tpr, _ = metrics.roc_curve(truth, values, drop_intermediate=False)
        roc = detections.roc()
        gap = distance(fpr, tpr, roc["false_positive_rate"], roc["recall"])
        assert gap <= STEP, code
        auc = metrics.roc_auc_score(truth, values)
        assert summary.areas[0, place] == pytest.approx(auc, abs=1e-12)
        average = metrics.average_precision_score(truth, values)
        assert summary.areas[1, place] == pytest.approx(average, abs=1e-12)
        # Every kept point is one of the precision-recall curve itself.
        precision, recall, at = metrics.precision_recall_curve(truth, values)
        by_threshold = {t: (p, r) for t, p, r in zip(at, precision, recall, strict=False)}
        curve = detections.precision_recall()
        for t, p, r in zip(
            *(curve[c][1:] for c in ("threshold", "precision", "recall")), strict=True
        ):
            assert by_threshold[t] == pytest.approx((p, r), abs=1e-12)
        assert len(detections.tp) <= POINTS + POINTS // 2
        assert np.abs(np.diff(curve["recall"])).max() <= STEP + np.abs(np.diff(recall)).max()


@pytest.mark.parametrize("name", ["random", "good", "tied", "constant", "perfect", "few"])
def test_the_bins_are_those_of_scikit_learn(name: str) -> None:
    scores = samples()[name]
    summary = ScoreSummary.of(scores)
    for place, code in enumerate(summary.classes[:-1].tolist()):
        truth, values = scores.true == code, scores.values[:, code]
        positives, negatives, sums = summary.bins[:, place]
        assert positives.sum() == truth.sum()
        assert negatives.sum() == (~truth).sum()
        filled = positives + negatives > 0
        share, mean = calibration_curve(truth, values, n_bins=15)
        items = (positives + negatives)[filled]
        np.testing.assert_allclose(positives[filled] / items, share, atol=1e-12)
        np.testing.assert_allclose(sums[filled] / items, mean, atol=1e-9)
    top = calibration_curve(scores.correct, scores.confidence, n_bins=15)
    calibration = summary.calibration
    assert calibration is not None
    bins = list(calibration.bins())
    np.testing.assert_allclose([row["accuracy"] for row in bins], top[0], atol=1e-12)
    np.testing.assert_allclose([row["confidence"] for row in bins], top[1], atol=1e-9)


def test_other_scores_have_bins_over_their_range_and_no_reliability() -> None:
    scores = samples()["logits"]
    summary = ScoreSummary.of(scores)
    assert summary.calibration is None
    assert (summary.edges[0], summary.edges[-1]) == (scores.values.min(), scores.values.max())
    for place, code in enumerate(summary.classes[:-1].tolist()):
        column = scores.values[scores.true == code, code]
        # numpy closes the lower edges; no score is on one.
        expected = np.histogram(column, summary.edges)[0]
        np.testing.assert_array_equal(summary.bins[0, place], expected)


def test_weights_count_as_items() -> None:
    once = drawn(RNG, 300, 3)
    times = RNG.integers(1, 4, 300)
    twins = Scores(np.repeat(once.true, times), np.repeat(once.values, times, axis=0))
    weighted = Scores(once.true, once.values, weights=times.astype(float))
    summary, other = ScoreSummary.of(weighted), ScoreSummary.of(twins)
    np.testing.assert_allclose(summary.areas, other.areas, atol=1e-12)
    np.testing.assert_allclose(summary.bins, other.bins, atol=1e-9)
    np.testing.assert_allclose(summary.tp, other.tp)
    np.testing.assert_allclose(summary.risk, other.risk)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_single_true_class_has_no_curve(k: int) -> None:
    values = RNG.dirichlet(np.ones(k), 20)
    summary = ScoreSummary.of(Scores(np.zeros(20, dtype=int), values))
    assert summary.classes.size == 0
    assert list(summary.detections()) == []
    assert summary.calibration is not None
    summary.check(k)
    again = packing.unpack_scores(packing.pack_scores(summary))
    again.check(k)


@given(st.integers(1, 60), st.integers(2, 5), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_any_scores_are_summarised_and_packed(n: int, k: int, digits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = Scores(rng.integers(0, k, n), np.round(rng.normal(size=(n, k)), digits))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = ScoreSummary.of(scores)
        again = packing.unpack_scores(packing.pack_scores(summary))
    again.check(k)
    np.testing.assert_array_equal(again.bins[:2], summary.bins[:2])
    np.testing.assert_allclose(again.areas, summary.areas)
    for (code, detections), (_, read) in zip(summary.detections(), again.detections(), strict=True):
        np.testing.assert_array_equal(read.tp, detections.tp)
        np.testing.assert_array_equal(read.fp, detections.fp)
        np.testing.assert_allclose(read.threshold, detections.threshold, rtol=1e-6)
        if code < k:
            assert detections.tp[-1] == np.count_nonzero(scores.true == code)


def test_what_does_not_fit_is_refused() -> None:
    summary = ScoreSummary.of(drawn(RNG, 50, 3))
    summary.check(3)
    with pytest.raises(ValueError, match="do not fit"):
        summary.check(2)
    cut = ScoreSummary(**vars(summary) | {"tp": summary.tp[1:]})
    with pytest.raises(ValueError, match="do not fit"):
        cut.check(3)


def test_of_many_classes_the_weakest_are_kept_in_bounded_size() -> None:
    scores = drawn(RNG, 30_000, 150)
    summary = ScoreSummary.of(scores)
    assert len(summary.classes) == MOST_CLASSES
    areas = np.array([Detections.of(scores, code).roc_auc for code in range(150)])
    assert set(summary.classes.tolist()) == set(np.argsort(areas)[:MOST_CLASSES].tolist())
    assert len(packing.pack_scores(summary)) < LARGEST


@pytest.mark.slow
def test_a_million_items_of_a_hundred_classes_take_little_room() -> None:
    rng = np.random.default_rng(8)
    true = rng.integers(0, 100, 1_000_000).astype(np.uint8)
    values = rng.random((1_000_000, 100), dtype=np.float32)
    values[np.arange(1_000_000), true] += 1
    values /= values.sum(-1, keepdims=True)
    assert len(packing.pack_scores(ScoreSummary.of(Scores(true, values)))) < LARGEST
