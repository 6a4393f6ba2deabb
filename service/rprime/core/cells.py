"""The k x k cells of a stack of confusion tables, dense or sparse, behind one set of operations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array


@dataclass(frozen=True)
class DenseCells:
    """Cells stored as full matrices (..., k, k), float64, non-negative; rows = true classes."""

    counts: Array

    @property
    def k(self) -> int:
        """Number of declared classes."""
        return int(self.counts.shape[-1])

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """Shape of the stack: () for one table."""
        return self.counts.shape[:-2]

    @cached_property
    def diagonal(self) -> Array:
        """Correct predictions of each class, shape (..., k)."""
        return np.ascontiguousarray(np.diagonal(self.counts, axis1=-2, axis2=-1))

    @cached_property
    def row_sums(self) -> Array:
        """Items of each true class, shape (..., k)."""
        return np.add.reduce(self.counts, axis=-1)

    @cached_property
    def column_sums(self) -> Array:
        """Items of each predicted class, shape (..., k)."""
        return np.add.reduce(self.counts, axis=-2)

    @property
    def mirrored(self) -> Array:
        """The count of the cell with row and column exchanged, for every cell."""
        return self.counts.swapaxes(-2, -1)

    def by_row(self, values: Array) -> Array:
        """Broadcast the value (..., k) of its row, broadcastable to the cells."""
        return values[..., :, None]

    def by_column(self, values: Array) -> Array:
        """Broadcast the value (..., k) of its column, broadcastable to the cells."""
        return values[..., None, :]

    def select(self, matrix: Array) -> Array:
        """Return the entry of a k x k matrix for every cell."""
        return matrix

    def positions(self) -> tuple[Array, Array]:
        """Row and column number of every cell, broadcastable to the cells."""
        numbers = np.arange(self.k)
        return numbers[:, None], numbers[None, :]

    def count(self, row: int, column: int) -> Array:
        """Return the count of one cell, shape (...)."""
        return self.counts[..., row, column]

    def total(self, values: Array) -> Array:
        """Sum values over the cells of each table, shape (...)."""
        # Along one last axis, so that the sum of a table does not depend on the rest of the stack.
        return np.add.reduce(values.reshape(*values.shape[:-2], -1), axis=-1)

    def row_totals(self, values: Array, combine: np.ufunc = np.add) -> Array:
        """Sum, or combine otherwise, the values of the cells of each row, shape (..., k)."""
        return np.asarray(combine.reduce(values, axis=-1))

    def column_totals(self, values: Array, combine: np.ufunc = np.add) -> Array:
        """Sum, or combine otherwise, the values of the cells of each column, shape (..., k)."""
        return np.asarray(combine.reduce(values, axis=-2))

    def largest_errors(self, limit: int) -> tuple[Array, Array, Array]:
        """Row, column and count of the largest off-diagonal cells of one table, largest first."""
        errors = self.counts.flatten()
        errors[:: self.k + 1] = 0.0
        # The largest cells of the rows bound the result, which avoids a full sort.
        order = _largest(errors, limit, errors.reshape(self.k, self.k).max(-1))
        return order // self.k, order % self.k, errors[order]

    def coordinates(self) -> tuple[Array, Array, Array]:
        """Row, column and count of the non-empty cells of one table, in row order."""
        rows, columns = np.nonzero(self.counts)
        return rows, columns, self.counts[rows, columns]


@dataclass(frozen=True)
class SparseCells:
    """Cells stored as coordinates shared by the whole stack, sorted by row, then column.

    A stack of tables with different non-empty cells stores the union of their coordinates.

    Parameters
    ----------
    rows, columns
        Shape (c,), class numbers below k; no pair twice.
    counts
        Shape (..., c), float64, non-negative.
    """

    rows: Array
    columns: Array
    counts: Array
    k: int

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """Shape of the stack: () for one table."""
        return self.counts.shape[:-1]

    @cached_property
    def diagonal(self) -> Array:
        """Correct predictions of each class, shape (..., k)."""
        correct = np.zeros((*self.stack_shape, self.k))
        on = self.rows == self.columns
        correct[..., self.rows[on]] = self.counts[..., on]
        return correct

    @cached_property
    def row_sums(self) -> Array:
        """Items of each true class, shape (..., k)."""
        return self.row_totals(self.counts)

    @cached_property
    def column_sums(self) -> Array:
        """Items of each predicted class, shape (..., k)."""
        return self.column_totals(self.counts)

    @property
    def mirrored(self) -> Array:
        """The count of the cell with row and column exchanged, for every cell, shape (..., c)."""
        codes, exchanged = self.rows * self.k + self.columns, self.columns * self.k + self.rows
        places = np.minimum(np.searchsorted(codes, exchanged), len(codes) - 1)
        return np.where(codes[places] == exchanged, self.counts[..., places], 0.0)

    def by_row(self, values: Array) -> Array:
        """Broadcast the value (..., k) of its row, shape (..., c)."""
        return values[..., self.rows]

    def by_column(self, values: Array) -> Array:
        """Broadcast the value (..., k) of its column, shape (..., c)."""
        return values[..., self.columns]

    def select(self, matrix: Array) -> Array:
        """Return the entry of a k x k matrix for every cell, shape (c,)."""
        return matrix[self.rows, self.columns]

    def positions(self) -> tuple[Array, Array]:
        """Row and column number of every cell, shape (c,)."""
        return self.rows, self.columns

    def count(self, row: int, column: int) -> Array:
        """Return the count of one cell, shape (...)."""
        here = (self.rows == row) & (self.columns == column)
        return np.add.reduce(self.counts[..., here], axis=-1)

    def total(self, values: Array) -> Array:
        """Sum values over the cells of each table, shape (...)."""
        return np.add.reduce(values, axis=-1)

    def row_totals(self, values: Array, combine: np.ufunc = np.add) -> Array:
        """Sum, or combine otherwise, the values of the cells of each row, shape (..., k)."""
        return self._gather(self.rows, values, combine)

    def column_totals(self, values: Array, combine: np.ufunc = np.add) -> Array:
        """Sum, or combine otherwise, the values of the cells of each column, shape (..., k)."""
        return self._gather(self.columns, values, combine)

    def largest_errors(self, limit: int) -> tuple[Array, Array, Array]:
        """Row, column and count of the largest off-diagonal cells of one table, largest first."""
        errors = np.where(self.rows == self.columns, 0.0, self.counts)
        order = _largest(errors, limit, errors)
        return self.rows[order], self.columns[order], errors[order]

    def coordinates(self) -> tuple[Array, Array, Array]:
        """Row, column and count of the non-empty cells of one table, in row order."""
        filled = np.nonzero(self.counts)[0]
        return self.rows[filled], self.columns[filled], self.counts[filled]

    def _gather(self, classes: Array, values: Array, operation: np.ufunc) -> Array:
        result = np.zeros((self.k, *values.shape[:-1]), dtype=values.dtype)
        operation.at(result, classes, np.moveaxis(values, -1, 0))
        return np.moveaxis(result, 0, -1)


Cells = DenseCells | SparseCells


def _largest(counts: Array, limit: int, bounding: Array) -> Array:
    """Return positions of the largest positive counts, largest first, ties in table order.

    The smallest of the `limit` largest bounding ones, some of the counts, is a lower bound.
    """
    smallest = np.partition(bounding, -limit)[-limit] if bounding.size > limit else 0.0
    candidates = np.nonzero(counts >= smallest if smallest else counts)[0]
    order = np.argsort(-counts[candidates], kind="stable")
    return candidates[order][:limit]
