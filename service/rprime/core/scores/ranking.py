"""Ranking: the items in the order of a class's scores, and all that follows from that order."""

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
        The class; items that have it are positive, the others negative.
    true
        Shape (n,): the true classes in this order.
    starts
        Where groups of equal scores start; None where no two scores are equal.
    order
        Shape (n,): the items in this order; None where they are not known apart.
    """

    own: int
    true: Array
    starts: Array | None
    order: Array | None = None

    @classmethod
    def of(cls, column: Array, true: Array, own: int) -> Self:
        """Sort the items by the scores (n,) of a class: one argsort, on which everything rests."""
        column = np.ascontiguousarray(column)
        order = np.argsort(column)
        ranked = column.take(order)
        return cls(own, true.take(order), _starts(ranked[1:] != ranked[:-1]), order)

    @classmethod
    def without_order(cls, column: Array, true: Array, own: int, classes: int) -> Self:
        """Sort scores and classes together, several times faster than their positions.

        The bits of a score, as an integer, are in its order. Where its last bits are replaced by
        the class, the sorted numbers hold all that is wanted. Should that make scores equal that
        are not, the positions are sorted after all.
        """
        mask = (1 << (classes - 1).bit_length()) - 1
        column = column + np.float64(0)  # -0 is 0
        keys = column.view(np.int64)
        packed = keys ^ ((keys >> 63) & np.iinfo(np.int64).max)  # negative scores also ascend
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
        """How many items are of the class."""
        return int(np.count_nonzero(self.positive))

    @property
    def negatives(self) -> int:
        """How many are not."""
        return len(self.true) - self.positives

    @cached_property
    def groups(self) -> tuple[Array, Array, Array]:
        """Of the groups of equal scores: start, items, and positives among these."""
        n = len(self.true)
        if self.starts is None:
            return np.arange(n), np.ones(n, dtype=np.intp), self.positive.astype(np.intp)
        sizes = np.diff(self.starts, append=n)
        return self.starts, sizes, np.add.reduceat(self.positive, self.starts, dtype=np.intp)

    @cached_property
    def beaten(self) -> Array:
        """Positives below every negative item, equal ones counting half, shape (n,)."""
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
        """Mean over the positives of the precision at their score as the threshold; or NaN."""
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
        """Influence of every item on the area under the ROC curve, in the order of the test set.

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
        """Negatives below the positives at these places, equal ones counting half."""
        if self.starts is None:
            return places - np.arange(len(places))
        starts, sizes, found = self.groups
        middle = starts + sizes / 2 - (np.cumsum(found) - found / 2)
        return np.repeat(middle, found)


def _starts(new: Array) -> Array | None:
    """Where groups of equal scores start, from whether each score differs from the one before."""
    return None if new.all() else np.append(0, np.flatnonzero(new) + 1)


@dataclass(frozen=True, eq=False)
class ScoreRankings:
    """What the orders of the items by the scores of each class say.

    Parameters
    ----------
    auc, average_precision
        Shape (k,); NaN where a class has no items, or (area) all of them.
    separation
        Shape (k, k): the probability that an item of class i has a higher score for i than one
        of class j; NaN where one of them has no items, and on the diagonal.
    variances
        Of the areas, shape (k,); None unless requested.
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
        Of the items, shape (n,); None where these are independent.
    influences
        Whether variances are wanted.
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
    """Variance of what items have these influences (n,) on, summed within groups first."""
    if groups is not None:
        influence = np.bincount(groups, weights=influence)
    return float(influence @ influence)
