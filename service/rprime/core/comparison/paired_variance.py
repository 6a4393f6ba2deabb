"""The variance of the difference of an index between two classifiers of the same items.

For T[r, j1, j2] items of true class r, old prediction j1 and new prediction j2, and the gradients
G of the index by the cells of the old and of the new table,

    phi[r, j1, j2] = G_new[r, j2] - G_old[r, j1]
    variance = sum T phi^2 - (sum T phi)^2 / w.

For grouped items, phi minus its mean is summed within each group before it is squared. All
functions here compute this formula; they differ only in the number of distinct phi:

* an overall index has one for each observed combination (r, j1, j2): `overall_variance`;
* a per-class index only distinguishes whether the true class and each prediction are this class,
  another class or missing: 18 patterns for each class, `class_variance`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.joint_counts import (
    NEW_IS,
    OLD_IS,
    PATTERNS,
    TRUE_IS,
    WITHOUT,
    JointCounts,
    at_patterns,
    involvements,
    patterns_seen_by,
)
from rprime.core.counts import CountRow
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.intervals.groups import ClassGroups, GroupSpread, ItemGroups
from rprime.core.intervals.proportions import TWO_SIDED, student
from rprime.core.items import Items
from rprime.core.population import joint_cells
from rprime.core.table import ConfusionTable

CHUNK = 1 << 17
"""Numbers computed together: 1 MiB, which fits into the cache."""
NOISE = 1e-20
"""Variances below this share of the sides' own variances are rounding."""


class PairedPredictions(Protocol):
    """Old and new predictions of the same items: observed, or a stack of simulated ones."""

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a count, shape (..., k) or (...)."""
        ...

    def overall_variance(self, old: Gradient, new: Gradient) -> "PairedVariance":
        """Compute the variances of differences of overall indices, shape (index, ...)."""
        ...

    def class_variance(
        self, old: ClassGradient, new: ClassGradient, classified: Array
    ) -> "PairedVariance":
        """Compute the variances of differences of per-class indices, shape (index, ..., k).

        `classified`, shape (index,): whether unclassified items have no influence on it.
        """
        ...


@dataclass(frozen=True, eq=False)
class PairedItems:
    """Old and new predictions with the items behind them.

    Parameters
    ----------
    combination, groups
        Shape (n,): combination and group number of each item; None for independent items.
    weights
        None if each item counts once.
    centred
        Whether influences have to be centred before they are squared.
    """

    joint: JointCounts
    combination: Array | None = None
    groups: Array | None = None
    weights: "PairWeights | None" = None
    centred: bool = True

    @classmethod
    def of(cls, baseline: Items, candidate: Items, k: int) -> "PairedItems":
        """Count two predictions of the same items, and store their groups, if any."""
        joint = JointCounts.count(baseline, candidate, k)
        groups = candidate.groups if baseline.groups is None else baseline.groups
        if groups is None:
            return cls(joint, weights=PairWeights.of(joint, baseline, candidate))
        return cls(joint, joint.combination_of(baseline, candidate), groups)

    def weighed(self, weights: Array) -> "PairedItems":
        """Return the items with a weight for each true class; variances are then squares alone."""
        joint = self.joint
        return PairedItems(replace(joint, items=joint.items * weights[joint.true]), centred=False)

    @property
    def grouped(self) -> bool:
        """Whether the items belong to groups."""
        return self.groups is not None

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a count, shape (k,) or ()."""
        return self.joint.flips(row, per_class=per_class)

    def overall_variance(self, old: Gradient, new: Gradient) -> "PairedVariance":
        """Sum T phi^2 - (sum T phi)^2 / w of overall indices, shape (index,).

        phi = G_new[r, j2] - G_old[r, j1] is the influence of an item. NaN where an index has no
        derivative.
        """
        if self.weights is not None:
            return self.weights.variance(lambda pairs: pairs.overall_variance(old, new))
        joint, count = self.joint, old.factors.shape[1]
        moments = np.zeros((5, count))
        influences = None if self.groups is None else np.empty((count, len(joint.items)))
        for part in parts_of(len(joint.items), count):
            true, items = joint.true[part], joint.items[part]
            g_old = old.at(true, joint.old[part])
            phi = new.at(true, joint.new[part])
            phi -= g_old
            moments[0] += phi @ items
            if influences is not None:
                influences[:, part] = phi
            moments[4] += (phi * phi * phi) @ items
            moments[1] += np.square(phi, out=phi) @ items
            moments[3] += np.square(phi, out=phi) @ items
            moments[2] += np.square(g_old, out=g_old) @ items
        mean = moments[0] / joint.total
        centring = moments[0] * mean if self.centred else 0.0
        independent = without_noise(moments[1] - centring, moments[2])
        if influences is None:
            number = number_of(moments[1], moments[3])
            return PairedVariance(independent, independent, contributing=number, third=moments[4])
        groups, combination = self.grouping
        influences -= mean[:, None]
        sums = [np.bincount(groups, phi[combination]) for phi in influences]
        sizes = np.bincount(groups)
        totals = np.array(sums).reshape(count, len(sizes))[:, sizes > 0]
        spread = GroupSpread.of_sums(totals, sizes[sizes > 0] / joint.total)
        return PairedVariance(independent, spread.plain, (spread,))

    def class_variance(
        self, old: ClassGradient, new: ClassGradient, classified: Array
    ) -> "PairedVariance":
        """Sum T phi^2 - (sum T phi)^2 / w of per-class indices, shape (index, k).

        Eighteen patterns replace all combinations.
        """
        if self.weights is not None:
            return self.weights.variance(lambda pairs: pairs.class_variance(old, new, classified))
        counts = self.joint.by_pattern
        if self.groups is None:
            occurring = np.flatnonzero(counts.any(-1))
            variance = variance_of_patterns(
                occurring, counts[occurring], old, new, classified, centred=self.centred
            )
            return PairedVariance(variance, variance)
        every = np.arange(PATTERNS)
        independent = variance_of_patterns(every, counts, old, new, classified)
        groups = self.by_class
        spreads: list[list[GroupSpread]] = []
        shares = groups.of_all, groups.shares_of(TRUE_IS)
        for place in range(len(independent)):
            row = slice(place, place + 1)
            phi = at_patterns(every, new.kinds[:, row], classified[row], NEW_IS)[0]
            phi = phi - at_patterns(every, old.kinds[:, row], classified[row], OLD_IS)[0]
            centred = phi - (counts * phi).sum(0) / self.joint.total
            spreads.append([groups.spread(centred, part) for part in shares])
        if not spreads:
            nothing = GroupSpread(*(independent,) * 6)
            return PairedVariance(independent, independent, (nothing, nothing))
        both = tuple(GroupSpread.stack(part) for part in zip(*spreads, strict=True))
        return PairedVariance(independent, both[0].plain, both)

    @cached_property
    def by_class(self) -> ClassGroups:
        """The patterns of the items of each group and class."""
        joint, (groups, combination) = self.joint, self.grouping
        codes = []
        for classes, where, patterns in involvements(joint):
            chosen = where[combination]
            place = combination[chosen]
            owner = groups[chosen].astype(np.int64) * joint.k + classes[place]
            codes.append(owner * PATTERNS + patterns[place])
        plain = patterns_seen_by(joint, np.full(joint.true.shape, -1))[combination]
        size = int(groups.max()) + 1
        missing = np.bincount(groups.astype(np.int64) * PATTERNS + plain, None, size * PATTERNS)
        missing = missing.reshape(size, PATTERNS).astype(np.float64)
        return ClassGroups.of_entries(np.concatenate(codes), PATTERNS, WITHOUT, missing, joint.k)

    @property
    def grouping(self) -> tuple[Array, Array]:
        """Group and combination of each item; of items in groups alone."""
        assert self.groups is not None  # noqa: S101 (the callers have checked)
        assert self.combination is not None  # noqa: S101 (they come together)
        return self.groups, self.combination

    def group_effects(
        self, variance: "PairedVariance", places: Array, rests: Array
    ) -> tuple[Array, GroupSpread]:
        """Return by how much groups inflate variances, (index, classes), and their spread.

        The factors are NaN for one group.

        Parameters
        ----------
        variance
            The variances, over the classes at `places`; one column overall.
        rests
            Shape (index, 1): whether an index rests on the items of its class, not on all.

        Notes
        -----
        As for intervals: the ratio of the variances, and where fewer than five groups hold a
        changed prediction at least the effect of groups whose items never differ (Kish 1965), which
        also holds where nothing varies. Student's quantile, squared, is part of the factor.
        """
        groups, combination = self.grouping
        joint = self.joint
        changes = ItemGroups(joint.old[combination], joint.new[combination], groups, joint.k)
        holdings = [changes.everything, changes.holding(joint.true[combination]).at(places)]
        factors = []
        for holding, spread in zip(holdings, variance.spreads, strict=False):
            effects = np.fmax(holding.effects(spread.squares, variance.independent), 1.0)
            most = np.maximum(holding.largest_effect, 1.0)
            effects = np.where(variance.independent > 0, effects, most)
            degrees = holding.degrees(effects, spread)
            factors.append(effects * (student(TWO_SIDED, degrees + 1) / TWO_SIDED) ** 2)
        chosen = {
            name: np.where(rests, getattr(variance.spreads[-1], name), part)
            for name, part in vars(variance.spreads[0]).items()
        }
        return np.where(rests, factors[-1], factors[0]), GroupSpread(**chosen)


@dataclass(frozen=True, eq=False)
class PairedVariance:
    """Variances of differences, shape of the indices; 0 where nothing varies.

    Parameters
    ----------
    independent, grouped
        Of independent items, and of influences summed within groups: the same without groups.
    spreads
        Of grouped items: how groups differ among all items and, of a class, among its own.
    contributing
        Of independent items and overall indices: how many items the variances rest on,
        (sum phi^2)^2 / sum phi^4, 0 where nothing changed; None if not known.
    third
        Beside `contributing`: sum phi^3, below 0 where few items lose much.
    """

    independent: Array
    grouped: Array
    spreads: tuple[GroupSpread, ...] = ()
    contributing: Array | None = None
    third: Array | None = None

    def at(self, places: Any) -> "PairedVariance":  # noqa: ANN401 (a numpy index)
        """Return some indices or classes."""
        spreads = tuple(spread.at(places) for spread in self.spreads)
        return PairedVariance(self.independent[places], self.grouped[places], spreads)


@dataclass(frozen=True, eq=False)
class PairWeights:
    """The weights of paired items.

    Parameters
    ----------
    counted, squared
        The pairs, counted by the weights and by their squares.
    unit
        Weight of an effective item, sum w^2 / sum w (Kish).

    Notes
    -----
    As for intervals, the larger of two variances counts: that of Kish's effective number of items,
    and the linearised one, sum w^2 phi^2. The weighted sum of the influences is 0, so the latter
    need no centring.
    """

    counted: PairedItems
    squared: PairedItems
    unit: float

    @classmethod
    def of(cls, joint: JointCounts, baseline: Items, candidate: Items) -> "PairWeights | None":
        """Sum up the weights of each combination; None if all are 1, or the sides' differ."""
        ours, theirs = candidate.weights, baseline.weights
        if ours is None or theirs is None or not np.array_equal(ours, theirs) or (ours == 1).all():
            return None
        places, weights = joint.combination_of(baseline, candidate), ours.astype(np.float64)
        sums, squares = (np.bincount(places, w, len(joint.items)) for w in (weights, weights**2))
        return cls(
            PairedItems(replace(joint, items=sums)),
            PairedItems(replace(joint, items=squares), centred=False),
            float(squares.sum() / sums.sum()),
        )

    def variance(self, compute: Callable[[PairedItems], PairedVariance]) -> PairedVariance:
        """Return the larger variance."""
        kish = self.unit * compute(self.counted).independent
        variance = np.maximum(kish, compute(self.squared).independent)
        return PairedVariance(variance, variance)


def variance_of_patterns(
    patterns: Array,
    counts: Array,
    old: ClassGradient,
    new: ClassGradient,
    classified: Array,
    *,
    centred: bool = True,
) -> Array:
    """Compute the variance of the differences of per-class indices, shape (index, ..., k).

    The counts (p, ..., k) are the items of each class in the patterns (p,); those without items may
    be missing. `classified` is as in `PairedPredictions`.
    """
    result = np.empty(old.kinds.shape[1:])
    total = counts.sum(0)
    for part in parts_of(len(result), counts.size):
        g_old = at_patterns(patterns, old.kinds[:, part], classified[part], OLD_IS)
        phi = at_patterns(patterns, new.kinds[:, part], classified[part], NEW_IS) - g_old
        sums = (counts * phi).sum(1)
        squares = (counts * phi * phi).sum(1) - centred * sums * sums / total
        result[part] = without_noise(squares, (counts * g_old * g_old).sum(1))
    return result


def number_of(squares: Array, fourth: Array) -> Array:
    """Return how many items sums of squares and of fourth powers rest on."""
    return np.divide(squares**2, fourth, out=np.zeros(fourth.shape), where=fourth > 0)


def without_noise(variance: Array, scale: Array) -> Array:
    """Return 0 where a variance is only rounding, beside that of one side."""
    return np.where(variance <= NOISE * scale, 0.0, variance)


def parts_of(count: int, width: int) -> list[slice]:
    """Split `count` rows of `width` numbers into parts that fit into memory."""
    step = max(CHUNK // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, count, step)]


ROUNDING = 1e-13
"""A variance below this share of the squared influences is rounding."""


@dataclass(frozen=True, eq=False)
class PairedStrata:
    """Paired items whose true classes are the strata of a sample.

    Parameters
    ----------
    squared
        The pairs, weighed by the square of what an item counts in the estimated table.
    factors
        Shape (..., k): that square over the number of items of each class.
    cells
        Shape (2, ..., k, k + 1): the items in the tables of baseline and candidate.

    Notes
    -----
    With the influence phi of an item on a difference and W of the population in a class of n
    items, the variance is the sum over the classes of W^2 / n times the variance of phi within.
    """

    pairs: PairedPredictions
    squared: PairedPredictions
    factors: Array
    cells: Array

    @classmethod
    def of(
        cls,
        pairs: PairedPredictions,
        squared: PairedPredictions,
        weights: Array,
        tables: tuple[ConfusionTable, ...],
    ) -> "PairedStrata":
        """Prepare the variances; the tables are those of the items, baseline first.

        The weights (..., k) are what an item of each class counts in the estimated tables.
        """
        factors = weights**2 / np.maximum(tables[0].support, 1.0)
        cells = np.stack([joint_cells(table) for table in tables])
        return cls(pairs, squared, factors, cells)

    def flips(self, row: CountRow, *, per_class: bool) -> tuple[Array, Array]:
        """Return the items that enter and that leave a count, shape (..., k) or (...)."""
        return self.pairs.flips(row, per_class=per_class)

    def overall_variance(self, old: Gradient, new: Gradient) -> PairedVariance:
        """Compute the variances of differences of overall indices, shape (index, ...)."""
        k = self.cells.shape[-2]
        rows, columns = (grid.ravel() for grid in np.mgrid[:k, : k + 1])
        squares = self.squared.overall_variance(old, new).independent
        result = np.empty_like(squares)
        for place in range(len(squares)):
            before, after = (
                np.vecdot(cells, side.only(place).at(rows, columns)[0].reshape(cells.shape))
                for cells, side in zip(self.cells, (old, new), strict=True)
            )
            between = np.vecdot((after - before) ** 2, self.factors)
            result[place] = _without_rounding(squares[place], between)
        return PairedVariance(result, result)

    def class_variance(
        self, old: ClassGradient, new: ClassGradient, classified: Array
    ) -> PairedVariance:
        """Compute the variances of differences of per-class indices, shape (index, ..., k)."""
        squares = self.squared.class_variance(old, new, classified).independent
        result = np.empty_like(squares)
        for place, answered in enumerate(classified):
            before, after = (
                _sums_by_row(side.margins[:, place], cells[..., :-1] if answered else cells)
                for side, cells in zip((old, new), self.cells, strict=True)
            )
            between = np.add.reduce((after - before) ** 2 * self.factors[..., None], axis=-2)
            result[place] = _without_rounding(squares[place], between)
        return PairedVariance(result, result)


def _sums_by_row(margins: Array, cells: Array) -> Array:
    """Sum the influences of the items of each true class on an index of each class, (..., k, k)."""
    correct, support, predicted, total = margins[..., None, :]
    k, items = margins.shape[-1], np.add.reduce(cells, axis=-1)[..., None]
    diagonal = support * items + correct * cells[..., :k]
    return np.asarray(total * items + predicted * cells[..., :k] + diagonal * np.eye(k))


def _without_rounding(squares: Array, between: Array) -> Array:
    variance = squares - between
    return np.where(variance <= ROUNDING * squares, 0.0, variance)
