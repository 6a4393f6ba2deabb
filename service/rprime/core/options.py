"""The validated options of an evaluation, and the page of classes that its report shows."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES
from rprime.core.custom import CustomIndex
from rprime.core.index import Families
from rprime.core.population import Population
from rprime.core.published import PUBLISHED
from rprime.core.scores.calibration import Binning

DEFAULT_PAGE_VALUES = 100_000
"""Most per-class values of a report without a requested page: a few megabytes."""
LARGEST_PAGE_VALUES = 1_000_000
"""Most per-class values of a requested page."""


@dataclass(frozen=True, kw_only=True)
class Paging:
    """A requested page of classes.

    They are ordered by "labels"; "support" or "predicted", largest first; or the key of a
    per-class index, worst first, or largest first if no value is best.
    """

    limit: int = 100
    offset: int = 0
    order_by: str = "support"


@dataclass(frozen=True, eq=False)
class ClassPage:
    """The classes that a report shows: their positions among all, by a requested page or not."""

    paging: Paging
    total: int
    positions: Array

    @property
    def left_out(self) -> int:
        """Number of classes that are not shown."""
        return self.total - self.positions.size

    @cached_property
    def shown(self) -> frozenset[int]:
        """Numbers of the shown classes."""
        return frozenset(self.positions.tolist())


def ordered(values: Array, order_by: str) -> Array:
    """Sort the classes by values (k,), return their numbers; those without a value come last."""
    index = CLASS_INDICES.get(order_by)
    ascending = index is not None and index.higher_is_better is True
    keys = np.where(np.isfinite(values), values if ascending else -values, np.inf)
    return np.argsort(keys, kind="stable")


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
    average_over
        Positions of the classes that averages are over; None: all.
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
    calibration
        The bins of calibration errors; None: the default ones.
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
    custom
        Indices of one's own, bound to the classes of the table.
    """

    indices: tuple[str, ...] | None = None
    families: tuple[Families, ...] = ()
    beta: float = 1.0
    undefined: Literal["null", "zero", "one"] = "null"
    average_over: tuple[int, ...] | None = None
    cost: Array | None = None
    cell_weights: Array | None = None
    kappa_weights: Literal["linear", "quadratic"] | Array | None = None
    intervals: Literal["all"] | bool | None = None
    confidence: float = 0.95
    exact: bool = False
    sampling: Literal["random", "fixed_rows"] = "random"
    top_confusions: int = 10
    top_k: int | None = None
    calibration: Binning | None = None
    curves: bool = False
    reject: Literal["sweep"] | None = None
    thresholds: tuple[tuple[str, float], ...] = ()
    classes: Paging | None = None
    left_out: tuple[int, ...] = ()
    population: Population | None = None
    slice_adjust: SliceAdjust = "holm"
    custom: tuple[CustomIndex, ...] = ()

    @property
    def expressions(self) -> dict[str, str]:
        """The expressions of indices of one's own, by their names."""
        return {index.name: index.expression for index in self.custom}

    @property
    def has_cost(self) -> bool:
        """Whether costs were given."""
        return self.cost is not None

    @property
    def has_cell_weights(self) -> bool:
        """Whether factors of the counts were given."""
        return self.cell_weights is not None

    @property
    def kappa_weighting(self) -> Literal["linear", "quadratic", "matrix"] | None:
        """The kind of weights of `weighted_kappa`."""
        return self.kappa_weights if isinstance(self.kappa_weights, str | None) else "matrix"

    def wants_intervals(self, k: int) -> bool:
        """Whether intervals are computed for k classes."""
        return k <= MOST_CLASSES_WITH_INTERVALS if self.intervals is None else bool(self.intervals)


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionsUsed:
    """The options of the evaluation; for matrices, whether they were given."""

    __pydantic_config__: ClassVar = PUBLISHED

    beta: float
    """Weight of recall against precision in `f_beta`, at least 0."""
    undefined: Literal["null", "zero", "one"]
    """What stands for undefined per-class values in averages."""
    has_cost: bool
    """Whether `cost` was sent."""
    has_cell_weights: bool
    """Whether `cell_weights` were sent."""
    kappa_weighting: Literal["linear", "quadratic", "matrix"] | None
    """The weights of `weighted_kappa`; null if there were none."""
    intervals: Literal["all"] | bool
    """Whether there are intervals; `all`: bootstrap intervals, too."""
    confidence: float
    """Two-sided confidence level of the intervals, as 0.95."""
    exact: bool
    """Whether Clopper-Pearson replaced Wilson."""
    sampling: Literal["random", "fixed_rows"]
    """`fixed_rows`: the number of items of each class was fixed by design."""
    average_over: tuple[str, ...] | None = None
    """The classes that averages are over, if these were chosen."""
    top_k: int | None = None
    """The k of `top_k_accuracy`, if scores and this option were sent."""
    custom: dict[str, str] | None = None
    """The expressions of indices of one's own, by their names, if there are any."""
    calibration: Binning | None = None
    """The bins of calibration errors, if scores and this option were sent."""


SHAPING = (
    *("average_over", "beta", "calibration", "cell_weights", "custom", "exact", "sampling"),
    "undefined",
)
"""Options that change values or intervals of a table, whatever indices are asked for."""
SCORE_OPTIONS = ("top_k", "calibration", "curves", "reject", "thresholds")
"""Options that have no effect without scores."""

MOST_CLASSES_WITH_INTERVALS = 300
"""Up to this k, intervals take a few milliseconds, so they are computed by default."""
