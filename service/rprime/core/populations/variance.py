"""Stratified variances of smooth indices, by the delta method.

With the influences phi of the items on an index, and W of the population in a stratum of n items,
the variance is the sum over the strata of W^2 / n times the variance of phi within the stratum.
"""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.delta import classified_entries
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.populations.population import Population, StratumCounts
from rprime.core.selection import Selection

SMOOTHED, OBSERVED = 0, 1
"""Positions of the two estimated tables in their stack."""
ROUNDING = 1e-13
"""A variance below this share of the squared influences is rounding."""
PRODUCTS = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 2, 2], [0, 1, 2, 3]])
"""Which of correct, support, predicted and total an item counts in that counts in two of them."""
BLOCK = 2**20
"""Influences in one part, so that many classes fit into the memory."""


@dataclass(frozen=True, eq=False)
class Stratified:
    """The strata of a stack of tables.

    `factors` is W^2 / n, times the squared total of the estimated table, shape (..., H).
    """

    population: Population
    counts: StratumCounts
    factors: Array

    @classmethod
    def of(
        cls, population: Population, parts: tuple[StratumCounts, StratumCounts], total: Array
    ) -> "Stratified":
        """Stack the strata of the smoothed table and of the observed one, which has n - 1.

        `total` is that of the estimated tables, shape (2, ...).
        """
        counts = StratumCounts(*(np.stack(each) for each in zip(*parts, strict=True)))
        scaled = population.shares * total[..., None]
        sizes = counts.items
        sizes[OBSERVED] -= 1
        return cls(population, counts, np.where(scaled > 0, scaled**2 / sizes, 0.0))

    def of_classes(self, selection: Selection, gradient: ClassGradient) -> Array:
        """Compute the variances of the per-class indices, shape (n, ..., k)."""
        counts, items = self.counts, self.counts.items[..., None]
        whole = self._covariance(counts.support, items)
        result = _quadratic(gradient.margins, whole)
        outside = classified_entries(selection)
        if outside.any() and (counts.answered != counts.support).any():
            answered = np.add.reduce(counts.answered, axis=-1)[..., None]
            inside = self._covariance(counts.answered, answered)
            result[outside] = _quadratic(gradient.margins[:, outside], inside)
        return result

    def _covariance(self, support: Array, total: Array) -> tuple[Array, Array]:
        """Sum over the strata the squares of what an item adds to the margins of a class.

        Returns the covariances and the mean products by correct, support, predicted and total,
        (..., k, 4, 4) each.
        """
        counts = self.counts
        items = np.where(counts.items > 0, counts.items, 1.0)
        margins = np.broadcast_arrays(counts.correct, support, counts.predicted, total)
        mean = np.stack(margins, axis=-1) / items[..., None, None]
        mean = np.swapaxes(mean, -3, -2)
        scaled = mean * self.factors[..., None, :, None]
        squares = np.add.reduce(scaled, axis=-2)[..., PRODUCTS]
        return squares - np.swapaxes(scaled, -1, -2) @ mean, squares

    def of_overall(self, gradient: Gradient) -> tuple[Array, Array]:
        """Compute the variances of the overall indices, shape (n, ...).

        Also the numbers of items that they rest on, (sum v^2)^2 / sum v^4, where v is W / n times
        an influence minus the mean of its stratum.
        """
        cells = self.counts.cells
        k = gradient.factors.shape[-1]
        rows, columns = (grid.ravel() for grid in np.mgrid[:k, : k + 1])
        number = gradient.factors.shape[1]
        size = max(1, BLOCK // (k * k * cells[..., 0, 0].size))
        items = np.where(self.counts.items > 0, self.counts.items, 1.0)[..., None]
        shares = cells / items
        result, numbers = np.empty((2, number, *cells.shape[:-2]))
        for start in range(0, number, size):
            part = gradient.part(start, start + size).at(rows, columns)
            phi = self.population.arranged(part.reshape(*part.shape[:-1], k, k + 1))
            mean, square = np.vecdot(shares, phi), np.vecdot(shares, phi * phi)
            variance = np.vecdot(square - mean * mean, self.factors)
            result[start : start + size] = _rounded(variance, np.vecdot(square, self.factors))
            apart = np.square(phi - mean[..., None])
            second = np.vecdot(np.vecdot(shares, apart), self.factors)
            fourth = np.vecdot(np.vecdot(shares, apart * apart), self.factors**2 / items[..., 0])
            numbers[start : start + size] = np.where(fourth > 0, second * second / fourth, 0.0)
        return result, numbers


def _quadratic(margins: Array, covariance: tuple[Array, Array]) -> Array:
    """Combine derivatives (4, n, ..., k) with covariances; 0 where only rounding is left."""
    derivatives = np.moveaxis(margins, 0, -1)[..., None]
    variance, size = (
        np.add.reduce((matrix @ derivatives) * derivatives, axis=(-2, -1)) for matrix in covariance
    )
    return _rounded(variance, size)


def _rounded(variances: Array, squares: Array) -> Array:
    return np.where(variances <= ROUNDING * squares, 0.0, variances)
