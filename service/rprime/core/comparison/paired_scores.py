"""Differences of indices of scores between two classifiers of the same items."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.delong import class_influence, influence_of_items, scores_of
from rprime.core.scores.scores import Scores
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class PairedScores:
    """The evidence on the difference of one index of scores, shape (k,) or ().

    Parameters
    ----------
    variance
        Of the difference, with the guard; NaN where none exists.
    gains, losses
        Items that only one side counts, for a share of the items; else None. For grouped items
        they, and the `trials`, are divided by the design effect.
    trials
        Number of items.
    """

    variance: Array
    gains: Array | None = None
    losses: Array | None = None
    trials: float = np.nan


def paired_scores(new: Values, old: Values, entry: Index) -> PairedScores:
    """Gather the evidence on the difference of an index of scores.

    Parameters
    ----------
    new, old
        Values with the scores of the same items.
    entry
        Index of the selection.

    Notes
    -----
    The variance is that of the differences of the items' influences: DeLong's structural
    components for areas under ROC curves (DeLong, DeLong, Clarke-Pearson 1988). The guard is the
    squared span of the influences of one side, that of one item between the extremes.
    """
    ours, theirs = scores_of(new), scores_of(old)
    if entry.interval is None:
        return PairedScores(np.full(ours.k if entry.scope == "class" else (), np.nan))
    if entry.interval == "share":
        return _share(new, old, entry)
    if entry.scope == "class":
        return PairedScores(np.array([_area(ours, theirs, entry.key, i) for i in range(ours.k)]))
    found = [influence_of_items(values, entry, "random") for values in (new, old)]
    if found[0] is None or found[1] is None:
        return PairedScores(np.asarray(np.nan))
    return PairedScores(np.asarray(_variance(found[0], found[1], ours)))


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
    new, old = (class_influence(side, key, own) for side in (ours, theirs))
    if new is None or old is None:
        return np.nan
    # The components of a perfect ranking are all equal: there, an item can fall by all of it.
    least = 1 / min(ours.support[own], len(ours.true) - ours.support[own])
    perfect = max(np.ptp(new), np.ptp(old)) == 0
    return _variance(new, old, ours) + (least * least if perfect else 0.0)


def _share(new: Values, old: Values, entry: Index) -> PairedScores:
    """Count the items that enter and leave a share of the items."""
    assert entry.of_items is not None  # noqa: S101 (shares are means over the items)
    ours, theirs = (
        np.asarray(entry.of_items(scores_of(values), *values.option(entry)), dtype=np.float64)
        for values in (new, old)
    )
    change, n = ours - theirs, float(len(ours))
    weights = scores_of(new).weights
    if weights is not None:
        phi = (change - np.average(change, weights=weights)) * weights / weights.sum()
        one = (weights @ weights) / weights.sum() ** 2  # the share of an effective item
        return PairedScores(np.asarray(_variance(phi, 0 * phi, scores_of(new)) + 2 * one * one))
    counts = np.count_nonzero(change > 0), np.count_nonzero(change < 0), n
    gains, losses, trials = np.array(counts, dtype=np.float64) / _design_effect(change, new)
    return PairedScores(np.asarray(np.nan), gains, losses, float(trials))


def _design_effect(change: Array, values: Values) -> float:
    scores = scores_of(values)
    groups = scores.groups
    if groups is None:
        return 1.0
    centred = change - change.mean()
    single = float(centred @ centred)
    if single > 0:
        return max(scores.square(centred) / single, 1.0)
    sizes = np.bincount(groups).astype(np.float64)
    return float(sizes @ sizes / len(change))
