"""Options of an evaluation, already validated and in numbers."""

from dataclasses import dataclass
from typing import Literal

from rprime.core.arrays import Array
from rprime.core.page import Paging


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options of an evaluation, with the defaults of the HTTP contract.

    Parameters
    ----------
    indices
        Keys to compute and report; None for the whole catalog. A key that exists in both
        scopes selects both.
    beta
        Weight of recall against precision in `f_beta`, > 0.
    undefined
        What replaces undefined per-class values before averaging.
    cost
        Shape (k, k) or (k, k + 1), the last column pricing an unclassified item.
    cell_weights
        Shape (k, k), non-negative; multiplies the table before anything is computed.
    kappa_weights
        "linear", "quadratic", or disagreement weights of shape (k, k) with a zero diagonal.
    intervals
        Whether to compute them; None: for k <= 300.
    confidence
        Two-sided confidence level, in (0, 1).
    exact
        Clopper-Pearson instead of Wilson for plain proportions.
    sampling
        "random": items drawn at random; "fixed_rows": class sizes fixed by design.
    top_confusions
        How many of the largest off-diagonal cells are reported.
    top_k
        How many of the highest scores `top_k_accuracy` looks at; None: 5, at most all but one
        of the classes.
    curves
        Whether the curves that scores draw are reported.
    reject
        "sweep": what leaving items with a low top score unclassified would do, at all thresholds.
    classes
        Which classes are reported; None: all, as far as a report can hold them.
    thresholds
        Classes and the score from which an item is taken for one of them.
    """

    indices: tuple[str, ...] | None = None
    beta: float = 1.0
    undefined: Literal["null", "zero", "one"] = "null"
    cost: Array | None = None
    cell_weights: Array | None = None
    kappa_weights: Literal["linear", "quadratic"] | Array | None = None
    intervals: bool | None = None
    confidence: float = 0.95
    exact: bool = False
    sampling: Literal["random", "fixed_rows"] = "random"
    top_confusions: int = 10
    top_k: int | None = None
    curves: bool = False
    reject: Literal["sweep"] | None = None
    thresholds: tuple[tuple[str, float], ...] = ()
    classes: Paging | None = None

    def wants_intervals(self, k: int) -> bool:
        """Whether intervals are computed for k classes."""
        return k <= MOST_CLASSES_WITH_INTERVALS if self.intervals is None else self.intervals


SCORE_OPTIONS = ("top_k", "curves", "reject", "thresholds")
"""Options without an effect on requests without scores."""

MOST_CLASSES_WITH_INTERVALS = 300
"""Up to here intervals cost a few milliseconds, so they come default_paging."""
