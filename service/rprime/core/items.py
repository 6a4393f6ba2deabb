"""The per-item codes of one labelled test set, as paired comparison needs them."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.table import ConfusionTable

MOST_DENSE = 2_000
"""Classes up to which the cells of items are counted in a full matrix."""
PIECE = 1 << 16
"""Items in one piece, so that intermediate arrays fit into the processor's caches."""


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

    def cells(self, k: int, start: int = 0, end: int | None = None) -> Array:
        """Return true (k + 1) + predicted of items, in the smallest type that holds it."""
        width = k + 1
        cells = self.true[start:end].astype(np.min_scalar_type(width * width))
        cells *= cells.dtype.type(width)
        return np.add(cells, self.predicted[start:end], out=cells, casting="unsafe")


def table_of(items: Items, k: int, most_dense: int = MOST_DENSE) -> ConfusionTable:
    """Count items, weighted ones by their weights, in pieces: codes of all cells are wide."""
    weights = items.weights
    if weights is None or not (weights != 1).any():
        return _table_of(items, k, most_dense, weighted=False)
    table = _table_of(items, k, most_dense, weighted=True)
    number = np.bincount(items.true, weights > 0, k).astype(np.float64)
    return replace(table, items=number)


def table_of_counts(items: Items, k: int, most_dense: int = MOST_DENSE) -> ConfusionTable:
    """Count pairs of classes, each as often as its weight says."""
    return _table_of(items, k, most_dense, weighted=False)


def _table_of(items: Items, k: int, most_dense: int, *, weighted: bool) -> ConfusionTable:
    weights = items.weights
    if k > most_dense:
        cells = items.cells(k).astype(np.int64)
        return ConfusionTable.of_cells(cells, weights, k, weighted=weighted)
    table = np.zeros(k * (k + 1))
    # Each piece is counted into a table of its own.
    piece = max(PIECE, table.size)
    for start in range(0, items.true.size, piece):
        cells = items.cells(k, start, start + piece)
        if weights is None:
            table += np.bincount(cells, minlength=table.size)
        else:
            # One by one, as bincount does, so that the sum does not depend on the pieces.
            np.add.at(table, cells, weights[start : start + piece])
    counts = table.reshape(k, k + 1)
    return ConfusionTable.dense(counts[:, :k], counts[:, k], weighted=weighted)
