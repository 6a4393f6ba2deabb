"""Confidence intervals of the indices of a stack of tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.index import CODE
from rprime.core.intervals.design_effect import DesignEffects, Weights
from rprime.core.intervals.methods import highest_of, interval_plan, of_highest
from rprime.core.intervals.plan import (
    Bounds,
    IntervalPlan,
    PlannedUniverse,
    ScopeMethods,
    Setting,
    ratio_counts,
)
from rprime.core.intervals.prepared import HighestScores, PreparedIntervals
from rprime.core.intervals.proportions import ScoreCounts, quantile_of
from rprime.core.intervals.reliability import reliability
from rprime.core.intervals.universe import UniverseIntervals
from rprime.core.items import Items
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class Intervals:
    """Two-sided intervals of the values of a stack of tables.

    Parameters
    ----------
    per_class_low, per_class_high
        Shape (computed, ..., k); NaN without an interval.
    overall_low, overall_high
        Shape (overall, ...).
    per_class_reasons, overall_reasons
        Codes into `REASONS`: why an existing value has no interval, else 0.
    per_class_few_items
        Whether an interval rests on fewer than 10 items or groups, or that of an area or average
        precision on fewer than 20 items in or outside of the class.
    per_class_low_reliability, overall_low_reliability
        Whether it does, or rests on fewer than 5 errors or 5 rights.
    per_class_methods, overall_methods
        The method of every entry, "" if it has none.
    per_class_items, overall_items, kish
        The effective numbers of items behind intervals, None where every item counts once on its
        own; and Kish's, of all items, None if they have no weights.
    per_class_errors, overall_errors
        The standard errors of the values of a population; None elsewhere.
    """

    per_class_low: Array
    per_class_high: Array
    per_class_reasons: NDArray[np.uint8]
    per_class_few_items: NDArray[np.bool_]
    per_class_low_reliability: NDArray[np.bool_]
    per_class_methods: tuple[str, ...]
    overall_low: Array
    overall_high: Array
    overall_reasons: NDArray[np.uint8]
    overall_low_reliability: NDArray[np.bool_]
    overall_methods: tuple[str, ...]
    per_class_items: Array | None = None
    overall_items: Array | None = None
    kish: float | None = None
    per_class_errors: Array | None = None
    overall_errors: Array | None = None

    def part(self, position: int) -> "Intervals":
        """Return the intervals of one table of a stack of shape (n,)."""
        parts: dict[str, Any] = {
            name: v[:, position] for name, v in vars(self).items() if isinstance(v, np.ndarray)
        }
        return replace(self, **parts)


@np.errstate(all="ignore")
def prepare(values: Values, items: Items | None = None) -> PreparedIntervals:
    """Prepare the intervals of values; items matter if they have groups or weights."""
    weights = Weights.of(values, items)
    if weights is not None:
        values = weights.scaled(values)
    unsuitable = np.asarray(values.table.weighted | values.table.fractional & (weights is None))
    plan = _plan(values, items, weights)
    plans = () if unsuitable.all() else plan.universes
    of_plans = _effects_of_plans(values, items, weights, plans)
    effects = DesignEffects.scattered(values, [part for part, _ in plans], of_plans)
    universes = tuple(
        UniverseIntervals.of(part, values, universe, effects=of_plan, weights=weights)
        for (part, universe), of_plan in zip(plans, of_plans or (None,) * len(plans), strict=True)
    )
    per_class, pooled = _plain_proportions(values, plan, weights, effects)
    return PreparedIntervals(
        values,
        items,
        plan,
        per_class,
        pooled,
        universes,
        effects,
        weights,
        unsuitable,
        _highest(values),
    )


def _plan(values: Values, items: Items | None, weights: Weights | None) -> IntervalPlan:
    """Plan the intervals of values, whose items may be grouped or weighted."""
    options, table = values.options, values.table
    setting = Setting(
        f1=options.beta == 1,
        exact=options.exact,
        fixed_rows=options.sampling == "fixed_rows",
        unclassified=table.unclassified is not None,
        spurious=table.spurious is not None,
        effects=weights is not None or (items is not None and items.groups is not None),
        averages_all=options.average_over is None,
    )
    return interval_plan(values.selection, setting, Bounds.of_options(table.k, options))


def _effects_of_plans(
    values: Values, items: Items | None, weights: Weights | None, plans: Sequence[PlannedUniverse]
) -> list[DesignEffects]:
    """Return the design effects in each universe; none where every item counts once on its own."""
    if weights is not None:
        return [weights.effects(part.selection, values, universe) for part, universe in plans]
    if items is None or items.groups is None:
        return []
    return [DesignEffects.of(part.selection, values, items, universe) for part, universe in plans]


def _plain_proportions(
    values: Values, plan: IntervalPlan, weights: Weights | None, effects: DesignEffects | None
) -> tuple[ScoreCounts, ScoreCounts]:
    """Return the effective counts of plain proportions, per class and overall."""
    of_classes = of_pooled = None
    if weights is not None:
        squares = weights.counts("all")
        of_classes = squares.classes, weights.scale
        of_pooled = Counts(squares.rows[..., -1]), weights.scale
    last = Counts(values.counts.rows[..., -1])
    per_class = ratio_counts(values.counts.classes, plan.per_class.ratios, of_classes)
    pooled = ratio_counts(last, plan.overall.ratios, of_pooled)
    if effects is not None and weights is None:
        per_class = per_class / effects.per_class[plan.per_class.proportions]
        pooled = pooled / effects.overall[plan.overall.proportions]
    return ScoreCounts.of(*per_class), ScoreCounts.of(*pooled)


def _highest(values: Values) -> HighestScores | None:
    """Prepare the intervals of the table of the k highest scores, if an index is one of it."""
    highest = of_highest(values)
    return (
        None
        if highest is None
        else HighestScores(prepare(*highest), highest_of(values.selection)[1])
    )


def intervals(
    values: Values, items: Items | None = None, prepared: PreparedIntervals | None = None
) -> Intervals:
    """Compute the intervals that the indices declare; items of a single table may be grouped."""
    prepared = prepared or prepare(values, items)
    of_classes, whole = prepared.plan.per_class, prepared.plan.overall
    quantile = quantile_of(values.options.confidence)
    on_request = values.options.intervals == "all"
    limits = prepared.limits_on_request if on_request else prepared.limits
    per_class, overall = limits("class", quantile), limits("overall", quantile)
    if values.counted_as_zero is not None:
        per_class = np.where(values.counted_as_zero, np.nan, per_class)
    if values.options.undefined != "null":  # what replaces an infinite value has no interval
        per_class = np.where(np.isinf(values.per_class), np.nan, per_class)
    few_items, low, overall_low = reliability(prepared, per_class[0], overall[0])
    return Intervals(
        per_class_low=per_class[0],
        per_class_high=per_class[1],
        per_class_reasons=_reasons(prepared, of_classes, per_class[0], values.per_class),
        per_class_few_items=few_items,
        per_class_low_reliability=low,
        per_class_methods=of_classes.names,
        overall_low=overall[0],
        overall_high=overall[1],
        overall_reasons=_reasons(prepared, whole, overall[0], values.overall),
        overall_low_reliability=overall_low,
        overall_methods=whole.names,
        **_numbers(prepared, per_class[0], overall[0]),
    )


def _numbers(prepared: PreparedIntervals, class_low: Array, overall_low: Array) -> dict[str, Any]:
    """Return the fields of `Intervals` with effective numbers of items and standard errors."""
    items, table = prepared.effective_items, prepared.values.table
    if items is not None:  # the mean of several proportions varies less than any of them
        most = table.number if prepared.weights is None else np.asarray(prepared.weights.number)
        items = np.minimum(items[0], most[..., None]), np.minimum(items[1], most)
    numbers = {"items": items, "errors": prepared.standard_errors}
    kish = None
    if prepared.weights is not None:  # equal weights add up to the items but for rounding
        kish = min(float(prepared.values.table.total), float(prepared.weights.number))
    result: dict[str, Any] = {"kish": kish}
    for name, both in numbers.items():
        if both is not None:
            per_class, overall = both
            result[f"per_class_{name}"] = np.where(np.isnan(class_low), np.nan, per_class)
            result[f"overall_{name}"] = np.where(np.isnan(overall_low), np.nan, overall)
    return result


def _reasons(
    prepared: PreparedIntervals, methods: ScopeMethods, low: Array, values: Array
) -> NDArray[np.uint8]:
    """Reason codes of missing intervals; 0 where there is an interval or no value."""
    unsuitable, last = prepared.unsuitable, (values.ndim - prepared.unsuitable.ndim - 1) * (None,)
    missing = np.isnan(low) & np.isfinite(values)
    codes = missing * np.uint8(CODE["no_interval"])
    named = methods.named
    if unsuitable.any():
        weighted = prepared.behind.table.weighted
        why = np.uint8(CODE["weighted" if weighted else "non_integer_counts"])
        codes[named] = np.where(missing[named] & unsuitable[(..., *last)], why, codes[named])
    if prepared.values.options.intervals == "all":
        codes[methods.resampled] = missing[methods.resampled] * np.uint8(CODE["not_resampled"])
    return codes
