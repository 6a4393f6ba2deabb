"""Old and new predictions of items that stand for a population with given shares of the classes."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.paired_variance import PairedPredictions, PairedVariance
from rprime.core.counts import CountRow
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.populations.population import joint_cells
from rprime.core.table import ConfusionTable

ROUNDING = 1e-13
"""A variance below this share of the squared influences is rounding."""


@dataclass(frozen=True, eq=False)
class PairedStrata:
    """Paired items whose true classes are the strata of a sample.

    Parameters
    ----------
    squared
        The pairs, weighed by the square of what an item counts in the estimated table.
    factors
        Shape (..., k): that square over the number of items of each class.
    cells
        Shape (2, ..., k, k + 1): the items in the tables of baseline and candidate.

    Notes
    -----
    With the influence phi of an item on a difference and W of the population in a class of n
    items, the variance is the sum over the classes of W^2 / n times the variance of phi within.
    """

    pairs: PairedPredictions
    squared: PairedPredictions
    factors: Array
    cells: Array

    @classmethod
    def of(
        cls,
        pairs: PairedPredictions,
        squared: PairedPredictions,
        weights: Array,
        tables: tuple[ConfusionTable, ...],
    ) -> "PairedStrata":
        """Prepare the variances; the tables are those of the items, baseline first.

        The weights (..., k) are what an item of each class counts in the estimated tables.
        """
        factors = weights**2 / np.maximum(tables[0].support, 1.0)
        cells = np.stack([joint_cells(table) for table in tables])
        return cls(pairs, squared, factors, cells)

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a count, shape (..., k) or (...)."""
        return self.pairs.flips(row, per_class=per_class)

    def overall_variance(self, old: Gradient, new: Gradient) -> PairedVariance:
        """Compute the variances of differences of overall indices, shape (index, ...)."""
        k = self.cells.shape[-2]
        rows, columns = (grid.ravel() for grid in np.mgrid[:k, : k + 1])
        squares = self.squared.overall_variance(old, new).independent
        result = np.empty_like(squares)
        for place in range(len(squares)):
            before, after = (
                np.vecdot(cells, side.only(place).at(rows, columns)[0].reshape(cells.shape))
                for cells, side in zip(self.cells, (old, new), strict=True)
            )
            between = np.vecdot((after - before) ** 2, self.factors)
            result[place] = _without_rounding(squares[place], between)
        return PairedVariance(result, result)

    def class_variance(
        self, old: ClassGradient, new: ClassGradient, classified: Array
    ) -> PairedVariance:
        """Compute the variances of differences of per-class indices, shape (index, ..., k)."""
        squares = self.squared.class_variance(old, new, classified).independent
        result = np.empty_like(squares)
        for place, answered in enumerate(classified):
            before, after = (
                _sums_by_row(side.margins[:, place], cells[..., :-1] if answered else cells)
                for side, cells in zip((old, new), self.cells, strict=True)
            )
            between = np.add.reduce((after - before) ** 2 * self.factors[..., None], axis=-2)
            result[place] = _without_rounding(squares[place], between)
        return PairedVariance(result, result)


def _sums_by_row(margins: Array, cells: Array) -> Array:
    """Sum the influences of the items of each true class on an index of each class, (..., k, k)."""
    correct, support, predicted, total = margins[..., None, :]
    k, items = margins.shape[-1], np.add.reduce(cells, axis=-1)[..., None]
    diagonal = support * items + correct * cells[..., :k]
    return np.asarray(total * items + predicted * cells[..., :k] + diagonal * np.eye(k))


def _without_rounding(squares: Array, between: Array) -> Array:
    variance = squares - between
    return np.where(variance <= ROUNDING * squares, 0.0, variance)
