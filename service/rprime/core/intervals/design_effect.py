"""Design effects: factors by which groups of items, or their sample weights, inflate variances."""

from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.intervals.delta import class_gradient, overall_gradient
from rprime.core.intervals.groups import GroupSpread, Holding, ItemGroups
from rprime.core.intervals.plan import UniversePlan
from rprime.core.intervals.variance import class_variances, variances
from rprime.core.items import Items, table_of
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable, Universe, coordinates
from rprime.core.values import Values, compute

# One smaller than this share of the squared value, of weighted items.
ROUNDED = 1e-30


@dataclass(frozen=True, eq=False)
class DesignEffects:
    """Ratios of the grouped to the ungrouped variance of the influences of the items.

    `of_classes`, shape (6, c, k), and `of_all`, shape (6, o), are of the entries of a plan, or of
    all entries; their rows are `ROWS`: the ratio, NaN where the groups do not differ at all; the
    number of groups, the degrees of freedom of the variance and the effective number of groups,
    infinite for weights; and what half an effective group more changes, 0 for weights. One group
    counts as one item, inside averages.

    Notes
    -----
    The ratio is that of items drawn at random; it also applies to fixed class sizes.
    """

    of_classes: Array
    of_all: Array

    @property
    def per_class(self) -> Array:
        """The ratios of the per-class entries."""
        return np.asarray(self.of_classes[RATIO])

    @property
    def overall(self) -> Array:
        """The ratios of the overall entries."""
        return np.asarray(self.of_all[RATIO])

    @classmethod
    def of(
        cls, selection: Selection, values: Values, items: Items, universe: Universe
    ) -> "DesignEffects":
        """Compute the effects on the entries of a plan from values of the whole table."""
        table = values.table.universe(universe)
        computed = compute(table, values.options, selection)
        groups = ItemGroups.of(items, table.k, universe)
        if not groups.true.size:  # no item was answered
            shapes = computed.per_class.shape, computed.overall.shape
            return cls(*(np.full((len(ROWS), *shape), np.nan) for shape in shapes))
        of_classes = class_gradient(computed)
        whole = overall_gradient(computed, of_classes)
        everything, spread = groups.everything, groups.spread(whole)
        overall = everything.effects(spread.squares, variances(whole, table, "random"))
        of_all = _rows_of(overall, everything, spread)
        ungrouped, by_class = class_variances(computed, of_classes, "random"), groups.by_class
        holding = [groups.holding(groups.true), groups.holding(groups.predicted), everything]
        shares = [by_class.shares_of(OF_TRUE), by_class.shares_of(OF_PREDICTED), by_class.of_all]
        per_class = np.empty((len(of_all), *ungrouped.shape))
        for i, entry in enumerate(selection.computed):
            kind = RESTS_ON.get(entry.rows[1], 2) if entry.reads == "ratio" else 0
            spread = by_class.spread(of_classes.kinds[:, i], shares[kind])
            effects = holding[kind].effects(spread.squares, ungrouped[i])
            per_class[:, i] = _rows_of(effects, holding[kind], spread)
        return cls(per_class, of_all)

    @classmethod
    def scattered(
        cls, values: Values, plans: list[UniversePlan], effects: "list[DesignEffects]"
    ) -> "DesignEffects | None":
        """Collect the effects on the entries of plans as those of all entries; None without any."""
        if not effects:
            return None
        per_class = np.full((len(ROWS), *values.per_class.shape), np.nan)
        overall = np.full((len(ROWS), *values.overall.shape), np.nan)
        for plan, effect in zip(plans, effects, strict=True):
            placed = plan.class_places >= 0
            per_class[:, plan.class_places[placed]] = effect.of_classes[:, placed]
            overall[:, plan.overall_places] = effect.of_all
        return cls(per_class, overall)


ROWS = RATIO, GROUPS, DEGREES, EFFECTIVE, LOW, HIGH = range(6)
OF_TRUE, OF_PREDICTED = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
"""Whether a TP, FN, FP and TN of a class is an item of it, and predicted as it."""


def _rows_of(effects: Array, holding: Holding, spread: GroupSpread) -> Array:
    groups, degrees = holding.groups, holding.degrees(effects, spread)
    every = (effects, groups, degrees, spread.effective, spread.low, spread.high)
    return np.stack(np.broadcast_arrays(*every))


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
    the sum of their squares, and `number` that of the items that weigh anything.

    Notes
    -----
    Weighted counts times the scale add up to Kish's effective number of items,
    (sum w)^2 / sum w^2. The smaller of it and the effective number that the linearised variance,
    the sum of w^2 phi^2 over the influences phi, gives is what intervals rest on.
    """

    squares: ConfusionTable
    scale: float
    number: int

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
        scale = float(np.sum(weights, dtype=np.float64) / np.sum(squared))
        return cls(table, scale, int(np.count_nonzero(weights)))

    def scaled(self, values: Values) -> Values:
        """Return the values of the same table as if it had Kish's number of items."""
        table = values.table
        cells = replace(table.cells, counts=table.cells.counts * self.scale)
        silent = None if table.unclassified is None else table.unclassified * self.scale
        scaled = ConfusionTable(cells, silent)  # not weighted: its counts are effective items
        scores = values.scores
        kept = values.kept_scores
        return compute(scaled, values.options, values.selection, scores, kept_scores=kept)

    def counts(self, universe: Universe) -> Counts:
        """Sums of squared weights as counts, with the pooled column."""
        return Counts.of(self.squares.universe(universe))

    def effects(self, selection: Selection, values: Values, universe: Universe) -> DesignEffects:
        """Compute the effects on the entries of a plan from scaled values of the whole table.

        They are the linearised variances divided by the unweighted ones.
        """
        table = values.table.universe(universe)
        computed = compute(table, values.options, selection)
        of_classes = class_gradient(computed)
        whole = overall_gradient(computed, of_classes)
        codes, squares = coordinates(self.squares.universe(universe))
        at = np.divmod(codes, table.k + 1)
        influences = (whole.only(i).at(*at)[0] for i in range(len(selection.overall)))
        summed = np.array([np.sum(squares * influence**2) for influence in influences])
        overall = self._ratios(computed.overall, summed, variances(whole, table, "random"))
        kinds = slice(CountRow.tp, CountRow.tn + 1)
        above = self.counts(universe).rows[kinds, :-1][:, None] * of_classes.kinds**2
        below = class_variances(computed, of_classes, "random")
        per_class = self._ratios(computed.per_class, np.add.reduce(above, axis=0), below)
        return DesignEffects(*(_of_weights(ratios) for ratios in (per_class, overall)))

    def _ratios(self, values: Array, above: Array, below: Array) -> Array:
        """Linearised variances divided by those of as many unweighted items, at least 1."""
        varying = below > ROUNDED * values * values
        ratios = np.divide(above, below, out=np.zeros(below.shape), where=varying)
        return np.asarray(np.maximum(ratios * self.scale**2, 1.0))


def _of_weights(ratios: Array) -> Array:
    """Return the rows of weighted items, which belong to no groups."""
    many, none = np.full(ratios.shape, np.inf), np.zeros(ratios.shape)
    return np.stack((ratios, many, many, many, none, none))
