"""The items ranked by the scores of a class, and the indices of that ranking."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from rprime.core.arrays import Array


@dataclass(frozen=True, eq=False)
class ClassRanking:
    """The n items in ascending order of the score of one class.

    Parameters
    ----------
    own
        The class; its items are positive, all others negative.
    true
        Shape (n,): the true classes in this order.
    starts
        Where groups of equal scores start; None if all scores differ.
    order
        Shape (n,): the items in this order; None if only their classes were sorted.
    """

    own: int
    true: Array
    starts: Array | None
    order: Array | None = None

    @classmethod
    def of(cls, column: Array, true: Array, own: int) -> Self:
        """Sort the items by the scores (n,) of a class."""
        column = np.ascontiguousarray(column)
        order = np.argsort(column)
        ranked = column.take(order)
        return cls(own, true.take(order), _starts(ranked[1:] != ranked[:-1]), order)

    @classmethod
    def without_order(cls, column: Array, true: Array, own: int, classes: int) -> Self:
        """Sort scores and classes together, several times faster than their positions.

        The bits of scores, read as integers, sort like the scores. The class replaces the last
        bits, so the sorted numbers hold both. If this makes different scores equal, the
        positions are sorted instead.
        """
        mask = (1 << (classes - 1).bit_length()) - 1
        column = column + np.float64(0)  # -0 is 0
        keys = column.view(np.int64)
        packed = keys ^ ((keys >> 63) & np.iinfo(np.int64).max)  # so negative scores ascend
        packed &= ~mask
        packed |= true
        packed.sort()
        new = ((packed[1:] ^ packed[:-1]) & ~mask) != 0
        if not new.all():
            ranked = np.sort(column)
            if np.count_nonzero(new) < np.count_nonzero(ranked[1:] != ranked[:-1]):
                return cls.of(column, true, own)
        packed &= mask
        return cls(own, packed.astype(true.dtype), _starts(new))

    @cached_property
    def positive(self) -> Array:
        """Whether the items are of the class, shape (n,)."""
        return np.asarray(self.true == self.own)

    @cached_property
    def positives(self) -> int:
        """Number of items of the class."""
        return int(np.count_nonzero(self.positive))

    @property
    def negatives(self) -> int:
        """Number of items of other classes."""
        return len(self.true) - self.positives

    @cached_property
    def groups(self) -> tuple[Array, Array, Array]:
        """Start, items and positives of the groups of equal scores."""
        n = len(self.true)
        if self.starts is None:
            return np.arange(n), np.ones(n, dtype=np.intp), self.positive.astype(np.intp)
        sizes = np.diff(self.starts, append=n)
        return self.starts, sizes, np.add.reduceat(self.positive, self.starts, dtype=np.intp)

    @cached_property
    def beaten(self) -> Array:
        """Number of positives below each negative item, equal ones counting half, shape (n,)."""
        if self.starts is None:
            return np.cumsum(self.positive, dtype=np.float64)
        _, sizes, found = self.groups
        return np.repeat(np.cumsum(found) - found / 2, sizes)

    def wins(self, support: Array) -> Array:
        """Count, for every class, the pairs in which the positive item has the higher score.

        Parameters
        ----------
        support
            m_j, shape (k,).

        Returns
        -------
        Shape (k,), of m m_j pairs each; equal scores count half. Exact up to 2^53 pairs.
        """
        lost = np.bincount(self.true, weights=self.beaten, minlength=len(support))
        wins = self.positives * support - lost
        wins[self.own] = 0.0
        return wins

    @property
    def average_precision(self) -> float:
        """Average the precision at the scores of the positives as thresholds; NaN without any."""
        n, m = len(self.true), self.positives
        if m == 0:
            return float("nan")
        if self.starts is None:
            precision = np.arange(m, 0.0, -1) / (n - np.flatnonzero(self.positive))
            return float(np.add.reduce(precision) / m)
        starts, _, found = self.groups
        above = m - (np.cumsum(found) - found)
        return float(np.add.reduce(found * (above / (n - starts))) / m)

    def influence(self, auc: float) -> Array:
        """Compute each item's influence on the area under the ROC curve, in test set order.

        Returns
        -------
        Shape (n,). The sum of squares is the variance of DeLong, the sum of products with the
        influences of other scores for the same items the covariance. NaN for fewer than two
        positives or negatives.

        Notes
        -----
        Source: DeLong, DeLong, Clarke-Pearson 1988; computed by ranks as Sun, Xu 2014.
        """
        n, m, rest = len(self.true), self.positives, self.negatives
        if min(m, rest) < 2:
            return np.full(n, np.nan)
        share = self.beaten / -m
        share += 1 - auc
        share *= 1 / np.sqrt(rest * (rest - 1.0))
        places = np.flatnonzero(self.positive)
        share[places] = (self._passed(places) / rest - auc) / np.sqrt(m * (m - 1.0))
        assert self.order is not None  # noqa: S101 (see `of`)
        result = np.empty(n)
        result[self.order] = share
        return result

    def _passed(self, places: Array) -> Array:
        """Count the negatives below the positives at these places, equal ones counting half."""
        if self.starts is None:
            return places - np.arange(len(places))
        starts, sizes, found = self.groups
        middle = starts + sizes / 2 - (np.cumsum(found) - found / 2)
        return np.repeat(middle, found)


def _starts(new: Array) -> Array | None:
    """Find where groups of equal scores start: where a score differs from the one before."""
    return None if new.all() else np.append(0, np.flatnonzero(new) + 1)


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
        Variances of the areas, shape (k,); None unless requested.
    mean, weighted
        Influence of every item on the sum of the areas and on the sum weighted by m_i / w, the
        weights held fixed, over the classes that have an area, shape (n,).
    """

    auc: Array
    average_precision: Array
    separation: Array
    variances: Array | None = None
    mean: Array | None = None
    weighted: Array | None = None


def rank(values: Array, true: Array, groups: Array | None, *, influences: bool) -> ScoreRankings:
    """Rank the items by the scores of each class in turn.

    Parameters
    ----------
    values
        Scores, shape (n, k).
    true
        True classes, shape (n,).
    groups
        Group of every item, shape (n,); None if the items are independent.
    influences
        Whether to compute variances and influences.
    """
    n, k = values.shape
    precision, variances = np.full(k, np.nan), np.full(k, np.nan)
    wins, total = np.zeros((k, k)), np.zeros((2, n if influences else 0))
    support = np.bincount(true, minlength=k).astype(np.float64)
    auc = np.full(k, np.nan)
    for own in np.flatnonzero(support):
        column = values[:, own]
        ranking = (
            ClassRanking.of(column, true, int(own))
            if influences
            else ClassRanking.without_order(column, true, int(own), k)
        )
        wins[own] = ranking.wins(support)
        precision[own] = ranking.average_precision
        if ranking.negatives:
            auc[own] = np.add.reduce(wins[own]) / (ranking.positives * ranking.negatives)
        if influences and ranking.negatives:
            influence = ranking.influence(float(auc[own]))
            variances[own] = squares(influence, groups)
            total[0] += influence
            influence *= support[own] / n
            total[1] += influence
    pairs = support[:, None] * support
    np.fill_diagonal(pairs, 0.0)
    separation = np.divide(wins, pairs, out=np.full((k, k), np.nan), where=pairs > 0)
    if not influences:
        return ScoreRankings(auc, precision, separation)
    return ScoreRankings(auc, precision, separation, variances, total[0], total[1])


def squares(influence: Array, groups: Array | None) -> float:
    """Compute a variance from the influences (n,) of the items, summed within groups first."""
    if groups is not None:
        influence = np.bincount(groups, weights=influence)
    return float(influence @ influence)
