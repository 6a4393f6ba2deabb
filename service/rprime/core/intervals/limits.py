"""The declaration of interval methods, and those of the indices of tables."""

from collections.abc import Callable
from dataclasses import dataclass

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class IntervalMethod:
    """A kind of interval, which an index declares by its name.

    Parameters
    ----------
    reported
        The name in a report; a second one where `exact` limits are asked for, if they differ.
    words
        Description for people.
    limits
        For indices of scores: returns the limits (2, ...) of an entry from all values, the entry,
        its values and the normal quantile.
    """

    name: str
    reported: tuple[str, ...]
    words: str
    limits: Callable[[Values, Index, Array, float | Array], Array] | None = None


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
    IntervalMethod(
        "top_k",
        ("wilson", "clopper_pearson"),
        "that of recall, precision or accuracy if items whose true class is among their k highest "
        "scores are predicted as it",
    ),
    IntervalMethod("bootstrap", ("bootstrap",), 'bootstrap, if `intervals` is "all"'),
)
