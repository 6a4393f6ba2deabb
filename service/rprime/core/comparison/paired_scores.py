"""Differences of indices of scores between two classifiers of the same items."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.delong import influence_of_items, scores_of
from rprime.core.scores.scores import Scores
from rprime.core.values import Values


def paired_variance(new: Values, old: Values, entry: Index) -> Array:
    """Compute the variance of the difference of an index of scores, with the guard.

    Parameters
    ----------
    new, old
        Values with the scores of the same items.
    entry
        Index of the selection.

    Returns
    -------
    Shape (k,) or (); NaN where none exists.

    Notes
    -----
    The variance is that of the differences of the items' influences: DeLong's structural
    components for areas under ROC curves (DeLong, DeLong, Clarke-Pearson 1988). The guard is the
    squared span of the influences of one side, that of one item between the extremes.
    """
    ours, theirs = scores_of(new), scores_of(old)
    if entry.interval is None:
        return np.full(ours.k if entry.scope == "class" else (), np.nan)
    if entry.scope == "class":
        return np.array([_area(ours, theirs, entry.key, i) for i in range(ours.k)])
    found = [influence_of_items(values, entry, "random") for values in (new, old)]
    if found[0] is None or found[1] is None:
        return np.asarray(np.nan)
    return np.asarray(_variance(found[0], found[1], ours))


def _variance(new: Array, old: Array, scores: Scores) -> float:
    """Return the variance of a difference, and the guard.

    Of weighted items the larger of the linearised variance and that of Kish's effective number.
    """
    guard = max(float(np.ptp(side)) for side in (new, old)) ** 2
    variance, weights = scores.square(new - old), scores.weights
    if weights is not None and scores.groups is None:
        there = weights > 0
        squares = (new - old)[there] ** 2 / weights[there]
        variance = max(variance, float(squares.sum() * (weights @ weights) / weights.sum()))
    return variance + guard


def _area(ours: Scores, theirs: Scores, key: str, own: int) -> float:
    ranked = [(side, side.ranking()) for side in (ours, theirs)]
    if any(np.isnan(rankings.of_classes(key)[own]) for _, rankings in ranked):
        return np.nan
    new, old = (
        side.influence(key, side.class_ranking(own, ordered=True), rankings)
        for side, rankings in ranked
    )
    # The components of a perfect ranking are all equal: there, an item can fall by all of it.
    least = 1 / min(ours.support[own], len(ours.true) - ours.support[own])
    perfect = max(np.ptp(new), np.ptp(old)) == 0
    return _variance(new, old, ours) + (least * least if perfect else 0.0)
