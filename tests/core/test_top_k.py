"""Intervals and differences of the indices of the k highest scores."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import METHODS
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from tests.core.score_values import drawn, evaluated
from tests.core.test_delong import scored_side
from tests.core.test_score_intervals import limits

RNG = np.random.default_rng(5)
FAMILY = (
    *("top_k_accuracy", "macro_top_k_recall", "macro_top_k_precision"),
    *("weighted_top_k_recall", "weighted_top_k_precision"),
)


def within(scores: Scores, most: int) -> Any:
    """Whether the true class is among the highest scores, by sorting them."""
    order = np.argsort(-scores.values, axis=-1, kind="stable")[:, :most]
    return (order == scores.true[:, None]).any(-1)


def wilson(hits: Any, trials: Any) -> Any:
    interval = stats.binomtest(int(hits), int(trials)).proportion_ci(method="wilson")
    return np.array((interval.low, interval.high))


def test_of_a_class_they_are_shares_of_items_and_of_predictions() -> None:
    scores = drawn(RNG, 400, 6)
    evaluation, hit = evaluated(scores, top_k=2), within(scores, 2)
    recall, precision = (limits(evaluation, f"top_k_{key}", "class") for key in RATES)
    for code in range(6):
        items = scores.true == code
        wrong = ~hit & (scores.top == code)
        hits = np.count_nonzero(hit & items)
        expected = wilson(hits, np.count_nonzero(items))
        np.testing.assert_allclose(recall[:, code], expected, rtol=1e-9)
        expected = wilson(hits, hits + np.count_nonzero(wrong))
        np.testing.assert_allclose(precision[:, code], expected, rtol=1e-9)
    for key in ("top_k_accuracy", "weighted_top_k_recall"):
        np.testing.assert_allclose(limits(evaluation, key), wilson(hit.sum(), 400), rtol=1e-9)


RATES = ("recall", "precision")


@pytest.mark.parametrize("kind", ["groups", "weights", "exact", "fixed_rows"])
def test_of_the_highest_score_they_are_those_of_the_table(kind: str) -> None:
    scores = drawn(RNG, 300, 4)
    more: dict[str, Any] = {"exact": {"exact": True}, "fixed_rows": {"sampling": "fixed_rows"}}
    groups = RNG.integers(0, 30, 300) if kind == "groups" else None
    weights = RNG.uniform(0.5, 2, 300) if kind == "weights" else None
    side = scored_side(scores, groups)
    chosen = Scores(scores.true, scores.values, groups, weights)
    evaluation = evaluated(chosen, top_k=1, **more.get(kind, {}))
    if kind != "weights":  # the reference of those is the table of the weighted items
        options = Options(families=("all",), top_k=1, **more.get(kind, {}))
        values = side.estimates(options).intervals
        place = side.estimates(options).values.selection.overall_place
        for key in FAMILY:
            at = place[key.replace("top_k_", "")]
            expected = (values.overall_low[at], values.overall_high[at])
            np.testing.assert_allclose(limits(evaluation, key), expected, rtol=1e-9)
    for key in FAMILY:
        low, high = limits(evaluation, key)
        assert low < high, key


def test_a_class_that_no_item_gets_counts_as_zero() -> None:
    true = np.repeat(np.arange(3), 20).astype(np.uint8)
    values = np.eye(3)[true]
    values[true == 2] = (0.6, 0.4, 0.0)
    evaluation = evaluated(Scores(true, values), top_k=2)
    places = evaluation.selection.overall_place
    # Class 0 is right in 20 of 40 predictions; TorchMetrics has the same average.
    assert evaluation.overall[places["macro_top_k_precision"]] == pytest.approx(0.5)
    low, high = limits(evaluation, "macro_top_k_precision")
    assert low < 0.5 < high
    assert np.isnan(limits(evaluation, "top_k_precision", "class")[:, 2]).all()


def test_a_class_that_only_the_highest_score_predicts_counts_as_zero() -> None:
    # Class 2 has the highest score of one item, whose true class is among the two highest.
    true = np.array([0, 1, 2, 2], dtype=np.uint8)
    values = np.array([[0.4, 0.1, 0.5], [0.1, 0.8, 0.1], [0.6, 0.4, 0.0], [0.6, 0.4, 0.0]])
    evaluation = evaluated(Scores(true, values), top_k=2)
    assert np.isnan(evaluation.per_class[evaluation.selection.place["top_k_precision"]][2])
    macro_precision = evaluation.overall[
        evaluation.selection.overall_place["macro_top_k_precision"]
    ]
    assert macro_precision == pytest.approx((1 / 3 + 1 + 0) / 3)


def test_paired_differences_are_those_of_the_items_that_changed() -> None:
    old = drawn(RNG, 600, 6)
    values = old.values.copy()
    values[old.true == 3, 3] /= 20
    new = Scores(old.true, values / values.sum(-1, keepdims=True))
    options = Options(indices=("top_k_recall", "top_k_precision", *FAMILY), top_k=2)
    comparison = compare(scored_side(new), scored_side(old), options)
    recall = comparison.of_classes("top_k_recall")
    before, after = (within(side, 2) & (old.true == 3) for side in (old, new))
    assert recall.losses[3] == np.count_nonzero(before & ~after) > 30
    assert recall.trials[3] == np.count_nonzero(old.true == 3)
    assert METHODS[int(recall.methods[3])] == "tango"
    _, upper = comparison.of_classes("top_k_precision").limits(0.05)
    assert upper[3] < 0
    for key in FAMILY:
        assert comparison.of_overall(key).limits(0.05)[1] < 0, key


def test_an_average_alone_is_compared() -> None:
    scores = drawn(RNG, 300, 4)
    options = Options(indices=("macro_top_k_recall",), top_k=2)
    side = scored_side(scores)
    difference = compare(side, scored_side(scores), options).of_overall("macro_top_k_recall")
    low, high = difference.limits(0.05)
    assert -0.05 < low < 0 < high < 0.05


@pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_intervals_cover_with_thirty_items_and_five_errors(runs: int) -> None:
    k, sizes = 5, np.array([30, 40, 60, 100, 200])
    shares = sizes / sizes.sum()

    def scores(random: np.random.Generator, n: int) -> Scores:
        true = random.choice(k, n, p=shares).astype(np.uint8)
        values = random.standard_normal((n, k)) + np.sqrt(shares)
        values[np.arange(n), true] += 1.0
        return Scores(true, values)

    keys = ("top_k_recall", "top_k_precision", *FAMILY)
    random = np.random.default_rng(3)
    population = evaluated(scores(random, 10**6), indices=keys, top_k=2, intervals=False)
    truth = np.concatenate([population.per_class.ravel(), population.overall])
    covered = np.zeros(truth.shape)
    for _ in range(runs):
        intervals = evaluated(scores(random, int(sizes.sum())), indices=keys, top_k=2).intervals
        assert intervals is not None
        low = np.concatenate([intervals.per_class_low.ravel(), intervals.overall_low])
        high = np.concatenate([intervals.per_class_high.ravel(), intervals.overall_high])
        covered += (low <= truth) & (truth <= high)
    slack = 4 * np.sqrt(0.95 * 0.05 / runs)
    assert (covered / runs >= 0.925 - slack).all()
    assert (covered / runs <= 0.98 + slack).all()
