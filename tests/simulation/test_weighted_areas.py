"""Intervals of areas under ROC curves of weighted items, and of their unpaired differences."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from rprime.core.arrays import Array
from rprime.core.intervals.limits import hanley_mcneil, newcombe
from rprime.core.scores.scores import Scores
from tests.core.score_values import evaluated

LOWEST = 0.925
KEYS = ("roc_auc", "macro_roc_auc")
Draw = np.random.Generator
Weigh = Callable[[Draw, Array], Array]


def by_margin(_: Draw, margin: Array) -> Array:
    """Weigh an item more the further it lies on the wrong side."""
    return np.asarray(np.exp(-margin / 2))


def wrong_ones(draw: Draw, margin: Array) -> Array:
    """Weigh items on the wrong side three times as much, and all of them at random."""
    return np.exp(0.8 * draw.standard_normal(len(margin))) * np.where(margin < 0, 3.0, 1.0)


def apart(draw: Draw, margin: Array) -> Array:
    """Weigh items at random."""
    return np.asarray(np.exp(0.8 * draw.standard_normal(len(margin))))


def sample(draw: Draw, n: int, shares: tuple[float, ...], sharp: float, weigh: Weigh) -> Scores:
    """Draw scores that are higher for the true class, with weights that follow from them."""
    true = draw.choice(len(shares), n, p=shares).astype(np.uint8)
    values = draw.standard_normal((n, len(shares)))
    values[np.arange(n), true] += sharp
    if len(shares) == 2:  # one score, of the second class
        values[:, 1] -= sharp / 2
        values[:, 0] = -values[:, 1]
    true_scores = values[np.arange(n), true]
    others = np.where(np.arange(len(shares)) == true[:, None], -np.inf, values).max(-1)
    return Scores(true, values, weights=weigh(draw, true_scores - others))


def results(scores: Scores) -> Array:
    """Return values and limits of the area of every class and of their mean, (3, k + 1)."""
    evaluation = evaluated(scores, indices=KEYS)
    intervals, (area, mean) = (
        evaluation.intervals,
        (evaluation.selection.place, evaluation.selection.overall_place),
    )
    assert intervals is not None
    places = area["roc_auc"], mean["macro_roc_auc"]
    pairs = (
        (evaluation.per_class, evaluation.overall),
        (intervals.per_class_low, intervals.overall_low),
        (intervals.per_class_high, intervals.overall_high),
    )
    return np.array([[*per_class[places[0]], whole[places[1]]] for per_class, whole in pairs])


def coverage(
    n: int, shares: tuple[float, ...], sharp: float, weigh: Weigh, replicates: int
) -> tuple[Array, Array]:
    """Shares of samples, and of pairs of them, whose limits hold the truth, (k + 1,) each."""
    draw = np.random.default_rng(1946)
    whole = sample(draw, 200_000, shares, sharp, weigh).ranking().auc
    truth = np.append(whole, whole.mean())
    both = [
        np.array([results(sample(draw, n, shares, sharp, weigh)) for _ in range(replicates)])
        for _ in range(2)
    ]
    (c, low, high), (b, lower, higher) = (np.swapaxes(side, 0, 1) for side in both)
    inside = (low <= truth) & (truth <= high)
    below = c - b - np.hypot(c - low, higher - b)
    above = c - b + np.hypot(high - c, b - lower)
    return inside.mean(0), ((below <= 0) & (above >= 0)).mean(0)


CASES = [
    (60, (0.5, 0.5), 2.0, wrong_ones),
    (300, (0.5, 0.5), 2.0, by_margin),
    (300, (0.5, 0.5), 3.0, by_margin),
    (300, (0.8, 0.2), 2.0, wrong_ones),
    (300, (0.6, 0.25, 0.15), 1.5, wrong_ones),
    (300, (0.6, 0.25, 0.15), 1.5, by_margin),
    (300, (0.6, 0.25, 0.15), 1.5, apart),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "shares", "sharp", "weigh"), CASES)
def test_differences_of_weighted_areas_are_covered(
    n: int, shares: tuple[float, ...], sharp: float, weigh: Weigh
) -> None:
    _, differences = coverage(n, shares, sharp, weigh, 2000)
    assert differences.min() >= LOWEST


def test_heavy_errors_widen_weighted_areas() -> None:
    """The formulas in plain numbers, for one draw."""
    scores = sample(np.random.default_rng(1), 80, (0.6, 0.4), 2.0, by_margin)
    column, weights, members = scores.values[:, 1], scores.weights, scores.true == 1
    assert weights is not None
    wins = (column[members][:, None] > column[~members]).astype(float)
    (p, q), (kish, other) = (
        [weights[side] for side in (members, ~members)],
        [weights[side].sum() ** 2 / (weights[side] ** 2).sum() for side in (members, ~members)],
    )
    area = p @ wins @ q / p.sum() / q.sum()
    positive, negative = wins @ q / q.sum() - area, p @ wins / p.sum() - area
    equal = np.append(
        positive / p.sum() * np.sqrt(kish / (kish - 1)),
        negative / q.sum() * np.sqrt(other / (other - 1)),
    )
    heavy = equal * np.append(p, q)
    concentrated = [np.sum(phi**4) / np.sum(phi**2) ** 2 for phi in (heavy, equal)]
    freedom = 2 / (concentrated[0] - concentrated[1])
    assert 5 < freedom < 100
    quantile = stats.t.isf(0.025, freedom)
    expected = hanley_mcneil(np.array(area), np.array(kish), np.array(other))
    inflation = np.maximum(heavy @ heavy / expected, 1.0)
    limits = newcombe(np.array(area), np.array(kish), np.array(other), quantile, inflation)
    assert results(scores)[:, 1] == pytest.approx([area, *limits], rel=1e-9)
