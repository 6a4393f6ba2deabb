"""The values and differences that a rule bounds, and what their intervals rest on."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.compared_side import ComparedSide, LimitSource
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.mover import MoverLimits
from rprime.core.estimates import Estimates
from rprime.core.gates.rules import Rule
from rprime.core.index import REASONS, Index
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.table import ConfusionTable


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of one index with their evidence; arrays of shape (..., m).

    Parameters
    ----------
    known
        Values of the index among others.
    entry
        The index; m is k for a per-class one and 1 overall.
    """

    known: Estimates
    entry: Index

    @cached_property
    def value(self) -> FloatArray:
        """The values as averages use them, NaN where undefined or without items."""
        values = self.known.values
        if self._by_class:
            found = values.averaged[self._place]
            return np.where(values.defined[self._place] & np.isfinite(found), found, np.nan)
        found = self._rows(values.overall[self._place])
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        table = self.known.values.sampled
        return self._rows(table.support if self._by_class else table.total)

    @cached_property
    def statistic(self) -> MoverLimits:
        """The limits of the values, and their p-values."""
        source = LimitSource((ComparedSide(self.known),))
        places = self._rows(source.places[not self._by_class][self._place])
        return MoverLimits(self.value, np.zeros_like(self.value), source, places)

    @property
    def methods(self) -> tuple[str | None, ...]:
        """Method of each interval of a single table, None without an interval."""
        low = self._rows(self._of_report("low")) + 0 * self.value
        name = self._of_report("methods")
        return tuple(name if exists else None for exists in np.isfinite(low))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason why a value of a single table or its interval is missing, else empty."""
        values = self.known.values
        codes = values.class_reasons if self._by_class else values.overall_reasons
        missing = 0 if codes is None else self._rows(codes[self._place]) * np.isnan(self.value)
        lacking = self._rows(self._of_report("reasons"))
        return tuple(REASONS[int(code)] for code in np.where(missing, missing, lacking))

    @property
    def _by_class(self) -> bool:
        return self.entry.scope == "class"

    @property
    def _place(self) -> int:
        selection = self.known.values.selection
        places = selection.place if self._by_class else selection.overall_place
        return places[self.entry.key]

    def _of_report(self, name: str) -> Any:  # noqa: ANN401 (an array, or the name of a method)
        prefix = "per_class" if self._by_class else "overall"
        return getattr(self.known.intervals, f"{prefix}_{name}")[self._place]

    def _rows(self, values: FloatArray) -> FloatArray:
        """Add an axis of one result to overall values."""
        return values if self._by_class else np.asarray(values)[..., None]


def estimate_of(rule: Rule, side: Side, known: Estimates) -> Estimate:
    """Return the values that a rule bounds, a row for each class; of a cell the second is none."""
    if rule.confusion is not None:
        options = replace(known.values.options, indices=("recall",), cell_weights=None)
        known = _of_cell(side, *rule.confusion).estimates(options)
    return Estimate(known, rule.entry)


def difference_of(rule: Rule, comparison: Comparison) -> Difference:
    """Return the differences that a rule bounds, with rows as those of `estimate_of`."""
    if rule.confusion is None:
        return differences(rule.entry, comparison)
    relation = comparison.comparability
    identity = None if relation == "unknown" else rule.target
    sides = [_of_cell(side, *rule.confusion) for side in comparison.sides]
    if relation == "same_test_set":
        # All items of the true class look alike: only paired ones may be paired.
        sides = [replace(side, items=None) for side in sides]
    ours, theirs = (replace(side, fingerprint=identity) for side in sides)
    found = compare(ours, theirs, Options(indices=("recall",)), attributed=())
    return differences(rule.entry, found)


def differences(entry: Index, known: Comparison | AlignedValues) -> Difference:
    """Return the differences of an index, shape (..., rows), a row for each compared class."""
    if entry.scope == "overall":
        return known.of_overall(entry.key)[..., np.newaxis]
    return known.of_classes(entry.key)


CELL_CLASSES = ("predicted as the other class", "not")


def _of_cell(side: Side, true: str, predicted: str) -> Side:
    """Return the items of the true class as a table of two; empty without the classes."""
    if not {true, predicted} <= set(side.labels):
        return Side(labels=CELL_CLASSES, table=ConfusionTable.dense(np.zeros((2, 2))))
    row, column = side.labels.index(true), side.labels.index(predicted)
    rows, columns, counts = side.table.cells.coordinates()
    hits = counts[(rows == row) & (columns == column)].sum()
    total = side.table.support[row]
    table = ConfusionTable.dense(
        np.array([[hits, total - hits], [0, 0]]), weighted=side.table.weighted
    )
    return Side(labels=CELL_CLASSES, table=table, items=_binary(side.items, row, column))


def _binary(items: Items | None, row: int, column: int) -> Items | None:
    """Return the items of one class, predicted as another one (0) or not (1)."""
    if items is None:
        return None
    own = items.true == row
    predicted = (items.predicted[own] != column).astype(np.uint8)
    groups, weights = (
        None if part is None else part[own] for part in (items.groups, items.weights)
    )
    return Items(np.zeros_like(predicted), predicted, groups, weights)
