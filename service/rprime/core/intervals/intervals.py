"""Confidence intervals of the indices of a stack of tables."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.index import CODE, Index
from rprime.core.intervals.delong import ItemMean, ranked_key
from rprime.core.intervals.delta import classified_entries
from rprime.core.intervals.design_effect import EFFECTIVE, GROUPS, DesignEffects, Weights
from rprime.core.intervals.groups import FEW_EFFECTIVE_GROUPS
from rprime.core.intervals.methods import BY_LOGARITHM, highest_of, of_highest, plan_of
from rprime.core.intervals.parts import ratio_counts
from rprime.core.intervals.plan import Bounds, ScopeMethods, Setting
from rprime.core.intervals.prepared import HighestScores, PreparedIntervals
from rprime.core.intervals.proportions import ScoreCounts, quantile_of
from rprime.core.intervals.universe import UniverseIntervals
from rprime.core.items import Items
from rprime.core.values import Values

FEW_ITEMS = 10
FEW_ERRORS = 5
FEW_RANKED = 20
MANY_SMALL = 0.1
"""From this share of the items on, classes of few items decide a weighted average."""


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
    options, table = values.options, values.table
    unsuitable = np.asarray(table.weighted | table.fractional & (weights is None))
    grouped = items is not None and items.groups is not None
    setting = Setting(
        f1=options.beta == 1,
        exact=options.exact,
        fixed_rows=options.sampling == "fixed_rows",
        unclassified=table.unclassified is not None,
        spurious=table.spurious is not None,
        effects=grouped or weights is not None,
    )
    plan = plan_of(values.selection, setting, Bounds.of_options(table.k, options))
    plans = () if unsuitable.all() else plan.universes
    of_plans: list[DesignEffects] = []
    if weights is not None:
        of_plans = [weights.effects(part.selection, values, one) for part, one in plans]
    elif items is not None and grouped:
        of_plans = [DesignEffects.of(part.selection, values, items, one) for part, one in plans]
    effects = DesignEffects.scattered(values, [part for part, _ in plans], of_plans)
    universes = tuple(
        UniverseIntervals.of(part, values, one, effects=own, weights=weights)
        for (part, one), own in zip(plans, of_plans or (None,) * len(plans), strict=True)
    )
    of_classes = of_pooled = None
    if weights is not None:
        squares = weights.counts("all")
        of_classes = squares.classes, weights.scale
        of_pooled = Counts(squares.rows[..., -1]), weights.scale
    last = Counts(values.counts.rows[..., -1])
    shares = ratio_counts(values.counts.classes, plan.per_class.ratios, of_classes)
    whole = ratio_counts(last, plan.overall.ratios, of_pooled)
    if effects is not None and weights is None:
        shares = shares / effects.per_class[plan.per_class.proportions]
        whole = whole / effects.overall[plan.overall.proportions]
    return PreparedIntervals(
        values,
        items,
        plan,
        ScoreCounts.of(*shares),
        ScoreCounts.of(*whole),
        universes,
        effects,
        weights,
        unsuitable,
        _highest(values),
    )


def _highest(values: Values) -> HighestScores | None:
    """Prepare the intervals of the table of the k highest scores, if an index is one of it."""
    found = of_highest(values)
    return (
        None if found is None else HighestScores(prepare(*found), highest_of(values.selection)[1])
    )


def intervals(
    values: Values, items: Items | None = None, prepared: PreparedIntervals | None = None
) -> Intervals:
    """Compute the intervals that the indices declare; items of a single table may be grouped."""
    prepared = prepared or prepare(values, items)
    own, whole = prepared.plan.per_class, prepared.plan.overall
    quantile = quantile_of(values.options.confidence)
    on_request = values.options.intervals == "all"
    limits = prepared.limits_on_request if on_request else prepared.limits
    per_class, overall = limits("class", quantile), limits("overall", quantile)
    if values.counted_as_zero is not None:
        per_class = np.where(values.counted_as_zero, np.nan, per_class)
    if values.options.undefined != "null":  # what replaces an infinite value has no interval
        per_class = np.where(np.isinf(values.per_class), np.nan, per_class)
    few_items, low, overall_low = _reliability(prepared, per_class[0], overall[0])
    return Intervals(
        per_class_low=per_class[0],
        per_class_high=per_class[1],
        per_class_reasons=_reasons(prepared, own, per_class[0], values.per_class),
        per_class_few_items=few_items,
        per_class_low_reliability=low,
        per_class_methods=own.names,
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
    found = {"items": items, "errors": prepared.standard_errors}
    kish = None
    if prepared.weights is not None:  # equal weights add up to the items but for rounding
        kish = min(float(prepared.values.table.total), float(prepared.weights.number))
    result: dict[str, Any] = {"kish": kish}
    for name, both in found.items():
        if both is not None:
            per_class, overall = both
            result[f"per_class_{name}"] = np.where(np.isnan(class_low), np.nan, per_class)
            result[f"overall_{name}"] = np.where(np.isnan(overall_low), np.nan, overall)
    return result


def _reasons(
    prepared: PreparedIntervals, methods: ScopeMethods, low: Array, own: Array
) -> NDArray[np.uint8]:
    """Reason codes of missing intervals; 0 where there is an interval or no value."""
    unsuitable, last = prepared.unsuitable, (own.ndim - prepared.unsuitable.ndim - 1) * (None,)
    missing = np.isnan(low) & np.isfinite(own)
    codes = missing * np.uint8(CODE["no_interval"])
    named = methods.named
    if unsuitable.any():
        weighted = prepared.behind.table.weighted
        why = np.uint8(CODE["weighted" if weighted else "non_integer_counts"])
        codes[named] = np.where(missing[named] & unsuitable[(..., *last)], why, codes[named])
    if prepared.values.options.intervals == "all":
        codes[methods.resampled] = missing[methods.resampled] * np.uint8(CODE["not_resampled"])
    return codes


def _reliability(
    prepared: PreparedIntervals, class_low: Array, overall_low: Array
) -> tuple[Array, Array, Array]:
    """Find intervals that rest on few items, or on few errors or rights.

    The lower limits, (computed, ..., k) and (overall, ...), are NaN without an interval.

    Returns
    -------
    Per class: whether it rests on few items or groups, and whether on little of any kind; overall:
    whether on little of any kind. An average with equal weights rests on its smallest class.
    """
    values, methods, effects = prepared.behind, prepared.plan, prepared.grouped
    rows = values.counts.rows
    rests_on = methods.per_class.rests_on
    fewest = np.minimum.reduce(rows[rests_on, ..., :-1], axis=1)
    if values.classified_counts is not values.counts:
        outside = classified_entries(values.selection)
        classified = values.classified_counts.rows[rests_on[outside], ..., :-1]
        fewest[outside] = np.minimum.reduce(classified, axis=1)
    per_class = np.asarray(fewest < FEW_ITEMS)
    errors = _few_errors(rows[..., :-1], per_class.shape, prepared.proportions, methods.per_class)
    few = np.minimum.reduce(rows[methods.overall.rests_on, ..., -1], axis=1) < FEW_ITEMS
    if effects is not None:
        per_class |= _few_groups(effects.of_classes)
        few |= _few_groups(effects.of_all)
    few |= _few_errors(rows[..., -1], few.shape, prepared.pooled, methods.overall)
    of_classes, of_all = prepared.contributing
    errors |= of_classes < FEW_ERRORS
    few |= of_all < FEW_ERRORS
    few |= _few_right(values) | _many_small(values, methods.weighted)
    few[methods.open_below] |= values.overall[methods.open_below] < 0
    if values.scores is not None:
        errors[list(values.selection.scored)] = False
        few[list(values.selection.overall_scored)] = False
        # Areas and precisions of a class with fewer than 20 items in it, or outside of it.
        selection, inside = values.selection, values.scores.effective
        few_ranked = np.minimum(inside, np.add.reduce(inside) - inside) < FEW_RANKED
        for place in selection.scored:
            if ranked_key(selection.computed[place]) is not None:
                per_class[place] = few_ranked
        for place in selection.overall_scored:
            if ranked_key(selection.overall[place]) is not None:
                few[place] = few_ranked[inside > 0].any()
            else:
                few[place] = _few_contributing(values, selection.overall[place])
        shares = values.scores.group_shares
        if shares is not None and 1 / (shares @ shares) < FEW_EFFECTIVE_GROUPS:
            per_class[list(selection.scored)] = True
            few[list(selection.overall_scored)] = True
    if prepared.highest is not None:
        own, whole = prepared.highest.places
        found = _reliability(prepared.highest.intervals, class_low[own], overall_low[whole])
        per_class[own], errors[own], few[whole] = found
    exists = np.isfinite(class_low)
    per_class &= exists
    np.logical_or.at(few, methods.weakest, per_class[methods.weakest_of].any(-1))
    return per_class, per_class | errors & exists, few & np.isfinite(overall_low)


def _few_right(values: Values) -> Array:
    """Whether a class has fewer than 5 right items, for the index that is 0 if one has none."""
    few = np.zeros(values.overall.shape, dtype=bool)
    place = values.selection.overall_place.get(BY_LOGARITHM)
    if place is not None:
        table = values.table
        few[place] = ((table.correct < FEW_ERRORS) & (table.support > 0)).any(-1)
    return few


def _many_small(values: Values, places: Array) -> Array:
    """Whether classes with fewer than 10 items have a tenth of the weight of averages, or more."""
    few, table = np.zeros(values.overall.shape, dtype=bool), values.table
    small = np.where(table.support < FEW_ITEMS, table.support, 0.0)
    few[places] = np.add.reduce(small, axis=-1) >= MANY_SMALL * table.total
    return few


def _few_contributing(values: Values, entry: Index) -> bool:
    """Whether the variance of a mean over the items rests on fewer than 5."""
    if entry.of_items is None or entry.interval is None:
        return False
    mean = ItemMean.of(values, entry)
    return mean is not None and mean.contributing < FEW_ERRORS


def _few_errors(
    rows: Array, shape: tuple[int, ...], shares: ScoreCounts, methods: ScopeMethods
) -> Array:
    """Whether there are fewer than 5 errors, or fewer than 5 rights, behind each entry."""
    errors = rows[CountRow.fn] + rows[CountRow.fp]
    few = np.empty(shape, dtype=bool)
    few[...] = np.minimum(rows[CountRow.tp], errors) < FEW_ERRORS
    hits = shares.successes
    few[methods.proportions] = np.minimum(hits, shares.trials - hits) < FEW_ERRORS
    return few


def _few_groups(effects: Array) -> Array:
    """Whether there are fewer than 10 groups, or fewer than 8 effective ones."""
    few = effects[EFFECTIVE] < FEW_EFFECTIVE_GROUPS
    return np.asarray(few | (effects[GROUPS] < FEW_ITEMS))
