"""The interval methods, each declared with the function of its limits."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.declaration import EntryGroup, IntervalInputs, interval
from rprime.core.intervals.delong import effective_items, score_variance
from rprime.core.intervals.proportions import clopper_pearson, wilson
from rprime.core.intervals.scales import (
    DELTA_SCALES,
    DeltaScales,
    delta_limits,
    delta_method,
    dice_score,
    logit,
    score,
)

PROPORTION_SCALES = {"wilson": score, "clopper_pearson": None}


def _proportion_method(_: Index, exact: bool) -> str:  # noqa: FBT001 (a flag of every method)
    return "clopper_pearson" if exact else "wilson"


def _delta_method(entry: Index, _: bool) -> str:  # noqa: FBT001 (a flag of every method)
    return delta_method(entry)


def plus_minus(values: Array, squares: Array) -> Array:
    """Return the values minus and plus the roots of squares of shape (2, ...)."""
    distances = np.sqrt(squares)
    np.negative(distances[0], out=distances[0])
    return np.asarray(values + distances)


@interval(
    words="Wilson, or Clopper-Pearson where `exact` is asked for",
    scales=PROPORTION_SCALES,
    choose=_proportion_method,
)
def proportion(inputs: IntervalInputs, group: EntryGroup) -> Array:
    """Limits of a plain proportion."""
    return inputs.proportion_limits[:, group.proportions, ..., :-1]


@interval(words="Wilson", scales={"jaccard_wilson": score})
def jaccard(inputs: IntervalInputs, _: EntryGroup) -> Array:
    """Limits of a / (a + FP + FN)."""
    return inputs.wilson[:, :1, ..., :-1]


@interval(words="Wilson for the Jaccard index, mapped to F1", scales={"jaccard_wilson": dice_score})
def dice(inputs: IntervalInputs, _: EntryGroup) -> Array:
    """Limits of 2 j / (1 + j), j the Jaccard index."""
    union = inputs.wilson[:, :1, ..., :-1]
    return np.asarray(2 * union / (1 + union))


@interval(
    words="MOVER: from the Wilson intervals of its parts",
    scales={"mover": None},
    mixes_spurious=True,
)
def informedness(inputs: IntervalInputs, _: EntryGroup) -> Array:
    """Limits of J = recall - FPR."""
    recall, false_positive_rate, _prevalence = inputs.rates
    return plus_minus(recall - false_positive_rate, _informedness_squares(inputs))[:, None]


# R' has an interval only without spurious items, so it is above -1.
@interval(
    words="MOVER: from the Wilson intervals of its parts",
    scales={"mover": None},
    mixes_spurious=True,
    lowest=-1.0,
)
def r_prime(inputs: IntervalInputs, _: EntryGroup) -> Array:
    """Limits of R' = mu + (1 - mu) J; with fixed rows the prevalence mu is fixed, too."""
    recall, false_positive_rate, prevalence = inputs.rates
    difference = recall - false_positive_rate
    squares = _informedness_squares(inputs) * (1 - prevalence) ** 2
    if inputs.values.options.sampling == "random":
        squares += (1 - difference) ** 2 * inputs.rate_squares[:, 2]
    return plus_minus(prevalence + (1 - prevalence) * difference, squares)[:, None]


def _informedness_squares(inputs: IntervalInputs) -> Array:
    """Squared distances of the limits of recall - FPR, shape (2, ..., k)."""
    squares = inputs.rate_squares
    return np.asarray(squares[:, 0] + squares[::-1, 1])


@interval(
    words="delta method, on a scale that keeps it in the range",
    scales=DELTA_SCALES,
    choose=_delta_method,
)
def delta(inputs: IntervalInputs, group: EntryGroup) -> Array:
    """Limits by the delta method."""
    own = group.positions
    half = inputs.deviations[own] * inputs.quantile
    return delta_limits(group.scales, inputs.values.per_class[own], half)


def _score_limits(inputs: IntervalInputs, entry: Index, values: Array) -> Array:
    """Limits of an index of scores by the variance of the influences of its items."""
    half = np.sqrt(score_variance(inputs.values, entry)) * inputs.quantile
    return delta_limits(DeltaScales.of([entry]), values[None], half[None])[:, 0]


@interval(
    words="MOVER: from the intervals of the classes and their correlations",
    scales={"mover": None},
)
def macro(averages: Array, squares: Array) -> Array:
    """Limits of macro averages from their squared widths (2, ...), which need all classes."""
    return plus_minus(averages, squares)


@interval(words="DeLong, on the logit scale", scales={"delong_logit": logit})
def delong(inputs: IntervalInputs, entry: Index, values: Array) -> Array:
    """Limits of an area under a curve."""
    return _score_limits(inputs, entry, values)


@interval(
    words="from the variance over the items, on a scale that keeps it in the range",
    scales=DELTA_SCALES,
    choose=_delta_method,
)
def items(inputs: IntervalInputs, entry: Index, values: Array) -> Array:
    """Limits of a mean over the items, or of a sum."""
    return _score_limits(inputs, entry, values)


@interval(
    words="Wilson, or Clopper-Pearson where `exact` is asked for",
    scales=PROPORTION_SCALES,
    choose=_proportion_method,
)
def share(inputs: IntervalInputs, entry: Index, values: Array) -> Array:
    """Limits of a share of the items."""
    options = inputs.values.options
    trials = effective_items(inputs.values, entry, values)
    if options.exact:
        return np.array(clopper_pearson(values * trials, trials, options.confidence))
    return np.array(wilson(values * trials, trials, inputs.quantile))
