"""The rankings by the scores of all classes, and the influences of the items on their indices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.groups import GroupSpread
from rprime.core.scores.ranking import ClassRanking, share_of

ROUNDING = 1e-12
RANKED = ("roc_auc", "average_precision", "hand_till_auc")
"""The indices of a ranking that have influences: per class, or the mean of A(i|j) over j."""


@dataclass(frozen=True, eq=False)
class RankedVariances:
    """Variances of an index of the rankings, and of its averages over the classes.

    Parameters
    ----------
    classes
        Shape (k,); NaN where a class has no value.
    bias
        Shape (k,): how much the values exceed what they estimate on average.
    degrees
        Shape (k,): degrees of freedom of the variances, infinite without weights.
    mean, weighted
        Influence of every item on the sum over the classes and on the sum weighted by m_i / w,
        the weights held fixed, shape (n,).
    """

    classes: Array
    bias: Array
    degrees: Array
    mean: Array
    weighted: Array


@dataclass(frozen=True, eq=False)
class ScoreRankings:
    """The results of ranking the items by the scores of each class.

    Parameters
    ----------
    auc, average_precision
        Shape (k,); NaN where a class has no items, or (area) all of them.
    separation
        Shape (k, k): the probability that an item of class i has a higher score for i than one
        of class j; NaN where one of them has no items, and on the diagonal.
    variances
        By the keys of `RANKED`; empty unless requested.
    """

    auc: Array
    average_precision: Array
    separation: Array
    variances: dict[str, RankedVariances]

    def of_classes(self, key: str) -> Array:
        """Return the values of an index of `RANKED` for the classes, shape (k,).

        That of `hand_till_auc` is the mean of A(i|j) over the other classes; NaN without any.
        """
        if key != "hand_till_auc":
            return self.auc if key == "roc_auc" else self.average_precision
        defined = ~np.isnan(self.separation)
        number = np.count_nonzero(defined, axis=-1)
        sums = np.add.reduce(np.where(defined, self.separation, 0.0), axis=-1)
        return np.divide(sums, number, out=np.full(len(sums), np.nan), where=number > 0)


@dataclass(frozen=True, eq=False)
class RankedItems:
    """The scores of n items for k classes, and how the items were drawn.

    Parameters
    ----------
    true
        Shape (n,): codes of the true classes.
    values
        Shape (n, k): probabilities, or any finite scores that are higher for more likely classes.
    groups
        Shape (n,): codes of the groups of the items; None if the items are independent.
    weights
        Shape (n,): sample weights; None if every item counts once.
    """

    true: Array
    values: Array
    groups: Array | None = None
    weights: Array | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.values.shape[1])

    @cached_property
    def support(self) -> Array:
        """m_i, items of each class, shape (k,)."""
        return np.bincount(self.true, self.weights, self.k).astype(np.float64)

    @cached_property
    def effective(self) -> Array:
        """Effective number of items of each class, shape (k,)."""
        if self.weights is None:
            return self.support
        squares = np.bincount(self.true, self.weights * self.weights, self.k)
        return np.divide(self.support**2, squares, out=np.zeros(self.k), where=squares > 0)

    @cached_property
    def item_shares(self) -> Array:
        """`item_share` of each class, shape (k,)."""
        pairs = zip(self.support.tolist(), self.effective.tolist(), strict=True)
        return np.array([share_of(total, number) for total, number in pairs])

    def class_ranking(self, label: int, *, ordered: bool) -> ClassRanking:
        """Rank the items by the scores of a class."""
        column = self.values[:, label]
        if ordered or self.weights is not None:
            return ClassRanking.of(column, self.true, label, self.weights)
        return ClassRanking.without_order(column, self.true, label, self.k)

    def influence(self, key: str, ranking: ClassRanking, rankings: ScoreRankings) -> Array:
        """Influence of every item on an index of `RANKED` of the ranking's class, shape (n,)."""
        label = ranking.own
        if key == "roc_auc":
            return ranking.of_area(float(rankings.auc[label]))
        if key == "average_precision":
            return ranking.of_precision(float(rankings.average_precision[label]))
        return ranking.of_separation(rankings.separation[label], self.item_shares)

    def within_classes(self, influence: Array) -> Array:
        """Centre influences (n,) in each class, for class sizes fixed by design."""
        sums = np.bincount(self.true, influence, self.k)
        centre = np.divide(sums, self.support, out=np.zeros(self.k), where=self.support > 0)
        moved = centre[self.true]
        return influence - (moved if self.weights is None else moved * self.weights)

    @cached_property
    def group_shares(self) -> Array | None:
        """The share of the items in each group, shape (groups,); None without groups."""
        if self.groups is None:
            return None
        return np.bincount(self.groups) / len(self.groups)

    def group_spread(self, influence: Array) -> GroupSpread | None:
        """Measure how groups differ in their influence (n,); None without groups."""
        if self.groups is None or self.group_shares is None:
            return None
        sums, there = np.bincount(self.groups, influence), self.group_shares > 0
        spread = GroupSpread.of_sums(sums[None, there], self.group_shares[there])
        return spread.at(0)

    def square(self, influence: Array) -> float:
        """Compute a variance from influences (n,), summed within groups first.

        NaN for a single group. That of groups, leaving out one at a time, takes the place of the
        factor n / (n - 1) of the items.
        """
        spread = self.group_spread(influence)
        if spread is None:
            return float(influence @ influence)
        n = len(influence)
        return float(spread.squares) * (n - 1) / n if spread.effective > 1 + ROUNDING else np.nan

    def degrees(self, influence: Array) -> float:
        """Compute the degrees of freedom of a variance from influences (n,).

        Infinite where independent items are equally heavy.

        Notes
        -----
        Source: Satterthwaite 1946. The squared influences are spread over (sum s)^2 / sum s^2
        items. Twice their number would be the degrees of freedom; here counts only what the
        weights add, since score intervals need none for items that count once.
        """
        spread = self.group_spread(influence)
        if spread is not None:
            return float(spread.degrees)
        if self.weights is None:
            return np.inf
        there = self.weights > 0
        squares = np.square([influence[there], influence[there] / self.weights[there]])
        totals = np.add.reduce(squares, axis=-1)
        if not totals.all():
            return np.inf
        heavy, equal = np.vecdot(squares, squares) / totals**2
        return float(2 / (heavy - equal)) if heavy > equal else np.inf


def rank(
    items: RankedItems, *, influences: bool = False, fixed_rows: bool = False
) -> ScoreRankings:
    """Rank the items by the scores of each class in turn, with variances only on request.

    These differ where the class sizes were fixed by design.
    """
    k, support = items.k, items.support
    result = ScoreRankings(np.full(k, np.nan), np.full(k, np.nan), np.full((k, k), np.nan), {})
    for key in RANKED if influences else ():
        result.variances[key] = RankedVariances(
            np.full(k, np.nan), np.zeros(k), np.full(k, np.inf), *np.zeros((2, len(items.true)))
        )
    for label in np.flatnonzero(support).tolist():
        ranking = items.class_ranking(label, ordered=influences)
        wins = ranking.wins(support)
        pairs = support[label] * support
        pairs[label] = 0.0
        np.divide(wins, pairs, out=result.separation[label], where=pairs > 0)
        result.average_precision[label] = ranking.average_precision
        if ranking.negatives:
            result.auc[label] = np.add.reduce(wins) / (ranking.positives * ranking.negatives)
        for key, variances in result.variances.items():
            if key == "average_precision":
                variances.bias[label] = ranking.precision_bias
            if ranking.negatives or key == "average_precision":
                influence = items.influence(key, ranking, result)
                if fixed_rows:
                    influence = items.within_classes(influence)
                variances.classes[label] = items.square(influence)
                variances.degrees[label] = items.degrees(influence)
                variances.mean[:] += influence
                influence *= support[label] / np.add.reduce(support)
                variances.weighted[:] += influence
    return result
