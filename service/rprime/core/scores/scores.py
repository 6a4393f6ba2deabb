"""The scores of a classifier for every item and class, and their indices."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import Array
from rprime.core.index import CODE, NON_NEGATIVE, Index, from_scores, mean_of_items
from rprime.core.scores.calibration import (
    LEAST,
    Binning,
    Reliability,
    are_probabilities,
    blocks,
    brier_scores,
    places_of_truth,
    ranked,
    ranked_scores,
    where_dropping,
)
from rprime.core.scores.ranking import ClassRanking, RankedItems, ScoreRankings, rank

T = TypeVar("T")
DEFAULT_TOP = 5
"""Number of highest scores that `top_k_accuracy` uses; at most all but one class."""


@dataclass(frozen=True, eq=False)
class Scores(RankedItems):
    """The scores of n items for k classes, with the results that indices share."""

    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def item_weights(self) -> Array:
        """The weights of the items, 1 if each counts once, shape (n,)."""
        return np.ones(len(self.true)) if self.weights is None else self.weights

    def once(self, key: Any, compute: Callable[[], T]) -> T:  # noqa: ANN401 (any hashable)
        """Compute a result of these scores once."""
        if key not in self._known:
            self._known[key] = compute()
        result: T = self._known[key]
        return result

    def sum(self, of_items: Array) -> float:
        """Sum a number of every item (n,), weighted if the items are."""
        return float(np.add.reduce(of_items) if self.weights is None else of_items @ self.weights)

    def mean(self, of_items: Array) -> float:
        """Average a number of every item (n,), weighted if the items are."""
        return float(np.average(of_items, weights=self.weights))

    @cached_property
    def are_probabilities(self) -> bool:
        """Whether every row is non-negative and sums to 1."""
        return are_probabilities(self.values)

    @cached_property
    def top(self) -> Array:
        """Class of the highest score, the first one of equal ones, shape (n,)."""
        return self.values.argmax(-1).astype(self.true.dtype)

    @cached_property
    def confidence(self) -> Array:
        """The highest score of every item, shape (n,)."""
        return np.take_along_axis(self.values, self.top[:, None].astype(np.intp), -1)[:, 0]

    @cached_property
    def correct(self) -> Array:
        """Whether the true class has the highest score, shape (n,)."""
        return np.asarray(self.top == self.true)

    @property
    def own(self) -> Array:
        """Score of the true class of every item, shape (n,)."""
        places = self.true[:, None].astype(np.intp)
        return np.take_along_axis(self.values, places, -1)[:, 0].astype(np.float64)

    @cached_property
    def log_likelihoods(self) -> Array:
        """Natural logarithm of the clipped probability of the true class, shape (n,)."""
        return np.log(np.clip(self.own, LEAST, 1.0))

    @cached_property
    def clipped(self) -> int:
        """Number of probabilities of the true class below 1e-15."""
        return int(np.count_nonzero(self.own < LEAST))

    @cached_property
    def brier_scores(self) -> Array:
        """Squared distance to the one-hot truth, shape (n,)."""
        return brier_scores(self.values, self.true)

    @cached_property
    def ranked_probability_scores(self) -> Array:
        """Mean squared distance of the cumulated scores to the truth, shape (n,)."""
        scores = [ranked_scores(*block) for block in blocks(self.values, self.true)]
        return np.concatenate(scores)

    def reliability(self, binning: Binning | None = None) -> Reliability:
        """Return the items in bins of their top score."""
        parts = (self.confidence, self.correct, self.weights, binning)
        return self.once(("reliability", binning), lambda: Reliability.of(*parts))

    def class_reliability(self, binning: Binning | None = None) -> tuple[Reliability, ...]:
        """Return the items in bins of their score of each class; right are those of the class."""
        columns = self.values.T
        return self.once(
            ("class_reliability", binning),
            lambda: tuple(
                Reliability.of(np.ascontiguousarray(p), self.true == i, self.weights, binning)
                for i, p in enumerate(columns)
            ),
        )

    @cached_property
    def places(self) -> Array:
        """Position of the true class among the item's scores, from 0, shape (n,)."""
        places = [places_of_truth(*block) for block in blocks(self.values, self.true)]
        return np.concatenate(places)

    def within_top(self, most: int | None) -> Array:
        """Whether the true class is among the highest scores, shape (n,).

        If not told how many, these are `DEFAULT_TOP`, at most all but one class.
        """
        return np.asarray(self.places < (most or max(1, min(DEFAULT_TOP, self.k - 1))))

    def ranking(
        self,
        *,
        influences: bool = False,
        fixed_rows: bool = False,
        over: tuple[int, ...] | None = None,
    ) -> ScoreRankings:
        """Return the rankings by the scores of the classes, as `rank` does, each once."""
        key = (influences, fixed_rows, over)
        if not influences:  # the values are those of a ranking with influences
            key = next(
                (k for k in ((True, f, None) for f in (False, True)) if k in self._known), key
            )
        return self.once(
            key, lambda: rank(self, influences=influences, fixed_rows=fixed_rows, over=over)
        )

    @cached_property
    def pooled(self) -> ClassRanking:
        """The scores of all items for all classes, those of the true classes positive."""
        true = (self.true[:, None] == np.arange(self.k)).ravel().astype(np.uint8)
        weights = None if self.weights is None else np.repeat(self.weights, self.k)
        return ClassRanking.of(self.values.ravel(), true, 1, weights)

    def over(self, places: Array, k: int) -> Self:
        """Renumber the classes: class i becomes places[i] of k; others have the lowest score."""
        lowest = min(0.0, float(self.values.min()))
        values = np.full((len(self.values), k), lowest, dtype=self.values.dtype)
        values[:, places] = self.values
        true = places.astype(np.min_scalar_type(k))[self.true]
        return type(self)(true, values, self.groups, self.weights)


PROBABILITIES = ("no_scores", "not_probabilities")


@from_scores(
    "class",
    symbol="AUC",
    name="Area under the ROC curve",
    tex=r"P(p_i(x) > p_i(y)) + \tfrac{1}{2} P(p_i(x) = p_i(y)), x \in i, y \notin i",
    source="Hanley, McNeil 1982",
    undefined=("no_scores", "no_true_samples", "single_class"),
    interval="area",
)
def roc_auc(s: Scores) -> Array:
    """Probability that an item of the class has a higher score for it than another item; equal
    scores count half.
    """
    return s.ranking().auc


@from_scores(
    "class",
    symbol="AP",
    tex=r"\sum_t (TPR_t - TPR_{t-1}) PPV_t",
    source="Buckley, Voorhees 2000",
    undefined=("no_scores", "no_true_samples"),
    interval="mean_precision",
)
def average_precision(s: Scores) -> Array:
    """Mean precision over the thresholds at which items of the class are found, without
    interpolation.
    """
    return s.ranking().average_precision


@mean_of_items(
    symbol="CLL",
    tex=r"\sum_x \ln p_{t(x)}(x)",
    source="Zhang, Su, Dou 2021, eq. 8",
    range=(-np.inf, 0.0),
    best=0.0,
    scale_invariant=False,
    undefined=PROBABILITIES,
)
def conditional_log_likelihood(s: Scores) -> Array:
    """Sum of the natural logarithms of the probability of the true class, clipped at 1e-15."""
    return s.log_likelihoods


@mean_of_items(
    symbol="LL",
    tex=r"-\frac{1}{w} \sum_x \ln p_{t(x)}(x)",
    source="Good 1952",
    range=NON_NEGATIVE,
    best=0.0,
    undefined=PROBABILITIES,
)
def log_loss(s: Scores) -> Array:
    """Mean negative logarithm of the probability of the true class, clipped at 1e-15."""
    return -s.log_likelihoods


@mean_of_items(
    symbol="BS",
    tex=r"\frac{1}{w} \sum_x \sum_j (p_j(x) - [j = t(x)])^2",
    source="Brier 1950",
    range=(0.0, 2.0),
    best=0.0,
    undefined=PROBABILITIES,
)
def brier_score(s: Scores) -> Array:
    """Mean squared distance of the probabilities to the truth, over all classes: from 0 to 2."""
    return s.brier_scores


@from_scores(
    "overall",
    symbol="M",
    name="Hand and Till's AUC",
    tex=r"\frac{2}{k (k - 1)} \sum_{i < j} \frac{A(i|j) + A(j|i)}{2}",
    source="Hand, Till 2001",
    undefined=("no_scores", "single_class"),
    interval="area",
)
def hand_till_auc(s: Scores) -> Any:  # noqa: ANN401 (a numpy scalar)
    """Mean AUC over all pairs of classes, leaving out pairs with a class without items."""
    separation = s.ranking().separation
    defined = ~np.isnan(separation)
    return np.add.reduce(separation[defined]) / np.float64(np.count_nonzero(defined))


@mean_of_items(
    symbol="TKA",
    name="Top-k accuracy",
    tex=r"\frac{1}{w} \sum_x [t(x) \in \mathrm{top}_k(x)]",
    source="Russakovsky et al. 2015",
    range=(0.0, 1.0),
    undefined=("no_scores",),
    takes="top_k",
    interval="top_k",
)
def top_k_accuracy(s: Scores, most: int | None) -> Array:
    """Share of the items whose true class is among the k highest scores; of equal scores, the
    class with the lowest index comes first, as in the prediction.
    """
    return s.within_top(most)


@from_scores(
    "overall",
    symbol="ECE",
    tex=r"\sum_b \frac{w_b}{w} |acc_b - conf_b|",
    source="Naeini, Cooper, Hauskrecht 2015",
    best=0.0,
    resampled=True,
    undefined=PROBABILITIES,
    takes="calibration",
)
def expected_calibration_error(s: Scores, binning: Binning | None) -> float:
    """Mean distance between the top score and the accuracy, in 15 bins of equal width unless
    `calibration` says otherwise. It is too large on average, the more so the fewer the items.
    """
    return s.reliability(binning).error


@from_scores(
    "overall",
    symbol="AURC",
    name="Area under the risk-coverage curve",
    tex=r"\frac{1}{w} \sum_{j=1}^{w} \frac{\mathrm{errors}_j}{j}",
    source="Geifman, El-Yaniv 2017",
    best=0.0,
    resampled=True,
    undefined=("no_scores",),
)
def area_under_risk_coverage(s: Scores) -> float:
    """Mean error rate among the items with the highest top scores, over all coverages."""
    answered, wrong, drops, weights = ranked(s.confidence, s.correct, s.weights)
    if not drops.all():  # errors of equal confidence are spread evenly, as in a random order
        wrong = np.interp(answered, *where_dropping(answered, wrong, drops))
    rates = np.divide(wrong, answered, out=np.zeros(len(wrong)), where=answered > 0)
    return float(np.average(rates, weights=weights))


CONDITIONS: dict[str, Callable[[Scores], Any]] = {
    "not_probabilities": lambda s: not s.are_probabilities,
    "no_true_samples": lambda s: s.support == 0,
}


def score_values(entry: Index, scores: Scores | None, *options: Any) -> Any:  # noqa: ANN401 (by scope)
    """Compute an index of scores; NaN without the scores or probabilities that it needs."""
    if scores is None or ("not_probabilities" in entry.undefined and not scores.are_probabilities):
        return np.nan
    with np.errstate(all="ignore"):
        return entry.formula(scores, *options)


def score_reasons(entry: Index, values: Array, scores: Scores | None) -> NDArray[np.uint8]:
    """Return the reason codes of an index of scores, as `reason_codes` does for others."""
    codes = np.zeros(np.shape(values), dtype=np.uint8)
    missing = ~np.isfinite(values)
    if scores is None:
        codes[missing] = CODE["no_scores"]
        return codes
    for reason in reversed(entry.undefined[1:]):
        holds = CONDITIONS[reason](scores) if reason in CONDITIONS else True
        codes[missing & holds] = CODE[reason]
    return codes
