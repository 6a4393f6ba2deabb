"""The values of slices, their differences from the rest, and which are the weakest."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array, FloatArray
from rprime.core.catalog import OVERALL_INDICES, SCORE_KEYS
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import rows_of
from rprime.core.comparison.compared_side import ComparedSide
from rprime.core.comparison.constant import ConstantClassifier
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.paired_variance import PairedPredictions
from rprime.core.estimates import Estimates
from rprime.core.index import Index
from rprime.core.intervals.intervals import Intervals
from rprime.core.intervals.plan import bounds
from rprime.core.intervals.proportions import (
    binomial_tail_p,
    distance_found,
    effective_items,
    quantile_of,
)
from rprime.core.intervals.reliability import FEW_ITEMS
from rprime.core.multiplicity import benjamini_hochberg, holm
from rprime.core.options import Options, SliceAdjust
from rprime.core.selection import select
from rprime.core.slices.slices import Slices
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

DEFAULT_INDICES = ("accuracy", "macro_f1", "recall", "precision")
"""Indices of slices where a request names none: the more there are, the less is found."""
ADJUST: Mapping[SliceAdjust, Callable[[FloatArray], FloatArray]] = {
    "holm": holm,
    "benjamini_hochberg": benjamini_hochberg,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class SliceEvaluation:
    """The evaluation of all slices of a test set; arrays of shape (overall, s).

    Parameters
    ----------
    values, intervals
        Of the whole stack of s tables; intervals None unless the options request them.
    difference, lower, upper
        Slice minus rest, and its interval at the confidence of the options; NaN without one.
    p_adjusted
        Two-sided p-values of no difference, adjusted over all slices and indices; NaN untested.
    detectable
        The smallest difference that its first step finds with power .8; NaN where none is possible.
    index
        The overall index that orders `weakest`; None if no value of one of them is best.
    shrunken
        Its empirical Bayes estimates, shape (s,); NaN without a value or a variance.
    weakest
        Positions of the slices with such an estimate, worst first.
    """

    slices: Slices
    values: Values
    intervals: Intervals | None
    difference: Array
    lower: Array
    upper: Array
    p_adjusted: Array
    detectable: Array
    index: Index | None
    shrunken: Array
    weakest: Array


def evaluate_slices(slices: Slices, whole: ConfusionTable, options: Options) -> SliceEvaluation:
    """Evaluate all slices as one stack, and compare each with the items outside of it.

    `whole` is the table of all items, dense, without spurious predictions. Indices of scores are
    left out.

    Notes
    -----
    Differences are those of unpaired samples (MOVER), averages over the classes with items on both
    sides. Only undefined values of the slices themselves are replaced.
    """
    options = replace(options, indices=slice_indices(options), families=())
    selection = select(options)
    estimates = Estimates.of(slices.tables, options, selection)
    with_intervals = options.wants_intervals(whole.k)
    plain = options if options.undefined == "null" else replace(options, undefined="null")
    compared = estimates if plain is options else Estimates.of(slices.tables, plain, selection)
    rest = Estimates.of(slices.rest(whole), plain, selection)
    alpha = 1 - options.confidence
    numbers = np.full((5, *estimates.values.overall.shape), np.nan)
    for places, part in differences_to_rest(compared, rest):
        p = two_sided_p(part, selection.overall)
        numbers[..., places] = part.value, *part.limits(alpha / 2), p, part.standard_error
    value, lower, upper, p, error = numbers
    p[vague(estimates)] = np.nan
    tested = max(int(np.count_nonzero(~np.isnan(p))), 1)
    detectable = distance_found(alpha / 2 / tested, error)
    reach = np.array([high - low for low, high in map(bounds, selection.overall)])[:, None]
    index, shrunken, weakest = _weakest(Estimates.of(whole, plain, selection), estimates)
    return SliceEvaluation(
        slices=slices,
        values=estimates.values,
        intervals=estimates.intervals if with_intervals else None,
        difference=value,
        lower=lower,
        upper=upper,
        p_adjusted=ADJUST[options.slice_adjust](p.ravel()).reshape(p.shape),
        detectable=np.where(detectable <= reach, detectable, np.nan),
        index=index,
        shrunken=shrunken,
        weakest=weakest,
    )


def differences_to_rest(
    estimates: Estimates,
    other: Estimates,
    *,
    pairs: PairedPredictions | None = None,
    one_test_set: bool = False,
    constant: ConstantClassifier | None = None,
) -> Iterator[tuple[Any, Difference]]:
    """Yield the differences of the overall values of two stacks of s tables, and their positions.

    Averages are compared over the classes with items on both sides. `pairs` are the predictions of
    each slice, if both stacks are about the same items; `one_test_set` says whether two tables at
    one position count the same items, paired or not; `constant` is the classifier that the others
    are of, if it is one.
    """
    here, there = (side.values.table.support > 0 for side in (estimates, other))
    places, none = np.flatnonzero((here != there).any(-1)).tolist(), np.zeros(0, np.intp)
    aligned = partial(
        AlignedValues, labels=(), places=none, one_test_set=one_test_set, constant=constant
    )
    if len(places) < len(here):
        yield (
            slice(None),
            aligned(ComparedSide(estimates), ComparedSide(other), pairs=pairs).overall,
        )
    if places:
        ours, theirs = (_part(side, places, (here & there)[places]) for side in (estimates, other))
        yield places, aligned(ours, theirs, pairs=None).overall


def _part(side: Estimates, places: list[int], shared: Array) -> ComparedSide:
    """Return some slices, or their rests, with averages over the shared classes."""
    values = side.values
    options = replace(values.options, cell_weights=None)  # they are applied already
    table = values.table[places]
    whole, common = (
        Estimates(compute(stack, options, values.selection))
        for stack in (table, rows_of(table, shared))
    )
    return ComparedSide(whole, common)


def vague(estimates: Estimates) -> Array:
    """Whether there is too little for a test, shape (overall, s): few items in a class, or errors.

    Plain proportions, which have an exact tail, need nothing.
    """
    support = estimates.values.table.support
    few = ((support > 0) & (support < FEW_ITEMS)).any(-1)
    unreliable = np.asarray(estimates.intervals.overall_low_reliability | few)
    unreliable[estimates.prepared.plan.overall.proportions] = False
    return unreliable


def two_sided_p(difference: Difference, entries: tuple[Index, ...]) -> Array:
    """Return two-sided p-values of no difference of independent samples, NaN without a test.

    Notes
    -----
    The larger one of the p-value of MOVER and, for an index of finite range, of the binomial tail
    with the effective number of items behind it, n = z^2 q (1 - q) / (q - p)^2, where p and q are
    the values of slice and rest mapped to [0, 1]. Among hundreds of slices small tails decide, and
    there the normal distribution is too light where q is near 0 or 1.
    """
    one_sided = np.fmin(*difference.p_of_no_change)
    ends = np.reshape([bounds(entry) for entry in entries], (-1, 2)).T
    low, high = ends.reshape(2, -1, *(1,) * (one_sided.ndim - 1))
    with np.errstate(all="ignore"):
        part, rest = ((v - low) / (high - low) for v in (difference.candidate, difference.baseline))
        n = effective_items(special.ndtri(one_sided), part, rest)
        worse = part < rest
        hits, share = (np.where(worse, 1 - v, v) for v in (part, rest))
        tail = binomial_tail_p(hits * n, n, share)
    return np.minimum(2 * np.fmax(one_sided, tail), 1.0)


def slice_indices(options: Options) -> tuple[str, ...]:
    """Return the indices of slices: those asked for that read no scores, else the default ones."""
    keys = tuple(key for key in options.indices or () if key not in SCORE_KEYS)
    return keys or DEFAULT_INDICES


def ordering_index(options: Options) -> Index | None:
    """Return the first overall index of slices that has a best value."""
    entries = (OVERALL_INDICES[key] for key in slice_indices(options) if key in OVERALL_INDICES)
    return next((entry for entry in entries if entry.higher_is_better is not None), None)


def _weakest(whole: Estimates, estimates: Estimates) -> tuple[Index | None, Array, Array]:
    """Return the index that orders slices, its shrunken estimates, and the order."""
    table, selection = estimates.values.table, estimates.values.selection
    index = ordering_index(estimates.values.options)
    if index is None:
        return None, np.full(table.total.shape, np.nan), np.zeros(0, np.intp)
    place = selection.overall_place[index.key]
    z = quantile_of(whole.values.options.confidence)
    low, high = whole.prepared.limits("overall", z)[:, place]
    item_variance = ((high - low) / (2 * z)) ** 2 * whole.values.table.total
    mean = whole.values.overall[place]
    shrunken, order = shrink(
        estimates.values.overall[place], table.total, mean, item_variance, whole.values.table.total
    )
    ascending = order if index.higher_is_better else -order
    there = np.flatnonzero(np.isfinite(order))
    return index, shrunken, there[np.argsort(ascending[there], kind="stable")]


def shrink(
    values: Array, items: Array, mean: Array, item_variance: Array, total: Array
) -> tuple[Array, Array]:
    """Shrink the values of slices, shape (s,), towards that of all items.

    `mean`, `item_variance` and `total` are of all items: the value, its variance times the number
    of items, and this number. Returns the shrunken values; and what orders the slices as they do,
    also where all of them are equal because they differ no more than by chance. NaN where unknown.

    Notes
    -----
    The posterior mean of the normal model y_s ~ N(theta_s, v / n_s), theta_s ~ N(mean, tau^2)
    (Efron, Morris 1975), with tau^2 by moments (DerSimonian, Laird 1986) about the known mean:
    max(0, (sum w_s (y_s - mean)^2 - m) / sum w_s), w_s = 1 / (v / n_s - v / n), since a slice is a
    part of all items. The variance v of an item is that of all items, so that a small slice without
    errors, or with nothing but errors, is not taken to be certain.
    """
    with np.errstate(all="ignore"):
        variance = item_variance / items
        weights = 1 / (variance - item_variance / total)
        used = np.isfinite(values) & np.isfinite(weights)
        excess = np.where(used, weights * (values - mean) ** 2 - 1, 0.0).sum()
        between = max(0.0, float(excess / np.where(used, weights, 0.0).sum())) if used.any() else 0
        order = (values - mean) / (between + variance)
    order = np.where(np.isfinite(values) & np.isfinite(variance), order, np.nan)
    return mean + between * order, order
