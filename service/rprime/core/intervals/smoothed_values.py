"""The values and the gradients of smoothed tables, which intervals start from."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.intervals.delta import class_gradient, macro_weights, overall_terms
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.plan import Plan
from rprime.core.intervals.smooth_indices import smooth_overall_indices
from rprime.core.intervals.smoothing import POOLED, SmoothedCells, smoothed
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.options import Options
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, class_values


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The smoothed tables of a plan with their values and variances.

    Parameters
    ----------
    values, overall
        Values of the stack (2, ...) of the pooled and the row-wise table, and the overall ones of
        the plan, shape (o, 2, ...).
    class_variances, variances
        Shapes (c, 2, ..., k) and (o, 2, ...), the overall ones in the order of the plan.
    growth
        Items of the observed table divided by those of the pooled one, shape (...).
    """

    values: Values
    overall: Array
    class_variances: Array
    variances: Array
    growth: Array

    @classmethod
    def of(cls, plan: Plan, values: Values, table: ConfusionTable) -> "Smoothed":
        """Smooth the table of a universe.

        Parameters
        ----------
        values
            Of the observed tables.
        table
            The table of the universe.
        """
        more = smoothed(table)
        if plan.by_cell:
            more = replace(more, cells=cast("SmoothedCells", more.cells).dense())
        options = values.options
        if options.cell_weights is not None or options.undefined != "null":
            options = replace(options, cell_weights=None, undefined="null")
        found, own = _differentiated(more, options, plan.selection)
        found = as_observed(plan.class_places, values, found, own, plan.odds_ratio)
        smooth = smooth_overall_indices(plan.selection)
        weights = macro_weights(found, smooth.macro_of)
        overall = found.averages()
        whole = overall_terms(found, own, smooth.macro_of, weights, overall)
        with np.errstate(all="ignore"):
            for place in plan.formulas:
                overall[place] = found.formula(plan.selection.overall[place])
        spread = np.empty((len(smooth.order), *found.table.stack_shape))
        spread[smooth.order] = variances(whole, more, options.sampling)
        return cls(
            found,
            overall,
            class_variances(found, own, options.sampling),
            spread,
            table.total / more.total[POOLED],
        )


def _differentiated(
    table: ConfusionTable, options: Options, selection: Selection
) -> tuple[Values, ClassGradient]:
    """Compute the per-class values of smooth entries together with their gradients."""
    with np.errstate(all="ignore"):
        counts = Counts.of(table, options.beta)
        whole = class_values(selection, counts)
    per_class = whole[..., :-1]
    values = Values(table, options, selection, counts, counts, per_class, whole[..., -1], per_class)
    return values, class_gradient(values, per_class)


def as_observed(
    places: Array,
    values: Values,
    found: Values,
    gradient: ClassGradient,
    odds_ratio: int | None = None,
) -> Values:
    """Let the same classes take part as at the observed tables, with the same fixed values.

    Parameters
    ----------
    places
        Positions of the per-class entries among those of the observed values; -1 for none.
    found, gradient
        Of the smoothed tables; the gradient is changed.
    odds_ratio
        The entry that keeps its own values, if any.
    """
    if values.complete and values.class_reasons is None:
        return found
    per_class, averaged = found.per_class.copy(), found.per_class.copy()
    for i in np.flatnonzero(places >= 0):
        if i == odds_ratio:
            continue
        own = values.per_class[places[i]]
        fixed = ~np.isfinite(own)
        if values.counted_as_zero is not None:
            fixed &= ~values.counted_as_zero[places[i]]
        filler = np.where(values.defined[places[i]], values.averaged[places[i]], np.nan)
        per_class[i] = np.where(fixed, np.nan, per_class[i])
        averaged[i] = np.where(fixed | np.isnan(filler), filler, averaged[i])
        gradient.margins[:, i] = np.where(fixed, 0.0, gradient.margins[:, i])
    result = replace(found, per_class=per_class, averaged=averaged)
    if values.options.undefined != "null":
        options = replace(found.options, undefined=values.options.undefined)
        result = replace(result, options=options)
    return result
