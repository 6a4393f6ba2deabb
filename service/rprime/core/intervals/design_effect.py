"""Design effects: factors by which groups of items inflate variances."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.intervals.delta import (
    classified_entries,
    pooled_gradient,
    ratio_margins,
    row_gradients,
)
from rprime.core.intervals.gradient import MARGINS_OF_KINDS, ClassGradient, Gradient
from rprime.core.intervals.variance import class_variances, proportion_variances, variances
from rprime.core.items import Items
from rprime.core.values import Values

# A variance smaller than this share of the ungrouped one is a rounded zero: one group, or groups
# that are all alike, do not show how groups differ.
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
    def of(cls, items: Items, groups: Array, k: int) -> "ItemGroups":
        """Number the groups of the items."""
        numbers = np.unique(groups, return_inverse=True)[1]
        return cls(items.true.astype(np.intp), items.predicted.astype(np.intp), numbers, k)

    @cached_property
    def answered(self) -> "ItemGroups":
        """The classified items alone."""
        kept = self.predicted < self.k
        return ItemGroups(self.true[kept], self.predicted[kept], self.groups[kept], self.k)

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
        rows, columns, place = self.cells
        for i in range(len(result)):
            influence = gradient.only(i).at(rows, columns)[0][place]
            influence -= influence.mean()
            result[i] = np.square(np.bincount(self.groups, influence)).sum()
        return result

    @cached_property
    def cells(self) -> tuple[Array, Array, Array]:
        """Row and column of the distinct cells, and the number of each item's cell."""
        codes, place = np.unique(self.true * (self.k + 1) + self.predicted, return_inverse=True)
        return codes // (self.k + 1), codes % (self.k + 1), place


@dataclass(frozen=True, eq=False)
class DesignEffects:
    """Ratios of the grouped to the ungrouped variance of the influences of the items.

    Parameters
    ----------
    values
        Values of one table.
    groups
        Its items.

    Notes
    -----
    The ratio is that of items drawn at random; it also applies to fixed class sizes.
    """

    values: Values
    groups: ItemGroups

    def of_classes(self, gradient: ClassGradient) -> Array:
        """Compute effects on the computed per-class indices, shape (computed, k).

        If an index does not vary, the items of the class count as one item in every group.
        """
        kinds = gradient.kinds
        grouped = self.groups.class_squares(kinds)
        if self.values.table.unclassified is not None:
            outside = classified_entries(self.values.selection)
            grouped[outside] = self.groups.answered.class_squares(kinds[:, outside])
        alike = np.nan_to_num(self._alike(np.array([CountRow.support])), nan=1.0)
        return _ratio(grouped, class_variances(self.values, gradient, "random"), alike)

    def of_proportions(self, numerators: Array, denominators: Array) -> Array:
        """Compute effects on ratios of counts, per class and pooled, shape (n, k + 1).

        If a proportion is 0 or 1, the items of a group count as one item.
        """
        rows = self.values.counts.rows
        ratios = rows[numerators] / rows[denominators]
        margins = ratio_margins(self.values, numerators, denominators, ratios[:, :-1])
        gradient = ClassGradient(np.nan_to_num(margins))
        effects = np.empty(ratios.shape)
        effects[:, :-1] = _ratio(
            self.groups.class_squares(gradient.kinds),
            proportion_variances(self.values, gradient),
            self._alike(denominators),
        )
        sizes = np.square(self.groups.sizes, dtype=np.float64)
        pooled = pooled_gradient(self.values, numerators, denominators)
        effects[:, -1] = self.of_overall(pooled, sizes.sum() / len(self.groups.true))
        return effects

    def _alike(self, denominators: Array) -> Array:
        """Compute the effect if all items of a ratio are alike within a group, shape (n, k)."""
        linear = row_gradients(self.values.options.beta)[denominators].T
        kinds = np.repeat((MARGINS_OF_KINDS @ linear)[..., None], self.groups.k, axis=-1)
        return self.groups.class_squares(kinds) / self.values.counts.rows[denominators, :-1]

    def of_overall(self, gradient: Gradient, certain: float = 1.0) -> Array:
        """Compute effects on overall indices, shape (n,); `certain` where one does not vary."""
        ungrouped = variances(gradient, self.values.table, "random")
        return _ratio(self.groups.squares(gradient), ungrouped, np.full(1, certain))


def _ratio(grouped: Array, ungrouped: Array, certain: Array) -> Array:
    """Divide grouped by ungrouped variance; NaN if the groups do not differ at all."""
    ratio = np.where(grouped > NOTHING * ungrouped, grouped / ungrouped, np.nan)
    return np.where(ungrouped == 0, certain, ratio)
