"""The values and the gradients of smoothed tables, which intervals start from."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.plan import UniversePlan
from rprime.core.intervals.smoothing import POOLED, SmoothedCells, smoothed
from rprime.core.intervals.variance import (
    class_variances,
    contributing,
    contributing_to_classes,
    variances,
)
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, class_values


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The smoothed tables of a plan with their values and variances.

    Values are of the stack (2, ...) of the pooled and the row-wise table, the overall ones of shape
    (o, 2, ...) in the order of the plan. Variances have the shapes (c, 2, ..., k) and (o, 2, ...).
    `growth`, shape (...), is the items of the observed table divided by those of the pooled one.
    `class_contributing` (c, ..., k) and `contributing` (o, ...) are the numbers of items of the
    pooled table that the variances rest on.
    """

    values: Values
    overall: Array
    class_variances: Array
    variances: Array
    growth: Array
    class_contributing: Array
    contributing: Array

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, plan: UniversePlan, values: Values, table: ConfusionTable) -> "Smoothed":
        """Smooth the table of a universe of the observed values."""
        more = smoothed(table)
        if plan.by_cell:
            more = replace(more, cells=cast("SmoothedCells", more.cells).dense())
        options, selection = values.options, plan.selection
        if options.cell_weights is not None or options.undefined != "null":
            options = replace(options, cell_weights=None, undefined="null")
        counts = Counts.of(more, options.beta)
        ratios = class_values(selection, counts)
        per_class, pooled = ratios[..., :-1], ratios[..., -1]
        smooth = Values(more, options, selection, counts, counts, per_class, pooled, per_class)
        slopes = class_gradient(smooth, per_class)
        smooth = as_observed(plan.class_places, values, smooth, slopes, plan.odds_ratio)
        overall = smooth.averages()
        gradient = overall_gradient(smooth, slopes, overall)
        for place in plan.formulas:
            overall[place] = smooth.formula(selection.overall[place])
        of_classes = class_variances(smooth, slopes, options.sampling)
        whole = variances(gradient, more, options.sampling)
        numbers = (
            contributing_to_classes(slopes, counts, POOLED),
            contributing(gradient, more, POOLED),
        )
        growth = table.total / more.total[POOLED]
        return cls(smooth, overall, of_classes, whole, growth, *numbers)


def as_observed(
    places: Array,
    values: Values,
    smooth: Values,
    gradient: ClassGradient,
    odds_ratio: int | None = None,
) -> Values:
    """Let the same classes take part as at the observed tables, with the same fixed values.

    Changes the gradient of the smoothed values `smooth`. The places are those of the per-class
    entries among the observed ones, -1 for none; the odds ratio keeps its own values.
    """
    if values.complete and values.class_reasons is None:
        return smooth
    per_class, averaged = smooth.per_class.copy(), smooth.per_class.copy()
    for i in np.flatnonzero(places >= 0):
        if i == odds_ratio:
            continue
        observed = values.per_class[places[i]]
        fixed = ~np.isfinite(observed)
        if values.counted_as_zero is not None:
            fixed &= ~values.counted_as_zero[places[i]]
        filler = np.where(values.defined[places[i]], values.averaged[places[i]], np.nan)
        per_class[i] = np.where(fixed, np.nan, per_class[i])
        averaged[i] = np.where(fixed | np.isnan(filler), filler, averaged[i])
        gradient.margins[:, i] = np.where(fixed, 0.0, gradient.margins[:, i])
    result = replace(smooth, per_class=per_class, averaged=averaged)
    if values.options.undefined != "null":
        options = replace(smooth.options, undefined=values.options.undefined)
        result = replace(result, options=options)
    return result
