"""Confidence intervals of the indices of a stack of tables."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.index import CODE
from rprime.core.intervals.declaration import IntervalInputs
from rprime.core.intervals.delta import (
    class_gradient,
    classified_entries,
    macro_weights,
    overall_terms,
)
from rprime.core.intervals.design_effect import DesignEffects, ItemGroups
from rprime.core.intervals.limits import macro
from rprime.core.intervals.methods import INTERVALS, Methods, ScopeMethods, methods_of
from rprime.core.intervals.proportions import normal_quantile, wilson
from rprime.core.intervals.scales import delta_limits
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items
from rprime.core.values import Values

FEW_ITEMS = 10


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
    per_class_low_reliability, overall_low_reliability
        Whether an interval rests on fewer than 10 items.
    per_class_methods, overall_methods
        The method of every entry, "" if it has none.
    """

    per_class_low: Array
    per_class_high: Array
    per_class_reasons: NDArray[np.uint8]
    per_class_low_reliability: NDArray[np.bool_]
    per_class_methods: tuple[str, ...]
    overall_low: Array
    overall_high: Array
    overall_reasons: NDArray[np.uint8]
    overall_low_reliability: NDArray[np.bool_]
    overall_methods: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PreparedIntervals:
    """The part of the intervals that does not depend on their quantile.

    Parameters
    ----------
    values
        Values of a stack of tables, with the options `exact` and `sampling`.
    methods
        The interval methods of their entries.
    inputs
        None if no table has intervals.
    """

    values: Values
    methods: Methods
    inputs: IntervalInputs | None

    @classmethod
    def of(cls, values: Values, items: Items | None = None) -> "PreparedIntervals":
        """Prepare the intervals of values.

        Parameters
        ----------
        values
            Values of a stack of tables.
        items
            The items of a single table, if they are grouped.
        """
        options, table = values.options, values.table
        methods = methods_of(values.selection, options.beta == 1, options.exact)
        if table.weighted or table.fractional.all():
            return cls(values, methods, None)
        with np.errstate(all="ignore"):
            return cls(values, methods, _inputs(values, methods, items))

    def limits(self, quantile: float) -> tuple[Array, Array]:
        """Compute the limits of all indices.

        Parameters
        ----------
        quantile
            Of the normal distribution, above 0; that of each limit's one-sided level.

        Returns
        -------
        Shapes (2, computed, ..., k) and (2, overall, ...): NaN without an interval.
        """
        return self.class_limits(quantile), self.overall_limits(quantile)

    def class_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the per-class indices, shape (2, computed, ..., k).

        Parameters
        ----------
        quantile
            A number, or an array that broadcasts to (computed, ..., k).
        """
        return self._each(quantile, self.values.per_class, self._class_limits)

    def overall_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the overall indices, shape (2, overall, ...).

        Parameters
        ----------
        quantile
            A number, or an array that broadcasts to (overall, ...).
        """
        return self._each(quantile, self.values.overall, self._overall_limits)

    def _each(
        self, quantile: float | Array, values: Array, limits: Callable[[IntervalInputs], Array]
    ) -> Array:
        result = _blank(values)
        if self.inputs is None:
            return result
        wanted = np.broadcast_to(quantile, values.shape)
        with np.errstate(all="ignore"):
            for z in np.unique(np.asarray(quantile)):
                found = limits(self.inputs.at(float(z)))
                result = np.where(wanted == z, found, result)
        return result

    def _class_limits(self, inputs: IntervalInputs) -> Array:
        return _class_limits(inputs, self.methods)

    def _overall_limits(self, inputs: IntervalInputs) -> Array:
        return _overall_limits(inputs, self.methods, _class_limits(inputs, self.methods))


def intervals(values: Values, items: Items | None = None) -> Intervals:
    """Compute the intervals that the indices declare.

    Parameters
    ----------
    values
        Values of a stack of tables, with the options confidence, `exact` and `sampling`.
    items
        The items of a single table, if they are grouped.
    """
    prepared = PreparedIntervals.of(values, items)
    methods, inputs = prepared.methods, prepared.inputs
    per_class, overall = prepared.limits(quantile_of(values.options.confidence))
    if inputs is None:
        return _assembled(values, methods, per_class, overall)
    with np.errstate(all="ignore"):
        few = _few_items(inputs, methods, np.isfinite(per_class[0]), np.isfinite(overall[0]))
    return _assembled(values, methods, per_class, overall, few)


def _assembled(
    values: Values,
    methods: Methods,
    per_class: Array,
    overall: Array,
    few_items: tuple[Array, Array] | None = None,
) -> Intervals:
    few_class, few_overall = few_items or (
        np.zeros(values.per_class.shape, dtype=bool),
        np.zeros(values.overall.shape, dtype=bool),
    )
    return Intervals(
        per_class_low=per_class[0],
        per_class_high=per_class[1],
        per_class_reasons=_reasons(values, methods.per_class.named, per_class[0], values.per_class),
        per_class_low_reliability=few_class,
        per_class_methods=methods.per_class.names,
        overall_low=overall[0],
        overall_high=overall[1],
        overall_reasons=_reasons(values, methods.overall.named, overall[0], values.overall),
        overall_low_reliability=few_overall,
        overall_methods=methods.overall.names,
    )


def _blank(values: Array) -> Array:
    return np.full((2, *values.shape), np.nan)


def _inputs(values: Values, methods: Methods, items: Items | None) -> IntervalInputs:
    """Compute the shared inputs of the limits."""
    rows, quantile = values.counts.rows, quantile_of(values.options.confidence)
    successes, trials = rows[methods.numerators], rows[methods.denominators]
    gradient = class_gradient(values)
    deviations = np.sqrt(class_variances(values, gradient))
    effects: DesignEffects | None = None
    class_effects: Array | float = 1.0
    if items is not None and items.groups is not None:
        effects = DesignEffects(values, ItemGroups.of(items, items.groups, values.table.k))
        class_effects = effects.of_classes(gradient)
        shrink = effects.of_proportions(methods.numerators, methods.denominators)
        successes, trials = successes / shrink, trials / shrink
        deviations *= np.sqrt(class_effects)
    return IntervalInputs(
        values=values,
        quantile=quantile,
        successes=successes,
        trials=trials,
        wilson=np.array(wilson(successes, trials, quantile)),
        gradient=gradient,
        deviations=deviations,
        effects=effects,
        class_effects=class_effects,
    )


@lru_cache(maxsize=64)
def quantile_of(confidence: float) -> float:
    """Two-sided normal quantile of a confidence level."""
    return float(normal_quantile(confidence))


def _class_limits(inputs: IntervalInputs, methods: Methods) -> Array:
    """Limits of the per-class indices, shape (2, computed, ..., k)."""
    values = inputs.values
    limits = _blank(values.per_class)
    for method, group in methods.groups:
        limits[:, group.positions] = method.limits(inputs, group)
    if values.scores is not None:
        _score_limits(inputs, values.selection.scored, limits)
    return _masked(values, limits, methods.per_class)


def _overall_limits(inputs: IntervalInputs, methods: Methods, class_limits: Array) -> Array:
    """Limits of the overall indices, shape (2, overall, ...)."""
    values = inputs.values
    limits = _blank(values.overall)
    averages, rest = methods.macro, methods.overall.delta
    distances = _macro_distances(values, methods, class_limits)
    squares, spread = _overall_squares(inputs, methods, distances)
    limits[:, averages] = macro.limits(values.overall[averages], squares)
    limits[:, rest] = delta_limits(
        methods.overall.scales, values.overall[rest], np.sqrt(spread) * inputs.quantile
    )
    pooled = inputs.proportion_limits[..., -1]
    limits[:, methods.overall.proportions] = pooled[:, methods.overall.proportions_of]
    if values.scores is not None:
        _score_limits(inputs, values.selection.overall_scored, limits)
    return _masked(values, limits, methods.overall)


def _score_limits(inputs: IntervalInputs, places: tuple[int, ...], limits: Array) -> None:
    """Fill in the limits of indices of scores, per class or overall."""
    values, per_class = inputs.values, limits.ndim > 2
    entries = values.selection.computed if per_class else values.selection.overall
    found = values.per_class if per_class else values.overall
    for place in places:
        entry = entries[place]
        if entry.interval is not None:
            method = INTERVALS[entry.interval]
            limits[:, place] = method.limits(inputs, entry, np.asarray(found[place]))


def _macro_distances(values: Values, methods: Methods, class_limits: Array) -> Array:
    """Contribution of every class to the width of a macro average, shape (2, macro, ..., k)."""
    averaged = methods.macro_of
    own = values.per_class[averaged]
    distances = np.abs(class_limits[:, averaged] - own)
    exists = np.isfinite(own)
    if not exists.all():
        distances = np.where(exists, distances, 0.0)
    return np.asarray(distances * macro_weights(values, averaged))


def _overall_squares(
    inputs: IntervalInputs, methods: Methods, distances: Array
) -> tuple[Array, Array]:
    """Squared widths of the macro averages (2, macro, ...) and variances of the rest (n, ...).

    d' Rho d is the delta variance of the sum of the per-class values, each scaled by d / sd, so
    Rho itself is never computed. A class that cannot vary (sd 0: all correct, or none) correlates
    with no other class and adds its d^2.
    """
    values = inputs.values
    deviations = inputs.deviations[methods.macro_of]
    scaled = distances / deviations
    certain = deviations == 0
    some_certain = certain.any()
    if some_certain:
        scaled[:, certain] = 0.0
    gradient = overall_terms(
        values,
        inputs.gradient,
        methods.both_limits_of,
        scaled.reshape(-1, *scaled.shape[2:]),
    )
    found = variances(gradient, values.table, values.options.sampling)
    if inputs.effects is not None:
        found *= inputs.effects.of_overall(gradient)
    averages = 2 * len(methods.macro)
    squares = found[:averages].reshape(scaled.shape[:-1])
    if some_certain:
        squares = squares + np.add.reduce(np.where(certain, distances**2, 0.0), axis=-1)
    return squares, found[averages:]


def _masked(values: Values, limits: Array, methods: ScopeMethods) -> Array:
    """Clip the limits to the range; remove intervals without a width or of unsuitable counts."""
    table, last = values.table, (limits.ndim - values.table.total.ndim - 2) * (None,)
    lowest, highest = methods.bounds.reshape(2, -1, *(1,) * (limits.ndim - 2))
    np.maximum(limits, lowest, out=limits)
    np.minimum(limits, highest, out=limits)
    lost = ~(limits[0] < limits[1])
    if table.fractional.any():
        lost |= table.fractional[(..., *last)]
    if table.spurious is not None:
        lost[methods.mixes_spurious] |= np.asarray(table.spurious.any(-1))[(..., *last)]
    np.copyto(limits, np.nan, where=lost)
    return limits


def _reasons(values: Values, named: Array, low: Array, own: Array) -> NDArray[np.uint8]:
    """Reason codes of missing intervals; 0 where there is an interval or no value."""
    table, last = values.table, (own.ndim - values.table.total.ndim - 1) * (None,)
    missing = np.isnan(low)
    if values.class_reasons is not None or values.overall_reasons is not None:
        missing &= np.isfinite(own)
    codes = missing * np.uint8(CODE["no_interval"])
    if table.weighted:
        codes[named] = missing[named] * np.uint8(CODE["weighted"])
    elif table.fractional.any():
        blocked = missing[named] & np.asarray(table.fractional)[(..., *last)]
        codes[named] = np.where(blocked, np.uint8(CODE["non_integer_counts"]), codes[named])
    return codes


def _few_items(
    inputs: IntervalInputs, methods: Methods, per_class: Array, overall: Array
) -> tuple[Array, Array] | None:
    """Find intervals that rest on fewer than 10 items, per class and overall; None if none does.

    Parameters
    ----------
    per_class, overall
        Shapes (computed, ..., k), (overall, ...): whether an interval exists.

    Notes
    -----
    An average with equal weights rests on its smallest class; grouped items count at most as
    often as there are groups.
    """
    values, effects = inputs.values, inputs.effects
    rows = values.counts.rows
    plain = effects is None and values.classified_counts is values.counts
    if plain and rows[methods.rows].min() >= FEW_ITEMS:
        return None
    per_class &= _fewest(values, methods) < FEW_ITEMS * inputs.class_effects
    few = np.minimum.reduce(rows[methods.overall.rests_on, ..., -1], axis=1) < FEW_ITEMS
    if effects is not None and len(effects.groups.sizes) < FEW_ITEMS:
        few[...] = True
    np.logical_or.at(few, methods.weakest, per_class[methods.weakest_of].any(-1))
    return per_class, few & overall


def _fewest(values: Values, methods: Methods) -> Array:
    """Items that the intervals of the classes rest on, shape (computed, ..., k)."""
    fewest = np.minimum.reduce(values.counts.rows[methods.per_class.rests_on, ..., :-1], axis=1)
    if values.classified_counts is not values.counts:
        outside = classified_entries(values.selection)
        rows = values.classified_counts.rows[methods.per_class.rests_on[outside], ..., :-1]
        fewest[outside] = np.minimum.reduce(rows, axis=1)
    return np.asarray(fewest)
