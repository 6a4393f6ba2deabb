"""The interval methods that an index can declare."""

from rprime.core.index import Index
from rprime.core.intervals.declaration import IntervalMethod
from rprime.core.intervals.scales import score as score_scale

PROPORTION_SCALES = {"wilson": score_scale, "clopper_pearson": None}


def _proportion_method(_: Index, exact: bool) -> str:  # noqa: FBT001 (a flag of every method)
    return "clopper_pearson" if exact else "wilson"


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
