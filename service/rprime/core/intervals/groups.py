"""Groups of items: how far they differ, how many of them count, and what half a group more says.

With u_g the sum of the influences of the items of group g, and w_g its share of the items that an
index rests on, the variance is the sum of (u_g / (1 - w_g))^2 (CR3, which leaves out one group at a
time), and the effective number of groups 1 / sum w_g^2.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.gradient import Gradient
from rprime.core.intervals.proportions import FEW_GROUPS
from rprime.core.items import Items
from rprime.core.table import Universe

FEW_EFFECTIVE_GROUPS = 8.0
"""With fewer effective groups nothing passes a rule of a gate."""
# A variance smaller than this share of the ungrouped one is a rounded zero.
NOTHING = 1e-12
FEW_DECISIVE_GROUPS = 5.0
"""Up to so many groups behind a variance, limits have a whole effective group more, not half."""


@dataclass(frozen=True, eq=False)
class GroupSpread:
    """How groups differ in their influence on indices; each of the shape of the indices.

    Parameters
    ----------
    squares, plain
        Sum of (u_g / (1 - w_g))^2, NaN where one group has all items; and sum of u_g^2.
    degrees
        Degrees of freedom of that variance, at least 1: the smaller of 2 c - 1 and
        1 / sum w_g^2 - 1, where c = (sum u_g^2)^2 / sum u_g^4. NaN for one group.
    effective
        The effective number of groups.
    low, high
        What half an effective group more changes, with the share .5 sum w_g^2: if it has the lowest
        rate of all groups of at least median size (0 or less), and the highest (0 or more). A whole
        one where the variance rests on up to 5 groups, and 5 / c of one up to 10.

    Notes
    -----
    Source: Cameron, Miller 2015; Imbens, Kolesar 2016; Carter, Schnepel, Steigerwald 2017.
    """

    squares: Array
    plain: Array
    degrees: Array
    effective: Array
    low: Array
    high: Array

    @classmethod
    def of(
        cls, moments: tuple[Array, Array, Array], effective: Array, extremes: tuple[Array, Array]
    ) -> "GroupSpread":
        """Put together from sums of (u / (1 - w))^2, u^2 and u^4, and the extremes of u / w."""
        squares, plain, fourth = moments
        with np.errstate(all="ignore"):
            number = np.where(fourth > 0, plain * plain / fourth, np.inf)
            degrees = np.maximum(np.minimum(2 * number - 1, effective - 1), 1.0)
            degrees = np.where(effective > 1 + NOTHING, degrees, np.nan)
            more = np.clip(FEW_DECISIVE_GROUPS / number, 0.5, 1.0) / effective
            low, high = (np.nan_to_num(more * end) for end in extremes)
        return cls(squares, plain, degrees, effective, np.minimum(low, 0.0), np.maximum(high, 0.0))

    @classmethod
    def stack(cls, parts: "tuple[GroupSpread, ...]") -> "GroupSpread":
        """Join spreads of several indices as (index, ...)."""
        names = vars(parts[0])
        return cls(**{name: np.stack([getattr(part, name) for part in parts]) for name in names})

    def at(self, places: Any) -> "GroupSpread":  # noqa: ANN401 (a numpy index)
        """Return some indices or classes."""
        return GroupSpread(**{name: part[places] for name, part in vars(self).items()})

    @classmethod
    def of_sums(cls, sums: Array, shares: Array) -> "GroupSpread":
        """Measure the spread of sums (n, groups) of influences, with the shares (groups,)."""
        with np.errstate(all="ignore"):
            squares = np.square(sums / (1 - shares)).sum(-1)
            rates = (sums / shares)[:, shares >= np.quantile(shares, 0.5, method="lower")]
        moments = squares, np.square(sums).sum(-1), np.square(np.square(sums)).sum(-1)
        effective = np.full(len(sums), 1 / (shares @ shares))
        return cls.of(moments, effective, (rates.min(-1), rates.max(-1)))


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Shares of the groups among the items that indices of every class rest on.

    Parameters
    ----------
    of_pairs, of_groups
        Shape (p,): of the pairs of a group and a class that occurs in it; and shape (groups,), of
        groups where the class does not occur, 0 if the index rests on items of the class.
    effective
        Shape (k,): the effective number of groups.
    large, others_large
        Shape (p,): whether a pair has at least the median size; and shape (k,), whether some group
        does in which the class does not occur.
    """

    of_pairs: Array
    of_groups: Array
    effective: Array
    large: Array
    others_large: Array


@dataclass(frozen=True, eq=False)
class ClassGroups:
    """The items of every group, by what they are to a class: pairs of a group and a class in it.

    Parameters
    ----------
    group, owner, start
        Shape (p,): group and class of each pair, and where it begins among the entries.
    pattern, items
        Shape (e,): what the items of an entry are to the class, and their number.
    without
        For each pattern, that of the same item if the class did not occur.
    plain, absent
        Shape (groups, a): items of each group by their pattern for a class that does not occur, and
        shape (a,), these patterns.
    """

    group: Array
    owner: Array
    start: Array
    pattern: Array
    items: Array
    without: Array
    plain: Array
    absent: Array
    k: int

    @classmethod
    def of_entries(
        cls, codes: Array, number: int, without: Array, plain: Array, k: int
    ) -> "ClassGroups":
        """Count codes (group k + class) `number` + pattern, where `plain` is (groups, number)."""
        occurring, items = np.unique(codes, return_counts=True)
        pair, pattern = np.divmod(occurring, number)
        start = np.flatnonzero(np.diff(pair, prepend=-1))
        group, owner = np.divmod(pair[start], k)
        absent = np.flatnonzero(plain.any(0))
        about = (pattern, items.astype(np.float64), without, plain[:, absent], absent, k)
        return cls(group, owner, start, *about)

    @cached_property
    def sizes(self) -> Array:
        """Items of every group."""
        return np.asarray(self.plain.sum(-1))

    def shares_of(self, patterns: Array) -> ClassShares:
        """Return the shares of the items of some patterns, flags for each pattern."""
        items = np.add.reduceat(self.items * patterns[self.pattern], self.start)
        total = np.bincount(self.owner, items, self.k)
        with np.errstate(all="ignore"):
            shares = items / total[self.owner]
            effective = 1 / np.bincount(self.owner, shares * shares, self.k)
        there = np.flatnonzero(items)
        order = there[np.lexsort((items[there], self.owner[there]))]
        number = np.bincount(self.owner[order], minlength=self.k)
        first = np.cumsum(number) - number
        median = np.full(self.k, np.inf)
        some = number > 0
        median[some] = items[order[first[some] + (number[some] - 1) // 2]]
        large = items >= np.maximum(median[self.owner], 1)
        none = np.zeros(self.k, dtype=bool)
        return ClassShares(shares, np.zeros(len(self.plain)), effective, large, none)

    @cached_property
    def of_all(self) -> ClassShares:
        """The shares of all items."""
        shares = self.sizes / self.sizes.sum()
        large = self.sizes >= np.quantile(self.sizes, 0.5, method="lower")
        met = np.bincount(self.owner, large[self.group], self.k)
        effective = np.full(self.k, 1 / (shares @ shares))
        others = np.count_nonzero(large) > met
        return ClassShares(shares[self.group], shares, effective, large[self.group], others)

    def spread(self, influences: Array, shares: ClassShares) -> GroupSpread:
        """Measure the spread of the influences (patterns, k) of items on an index, shape (k,).

        The sum of a group is its value if the class did not occur (dense, of low rank) plus what
        the class adds.
        """
        absent, plain, owner, k = influences[self.absent], self.plain, self.owner, self.k
        alone = (influences - influences[self.without])[self.pattern, owner.repeat(self._counts)]
        added = np.add.reduceat(self.items * alone, self.start)
        dense = np.einsum("pa,ap->p", plain[self.group], absent[:, owner])
        sums = dense + added
        with np.errstate(all="ignore"):
            inverse, left_out = 1 / (1 - shares.of_groups), sums / (1 - shares.of_pairs)
            moments = (
                self._moment(absent, plain * inverse[:, None], 1)
                + self._met(left_out**2, (dense * inverse[self.group]) ** 2),
                self._moment(absent, plain, 1) + self._met(sums**2, dense**2),
                self._moment(absent, plain, 2) + self._met(sums**4, dense**4),
            )
            rates = sums[shares.large] / shares.of_pairs[shares.large]
            others = absent * self.sizes.sum()
        low, high = np.full(k, np.inf), np.full(k, -np.inf)
        np.minimum.at(low, owner[shares.large], rates)
        np.maximum.at(high, owner[shares.large], rates)
        low = np.where(shares.others_large, np.minimum(low, others.min(0)), low)
        high = np.where(shares.others_large, np.maximum(high, others.max(0)), high)
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
        squares, second, fourth = (np.maximum(moment, 0.0) for moment in moments)
        return GroupSpread.of((squares, second, fourth), shares.effective, (low, high))

    @cached_property
    def _counts(self) -> Array:
        return np.diff(self.start, append=len(self.items))

    def _met(self, with_class: Array, without: Array) -> Array:
        """Replace terms of the pairs, which the moments of all groups hold without the class."""
        return np.bincount(self.owner, with_class - without, self.k)

    @staticmethod
    def _moment(absent: Array, plain: Array, degree: int) -> Array:
        """Sum the squares, or with degree 2 the fourth powers, over all groups, shape (k,)."""
        if degree > 1:
            plain = np.einsum("ga,gb->gab", plain, plain).reshape(len(plain), -1)
            absent = np.einsum("ak,bk->abk", absent, absent).reshape(-1, absent.shape[-1])
        return np.einsum("ak,ab,bk->k", absent, plain.T @ plain, absent)


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """The items of one table in their groups, shape (n,) each.

    A predicted class of k is unclassified; groups are numbers from 0.
    """

    true: Array
    predicted: Array
    groups: Array
    k: int

    @classmethod
    def of(cls, items: Items, k: int, universe: Universe) -> "ItemGroups":
        """Number the groups of the items of a universe."""
        true, predicted = items.true.astype(np.intp), items.predicted.astype(np.intp)
        assert items.groups is not None  # noqa: S101 (the caller has checked)
        kept = predicted < k if universe == "classified" else slice(None)
        numbers = np.unique(items.groups[kept], return_inverse=True)[1]
        return cls(true[kept], predicted[kept], numbers, k)

    @cached_property
    def sizes(self) -> Array:
        """Number of items of every group."""
        return np.bincount(self.groups)

    @cached_property
    def by_class(self) -> ClassGroups:
        """Their TP, FN and FP of every class; all others are TN."""
        k, wrong = self.k, self.predicted != self.true
        named = wrong & (self.predicted < k)
        of_true, other = self.groups * k + self.true, self.groups[named] * k + self.predicted[named]
        kind = np.concatenate((wrong.astype(np.intp), np.full(len(other), 2)))
        codes = np.concatenate((of_true, other)) * 4 + kind
        plain = np.zeros((len(self.sizes), 4))
        plain[:, 3] = self.sizes
        return ClassGroups.of_entries(codes, 4, np.full(4, 3), plain, k)

    def spread(self, gradient: Gradient) -> GroupSpread:
        """Measure the spread of the groups' influences on overall indices, shape (n,)."""
        number = gradient.factors.shape[1]
        sums = np.empty((number, len(self.sizes)))
        codes, place = np.unique(self.true * (self.k + 1) + self.predicted, return_inverse=True)
        rows, columns = codes // (self.k + 1), codes % (self.k + 1)
        for i in range(number):
            influence = gradient.only(i).at(rows, columns)[0][place]
            influence -= influence.mean()
            sums[i] = np.bincount(self.groups, influence)
        return GroupSpread.of_sums(sums, self.sizes / len(self.true))

    def holding(self, classes: Array) -> "Holding":
        """Count the groups that hold items of every class; k is the class of no item."""
        wrong, k = self.true != self.predicted, self.k
        codes = self.groups * (k + 1) + classes
        met, sizes = np.unique(codes, return_counts=True)
        with_errors, with_rights = (
            np.bincount(np.unique(codes[kept]) % (k + 1), minlength=k + 1)[:k]
            for kept in (wrong, ~wrong)
        )
        items = np.bincount(classes, minlength=k + 1)[:k]
        squares = np.bincount(met % (k + 1), sizes.astype(np.float64) ** 2, k + 1)[:k]
        groups = np.bincount(met % (k + 1), minlength=k + 1)[:k]
        return Holding(groups, with_errors, with_rights, squares / np.maximum(items, 1))

    @cached_property
    def everything(self) -> "Holding":
        """The groups of all items, as of one class, shape (1,)."""
        whole = ItemGroups(self.true, self.predicted, self.groups, 1)
        return whole.holding(np.zeros(len(self.true), dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Holding:
    """How many groups hold the items of each class; each of shape (k,).

    All groups, those with an item that is predicted wrongly, and with one predicted correctly;
    `largest_effect` is the design effect if the items of a group never differed (Kish 1965).
    """

    groups: Array
    with_errors: Array
    with_rights: Array
    largest_effect: Array

    def at(self, places: Array) -> "Holding":
        """Return some classes."""
        every = (self.groups, self.with_errors, self.with_rights, self.largest_effect)
        return Holding(*(part[places] for part in every))

    def effects(self, grouped: Array, ungrouped: Array) -> Array:
        """Return the design effects of indices that rest on these items, shape (..., k).

        Where too few groups show how they differ, the items of a group count as one item.
        """
        with np.errstate(all="ignore"):
            ratio = grouped / ungrouped
        few = np.minimum(self.with_errors, self.with_rights) < FEW_GROUPS
        defined = (grouped > NOTHING * ungrouped) & np.isfinite(ratio)
        least = np.where(few, self.largest_effect, 0.0)
        effects = np.maximum(np.where(defined, ratio, 0.0), least)
        return np.where(effects > 0, effects, np.nan)

    def degrees(self, effects: Array, spread: GroupSpread) -> Array:
        """Return the degrees of freedom of these effects: all, where a group is an item."""
        few = np.minimum(self.with_errors, self.with_rights) < FEW_GROUPS
        alike = few & (effects <= self.largest_effect)
        return np.where(
            alike & (self.groups > 1), np.maximum(spread.effective - 1, 1), spread.degrees
        )
