"""The interval methods that an index can declare."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.declaration import IntervalInputs, IntervalMethod, interval
from rprime.core.intervals.delong import effective_items, score_variance
from rprime.core.intervals.proportions import clopper_pearson, confidence_of, wilson
from rprime.core.intervals.scales import (
    DELTA_SCALES,
    DeltaScales,
    delta_limits,
    delta_method,
    logit,
)
from rprime.core.intervals.scales import (
    score as score_scale,
)

PROPORTION_SCALES = {"wilson": score_scale, "clopper_pearson": None}


def _proportion_method(_: Index, exact: bool) -> str:  # noqa: FBT001 (a flag of every method)
    return "clopper_pearson" if exact else "wilson"


def _delta_method(entry: Index, _: bool) -> str:  # noqa: FBT001 (a flag of every method)
    return delta_method(entry)


proportion = IntervalMethod(
    name="proportion",
    words="Wilson, or Clopper-Pearson where `exact` is asked for",
    scales=PROPORTION_SCALES,
    choose=_proportion_method,
)
mapped = IntervalMethod(
    name="mapped",
    words="Wilson for a / (a + FP + FN), mapped to the index",
    scales={"wilson_mapped": None},
)
score = IntervalMethod(
    name="score",
    words="Wilson on the effective number of items",
    scales={"wilson_effective": None},
)
parts = IntervalMethod(
    name="parts",
    words="on each side the wider of Wilson on the effective number of items and of MOVER on the "
    "Wilson intervals of its parts",
    scales={"wilson_mover": None},
)
average = IntervalMethod(
    name="average",
    words="on each side the wider of Wilson on the effective number of items and of the average "
    "of the class intervals at a reduced quantile",
    scales={"wilson_stratified": None},
)
likelihood_ratio = IntervalMethod(
    name="likelihood_ratio",
    words="MOVER-R on the Wilson intervals of its two proportions",
    scales={"mover_r": None},
)
odds_ratio = IntervalMethod(
    name="odds_ratio",
    words="delta method on the logarithm, with half an item more in the cells",
    scales={"delta_log": None},
)
log_ratio = IntervalMethod(
    name="log_ratio",
    words="delta method on the logarithm",
    scales={"delta_log": None},
)


def _score_limits(inputs: IntervalInputs, entry: Index, values: Array) -> Array:
    """Limits of an index of scores by the variance of the influences of its items."""
    half = np.sqrt(score_variance(inputs.values, entry)) * inputs.quantile
    return delta_limits(DeltaScales.of([entry]), values[None], half[None])[:, 0]


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
    trials = effective_items(inputs.values, entry, values)
    if inputs.values.options.exact:
        return np.array(clopper_pearson(values * trials, trials, confidence_of(inputs.quantile)))
    return np.array(wilson(values * trials, trials, inputs.quantile))
