"""The interval methods of the indices of tables."""

from rprime.core.intervals.declaration import IntervalMethod

METHODS = (
    IntervalMethod(
        "proportion",
        ("wilson", "clopper_pearson"),
        "Wilson, or Clopper-Pearson where `exact` is asked for",
    ),
    IntervalMethod(
        "mapped", ("wilson_mapped",), "Wilson for a / (a + FP + FN), mapped to the index"
    ),
    IntervalMethod("score", ("wilson_effective",), "Wilson on the effective number of items"),
    IntervalMethod(
        "parts",
        ("wilson_mover",),
        "on each side the wider of Wilson on the effective number of items and of MOVER on the "
        "Wilson intervals of its parts",
    ),
    IntervalMethod(
        "average",
        ("wilson_stratified",),
        "on each side the wider of Wilson on the effective number of items and of the average "
        "of the intervals of the classes, or of strata, at a reduced quantile",
    ),
    IntervalMethod(
        "likelihood_ratio", ("mover_r",), "MOVER-R on the Wilson intervals of its two proportions"
    ),
    IntervalMethod(
        "odds_ratio",
        ("delta_log",),
        "delta method on the logarithm, with half an item more in the cells",
    ),
    IntervalMethod("log_ratio", ("delta_log",), "delta method on the logarithm"),
    IntervalMethod("bootstrap", ("bootstrap",), 'bootstrap, if `intervals` is "all"'),
)
