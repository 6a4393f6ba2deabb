"""Variances of indices of scores, and of their differences, from the influences of the items."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.scores.ranking import item_share
from rprime.core.scores.rankings import RANKED
from rprime.core.scores.scores import Scores
from rprime.core.values import Values, taken


def scores_of(values: Values) -> Scores:
    """Return the scores of values that have some."""
    assert values.scores is not None  # noqa: S101 (the callers have checked)
    return values.scores


def ranked_key(entry: Index) -> str | None:
    """Return the index of `RANKED` that an overall index averages; None for means of items."""
    key = entry.of[0] if entry.of else entry.key
    return key if key in RANKED else None


def influence_of_items(values: Values, entry: Index, sampling: str) -> Array | None:
    """Return the influence of every item on an overall index, shape (n,); None if none exists.

    Notes
    -----
    Source: DeLong, DeLong, Clarke-Pearson 1988 for areas under ROC curves; of average precision it
    is the derivative by the weight of an item. Items of a group are summed before they are squared
    (Obuchowski 1997).
    """
    place = values.selection.overall_place[entry.key]
    if entry.interval is None or not np.isfinite(values.overall[place]):
        return None
    scores, key = scores_of(values), ranked_key(entry)
    if key is None:
        return _of_mean(values, entry, sampling)
    fixed = sampling == "fixed_rows"
    rankings = scores.ranking(influences=True, fixed_rows=fixed)
    found = rankings.variances[key]
    if entry.reads == "scores":
        return found.mean / np.count_nonzero(np.isfinite(rankings.of_classes(key)))
    if entry.reads == "macro":
        return found.mean / np.count_nonzero(values.defined[values.selection.averaged(entry)])
    if fixed:
        return found.weighted
    # The classes of the items are random, too, and so are the weights.
    moved = rankings.of_classes(key) - values.overall[place]
    items = scores.item_weights
    return np.asarray(found.weighted + moved[scores.true] * items / np.add.reduce(items))


def _of_mean(values: Values, entry: Index, sampling: str) -> Array:
    """Influence on a mean over the items, or on their sum."""
    scores = scores_of(values)
    assert entry.of_items is not None  # noqa: S101 (see influence_of_items)
    items = np.asarray(entry.of_items(scores, *taken(values.options, entry)), dtype=np.float64)
    weights = scores.item_weights
    centre: Array = np.full(1, scores.mean(items))
    if sampling == "fixed_rows":
        sums = np.bincount(scores.true, items * weights, scores.k)
        centre = (sums / np.where(scores.support > 0, scores.support, 1.0))[scores.true]
    share = item_share(weights)
    if not entry.scale_invariant:
        share *= np.add.reduce(weights)
    # A single item does not show how items vary.
    return np.asarray((items - centre) * weights * (share or np.nan))


def paired_variance(new: Values, old: Values, entry: Index) -> Array:
    """Compute the variance of the difference of an index of scores, with the guard.

    Of the same items, shape (k,) or (); NaN where none exists.

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
