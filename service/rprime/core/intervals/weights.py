"""Effective numbers of items where the items have sample weights."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.design_effect import DesignEffects
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable, Universe, coordinates
from rprime.core.values import Values, compute

# A variance smaller than this share of the squared value is a rounded zero.
ROUNDED = 1e-30


@dataclass(frozen=True, eq=False)
class Weights:
    """The sample weights of the items of one table.

    Parameters
    ----------
    squares
        The table of the sums of squared weights.
    scale
        Sum of the weights divided by the sum of their squares.

    Notes
    -----
    Weighted counts times the scale add up to Kish's effective number of items,
    (sum w)^2 / sum w^2. The smaller of it and the effective number that the linearised variance,
    the sum of w^2 phi^2 over the influences phi, gives is what intervals rest on.
    """

    squares: ConfusionTable
    scale: float

    @classmethod
    def of(cls, values: Values, items: Items | None) -> "Weights | None":
        """Sum up the weights of the items, if these alone make the counts weighted."""
        if items is None or items.weights is None or items.groups is not None:
            return None
        if not values.table.weighted or values.options.cell_weights is not None:
            return None
        weights, k = items.weights, values.table.k
        squared = np.square(weights, dtype=np.float64)
        predicted = items.predicted.astype(np.int64)
        inside = predicted < k
        rows = items.true.astype(np.int64)
        silent = np.bincount(rows[~inside], squared[~inside], k)
        table = ConfusionTable.sparse(
            rows[inside], predicted[inside], squared[inside], k, unclassified=silent
        )
        return cls(table, float(np.sum(weights, dtype=np.float64) / np.sum(squared)))

    def scaled(self, values: Values) -> Values:
        """Return the values of the same table as if it had Kish's number of items."""
        table = values.table
        cells = replace(table.cells, counts=table.cells.counts * self.scale)
        silent = None if table.unclassified is None else table.unclassified * self.scale
        scaled = ConfusionTable(cells, silent)
        return compute(scaled, values.options, values.selection, values.scores)

    def counts(self, universe: Universe) -> Counts:
        """Sums of squared weights as counts, with the pooled column."""
        return Counts.of(self.squares.universe(universe))

    def effects(self, selection: Selection, values: Values, universe: Universe) -> DesignEffects:
        """Compute the effects on the entries of a plan: linearised by unweighted variance.

        Parameters
        ----------
        selection
            The entries.
        values
            Scaled values of the whole table.
        """
        table = values.table.universe(universe)
        found = compute(table, values.options, selection)
        own = class_gradient(found)
        whole = overall_gradient(found, own)
        codes, squares = coordinates(self.squares.universe(universe))
        at = np.divmod(codes, table.k + 1)
        influences = (whole.only(i).at(*at)[0] for i in range(len(selection.overall)))
        summed = np.array([np.sum(squares * influence**2) for influence in influences])
        overall = self._ratios(found.overall, summed, variances(whole, table, "random"))
        kinds = slice(CountRow.tp, CountRow.tn + 1)
        above = self.counts(universe).rows[kinds, :-1][:, None] * own.kinds**2
        below = class_variances(found, own, "random")
        per_class = self._ratios(found.per_class, np.add.reduce(above, axis=0), below)
        return DesignEffects(per_class, overall, np.inf * per_class, np.inf * overall)

    def _ratios(self, values: Array, above: Array, below: Array) -> Array:
        """Linearised variances divided by those of as many unweighted items, at least 1."""
        known = below > ROUNDED * values * values
        ratios = np.divide(above, below, out=np.zeros(below.shape), where=known)
        return np.asarray(np.maximum(ratios * self.scale**2, 1.0))
