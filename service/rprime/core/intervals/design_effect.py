"""Design effects: factors by which groups of items inflate variances."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.gradient import Gradient
from rprime.core.intervals.plan import Plan
from rprime.core.intervals.proportions import FEW_GROUPS
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items
from rprime.core.selection import Selection
from rprime.core.table import Universe
from rprime.core.values import Values, compute

# A variance smaller than this share of the ungrouped one is a rounded zero.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """The items of one table in their groups.

    Parameters
    ----------
    true, predicted
        Shape (n,), classes; k as predicted class stands for unclassified.
    groups
        Shape (n,), numbers from 0.
    k
        Number of classes.
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
        """Sum the squares of the groups' summed influences.

        Parameters
        ----------
        kinds
            Shape (4, n, k): influence of a TP, FN, FP and TN.
        """
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
        """Count the groups that hold the items of every class, and their errors.

        Parameters
        ----------
        classes
            Shape (n,): the class that an item counts for; k for none.
        """
        wrong = self.true != self.predicted
        counts = [
            np.bincount(np.unique(self.groups[kept] * (self.k + 1) + classes[kept]) % (self.k + 1))
            for kept in (slice(None), wrong, ~wrong)
        ]
        groups, with_errors, with_rights = (
            np.pad(own, (0, self.k + 1 - len(own)))[: self.k] for own in counts
        )
        items = np.bincount(classes, minlength=self.k + 1)[: self.k]
        return Holding(groups, with_errors, with_rights, items / np.maximum(groups, 1))

    @cached_property
    def everything(self) -> "Holding":
        """The groups of all items, as of one class, shape (1,)."""
        one = ItemGroups(self.true, self.predicted, self.groups, 1)
        return one.holding(np.zeros(len(self.true), dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Holding:
    """How many groups hold the items of each class; each of shape (k,).

    Parameters
    ----------
    groups, with_errors, with_rights
        All groups, those with an item that is predicted wrongly, and with one predicted correctly.
    mean_size
        Items of the class in each of its groups.
    """

    groups: Array
    with_errors: Array
    with_rights: Array
    mean_size: Array

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

    Parameters
    ----------
    per_class, overall
        Shapes (c, k) and (o,): of the entries of a plan, or of all entries. NaN where the groups
        do not differ at all. One group counts as one item, inside averages.
    class_groups, groups
        The same shapes: the number of groups behind each index.

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
        """Compute the effects on the entries of a plan.

        Parameters
        ----------
        selection
            The entries.
        values
            Of the whole table.
        """
        table = values.table.universe(universe)
        found = compute(table, values.options, selection)
        groups = ItemGroups.of(items, table.k, universe)
        own = class_gradient(found)
        whole = overall_gradient(found, own)
        overall = groups.everything.effects(
            groups.squares(whole), variances(whole, table, "random")
        )
        squares, ungrouped = groups.class_squares(own.kinds), class_variances(found, own, "random")
        holding = [groups.holding(groups.true), groups.holding(groups.predicted), groups.everything]
        per_class = np.empty(squares.shape)
        number = np.empty(squares.shape)
        for i, entry in enumerate(selection.computed):
            ratio = entry.reads == "ratio"
            rests = holding[RESTS_ON.get(CountRow(entry.rows[1]), 2) if ratio else 0]
            per_class[i] = rests.effects(squares[i], ungrouped[i])
            number[i] = rests.groups
        return cls(per_class, overall, number, np.full(overall.shape, groups.everything.groups[0]))

    @classmethod
    def scattered(
        cls, values: Values, plans: list[Plan], effects: "list[DesignEffects]"
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
