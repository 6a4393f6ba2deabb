"""Smoothed tables: a little more in each row, so that no variance is 0 for want of items."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import Cells, DenseCells
from rprime.core.table import ConfusionTable

POOLED, ROW_WISE = 0, 1
"""Positions of the two smoothed tables in their stack."""


@dataclass(frozen=True, eq=False)
class SmoothedCells:
    """Cells N[r, j] plus spread[r] weight[j] off the diagonal, plus more[r] on it.

    The addition has rank one off the diagonal, so it is never stored by cell: 100 000 classes have
    10^10 cells.

    N are the observed cells, `base`; `more` and `spread` have the shape (2, ..., k), and `weight`,
    what each column gets of what is spread over a row, (..., k).
    """

    base: Cells
    more: Array
    spread: Array
    weight: Array

    @property
    def k(self) -> int:
        """Number of declared classes."""
        return self.base.k

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """Shape of the stack, with the two tables first."""
        return (2, *self.base.stack_shape)

    @cached_property
    def diagonal(self) -> Array:
        """Correct predictions of each class, shape (2, ..., k)."""
        return np.asarray(self.base.diagonal + self.more)

    @cached_property
    def row_sums(self) -> Array:
        """Items of each true class, shape (2, ..., k)."""
        return self.base.row_sums + self.more + self.spread * self._others(self.weight)

    @cached_property
    def column_sums(self) -> Array:
        """Items of each predicted class, shape (2, ..., k)."""
        return self.base.column_sums + self.more + self.weight * self._others(self.spread)

    @staticmethod
    def _others(values: Array) -> Array:
        """Sum over all classes but the own one, shape (..., k)."""
        return np.asarray(np.add.reduce(values, axis=-1)[..., None] - values)

    def confused(self, column: Array) -> Array:
        """Sum what is added to the confusions of a row, times values (n, 2, ..., k) by column."""
        return self.spread * self._others(self.weight * column)

    def spread_by_row(self, factors: Array) -> tuple[Array, Array]:
        """Sum the confusions of a column, and their squares, times factors (2, ..., k) by row."""
        linear, squares = column_spread(self.base, factors)
        mixed = column_spread(self.base, factors * self.spread)[0]
        added = factors * self.spread
        once, twice = self._others(added), self._others(added * self.spread)
        return (
            linear + self.weight * once,
            squares + 2 * self.weight * mixed + self.weight**2 * twice,
        )

    def dense(self) -> DenseCells:
        """Return the same cells as full matrices."""
        result = full(self.base) + self.spread[..., :, None] * self.weight[..., None, :]
        diagonal = np.arange(self.k)
        result[..., diagonal, diagonal] = self.diagonal
        return DenseCells(result)


def column_spread(cells: Cells | SmoothedCells, factors: Array) -> tuple[Array, Array]:
    """Sum the confusions of each column, and their squares, times factors (..., k) by row.

    That is, over r != j, N_rj f_r and N_rj^2 f_r.
    """
    if isinstance(cells, SmoothedCells):
        return cells.spread_by_row(factors)
    weighted, diagonal = cells.counts * cells.by_row(factors), cells.diagonal * factors
    return (
        cells.column_totals(weighted) - diagonal,
        cells.column_totals(cells.counts * weighted) - cells.diagonal * diagonal,
    )


def full(cells: Cells | SmoothedCells) -> Array:
    """Return cells as matrices, shape (..., k, k)."""
    if isinstance(cells, SmoothedCells):
        return cells.dense().counts
    if isinstance(cells, DenseCells):
        return cells.counts
    counts = np.zeros((*cells.stack_shape, cells.k, cells.k))
    counts[..., cells.rows, cells.columns] = cells.counts
    return counts


def smoothed(table: ConfusionTable) -> ConfusionTable:
    """Smooth a stack of tables (...) in both ways, to one of shape (2, ...).

    Spurious predictions stay as they are. `POOLED`: in each row that has items half an item more,
    1 - e of it on the diagonal, with e = (errors + 1/2) / (items + 1) of the whole table, at most
    1/2: if e came near 1, more items would leave less on the diagonal, and intervals would widen.
    `ROW_WISE`: one item more in each such row, half of it on the diagonal. The rest goes to the
    other columns in proportion to their items + 1/2; a column of unclassified items takes part.
    """
    cells, total = table.cells, table.total
    errors = total - np.add.reduce(cells.diagonal, axis=-1)
    rate = np.minimum((errors + 0.5) / (total + 1), 0.5)
    there = table.support > 0
    weight = cells.column_sums + 0.5
    silent = np.zeros(table.stack_shape)  # the weight of the column of unclassified items
    if table.unclassified is not None:
        items = np.add.reduce(table.unclassified, axis=-1)
        silent = np.where(items > 0, items + 0.5, 0.0)
    whole = np.add.reduce(weight, axis=-1) + silent
    others = whole[..., None] - weight
    share = np.divide(there, others, out=np.zeros(others.shape), where=others > 0)
    off = np.empty((2, *rate.shape, 1))
    off[POOLED, ..., 0], off[ROW_WISE] = 0.5 * rate, 0.5
    on = 0.5 - off
    on[ROW_WISE] = 0.5
    spread, more = off * share, on * there
    # What reads margins alone needs no more of the cells.
    smoothed_cells = cast("Cells", SmoothedCells(cells, more, spread, weight))
    return ConfusionTable(
        smoothed_cells,
        None if table.unclassified is None else table.unclassified + spread * silent[..., None],
        None if table.spurious is None else np.broadcast_to(table.spurious, spread.shape),
    )
