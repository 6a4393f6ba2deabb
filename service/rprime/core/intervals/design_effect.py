"""Design effects: factors by which groups of items, or their sample weights, inflate variances."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import Gradient
from rprime.core.intervals.plan import UniversePlan
from rprime.core.intervals.proportions import FEW_GROUPS, student
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items, table_of
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable, Universe, coordinates
from rprime.core.values import Values, compute

TWO_SIDED = 1.959963984540054
"""The normal quantile of 95 %."""
# A variance smaller than this share of the ungrouped one is a rounded zero.
NOTHING = 1e-12
# One smaller than this share of the squared value, of weighted items.
ROUNDED = 1e-30


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
    def products(self) -> Array:
        """Sums over the groups of products of their TP, FN, FP and items, shape (4, 4, k)."""
        k, wrong = self.k, self.predicted != self.true
        named = wrong & (self.predicted < k)
        own, other = self.groups * k + self.true, self.groups[named] * k + self.predicted[named]
        met, place = np.unique(np.concatenate((own, other)), return_inverse=True)
        kind = np.concatenate((wrong.astype(np.intp), np.full(len(other), 2)))
        counts = np.bincount(kind * len(met) + place, minlength=3 * len(met)).reshape(3, -1)
        rows = np.vstack((counts, self.sizes[met // k])).astype(np.float64)
        result = np.empty((4, 4, k))
        for i, j in zip(*np.triu_indices(4), strict=True):
            result[i, j] = result[j, i] = np.bincount(met % k, rows[i] * rows[j], k)
        result[3, 3] = np.square(self.sizes, dtype=np.float64).sum()
        return result

    def class_squares(self, kinds: Array) -> Array:
        """Sum the squares of the groups' summed influences by kind (4, n, k): TP, FN, FP and TN."""
        parts = kinds - kinds[3]
        parts[3] = kinds[3]
        return np.einsum("anc,abc,bnc->nc", parts, self.products, parts)

    def squares(self, gradient: Gradient) -> Array:
        """Sum the squares of the groups' summed influences on overall indices, shape (n,)."""
        result = np.empty(gradient.factors.shape[1])
        codes, place = np.unique(self.true * (self.k + 1) + self.predicted, return_inverse=True)
        rows, columns = codes // (self.k + 1), codes % (self.k + 1)
        for i in range(len(result)):
            influence = gradient.only(i).at(rows, columns)[0][place]
            influence -= influence.mean()
            result[i] = np.square(np.bincount(self.groups, influence)).sum()
        return result

    def holding(self, classes: Array) -> "Holding":
        """Count the groups that hold items of every class; k is the class of no item."""
        wrong, k = self.true != self.predicted, self.k
        codes = self.groups * (k + 1) + classes
        groups, with_errors, with_rights = (
            np.bincount(np.unique(codes[kept]) % (k + 1), minlength=k + 1)[:k]
            for kept in (slice(None), wrong, ~wrong)
        )
        items = np.bincount(classes, minlength=k + 1)[:k]
        return Holding(groups, with_errors, with_rights, items / np.maximum(groups, 1))

    @cached_property
    def everything(self) -> "Holding":
        """The groups of all items, as of one class, shape (1,)."""
        one = ItemGroups(self.true, self.predicted, self.groups, 1)
        return one.holding(np.zeros(len(self.true), dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Holding:
    """How many groups hold the items of each class; each of shape (k,).

    All groups, those with an item that is predicted wrongly, and with one predicted correctly;
    `mean_size` are the items of the class in each of its groups.
    """

    groups: Array
    with_errors: Array
    with_rights: Array
    mean_size: Array

    def at(self, places: Array) -> "Holding":
        """Return some classes."""
        every = (self.groups, self.with_errors, self.with_rights, self.mean_size)
        return Holding(*(part[places] for part in every))

    @property
    def student(self) -> Array:
        """The square of Student's over the normal quantile, shape (k,); NaN for one group."""
        return np.asarray((student(TWO_SIDED, self.groups) / TWO_SIDED) ** 2)

    def effects(self, grouped: Array, ungrouped: Array) -> Array:
        """Return the design effects of indices that rest on these items, shape (..., k).

        Where too few groups show how they differ, the items of a group count as one item.
        """
        with np.errstate(all="ignore"):
            ratio = grouped / ungrouped * self.groups / (self.groups - 1)
        few = np.minimum(self.with_errors, self.with_rights) < FEW_GROUPS
        known = (grouped > NOTHING * ungrouped) & np.isfinite(ratio)
        found = np.maximum(np.where(known, ratio, 0.0), np.where(few, self.mean_size, 0.0))
        return np.where(found > 0, found, np.nan)


@dataclass(frozen=True, eq=False)
class DesignEffects:
    """Ratios of the grouped to the ungrouped variance of the influences of the items.

    `per_class`, shape (c, k), and `overall`, shape (o,), are of the entries of a plan, or of all
    entries: NaN where the groups do not differ at all. One group counts as one item, inside
    averages. `class_groups` and `groups`, of the same shapes, count the groups behind each index.

    Notes
    -----
    The ratio is that of items drawn at random; it also applies to fixed class sizes.
    """

    per_class: Array
    overall: Array
    class_groups: Array
    groups: Array

    @classmethod
    def of(
        cls, selection: Selection, values: Values, items: Items, universe: Universe
    ) -> "DesignEffects":
        """Compute the effects on the entries of a plan from values of the whole table."""
        table = values.table.universe(universe)
        found = compute(table, values.options, selection)
        groups = ItemGroups.of(items, table.k, universe)
        own = class_gradient(found)
        whole = overall_gradient(found, own)
        everything = groups.everything
        overall = everything.effects(groups.squares(whole), variances(whole, table, "random"))
        squares, ungrouped = groups.class_squares(own.kinds), class_variances(found, own, "random")
        holding = [groups.holding(groups.true), groups.holding(groups.predicted), everything]
        per_class, number = np.empty((2, *squares.shape))
        for i, entry in enumerate(selection.computed):
            ratio = entry.reads == "ratio"
            rests = holding[RESTS_ON.get(entry.rows[1], 2) if ratio else 0]
            per_class[i] = rests.effects(squares[i], ungrouped[i])
            number[i] = rests.groups
        return cls(per_class, overall, number, np.full(overall.shape, everything.groups[0]))

    @classmethod
    def scattered(
        cls, values: Values, plans: list[UniversePlan], effects: "list[DesignEffects]"
    ) -> "DesignEffects | None":
        """Collect the effects on the entries of plans as those of all entries; None without any."""
        if not effects:
            return None
        per_class = np.full((2, *values.per_class.shape), np.nan)
        overall = np.full((2, *values.overall.shape), np.nan)
        for plan, own in zip(plans, effects, strict=True):
            known = plan.class_places >= 0
            per_class[:, plan.class_places[known]] = (own.per_class[known], own.class_groups[known])
            overall[:, plan.overall_places] = own.overall, own.groups
        return cls(per_class[0], overall[0], per_class[1], overall[1])


RESTS_ON = {
    CountRow.support: 0,
    CountRow.union: 0,
    CountRow.support_and_predicted: 0,
    CountRow.weighted_union: 0,
    CountRow.predicted: 1,
}
"""Whether a ratio rests on the items of the class or on those predicted as it; else on all."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The sample weights of the items of one table.

    `squares` is the table of the sums of squared weights, `scale` the sum of the weights divided by
    the sum of their squares.

    Notes
    -----
    Weighted counts times the scale add up to Kish's effective number of items,
    (sum w)^2 / sum w^2. The smaller of it and the effective number that the linearised variance,
    the sum of w^2 phi^2 over the influences phi, gives is what intervals rest on.
    """

    squares: ConfusionTable
    scale: float

    @classmethod
    def of(cls, values: Values, items: Items | None) -> "Weights | None":
        """Sum up the weights of the items, if these alone make the counts weighted."""
        if items is None or items.weights is None or items.groups is not None:
            return None
        if not values.table.weighted or values.options.cell_weights is not None:
            return None
        weights = items.weights
        squared = np.square(weights, dtype=np.float64)
        table = table_of(replace(items, weights=squared), values.table.k)
        return cls(table, float(np.sum(weights, dtype=np.float64) / np.sum(squared)))

    def scaled(self, values: Values) -> Values:
        """Return the values of the same table as if it had Kish's number of items."""
        table = values.table
        cells = replace(table.cells, counts=table.cells.counts * self.scale)
        silent = None if table.unclassified is None else table.unclassified * self.scale
        scaled = ConfusionTable(cells, silent)
        return compute(scaled, values.options, values.selection, values.scores)

    def counts(self, universe: Universe) -> Counts:
        """Sums of squared weights as counts, with the pooled column."""
        return Counts.of(self.squares.universe(universe))

    def effects(self, selection: Selection, values: Values, universe: Universe) -> DesignEffects:
        """Compute the effects on the entries of a plan from scaled values of the whole table.

        They are the linearised variances divided by the unweighted ones.
        """
        table = values.table.universe(universe)
        found = compute(table, values.options, selection)
        own = class_gradient(found)
        whole = overall_gradient(found, own)
        codes, squares = coordinates(self.squares.universe(universe))
        at = np.divmod(codes, table.k + 1)
        influences = (whole.only(i).at(*at)[0] for i in range(len(selection.overall)))
        summed = np.array([np.sum(squares * influence**2) for influence in influences])
        overall = self._ratios(found.overall, summed, variances(whole, table, "random"))
        kinds = slice(CountRow.tp, CountRow.tn + 1)
        above = self.counts(universe).rows[kinds, :-1][:, None] * own.kinds**2
        below = class_variances(found, own, "random")
        per_class = self._ratios(found.per_class, np.add.reduce(above, axis=0), below)
        return DesignEffects(per_class, overall, np.inf * per_class, np.inf * overall)

    def _ratios(self, values: Array, above: Array, below: Array) -> Array:
        """Linearised variances divided by those of as many unweighted items, at least 1."""
        known = below > ROUNDED * values * values
        ratios = np.divide(above, below, out=np.zeros(below.shape), where=known)
        return np.asarray(np.maximum(ratios * self.scale**2, 1.0))
