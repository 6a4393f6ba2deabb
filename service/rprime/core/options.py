"""The validated options of an evaluation."""

from dataclasses import dataclass
from typing import Literal

from rprime.core.arrays import Array
from rprime.core.index import Families
from rprime.core.page import Paging
from rprime.core.populations.population import Population

SliceAdjust = Literal["holm", "benjamini_hochberg"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options of an evaluation, with the defaults of the HTTP contract.

    Parameters
    ----------
    indices
        Keys to report. A key in both scopes selects both.
    families
        Families to report; with neither of the two, the family `summary`.
    beta
        Weight of recall relative to precision in `f_beta`, >= 0.
    undefined
        The replacement of undefined per-class values before averaging.
    cost
        Shape (k, k) or (k, k + 1); the last column is the cost of an unclassified item.
    cell_weights
        Shape (k, k), non-negative factors of the counts.
    kappa_weights
        "linear", "quadratic", or disagreement weights of shape (k, k) with a zero diagonal.
    intervals
        Whether to compute intervals; None: if k <= 300; "all": with bootstrap ones.
    confidence
        Two-sided, in (0, 1).
    exact
        Clopper-Pearson instead of Wilson for plain proportions.
    sampling
        "random": items drawn at random; "fixed_rows": class sizes fixed by design.
    top_k
        Number of highest scores that `top_k_accuracy` uses; None: 5, at most k - 1.
    reject
        "sweep": report the effect of leaving items with a low top score unclassified.
    classes
        The page of classes to report; None: as many as fit into a report.
    thresholds
        Classes, each with the smallest score at which it is predicted.
    left_out
        Positions of classes that take no part in averages.
    population
        The population that the indices are about; None: the items themselves.
    slice_adjust
        How p-values are adjusted over all slices and indices.
    """

    indices: tuple[str, ...] | None = None
    families: tuple[Families, ...] = ()
    beta: float = 1.0
    undefined: Literal["null", "zero", "one"] = "null"
    cost: Array | None = None
    cell_weights: Array | None = None
    kappa_weights: Literal["linear", "quadratic"] | Array | None = None
    intervals: Literal["all"] | bool | None = None
    confidence: float = 0.95
    exact: bool = False
    sampling: Literal["random", "fixed_rows"] = "random"
    top_confusions: int = 10
    top_k: int | None = None
    curves: bool = False
    reject: Literal["sweep"] | None = None
    thresholds: tuple[tuple[str, float], ...] = ()
    classes: Paging | None = None
    left_out: tuple[int, ...] = ()
    population: Population | None = None
    slice_adjust: SliceAdjust = "holm"

    def wants_intervals(self, k: int) -> bool:
        """Whether intervals are computed for k classes."""
        return k <= MOST_CLASSES_WITH_INTERVALS if self.intervals is None else bool(self.intervals)


SCORE_OPTIONS = ("top_k", "curves", "reject", "thresholds")
"""Options that have no effect without scores."""

MOST_CLASSES_WITH_INTERVALS = 300
"""Up to this k, intervals take a few milliseconds, so they are computed by default."""
