"""The items ranked by the scores of a class, and the indices of that ranking."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.groups import GroupSpread


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
    weights
        Shape (n,): the weights of the items in this order; None if every item counts once.
        Numbers of items are sums of weights.
    """

    own: int
    true: Array
    starts: Array | None
    order: Array | None = None
    weights: Array | None = None

    @classmethod
    def of(cls, column: Array, true: Array, label: int, weights: Array | None = None) -> Self:
        """Sort the items by the scores (n,) of a class."""
        column = np.ascontiguousarray(column)
        order = np.argsort(column)
        ranked = column.take(order)
        starts = _starts(ranked[1:] != ranked[:-1])
        weights = None if weights is None else weights.take(order)
        return cls(label, true.take(order), starts, order, weights)

    @classmethod
    def without_order(cls, column: Array, true: Array, label: int, classes: int) -> Self:
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
                return cls.of(column, true, label)
        packed &= mask
        return cls(label, packed.astype(true.dtype), _starts(new))

    @cached_property
    def positive(self) -> Array:
        """Whether the items are of the class, shape (n,)."""
        return np.asarray(self.true == self.own)

    @cached_property
    def positive_weights(self) -> Array:
        """Items of the class, shape (n,): 0 for the negative ones."""
        return self.positive if self.weights is None else self.positive * self.weights

    @cached_property
    def positives(self) -> float:
        """Number of items of the class."""
        if self.weights is None:
            return float(np.count_nonzero(self.positive))
        return float(np.add.reduce(self.positive_weights))

    @cached_property
    def negatives(self) -> float:
        """Number of items of other classes."""
        if self.weights is None:
            return len(self.true) - self.positives
        return float(np.add.reduce(np.where(self.positive, 0.0, self.weights)))

    @cached_property
    def groups(self) -> tuple[Array, Array, Array]:
        """Start, items and positives of the groups of equal scores."""
        n = len(self.true)
        ones = np.ones(n, dtype=np.intp) if self.weights is None else self.weights
        starts = self.starts
        if starts is None:
            return np.arange(n), ones, self.positive_weights.astype(ones.dtype)
        positives = np.add.reduceat(self.positive_weights, starts, dtype=ones.dtype)
        if self.weights is None:
            return starts, np.diff(starts, append=n), positives
        return starts, np.add.reduceat(ones, starts), positives

    def spread(self, of_groups: Array) -> Array:
        """Repeat a number of every group of equal scores for its items, shape (n,)."""
        if self.starts is None:
            return of_groups
        return np.repeat(of_groups, np.diff(self.starts, append=len(self.true)))

    @cached_property
    def beaten(self) -> Array:
        """Number of positives below each negative item, equal ones counting half, shape (n,)."""
        if self.starts is None:
            return np.cumsum(self.positive_weights, dtype=np.float64)
        positives = self.groups[2]
        return self.spread(np.cumsum(positives) - positives / 2)

    def wins(self, support: Array) -> Array:
        """Count, for every class, the pairs in which the positive item has the higher score.

        Shape (k,), of m m_j pairs each; equal scores count half. Exact up to 2^53 pairs.
        """
        each = self.beaten if self.weights is None else self.beaten * self.weights
        lost = np.bincount(self.true, weights=each, minlength=len(support))
        wins = self.positives * support - lost
        wins[self.own] = 0.0
        return wins

    @property
    def average_precision(self) -> float:
        """Average the precision at the scores of the positives as thresholds; NaN without any."""
        m = self.positives
        if m == 0:
            return float("nan")
        if self.starts is None and self.weights is None:
            precision = np.arange(m, 0.0, -1) / (len(self.true) - np.flatnonzero(self.positive))
            return float(np.add.reduce(precision) / m)
        return float(np.add.reduce(self.groups[2] * self._precision) / m)

    @property
    def precision_bias(self) -> float:
        """How much higher the average precision is because every positive item counts itself.

        An item at rank r finds its own precision at least 1 / r. Left out of its own precision
        T / N, it would find (T - 1) / (N - 1).
        """
        places = np.flatnonzero(self.positive)
        missed = 1 - self.spread(self._precision)[places]
        reached = self.spread(self._reached)[places]
        weights = np.ones(len(places)) if self.weights is None else self.weights[places]
        others = reached - weights
        share = np.divide(weights * missed, others, out=np.zeros(len(places)), where=others > 0)
        return float(weights @ share / self.positives)

    @cached_property
    def _reached(self) -> Array:
        """Number of items at or above every group of equal scores."""
        return _from_here(self.groups[1])

    @cached_property
    def _precision(self) -> Array:
        """Precision at the score of every group of equal scores as threshold."""
        reached = self._reached
        hits = _from_here(self.groups[2])
        if self.weights is None:
            return np.asarray(hits / reached)
        return np.divide(hits, reached, out=np.zeros(len(reached)), where=reached > 0)

    def of_area(self, area: float) -> Array:
        """Compute each item's influence on the area under the ROC curve, in test set order.

        Returns
        -------
        Shape (n,). The sum of squares is the variance of DeLong, the sum of products with the
        influences of other scores for the same items the covariance. A single positive or
        negative item has no influence: nothing shows how it varies.

        Notes
        -----
        Source: DeLong, DeLong, Clarke-Pearson 1988; computed by ranks as Sun, Xu 2014.
        """
        share = self.beaten / -self.positives
        share += 1 - area
        share *= self._share(~self.positive)
        places = np.flatnonzero(self.positive)
        # The negatives below each positive, equal ones counting half.
        mass = np.where(self.positive, 0.0, 1.0 if self.weights is None else self.weights)
        passed = self._below(mass)[places] / self.negatives
        share[places] = (passed - area) * self._share(self.positive)
        return self._in_test_set_order(share)

    def of_separation(self, areas: Array, shares: Array) -> Array:
        """Compute each item's influence (n,) on the mean of A(i|j) over the other classes j.

        Parameters
        ----------
        areas
            A(i|j), shape (k,); NaN where class j has no items, and for i itself.
        shares
            From `item_shares`.
        """
        others = np.isfinite(areas)
        number = np.count_nonzero(others)
        support = np.bincount(self.true, weights=self.weights, minlength=len(areas))
        each = np.divide(1.0, support * number, out=np.zeros(len(areas)), where=others)
        share = np.where(others, 1 - areas, 0.0)[self.true] - self.beaten / self.positives
        share *= np.where(others, shares / number, 0.0)[self.true]
        places = np.flatnonzero(self.positive)
        mass = each[self.true] if self.weights is None else each[self.true] * self.weights
        passed = self._below(mass)[places]
        share[places] = (passed - np.mean(areas[others])) * shares[self.own]
        return self._in_test_set_order(share)

    def of_precision(self, value: float) -> Array:
        """Compute each item's influence on the average precision, in test set order.

        Returns
        -------
        Shape (n,): the derivative of the index by the weight of the item, times that weight.
        """
        positives, reached, precision = self.groups[2], self._reached, self._precision
        inverse = np.divide(positives, reached, out=np.zeros(len(reached)), where=positives > 0)
        share = self.spread(np.cumsum(inverse * precision))
        np.negative(share, out=share)
        places = np.flatnonzero(self.positive)
        share[places] += self.spread(np.cumsum(inverse) + precision - value)[places]
        share /= self.positives
        return self._in_test_set_order(share)

    def _share(self, chosen: Array) -> float:
        weights = np.ones(len(chosen)) if self.weights is None else self.weights
        return item_share(weights[chosen])

    def _in_test_set_order(self, share: Array) -> Array:
        assert self.order is not None  # noqa: S101 (see `of`)
        result = np.empty(len(share))
        result[self.order] = share if self.weights is None else share * self.weights
        return result

    def _below(self, mass: Array) -> Array:
        """Sum the mass (n,) below every item without a mass of its own, equal scores half."""
        if self.starts is None:
            return np.cumsum(mass)
        sums = np.add.reduceat(mass, self.starts)
        return self.spread(np.cumsum(sums) - sums / 2)


def _starts(new: Array) -> Array | None:
    """Find where groups of equal scores start: where a score differs from the one before."""
    return None if new.all() else np.append(0, np.flatnonzero(new) + 1)


def _from_here(counts: Array) -> Array:
    """Sum from every place to the end."""
    return np.cumsum(counts[::-1])[::-1]


def item_share(weights: Array) -> float:
    """Return the share 1 / sum w of an item in a mean, times the root of n / (n - 1).

    So sums of squared influences are unbiased variances; n is the effective number of items.
    0 if n is 1: a single item does not show how items vary.
    """
    return share_of(float(np.add.reduce(weights)), effective_number(weights))


def share_of(total: float, number: float) -> float:
    """Return `item_share` from the sum of the weights and the effective number of items."""
    return float(np.sqrt(number / (number - 1))) / total if number > 1 else 0.0


def effective_number(weights: Array) -> float:
    """Return (sum w)^2 / sum w^2, the number of items if all weights are equal (Kish 1965)."""
    squares = float(weights @ weights)
    return float(np.add.reduce(weights)) ** 2 / squares if squares else 0.0


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
        Influence of every item on the sum over the averaged classes and on the sum weighted by
        their shares of their items, the weights held fixed, shape (n,).
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
    items: RankedItems,
    *,
    influences: bool = False,
    fixed_rows: bool = False,
    over: tuple[int, ...] | None = None,
) -> ScoreRankings:
    """Rank the items by the scores of each class in turn, with variances only on request.

    These differ where the class sizes were fixed by design. The averages are over all classes, or
    over these.
    """
    averaged = list(range(items.k) if over is None else over)
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
                if label in averaged:
                    variances.mean[:] += influence
                    influence *= support[label] / np.add.reduce(support[averaged])
                    variances.weighted[:] += influence
    return result
