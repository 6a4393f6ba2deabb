"""The slices of a test set as one stack of tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import groupby, pairwise
from math import prod

import numpy as np

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.core.population import joint_cells
from rprime.core.table import ConfusionTable

SliceName = Mapping[str, str]
"""The value of each column that a slice is of: {"region": "EU", "device": "ios"}."""
Slice = tuple[tuple[str, str], ...]
"""The same in an order, as keys of mappings have it."""

MOST_SLICES = 10_000
MOST_CELLS = 1 << 21
"""Cells of all tables together: 16 MiB, of which the intervals need some copies."""
_PIECE = 1 << 17
"""Items in one piece, so that intermediate arrays fit into the processor's caches."""


class TooManySlicesError(ValueError):
    """There are at least so many slices of k classes, and there may be `most`."""

    def __init__(self, slices: int, k: int, most: int) -> None:
        super().__init__(f"{slices:,} slices or more, at most {most:,} for {k:,} classes")


@dataclass(frozen=True, eq=False)
class SliceColumn:
    """A column that divides the items into slices with distinct names, `values`.

    Parameters
    ----------
    codes
        Shape (n,), unsigned integers: positions in `values`; any other number means that the
        item is in no slice of this column.
    edges
        Of a column of numbers, where its slices begin, but for the lowest; empty for names.
    """

    values: tuple[str, ...]
    codes: Array
    edges: tuple[float, ...] = ()

    @classmethod
    def cut(cls, edges: Sequence[float], codes: Array) -> "SliceColumn":
        """Name the slices of numbers: those below all edges, then those from each edge on."""
        texts = [f"{edge:.12g}" for edge in edges]
        between = (f"[{low}, {high})" for low, high in pairwise(texts))
        return cls((f"< {texts[0]}", *between, f">= {texts[-1]}"), codes, tuple(edges))


def of_places(columns: Mapping[str, SliceColumn], places: Array) -> dict[str, SliceColumn]:
    """Return the columns of some items."""
    return {name: replace(column, codes=column.codes[places]) for name, column in columns.items()}


def items_inside(name: SliceName, columns: Mapping[str, SliceColumn]) -> Array:
    """Return which items are in the slice of some columns, shape (n,)."""
    masks = (columns[column].codes == columns[column].values.index(name[column]) for column in name)
    return reduce(np.logical_and, masks)


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of one test set, over the classes of its table.

    `tables` are dense, stack shape (s,): slices of one column are disjoint, those of different
    columns share items. `columns` are those of the items, by name; empty where only tables are
    known.
    """

    names: tuple[SliceName, ...]
    tables: ConfusionTable
    columns: Mapping[str, SliceColumn] = field(default_factory=dict)

    @classmethod
    def of_items(
        cls,
        columns: Mapping[str, SliceColumn],
        crossings: Sequence[tuple[str, ...]],
        cells: Array,
        k: int,
        counts: Array | None = None,
    ) -> "Slices":
        """Count the items of each slice that has some.

        `crossings` are the columns whose values are combined, besides each column alone. `cells`,
        shape (n,), are true (k + 1) + predicted of each item, where k is unclassified; `counts` how
        many equal items each one stands for, None for 1.
        """
        names: list[SliceName] = []
        tables: list[Array] = []
        most = min(MOST_CELLS, cells.size)
        everything = _joint_counts([*columns.values()], cells, k * (k + 1), counts, most=most)
        for chosen in (*((name,) for name in columns), *crossings):
            parts = [columns[name] for name in chosen]
            if everything is None:
                there, table = _counted(parts, cells, k * (k + 1), counts)
            else:
                there, table = _marginal(everything, [list(columns).index(name) for name in chosen])
            places = np.unravel_index(there, [len(part.values) for part in parts])
            for place in zip(*(codes.tolist() for codes in places), strict=True):
                values = (part.values[i] for part, i in zip(parts, place, strict=True))
                names.append(dict(zip(chosen, values, strict=True)))
            tables.append(table)
            check_size(len(names), k)
        whole = np.concatenate(tables).reshape(-1, k, k + 1).astype(np.float64)
        stack = ConfusionTable.dense(whole[..., :k], whole[..., k])
        return cls(tuple(names), stack, columns)

    @property
    def crossings(self) -> list[tuple[str, ...]]:
        """The columns that are combined."""
        return list(dict.fromkeys(tuple(name) for name in self.names if len(name) > 1))

    @cached_property
    def positions(self) -> dict[frozenset[tuple[str, str]], int]:
        """The position of each slice by its columns and values, in any order."""
        return {frozenset(name.items()): i for i, name in enumerate(self.names)}

    def inside(self, position: int) -> Array:
        """Return which items are in a slice, shape (n,); a KeyError if only tables are known."""
        return items_inside(self.names[position], self.columns)

    def numbered(self) -> Iterator[Array]:
        """Yield, for each column and crossing, the position of the slice of every item, (n,).

        It is the number of slices where an item is in none.
        """
        start = 0
        for chosen, same in groupby(self.names, tuple):
            columns, names = [self.columns[name] for name in chosen], list(same)
            codes = [np.minimum(column.codes, len(column.values)) for column in columns]
            places = [{value: i for i, value in enumerate(column.values)} for column in columns]
            numbers = [
                [place[name[column]] for name in names]
                for column, place in zip(chosen, places, strict=True)
            ]
            shape = [len(column.values) + 1 for column in columns]
            name_codes, item_codes = (
                np.ravel_multi_index(part, shape) for part in (numbers, codes)
            )
            nearest = np.minimum(np.searchsorted(name_codes, item_codes), len(names) - 1)
            yield np.where(name_codes[nearest] == item_codes, start + nearest, len(self.names))
            start += len(names)

    def of_some(self, places: Array, items: Items, k: int) -> "Slices":
        """Count again for some items: their positions (n,), and their classes among k."""
        cells = items.true.astype(np.intp) * (k + 1) + items.predicted
        return self.of_items(of_places(self.columns, places), self.crossings, cells, k)

    def rest(self, whole: ConfusionTable) -> ConfusionTable:
        """Return the items outside of each slice, stack shape (s,).

        `whole` is the table of all items, dense, without spurious predictions.
        """
        counts = joint_cells(whole) - joint_cells(self.tables)
        return ConfusionTable.dense(counts[..., :-1], counts[..., -1])

    def over(self, places: Array, k: int) -> "Slices":
        """Return the same slices over k classes, with those of the tables at these places."""
        counts = np.zeros((len(self.names), k, k + 1))
        counts[:, places[:, None], np.append(places, k)] = joint_cells(self.tables)
        return replace(self, tables=ConfusionTable.dense(counts[..., :k], counts[..., k]))


def check_size(slices: int, k: int) -> None:
    """Refuse more slices than a report has, by `TooManySlicesError`."""
    most = min(MOST_SLICES, MOST_CELLS // (k * (k + 1)))
    if slices > most:
        raise TooManySlicesError(slices, k, most)


def _counted(
    parts: Sequence[SliceColumn], cells: Array, size: int, items: Array | None
) -> tuple[Array, Array]:
    """Count items by slice and cell in one pass.

    The s slices with items are numbered by their values in C order; counts have shape (s, size).
    """
    counts = _joint_counts(parts, cells, size, items, most=MOST_CELLS)
    if counts is not None:
        return _marginal(counts, list(range(len(parts))))
    inside = np.logical_and.reduce([part.codes < len(part.values) for part in parts])
    shape = [len(part.values) for part in parts]
    slices = np.ravel_multi_index([part.codes[inside] for part in parts], shape)
    there, slices = np.unique(slices, return_inverse=True)  # few of so many may have items
    check_size(len(there), int(size**0.5))
    joint, weights = slices * size + cells[inside], None if items is None else items[inside]
    return there, np.bincount(joint, weights, len(there) * size).reshape(-1, size)


def _joint_counts(
    parts: Sequence[SliceColumn], cells: Array, size: int, items: Array | None, *, most: int
) -> Array | None:
    """Count items by all columns and the cell in one pass; None in a table of more than `most`.

    Shape (values + 1, ..., size): the last place of each column has the items in none of its
    slices.
    """
    shape = [len(part.values) + 1 for part in parts]
    if prod(shape) * size > most:
        return None
    counts = np.zeros(prod(shape) * size)
    kind = np.min_scalar_type(counts.size)  # small numbers are computed faster
    step = max(_PIECE, counts.size)
    for start in range(0, cells.size, step):
        piece = slice(start, start + step)
        joint = np.zeros(cells[piece].shape, kind)
        for part, width in zip(parts, shape, strict=True):
            joint *= width
            joint += np.minimum(part.codes[piece], width - 1).astype(kind, copy=False)
        joint *= size
        joint += cells[piece].astype(kind, copy=False)
        counts += np.bincount(joint, None if items is None else items[piece], counts.size)
    return counts.reshape(*shape, size)


def _marginal(everything: Array, chosen: list[int]) -> tuple[Array, Array]:
    """Return the same as `_counted` from the joint counts of all columns."""
    others = tuple(i for i in range(everything.ndim - 1) if i not in chosen)
    counts = everything.sum(others) if others else everything
    axes = sorted(chosen)
    counts = np.transpose(counts, (*map(axes.index, chosen), len(chosen)))
    counts = counts[(slice(-1),) * len(chosen)].reshape(-1, everything.shape[-1])
    there = np.flatnonzero(counts.any(-1))
    return there, counts[there]
