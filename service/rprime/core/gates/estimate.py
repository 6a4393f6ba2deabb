"""The estimate of one index: its value with one-sided limits and p-values."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.comparison.paired_proportions import minimal_detectable_drop
from rprime.core.index import REASONS, Index
from rprime.core.intervals.intervals import Intervals, intervals
from rprime.core.intervals.methods import INTERVALS, interval_of
from rprime.core.intervals.proportions import one_sided_quantile
from rprime.core.intervals.scales import ScaleDistance
from rprime.core.items import Items
from rprime.core.selection import select
from rprime.core.values import Values, compute

LimitPair = tuple[FloatArray, FloatArray]

REFERENCE_LEVEL = 0.05
NODES = 20
FARTHEST = 6.0
"""Largest quantile of the search; it bounds p-values from below, at 1e-9."""


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
        """The values, NaN where undefined."""
        found = self._rows(self.values.lookup(self.entry.scope, self.entry.key))
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
        missing = 0 if codes is None else self._rows(codes[self._place])
        lacking = self._rows(self._part(self._known(REFERENCE_LEVEL), "reasons"))
        return tuple(REASONS[int(code)] for code in np.where(missing, missing, lacking))

    @property
    def method(self) -> str:
        """Method of the index."""
        known = self._known(REFERENCE_LEVEL)
        names = known.per_class_methods, known.overall_methods
        return names[self.entry.scope == "overall"][self._place]

    def limits(self, level: float) -> LimitPair:
        """Return one-sided limits, each at this level; NaN without an interval."""
        known = self._known(level)
        return self._rows(self._part(known, "low")), self._rows(self._part(known, "high"))

    def p_below(self, threshold: float) -> FloatArray:
        """Return the smallest level with the upper limit below the threshold."""
        return self._p(threshold, -1.0)

    def p_above(self, threshold: float) -> FloatArray:
        """Return the smallest level with the lower limit above the threshold."""
        return self._p(threshold, 1.0)

    def detectable(self, level: float, power: float = 0.8) -> FloatArray:
        """Return the distance from a threshold that a test at this level finds with this power.

        To first order, half the width of the interval is a multiple of the standard error.
        """
        lower, upper = self.limits(REFERENCE_LEVEL)
        error = (upper - lower) / (2 * one_sided_quantile(REFERENCE_LEVEL))
        return minimal_detectable_drop(level, power, error * error, 1.0)

    def _p(self, threshold: float, sign: float) -> FloatArray:
        """Return the p-value of the limit at the threshold; 1 where no limit passes it."""
        with np.errstate(all="ignore"):
            quantile = self._quantile(threshold)
        p = np.where(np.isnan(quantile), 1.0, special.ndtr(sign * quantile))
        return np.where(np.isfinite(self.limits(REFERENCE_LEVEL)[0]), p, np.nan)

    def _quantile(self, threshold: float) -> FloatArray:
        """Return the quantile of the limit at the threshold, negative for a lower limit."""
        distance = _scale(self.method, self.entry, self.values.options.beta)
        if distance is None:
            return self._quantile_by_search(threshold)
        lower, upper = self.limits(REFERENCE_LEVEL)
        at = distance(np.asarray(threshold), self.value)
        unit = distance(np.where(at > 0, upper, lower), self.value)
        return np.asarray(one_sided_quantile(REFERENCE_LEVEL) * at / np.abs(unit))

    def _quantile_by_search(self, threshold: float) -> FloatArray:
        """Find the quantile on polynomials through the limits at `NODES` levels.

        The limits are smooth in the quantile, so polynomials approximate them well.
        """
        nodes = (chebyshev.chebpts1(NODES) + 1) / 2 * FARTHEST
        ends = np.stack([self.limits(float(special.ndtr(-z))) for z in nodes], axis=-1)
        above = threshold > self.value
        distances = np.where(above[..., None], ends[1], -ends[0])
        goal = np.where(above, threshold, -threshold)
        root = _increasing_root(distances @ _fit().T, goal)
        return np.where(above, root, -root)

    @cached_property
    def _intervals(self) -> dict[float, Intervals]:
        """The intervals computed so far, by level."""
        return {}

    def _known(self, level: float) -> Intervals:
        if level not in self._intervals:
            options = replace(self.values.options, confidence=1 - 2 * level)
            values = replace(self.values, options=options)
            self._intervals[level] = intervals(values, self.of_items)
        return self._intervals[level]

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


def _scale(method: str, entry: Index, beta: float) -> ScaleDistance | None:
    """Return the scale on which the distance of a limit is proportional to its quantile."""
    name = interval_of(entry, f1=beta == 1)
    return None if name is None else INTERVALS[name].scales.get(method)


@lru_cache(maxsize=1)
def _fit() -> FloatArray:
    """Coefficients of the polynomial through values at the nodes, shape (NODES, NODES)."""
    return np.asarray(np.linalg.inv(chebyshev.chebvander(chebyshev.chebpts1(NODES), NODES - 1)))


def _increasing_root(coefficients: FloatArray, goal: FloatArray) -> FloatArray:
    """Quantile in [0, FARTHEST] where an increasing polynomial (..., NODES) reaches its goal."""
    low, high = np.full(goal.shape, -1.0), np.full(goal.shape, 1.0)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        basis = np.cos(np.arange(NODES) * np.arccos(middle)[..., None])
        short = (coefficients * basis).sum(-1) < goal
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray((low + high + 2) / 4 * FARTHEST)


ROUNDS = 40
"""Halvings: to 1e-11 of the range."""
