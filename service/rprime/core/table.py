"""A stack of confusion tables with its margins, the input of every index."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np

from rprime.core.arrays import Array, snapped
from rprime.core.cells import Cells, DenseCells, SparseCells

Universe = Literal["all", "classified"]
"""The items that an index counts: all, or the k x k part with its own margins."""


@dataclass(frozen=True)
class ConfusionTable:
    """A stack of confusion tables over the same k classes; rows are the true classes.

    Parameters
    ----------
    unclassified
        Shape (..., k): items of each true class without a prediction; None if there are none.
    spurious
        Shape (..., k): predictions of each class on items without a true class; None if none.
    weighted
        Whether the counts include a sample or cell weight other than 1. Such counts are not
        numbers of items, so they have intervals only beside the weights of the items.
    items
        Shape (..., k): the numbers of items of each true class behind weighted counts; None where
        counts are numbers of items, or these are not known. A weight of 0 is no item.

    Notes
    -----
    Counts are float64, exact up to 2^53. The leading shape is the stack; () is one table.
    """

    cells: Cells
    unclassified: Array | None = None
    spurious: Array | None = None
    weighted: bool = False
    items: Array | None = None

    @classmethod
    def dense(
        cls,
        counts: Array,
        unclassified: Array | None = None,
        spurious: Array | None = None,
        *,
        weighted: bool = False,
    ) -> Self:
        """Build from full matrices of shape (..., k, k)."""
        cells = DenseCells(np.asarray(counts, dtype=np.float64))
        return cls(cells, _present(unclassified), _present(spurious), weighted)

    @classmethod
    def sparse(
        cls,
        rows: Array,
        columns: Array,
        counts: Array,
        k: int,
        *,
        unclassified: Array | None = None,
        spurious: Array | None = None,
        weighted: bool = False,
    ) -> Self:
        """Build from coordinates; counts of repeated coordinates add up."""
        codes = np.asarray(rows, dtype=np.int64) * k + np.asarray(columns, dtype=np.int64)
        distinct, place = np.unique(codes, return_inverse=True)
        weights = np.asarray(counts, dtype=np.float64)
        # Without any input, bincount returns integers.
        summed = np.bincount(place, weights, distinct.size).astype(np.float64)
        cells = SparseCells(distinct // k, distinct % k, summed, k)
        return cls(cells, _present(unclassified), _present(spurious), weighted)

    @classmethod
    def of_cells(
        cls,
        cells: Array,
        counts: Array | None,
        k: int,
        *,
        dense: bool = False,
        unclassified: Array | None = None,
        spurious: Array | None = None,
        weighted: bool = False,
    ) -> Self:
        """Count cells given as row * (k + 1) + column, where column k is "unclassified"."""
        if dense:
            table = np.bincount(cells, counts, k * (k + 1)).reshape(k, k + 1)
            omitted = table[:, k] if unclassified is None else unclassified
            return cls.dense(table[:, :k], omitted, spurious, weighted=weighted)
        if counts is None:
            cells, counts = np.unique(cells, return_counts=True)
        rows, columns = np.divmod(cells, k + 1)
        in_table = columns < k
        if unclassified is None and not in_table.all():
            unclassified = np.bincount(rows[~in_table], counts[~in_table], k)
        return cls.sparse(
            rows[in_table],
            columns[in_table],
            counts[in_table],
            k,
            unclassified=unclassified,
            spurious=spurious,
            weighted=weighted,
        )

    @property
    def k(self) -> int:
        """Number of declared classes."""
        return self.cells.k

    @property
    def stack_shape(self) -> tuple[int, ...]:
        """Shape of the stack: () for one table."""
        return self.cells.stack_shape

    @property
    def has_omissions(self) -> bool:
        """Whether some table of the stack has unclassified or spurious items."""
        return self.unclassified is not None or self.spurious is not None

    def cell(self, true: int, predicted: int) -> Array:
        """Return the count of one cell, shape (...); column k is that of unclassified items."""
        if predicted < self.k:
            return self.cells.count(true, predicted)
        if self.unclassified is None:
            return np.zeros(self.stack_shape)
        return np.asarray(self.unclassified[..., true])

    @cached_property
    def correct(self) -> Array:
        """a_i, correct predictions, shape (..., k)."""
        return self.cells.diagonal

    @cached_property
    def support(self) -> Array:
        """m_i, real items, including unclassified ones, shape (..., k)."""
        rows = self.cells.row_sums
        return rows if self.unclassified is None else rows + self.unclassified

    @cached_property
    def predicted(self) -> Array:
        """s_i, predictions, including spurious ones, shape (..., k)."""
        columns = self.cells.column_sums
        if self.spurious is not None:
            columns = columns + self.spurious
        return snapped(columns, self.outcomes[..., None])

    @cached_property
    def answered(self) -> Array:
        """Real items with a prediction, shape (..., k)."""
        return self.cells.row_sums

    @cached_property
    def total(self) -> Array:
        """w, all real items, shape (...)."""
        return np.add.reduce(self.support, axis=-1)

    @property
    def is_numbered(self) -> bool:
        """Whether the numbers of items are known."""
        return not self.weighted or self.items is not None

    @property
    def class_items(self) -> Array:
        """Numbers of items of each true class, shape (..., k); m_i where they are not known."""
        return self.support if self.items is None else self.items

    @cached_property
    def number(self) -> Array:
        """Number of all items, shape (...); w where it is not known."""
        return self.total if self.items is None else np.add.reduce(self.items, axis=-1)

    @cached_property
    def numbered(self) -> "ConfusionTable":
        """The table whose weights add up to the number of items; NaN where that is not known."""
        if not self.weighted:
            return self
        with np.errstate(all="ignore"):
            scale = (
                self.number / self.total if self.is_numbered else np.full(self.total.shape, np.nan)
            )
        return self.scaled(np.asarray(scale))

    def scaled(self, factor: Array) -> "ConfusionTable":
        """Multiply all counts by a factor of shape (...)."""
        vector = factor[..., None]
        of_cells = vector if isinstance(self.cells, SparseCells) else vector[..., None]
        cells = replace(self.cells, counts=self.cells.counts * of_cells)
        silent, added = (
            None if v is None else v * vector for v in (self.unclassified, self.spurious)
        )
        return ConfusionTable(cells, silent, added, self.weighted, self.items)

    @cached_property
    def outcomes(self) -> Array:
        """All real items and spurious predictions, shape (...)."""
        if self.spurious is None:
            return self.total
        return np.asarray(self.total + np.add.reduce(self.spurious, axis=-1))

    @cached_property
    def fractional(self) -> Array:
        """Whether some count of the table is not a whole number, shape (...)."""
        parts = [self.cells.counts.reshape(*self.stack_shape, -1)]
        parts += [v for v in (self.unclassified, self.spurious) if v is not None]
        return np.logical_or.reduce([(p != np.rint(p)).any(-1) for p in parts])

    @cached_property
    def classified(self) -> "ConfusionTable":
        """The k x k part with its own margins; this table itself if nothing is omitted."""
        return ConfusionTable(self.cells, weighted=self.weighted) if self.has_omissions else self

    def universe(self, name: Universe) -> "ConfusionTable":
        """Select the table that an index of this universe is computed on."""
        return self.classified if name == "classified" else self

    def reweighted(self, factors: Array) -> "ConfusionTable":
        """Multiply the cells by non-negative cell weights (k x k).

        Source: Tuerk 2002; Labatut, Cherifi 2011, section 7.1.
        """
        cells = replace(self.cells, counts=self.cells.counts * self.cells.select(factors))
        weighted = self.weighted or bool((factors != 1).any())
        items = self.class_items if weighted and self.is_numbered else None
        return replace(self, cells=cells, weighted=weighted, items=items)

    def __getitem__(self, position: int | slice | list[int] | Array) -> "ConfusionTable":
        """Return one table of a stack, or some of them."""
        cells = replace(self.cells, counts=self.cells.counts[position])
        unclassified, spurious = (
            None if v is None else v[position] for v in (self.unclassified, self.spurious)
        )
        items = None if self.items is None else self.items[position]
        return ConfusionTable(cells, unclassified, spurious, self.weighted, items)

    @classmethod
    def stack(cls, tables: "list[ConfusionTable]") -> "ConfusionTable":
        """Stack single dense tables of equal k into one of shape (n, k, k); refuse others."""
        if len({t.k for t in tables}) != 1 or any(
            t.stack_shape or isinstance(t.cells, SparseCells) for t in tables
        ):
            message = "only single dense tables with the same number of classes can be stacked"
            raise ValueError(message)
        zeros = np.zeros(tables[0].k)
        whole = cls.dense(
            np.stack([t.cells.counts for t in tables]),
            np.stack([zeros if t.unclassified is None else t.unclassified for t in tables]),
            np.stack([zeros if t.spurious is None else t.spurious for t in tables]),
            weighted=any(t.weighted for t in tables),
        )
        if not whole.weighted or not all(t.is_numbered for t in tables):
            return whole
        return replace(whole, items=np.stack([t.class_items for t in tables]))


def coordinates(table: ConfusionTable) -> tuple[Array, Array]:
    """Return code and count of every non-empty cell, including unclassified and spurious items.

    The code of a cell is true (k + 1) + predicted; k is spurious and unclassified.
    """
    k = table.k
    rows, columns, counts = table.cells.coordinates()
    parts = [(rows * (k + 1) + columns, counts)]
    if table.unclassified is not None:
        classes = np.flatnonzero(table.unclassified)
        parts.append((classes * (k + 1) + k, table.unclassified[classes]))
    if table.spurious is not None:
        classes = np.flatnonzero(table.spurious)
        parts.append((k * (k + 1) + classes, table.spurious[classes]))
    codes, filled = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(codes)
    return codes[order], filled[order]


def _present(vector: Array | None) -> Array | None:
    """Replace a vector of zeros by None, so that the common case costs nothing."""
    if vector is None:
        return None
    values = np.asarray(vector, dtype=np.float64)
    return values if values.any() else None
