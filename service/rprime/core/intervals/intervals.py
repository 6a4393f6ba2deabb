"""Intervals: the limits of every index of a stack of tables."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.index import CODE, Index
from rprime.core.intervals.delong import effective_items, score_variance
from rprime.core.intervals.delta import (
    class_gradient,
    classified_entries,
    macro_weights,
    overall_terms,
)
from rprime.core.intervals.design_effect import DesignEffects, ItemGroups
from rprime.core.intervals.gradient import ClassGradient
from rprime.core.intervals.methods import PARTS, Methods, Scale, ScopeMethods, methods_of
from rprime.core.intervals.proportions import clopper_pearson, normal_quantile, wilson
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items
from rprime.core.values import Values

FEW_ITEMS = 10
# e^700 is the largest power of ten (304) with room for the odds; beyond, limits are 0 and 1.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, eq=False)
class Intervals:
    """Two-sided intervals of the values of a stack of tables.

    Parameters
    ----------
    per_class_low, per_class_high
        Shape (computed, ..., k); NaN where there is no interval.
    overall_low, overall_high
        Shape (overall, ...).
    per_class_reasons, overall_reasons
        Codes into `REASONS` of why a value that exists has no interval, else 0.
    per_class_low_reliability, overall_low_reliability
        Whether an interval rests on fewer than 10 items.
    per_class_methods, overall_methods
        The method of every entry, "" where it has none.
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


def intervals(values: Values, items: Items | None = None) -> Intervals:
    """Give every index the interval that its entry declares.

    Parameters
    ----------
    values
        Of a stack of tables; their options carry confidence, `exact` and `sampling`.
    items
        The items of a single table, where they come in groups.
    """
    options, table = values.options, values.table
    methods = methods_of(
        values.selection,
        "dice" if options.beta == 1 else "delta",
        "clopper_pearson" if options.exact else "wilson",
    )
    with np.errstate(all="ignore"):
        if table.weighted or table.fractional.all():
            return _assembled(values, methods, _blank(values.per_class), _blank(values.overall))
        sample = _sampled(values, methods, items)
        per_class = _class_limits(sample)
        overall = _overall_limits(sample, per_class)
        few = _few_items(sample, np.isfinite(per_class[0]), np.isfinite(overall[0]))
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


@dataclass(frozen=True, eq=False)
class _Sample:
    """What the limits of the classes and of the overall indices share.

    Parameters
    ----------
    successes, trials
        Shape (p, ..., k + 1): counts of the distinct proportions, pooled ones last; scaled by
        the inverse design effects where items come in groups.
    score
        Shape (2, p, ..., k + 1): their Wilson limits.
    gradient
        Of the per-class indices.
    deviations
        Shape (computed, ..., k): their delta standard deviations.
    effects, class_effects
        Of the groups, if there are any, and those on the per-class indices.
    """

    values: Values
    methods: Methods
    quantile: float
    successes: Array
    trials: Array
    score: Array
    gradient: ClassGradient
    deviations: Array
    effects: DesignEffects | None
    class_effects: Array | float


def _sampled(values: Values, methods: Methods, items: Items | None) -> _Sample:
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
    return _Sample(
        values=values,
        methods=methods,
        quantile=quantile,
        successes=successes,
        trials=trials,
        score=np.array(wilson(successes, trials, quantile)),
        gradient=gradient,
        deviations=deviations,
        effects=effects,
        class_effects=class_effects,
    )


@lru_cache(maxsize=64)
def quantile_of(confidence: float) -> float:
    """Two-sided normal quantile of a confidence level."""
    return float(normal_quantile(confidence))


def _class_limits(sample: _Sample) -> Array:
    """Limits of the per-class indices, shape (2, computed, ..., k)."""
    values, methods = sample.values, sample.methods
    limits = _blank(values.per_class)
    score = sample.score[..., :-1]
    plain = _exact(sample)[..., :-1] if values.options.exact else score
    limits[:, methods.per_class.proportions] = plain[:, methods.per_class.proportions_of]
    union = score[:, :1]
    limits[:, methods.jaccard] = union
    limits[:, methods.dice] = 2 * union / (1 + union)
    _mover(sample, limits)
    own = methods.per_class.delta
    limits[:, own] = delta_limits(
        methods.per_class.scale, values.per_class[own], sample.deviations[own] * sample.quantile
    )
    if values.scores is not None:
        _score_limits(sample, values.selection.scored, limits)
    return _kept(values, limits, methods.per_class)


def _exact(sample: _Sample) -> Array:
    """Clopper-Pearson limits of the distinct proportions, shape (2, p, ..., k + 1)."""
    confidence = sample.values.options.confidence
    return np.array(clopper_pearson(sample.successes, sample.trials, confidence))


def _mover(sample: _Sample, limits: Array) -> None:
    """Fill in the limits of R' and informedness: three proportions, each by its Wilson limits.

    R' = mu + (1 - mu) J with J = recall - FPR; where the rows are fixed, so is the prevalence mu.
    """
    values, methods = sample.values, sample.methods
    parts = slice(1, len(PARTS))
    rates = sample.successes[parts, ..., :-1] / sample.trials[parts, ..., :-1]
    squares = (sample.score[:, parts, ..., :-1] - rates) ** 2
    both = squares[:, 0] + squares[::-1, 1]
    recall, false_positive_rate, prevalence = rates
    informedness = recall - false_positive_rate
    limits[:, methods.informedness] = _about(informedness, both)[:, None]
    both *= (1 - prevalence) ** 2
    if values.options.sampling == "random":
        both += (1 - informedness) ** 2 * squares[:, 2]
    r_prime = prevalence + (1 - prevalence) * informedness
    limits[:, methods.r_prime] = _about(r_prime, both)[:, None]


def _about(values: Array, squares: Array) -> Array:
    """Values less and plus the roots of the squares of shape (2, ...)."""
    distances = np.sqrt(squares)
    np.negative(distances[0], out=distances[0])
    return np.asarray(values + distances)


def delta_limits(scale: Scale, values: Array, half: Array) -> Array:
    """Limits that are symmetric on the scale of every index.

    Parameters
    ----------
    values
        Shape (n, ...).
    half
        Standard deviation times the normal quantile, the shape of the values.

    Returns
    -------
    Shape (2, n, ...). Equal limits or NaN where the deviation is 0 or the value is at an end of
    its scale.
    """
    column = (-1, *(1,) * (values.ndim - 1))
    low, slope = scale.low.reshape(column), scale.slope.reshape(column)
    above, below = values - low, 1 - slope * values
    # The derivative of the log odds: 1 / above + slope / below in one fraction.
    exponent = half * (1 - low) / (above * below)
    factor = np.exp(np.minimum(exponent, LARGEST_EXPONENT))
    limits = np.empty((2, *values.shape))
    odds = np.divide(above, below, out=above)
    np.divide(odds, factor, out=limits[0])
    np.multiply(odds, factor, out=limits[1])
    below = 1 + slope * limits
    limits += low
    limits /= below
    if scale.plain.size:
        own, width = values[scale.plain], half[scale.plain]
        limits[0, scale.plain] = own - width
        limits[1, scale.plain] = own + width
    if scale.fallback.size:
        own, width = values[scale.fallback], half[scale.fallback]
        if (beyond := own <= -1).any():
            ends = np.array((own - width, own + width))
            limits[:, scale.fallback] = np.where(beyond, ends, limits[:, scale.fallback])
    return limits


def _overall_limits(sample: _Sample, class_limits: Array) -> Array:
    """Limits of the overall indices, shape (2, overall, ...)."""
    values, methods = sample.values, sample.methods
    limits = _blank(values.overall)
    macro, rest = methods.macro, methods.overall.delta
    squares, spread = _overall_squares(sample, _macro_distances(sample, class_limits))
    limits[:, macro] = _about(values.overall[macro], squares)
    limits[:, rest] = delta_limits(
        methods.overall.scale, values.overall[rest], np.sqrt(spread) * sample.quantile
    )
    pooled = (_exact(sample) if values.options.exact else sample.score)[..., -1]
    limits[:, methods.overall.proportions] = pooled[:, methods.overall.proportions_of]
    if values.scores is not None:
        _score_limits(sample, values.selection.overall_scored, limits)
    return _kept(values, limits, methods.overall)


def _score_limits(sample: _Sample, places: tuple[int, ...], limits: Array) -> None:
    """Fill in the limits of indices that read scores, of the classes or overall."""
    values, per_class = sample.values, limits.ndim > 2
    entries = values.selection.computed if per_class else values.selection.overall
    found = values.per_class if per_class else values.overall
    for place in places:
        entry, own = entries[place], np.asarray(found[place])
        if entry.interval == "share":
            limits[:, place] = _share_limits(sample, entry, own)
        elif entry.interval is not None:
            half = np.sqrt(score_variance(values, entry)) * sample.quantile
            limits[:, place] = delta_limits(Scale.of([entry]), own[None], half[None])[:, 0]


def _share_limits(sample: _Sample, entry: Index, share: Array) -> Array:
    options = sample.values.options
    trials = effective_items(sample.values, entry, share)
    if options.exact:
        return np.array(clopper_pearson(share * trials, trials, options.confidence))
    return np.array(wilson(share * trials, trials, sample.quantile))


def _macro_distances(sample: _Sample, class_limits: Array) -> Array:
    """What every class brings to the width of a macro average, shape (2, macro, ..., k)."""
    values, averaged = sample.values, sample.methods.macro_of
    own = values.per_class[averaged]
    distances = np.abs(class_limits[:, averaged] - own)
    exists = np.isfinite(own)
    if not exists.all():
        distances = np.where(exists, distances, 0.0)
    return np.asarray(distances * macro_weights(values, averaged))


def _overall_squares(sample: _Sample, distances: Array) -> tuple[Array, Array]:
    """Squared widths of the macro averages (2, macro, ...) and variances of the rest (n, ...).

    d' Rho d is the delta variance of the sum of the per-class values, each scaled by d / sd; so
    Rho itself is never formed. A class that cannot vary (sd 0: all correct, or none) correlates
    with no other and adds its d^2.
    """
    values, methods = sample.values, sample.methods
    deviations = sample.deviations[methods.macro_of]
    scaled = distances / deviations
    certain = deviations == 0
    some_certain = certain.any()
    if some_certain:
        scaled[:, certain] = 0.0
    gradient = overall_terms(
        values,
        sample.gradient,
        methods.both_limits_of,
        scaled.reshape(-1, *scaled.shape[2:]),
    )
    found = variances(gradient, values.table, values.options.sampling)
    if sample.effects is not None:
        found *= sample.effects.of_overall(gradient)
    averages = 2 * len(methods.macro)
    squares = found[:averages].reshape(scaled.shape[:-1])
    if some_certain:
        squares = squares + np.add.reduce(np.where(certain, distances**2, 0.0), axis=-1)
    return squares, found[averages:]


def _kept(values: Values, limits: Array, methods: ScopeMethods) -> Array:
    """Keep the intervals there are, in range: with a width, of whole and real items."""
    table, last = values.table, (limits.ndim - values.table.total.ndim - 2) * (None,)
    lowest, highest = methods.bounds.reshape(2, -1, *(1,) * (limits.ndim - 2))
    np.maximum(limits, lowest, out=limits)
    np.minimum(limits, highest, out=limits)
    lost = ~(limits[0] < limits[1])
    if table.fractional.any():
        lost |= table.fractional[(..., *last)]
    if table.spurious is not None:
        lost[methods.loose] |= np.asarray(table.spurious.any(-1))[(..., *last)]
    np.copyto(limits, np.nan, where=lost)
    return limits


def _reasons(values: Values, named: Array, low: Array, own: Array) -> NDArray[np.uint8]:
    """Codes of why values have no interval; 0 where they have one or do not exist themselves."""
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


def _few_items(sample: _Sample, per_class: Array, overall: Array) -> tuple[Array, Array] | None:
    """Whether intervals rest on fewer than 10 items, of the classes and overall; None: all do not.

    Parameters
    ----------
    per_class, overall
        Shapes (computed, ..., k), (overall, ...): where there is an interval.

    Notes
    -----
    An average to which every class counts the same rests on its weakest class, and items that
    come in groups on no more than these.
    """
    values, methods, effects = sample.values, sample.methods, sample.effects
    rows = values.counts.rows
    plain = effects is None and values.classified_counts is values.counts
    if plain and rows[methods.rows].min() >= FEW_ITEMS:
        return None
    per_class &= _fewest(values, methods) < FEW_ITEMS * sample.class_effects
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
