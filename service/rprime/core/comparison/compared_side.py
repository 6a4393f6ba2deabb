"""One side of a comparison: its values and their limits at any quantile."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.intervals import PreparedIntervals
from rprime.core.items import Items
from rprime.core.selection import select
from rprime.core.values import Values, compute

AVERAGES = ("macro", "weighted", "means")


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """The values of one side over the classes of both.

    Parameters
    ----------
    values
        Of a single table, or of a stack.
    averages
        The same over the items of the classes that have items on both sides; `values` itself if
        every class does. Averages are compared on it.
    own
        Overall values over the classes that the side declares, shape (overall, ...); None if both
        sides declare the same.
    items
        Of a single table; None unless they have groups.
    """

    values: Values
    averages: Values
    own: Array | None = None
    items: Items | None = None

    def compared(self, *, averaged: bool) -> Values:
        """Return the values behind averages, or behind the other indices."""
        return self.averages if averaged else self.values

    @cached_property
    def overall(self) -> Array:
        """Overall values, shape (overall, ...); NaN where undefined."""
        whole = self.values.overall if self.own is None else self.own
        if self.averages is not self.values:
            whole = np.where(self.over_common, self.averages.overall, whole)
        return np.where(np.isfinite(whole), whole, np.nan)

    @cached_property
    def per_class(self) -> Array:
        """Reported per-class values as averages use them, shape (reported, ..., k)."""
        found = self.values.averaged[: self.values.selection.reported]
        return np.where(np.isfinite(found), found, np.nan)

    @cached_property
    def classes_matter(self) -> Array:
        """Whether an index depends on the list of declared classes, shape (overall, ...)."""
        united = self.values.overall
        if self.own is None:
            return np.zeros(united.shape, dtype=bool)
        differ = ~np.isclose(self.own, united, rtol=1e-12, atol=1e-12, equal_nan=True)
        return differ & ~self.over_common if self.averages is not self.values else differ

    def overall_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of `overall`, shape (2, overall, ...)."""
        found = self._prepared.overall_limits(quantile)
        if self.averages is self.values:
            return found
        averages = self._prepared_averages.overall_limits(quantile)
        return np.where(self.over_common, averages, found)

    def class_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the computed per-class indices, shape (2, computed, ..., k)."""
        return self._prepared.class_limits(quantile)

    def only(self, key: str) -> "ComparedSide":
        """Return the side with one index, for its limits."""
        values = _only(self.values, key)
        averages = values if self.averages is self.values else _only(self.averages, key)
        return ComparedSide(values, averages, None, self.items)

    @cached_property
    def _prepared_averages(self) -> PreparedIntervals:
        return PreparedIntervals.of(self.averages)

    @cached_property
    def _prepared(self) -> PreparedIntervals:
        return PreparedIntervals.of(self.values, self.items)

    @cached_property
    def over_common(self) -> Array:
        """Whether an overall index is an average over tables of classes, (overall, 1...)."""
        entries = self.values.selection.overall
        flags = np.array([e.reads in AVERAGES and not e.scored for e in entries], dtype=bool)
        return flags.reshape(-1, *(1,) * self.values.table.total.ndim)


def _only(values: Values, key: str) -> Values:
    """Compute one index of the same tables."""
    options = replace(values.options, indices=(key,), cell_weights=None)
    selection = select(options, scored=values.scores is not None)
    return compute(values.table, options, selection, values.scores)
