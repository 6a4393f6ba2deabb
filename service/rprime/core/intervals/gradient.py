"""Gradients of indices by the cells of a table: the effect of one more item in a cell."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array

CellGradient = Callable[[Array, Array], Array]
"""Maps rows and columns of cells to their gradient; column k is for unclassified items."""


@dataclass(frozen=True, eq=False)
class ClassGradient:
    """Derivatives of per-class indices, each by the margins of its own class.

    Shape (4, n, ..., k): by a_i, m_i, s_i and w. NaN where an index has no derivative.
    """

    margins: Array

    @cached_property
    def kinds(self) -> Array:
        """Influence of one item, shape (4, n, ..., k): a TP, FN, FP or TN of the class.

        An unclassified item is an FN of its own class and a TN of the others for indices of all
        items; it has no influence on indices of the classified items.
        """
        correct, support, predicted, total = self.margins
        kinds = np.empty_like(self.margins)
        kinds[3] = total
        np.add(predicted, total, out=kinds[2])
        np.add(support, total, out=kinds[1])
        np.add(correct, support, out=kinds[0])
        kinds[0] += kinds[2]
        return kinds

    def over_predictions(self, shares: Array) -> "ClassGradient":
        """Return the influence of an item whose prediction is drawn with these shares (k,)."""
        tp, fn, fp, tn = self.kinds
        inside, outside = (
            shares * hit + (1 - shares) * other for hit, other in ((tp, fn), (fp, tn))
        )
        none = np.zeros_like(inside)
        return ClassGradient(np.stack((none, inside - outside, none, outside)))


@dataclass(frozen=True, eq=False)
class Gradient:
    """Influence of one item of every cell on n overall indices, in factors.

    Parameters
    ----------
    factors
        Shape (3, n, ..., k): the addition for a correct item, the part of the true class and the
        part of the predicted class: G[r, j] = row[r] + column[j] + 1[r = j] diagonal[r].
    unclassified
        Shape (n, ..., k): influence of an unclassified item of each true class; None if the
        tables have none.
    by_cell
        Position among the n, and gradient, of indices without such factors; these are NaN.

    Notes
    -----
    All NaN if an index has no derivative. To first order, an index changes by the sum of G over
    the added items.
    """

    factors: Array
    unclassified: Array | None = None
    by_cell: tuple[tuple[int, CellGradient], ...] = ()

    def part(self, start: int, stop: int) -> "Gradient":
        """Return the indices from `start` to `stop`."""
        if stop - start >= self.factors.shape[1]:
            return self
        silent = None if self.unclassified is None else self.unclassified[start:stop]
        by_cell = tuple((i - start, cells) for i, cells in self.by_cell if start <= i < stop)
        return Gradient(self.factors[:, start:stop], silent, by_cell)

    def only(self, place: int) -> "Gradient":
        """Return one index, keeping the axis."""
        return self.part(place, place + 1)

    def at(self, rows: Array, columns: Array) -> Array:
        """Evaluate at cells (c,), where column k stands for unclassified items: (n, ..., c)."""
        diagonal, row, column = self.factors
        missed = columns == row.shape[-1]
        result = row[..., rows] + column[..., np.where(missed, 0, columns)]
        hits = np.flatnonzero(rows == columns)
        result[..., hits] += diagonal[..., rows[hits]]
        if missed.any():
            other = row if self.unclassified is None else self.unclassified
            result[..., missed] = other[..., rows[missed]]
        for place, gradient in self.by_cell:
            result[place] = gradient(rows, columns)
        return result

    def over_predictions(self, shares: Array) -> "Gradient":
        """Return the influence of an item whose prediction is drawn with these shares (k,).

        NaN in a stack where an index has no factors.
        """
        diagonal, row, column = self.factors
        mean, k = row + diagonal * shares + (column @ shares)[..., None], len(shares)
        for place, gradient in self.by_cell if mean.ndim == 2 else ():
            mean[place] = [gradient(np.full(k, i), np.arange(k)) @ shares for i in range(k)]
        none = np.zeros_like(mean)
        return Gradient(np.stack((none, mean, none)))
