"""The estimate of one index: its value with one-sided limits and p-values."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.comparison.mover import reach
from rprime.core.comparison.paired_proportions import minimal_detectable_drop
from rprime.core.index import REASONS, Index
from rprime.core.intervals.intervals import Intervals, PreparedIntervals, intervals
from rprime.core.intervals.proportions import one_sided_quantile
from rprime.core.items import Items
from rprime.core.selection import select
from rprime.core.values import Values, compute

LimitPair = tuple[FloatArray, FloatArray]

REFERENCE_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of one index with their evidence; arrays of shape (..., m).

    Parameters
    ----------
    values
        Values of one index, and of the per-class index that it averages.
    entry
        The index; m is k for a per-class one and 1 overall.
    of_items
        Items of a single table; None unless they have groups.
    """

    values: Values
    entry: Index
    of_items: Items | None = None

    @cached_property
    def value(self) -> FloatArray:
        """The values as averages use them, NaN where undefined or without items."""
        if self.entry.scope == "class":
            found, known = self.values.averaged[self._place], self.values.defined[self._place]
            return np.where(known, found, np.nan)
        found = self._rows(self.values.overall[self._place])
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def items(self) -> FloatArray:
        """The number of items behind each value."""
        table = self.values.table
        return self._rows(table.support if self.entry.scope == "class" else table.total)

    @property
    def methods(self) -> tuple[str | None, ...]:
        """Method of each interval of a single table, None without an interval."""
        known = np.isfinite(self.limits(REFERENCE_LEVEL)[0])
        return tuple(self.method if exists else None for exists in known)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason why a value of a single table or its interval is missing, else empty."""
        own = self.values.class_reasons, self.values.overall_reasons
        codes = own[self.entry.scope == "overall"]
        missing = 0 if codes is None else self._rows(codes[self._place]) * np.isnan(self.value)
        lacking = self._rows(self._part(self._report, "reasons"))
        return tuple(REASONS[int(code)] for code in np.where(missing, missing, lacking))

    @property
    def method(self) -> str:
        """Method of the index."""
        known = self._report
        names = known.per_class_methods, known.overall_methods
        return names[self.entry.scope == "overall"][self._place]

    def limits(self, level: float) -> LimitPair:
        """Return one-sided limits, each at this level; NaN without an interval."""
        return self._limits(one_sided_quantile(level))

    def p_below(self, threshold: float) -> FloatArray:
        """Return the smallest level with the upper limit below the threshold."""
        return np.asarray(special.ndtr(-self._quantile(threshold)))

    def p_above(self, threshold: float) -> FloatArray:
        """Return the smallest level with the lower limit above the threshold."""
        return np.asarray(special.ndtr(self._quantile(threshold)))

    def detectable(self, level: float, power: float = 0.8) -> FloatArray:
        """Return the distance from a threshold that a test at this level finds with this power.

        To first order, half the width of the interval is a multiple of the standard error.
        """
        lower, upper = self.limits(REFERENCE_LEVEL)
        error = (upper - lower) / (2 * one_sided_quantile(REFERENCE_LEVEL))
        return minimal_detectable_drop(level, power, error * error, 1.0)

    def _limits(self, quantile: FloatArray) -> LimitPair:
        """Return the limits at a quantile, or at one for each value."""
        if self.entry.scope == "class":
            found = self._prepared.class_limits(quantile)
        else:
            found = self._prepared.overall_limits(
                quantile[..., 0] if np.ndim(quantile) else quantile
            )
        return self._rows(found[0][self._place]), self._rows(found[1][self._place])

    def _quantile(self, threshold: float) -> FloatArray:
        """Return the quantile of the upper limit at the threshold; minus that of the lower one."""
        if threshold not in self._known_quantiles:
            self._known_quantiles[threshold] = self._search(threshold)
        return self._known_quantiles[threshold]

    def _search(self, threshold: float) -> FloatArray:
        goal, upward = np.abs(threshold - self.value), threshold > self.value

        def distance(z: FloatArray) -> FloatArray:
            lower, upper = self._limits(z)
            return np.where(upward, upper - self.value, self.value - lower)

        with np.errstate(all="ignore"):
            found = np.where(upward, 1.0, -1.0) * reach(distance, goal)
        return np.where(np.isfinite(self.limits(REFERENCE_LEVEL)[0]), found, np.nan)

    @cached_property
    def _known_quantiles(self) -> dict[float, FloatArray]:
        """Quantiles found so far: a gate asks for both p-values at one threshold."""
        return {}

    @cached_property
    def _prepared(self) -> PreparedIntervals:
        return PreparedIntervals.of(self.values, self.of_items)

    @cached_property
    def _report(self) -> Intervals:
        return intervals(self.values, self.of_items)

    @property
    def _place(self) -> int:
        if self.entry.scope == "class":
            return self.values.selection.place[self.entry.key]
        return [e.key for e in self.values.selection.overall].index(self.entry.key)

    def _part(self, known: Intervals, name: str) -> FloatArray:
        prefix = "per_class" if self.entry.scope == "class" else "overall"
        part: FloatArray = getattr(known, f"{prefix}_{name}")[self._place]
        return part

    def _rows(self, values: FloatArray) -> FloatArray:
        """Add an axis of one result to overall values."""
        return values if self.entry.scope == "class" else np.asarray(values)[..., None]


def estimate(values: Values, entry: Index, items: Items | None = None) -> Estimate:
    """Estimate one index of computed tables.

    Parameters
    ----------
    values
        Of the tables; the estimate reads only tables, options and scores.
    entry
        The index.
    items
        Of a single table; None unless they have groups.
    """
    options = replace(
        values.options, indices=(entry.key,), undefined="null", cell_weights=None, intervals=True
    )
    found = compute(values.table, options, select(options), values.scores)
    return Estimate(found, entry, items)
