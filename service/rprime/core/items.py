"""The per-item codes of one labelled test set, as paired comparison needs them."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.table import ConfusionTable

MOST_DENSE = 2_000
"""Classes up to which the cells of items are counted in a full matrix."""


@dataclass(frozen=True, eq=False)
class Items:
    """True and predicted classes of n items, as codes into the declared classes.

    Parameters
    ----------
    true
        Shape (n,), unsigned integers below k.
    predicted
        Shape (n,), unsigned integers; k means unclassified.
    groups
        Shape (n,), codes of the groups of the items (one patient, one video); None if the
        items are independent.
    weights
        Shape (n,), non-negative sample weights; None if every item counts once.
    ids
        Shape (n,), distinct numbers of 64 bits that identify the items in every test set; None
        if they have none.
    """

    true: Array
    predicted: Array
    groups: Array | None = None
    weights: Array | None = None
    ids: Array | None = None


def table_of(items: Items, k: int) -> ConfusionTable:
    """Count items, weighted ones by their weights."""
    weights = items.weights
    weighted = weights is not None and bool((weights != 1).any())
    missing = items.predicted == k
    counted = np.ones(missing.shape) if weights is None else weights
    unclassified = np.bincount(items.true[missing], counted[missing], k)
    true, predicted = (codes[~missing].astype(np.int64) for codes in (items.true, items.predicted))
    if k > MOST_DENSE:
        return ConfusionTable.sparse(
            true, predicted, counted[~missing], k, unclassified=unclassified, weighted=weighted
        )
    dense = np.bincount(true * k + predicted, counted[~missing], k * k).reshape(k, k)
    return ConfusionTable.dense(dense, unclassified, weighted=weighted)
