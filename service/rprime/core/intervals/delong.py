"""Variances of the indices of scores (DeLong) from the influences of the items."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.scores.ranking import squares
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
    mean for means over the items. Items of a group are summed before they are squared
    (Obuchowski 1997).
    """
    scores = _scores(values)
    if entry.scope == "class":
        if entry.interval is None:
            return np.full(scores.k, np.nan)
        return np.asarray(scores.ranking(influences=True).variances)
    influence = influence_of_items(values, entry, values.options.sampling)
    return np.asarray(np.nan if influence is None else squares(influence, scores.groups))


def _scores(values: Values) -> Scores:
    assert values.scores is not None  # noqa: S101 (the callers have checked)
    return values.scores


def influence_of_items(values: Values, entry: Index, sampling: str) -> Array | None:
    """Return the influence of every item on an overall index, shape (n,); None if none exists."""
    place = values.selection.overall_place[entry.key]
    if entry.interval is None or not np.isfinite(values.overall[place]):
        return None
    if entry.of_items is not None:
        return _of_mean(values, entry, sampling)
    ranking, scores = _scores(values).ranking(influences=True), _scores(values)
    assert ranking.mean is not None  # noqa: S101 (asked for)
    assert ranking.weighted is not None  # noqa: S101 (asked for)
    if entry.reads == "macro":
        return ranking.mean / np.count_nonzero(values.defined[values.selection.averaged(entry)])
    if sampling == "fixed_rows":
        return ranking.weighted
    # The classes of the items are random, too, and so are the weights.
    moved = (ranking.auc - values.overall[place]) / len(scores.true)
    return np.asarray(ranking.weighted + moved[scores.true])


def _of_mean(values: Values, entry: Index, sampling: str) -> Array:
    """Influence on a mean over the items, or on their sum."""
    scores = _scores(values)
    assert entry.of_items is not None  # noqa: S101 (see influence_of_items)
    items = np.asarray(entry.of_items(scores, *values.option(entry)), dtype=np.float64)
    n = len(items)
    centre: Array = np.full(1, np.mean(items))
    if sampling == "fixed_rows":
        sums = np.bincount(scores.true, weights=items, minlength=scores.k)
        centre = (sums / np.maximum(scores.support, 1))[scores.true]
    factor = 1 / np.sqrt(n * (n - 1.0)) if n > 1 else np.nan
    return np.asarray((items - centre) * (factor if entry.scale_invariant else factor * n))


def effective_items(values: Values, entry: Index, share: Array) -> Array:
    """Return the effective number of items behind a share, smaller if items are grouped."""
    scores = _scores(values)
    if scores.groups is None:
        return np.asarray(float(len(scores.true)))
    variance = score_variance(values, entry)
    groups = float(np.count_nonzero(np.bincount(scores.groups)))
    with np.errstate(all="ignore"):
        found = np.asarray(share * (1 - share) / variance)
    return np.where(variance > 0, np.minimum(found, len(scores.true)), groups)
