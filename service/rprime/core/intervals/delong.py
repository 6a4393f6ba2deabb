"""Variances of the indices of scores from the influences of the items (DeLong for areas)."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.scores.ranking import item_share
from rprime.core.scores.rankings import RANKED, ScoreRankings
from rprime.core.scores.scores import Scores
from rprime.core.values import Values


def score_variance(values: Values, entry: Index) -> Array:
    """Compute the variance of an index of scores.

    Parameters
    ----------
    values
        Values with scores.
    entry
        Index of the selection.

    Returns
    -------
    Shape (k,) or (); NaN where none exists.

    Notes
    -----
    Source: DeLong, DeLong, Clarke-Pearson 1988 for areas under ROC curves; the variance of a
    mean for means over the items; the derivative by the weight of an item for average precision.
    Items of a group are summed before they are squared (Obuchowski 1997).
    """
    scores = scores_of(values)
    if entry.scope == "class":
        if entry.interval is None:
            return np.full(scores.k, np.nan)
        return rankings_of(values).variances[entry.key].classes
    influence = influence_of_items(values, entry, values.options.sampling)
    return np.asarray(np.nan if influence is None else scores.square(influence))


def scores_of(values: Values) -> Scores:
    """Return the scores of values that have some."""
    assert values.scores is not None  # noqa: S101 (the callers have checked)
    return values.scores


def rankings_of(values: Values) -> ScoreRankings:
    """Return the rankings with the influences of the items."""
    fixed = values.options.sampling == "fixed_rows"
    return scores_of(values).ranking(influences=True, fixed_rows=fixed)


def class_influence(scores: Scores, key: str, own: int) -> Array | None:
    """Influence of every item on an index of one class, shape (n,); None without a value."""
    rankings = scores.ranking()
    if np.isnan(rankings.of_classes(key)[own]):
        return None
    return scores.influence(key, scores.class_ranking(own, ordered=True), rankings)


def ranked_key(entry: Index) -> str | None:
    """Return the index of `RANKED` that an overall index averages; None for means of items."""
    key = entry.of[0] if entry.of else entry.key
    return key if key in RANKED else None


def influence_of_items(values: Values, entry: Index, sampling: str) -> Array | None:
    """Return the influence of every item on an overall index, shape (n,); None if none exists."""
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
    items = np.asarray(entry.of_items(scores, *values.option(entry)), dtype=np.float64)
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
