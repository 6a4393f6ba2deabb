"""Gradients of both sides of a paired comparison, and the guard of its variances.

If few items were seen, none of them may have flipped although items can. The guard adds one
pseudo-item in each direction (Bonett, Price 2012): 2 max |G_rj - G_rr|^2 over both sides and all
cells of rows that have items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.comparison.paired_variance import PairedItems, parts_of
from rprime.core.estimates import Estimates
from rprime.core.intervals.delta import class_gradient, classified_entries, overall_gradient
from rprime.core.intervals.gradient import CellGradient, ClassGradient, Gradient
from rprime.core.table import ConfusionTable, coordinates
from rprime.core.values import Values, compute

TP, FN, FP, TN = range(4)


@dataclass(frozen=True, eq=False)
class SideGradients:
    """Gradients of the indices of one side, and the effects of single items.

    Notes
    -----
    Where a class has no correct item or is never predicted, an index may have no tangent. There
    the gradient at the row-wise smoothed table replaces it: in the guard always, in the influences
    of the items where the own one does not exist.
    """

    values: Values

    @classmethod
    def of_stack(cls, stack: Estimates) -> "SideGradients":
        """Return those of a stack, computed once for all comparisons of its tables."""
        kept: SideGradients = vars(stack).setdefault("side_gradients", cls(stack.values))
        return kept

    def part(self, position: int, values: Values) -> "SideGradients":
        """Return those of one table of a stack of shape (n,), which has these values."""
        gradients = SideGradients(values)
        if not self.overall.by_cell:
            here = (slice(None), position)
            silent = self.overall.unclassified
            vars(gradients).update(
                of_classes=ClassGradient(self.of_classes.margins[:, *here]),
                overall=Gradient(
                    self.overall.factors[:, *here], None if silent is None else silent[here]
                ),
                class_guard=self.class_guard[here],
                overall_guard=self.overall_guard[here],
            )
        return gradients

    def over_predictions(self, shares: Array) -> "SideGradients":
        """Return those of predictions that are drawn with these shares (k,): none can flip."""
        gradients = SideGradients(self.values)
        overall = self.overall.over_predictions(shares)
        of_classes = self.of_classes.over_predictions(shares)
        vars(gradients).update(
            of_classes=of_classes,
            overall=overall,
            class_guard=np.zeros(of_classes.margins.shape[1:]),
            overall_guard=np.zeros(overall.factors.shape[1:-1]),
        )
        return gradients

    @cached_property
    def of_classes(self) -> ClassGradient:
        """Gradient of the computed per-class indices."""
        gradient = class_gradient(self.values)
        if self._smoothed is None:
            return gradient
        missing = np.isnan(gradient.margins) & self._empty
        return ClassGradient(np.where(missing, self._smoothed[0].margins, gradient.margins))

    @cached_property
    def overall(self) -> Gradient:
        """Gradient of the overall indices."""
        gradient = overall_gradient(self.values, self.of_classes)
        if self._smoothed is None:
            return gradient
        other = self._smoothed[1]
        empty = np.logical_or.reduce(self._empty, axis=-1)
        missing = np.asarray(np.isnan(gradient.factors).any((0, -1)) & empty)[..., None]
        silent = gradient.unclassified
        if silent is not None and other.unclassified is not None:
            silent = np.where(missing, other.unclassified, silent)
        return Gradient(
            np.where(missing, other.factors, gradient.factors), silent, gradient.by_cell
        )

    @cached_property
    def class_guard(self) -> Array:
        """Twice the largest squared effect of an item, shape (computed, ..., k)."""
        units, table = self._units, self.values.table
        outside = None if table.unclassified is None else classified_entries(self.values.selection)
        guard = class_guard(self.of_classes, units, outside)
        if self._smoothed is None:
            return guard
        return np.where(self._empty, class_guard(self._smoothed[0], units, outside), guard)

    @cached_property
    def overall_guard(self) -> Array:
        """Twice the largest squared effect of an item, shape (overall, ...)."""
        guard = overall_guard(self.overall, self._units)
        if self._smoothed is None:
            return guard
        return np.where(self._empty.any(-1), overall_guard(self._smoothed[1], self._units), guard)

    @cached_property
    def _units(self) -> Array:
        """What an item of each class counts in the table, 0 without items, shape (..., k)."""
        values, population = self.values, self.values.options.population
        if population is None or values.sample is None:
            return (values.table.support > 0).astype(np.float64)
        return population.weights(values.sample)

    @cached_property
    def _empty(self) -> Array:
        """Whether a class with items has no correct one or is never predicted, shape (..., k)."""
        table = self.values.table
        return np.asarray(((table.correct == 0) | (table.predicted == 0)) & (table.support > 0))

    @cached_property
    def _smoothed(self) -> tuple[ClassGradient, Gradient] | None:
        """Gradients at the row-wise smoothed table; None if no class is empty."""
        if not self._empty.any():
            return None
        values = self.values
        options = replace(values.options, undefined="null", cell_weights=None)
        near = compute(smoothed_by_rows(values.sampled), options, values.selection)
        margins = class_gradient(near).margins
        if values.counted_as_zero is not None:
            # How much of a class that is never predicted could be right is bounded by its items.
            entries = values.selection.computed
            spans = np.array([e.range[1] - e.range[0] for e in entries])
            spans = spans.reshape(-1, *(1,) * values.table.support.ndim)
            slopes = np.zeros_like(margins)
            slopes[0] = spans / np.maximum(values.table.support, 1.0)
            margins = np.where(values.counted_as_zero, slopes, margins)
        of_classes = ClassGradient(margins)
        return of_classes, overall_gradient(near, of_classes)


def smoothed_by_rows(table: ConfusionTable) -> ConfusionTable:
    """Add one item to each row that has some: half of it correct, the rest spread.

    The rest is spread over the other columns in proportion to their totals + 1/2; unclassified is
    a column. In a sparse table the most frequent other column takes it, so that it stays sparse.
    """
    there = (table.support > 0).astype(np.float64)
    if not isinstance(table.cells, DenseCells):
        return _smoothed_sparse(table, there)
    weights = table.cells.column_sums + 0.5
    if table.unclassified is not None:
        items = np.add.reduce(table.unclassified, axis=-1)[..., None]
        # A table of a stack may have none where another one has some.
        weights = np.concatenate([weights, np.where(items > 0, items + 0.5, 0.0)], axis=-1)
    shares = np.repeat(weights[..., None, :], table.k, axis=-2)
    diagonal = np.arange(table.k)
    shares[..., diagonal, diagonal] = 0.0
    shares *= 0.5 / np.maximum(np.add.reduce(shares, axis=-1), 0.5)[..., None]
    shares[..., diagonal, diagonal] = 0.5
    shares *= there[..., None]
    missing = None if table.unclassified is None else table.unclassified + shares[..., -1]
    counts = table.cells.counts + shares[..., : table.k]
    return ConfusionTable.dense(counts, missing, table.spurious)


def _smoothed_sparse(table: ConfusionTable, there: Array) -> ConfusionTable:
    rows, columns, counts = table.cells.coordinates()
    classes = np.flatnonzero(there)
    second, first = np.argsort(table.predicted)[-2:] if table.k > 1 else (0, 0)
    other = np.where(classes == first, second, first)
    return ConfusionTable.sparse(
        np.concatenate([rows, classes, classes]),
        np.concatenate([columns, classes, other]),
        np.concatenate([counts, np.full(2 * classes.size, 0.5)]),
        table.k,
        unclassified=table.unclassified,
        spurious=table.spurious,
    )


def overall_guard(gradient: Gradient, units: Array) -> Array:
    """Return 2 max |G_rj - G_rr|^2 of one side's overall indices, shape (index, ...).

    `units`, shape (..., k): what an item of each class counts; one without items, 0, cannot flip.
    """
    diagonal, row, column = gradient.factors
    right = column + diagonal
    effects = []
    if column.shape[-1] > 1:
        effects = [np.abs(_others(column, sign) - right) for sign in (1, -1)]
    if gradient.unclassified is not None:
        effects.append(np.abs(gradient.unclassified - row - right))
    largest = np.zeros(column.shape[:-1])
    if effects:
        largest = np.where(units > 0, np.maximum.reduce(effects) * units, 0.0).max(-1)
    for place, by_cell in gradient.by_cell:
        missing = gradient.unclassified is not None
        alone = units.ndim == 1  # of a stack, such an index has no influences
        largest[place] = _largest_by_cell(by_cell, units, missing=missing) if alone else np.nan
    return np.asarray(2 * largest * largest)


def class_guard(gradient: ClassGradient, units: Array, classified: Array | None = None) -> Array:
    """Return 2 max |G_rj - G_rr|^2 over the cells of each class's row and column, (index, ..., k).

    `classified`, shape (index,): whether unclassified items have no influence; None if there are
    none.
    """
    kinds = gradient.kinds
    other = _others(units, 1) if units.shape[-1] > 1 else np.zeros_like(units)
    effects = [np.abs(kinds[FN] - kinds[TP]) * units, np.abs(kinds[FP] - kinds[TN]) * other]
    if classified is not None and classified.any():
        silent = classified.reshape(-1, *(1,) * units.ndim)
        effects += [np.abs(kinds[TP]) * (units * silent), np.abs(kinds[TN]) * (other * silent)]
    largest = np.fmax.reduce(effects)
    return np.asarray(2 * largest * largest)


def _others(values: Array, sign: int) -> Array:
    """Largest (sign 1) or smallest (-1) value among the other classes, shape of `values`."""
    signed = sign * values
    ordered = np.partition(signed, -2, axis=-1)
    unique_first = np.argmax(signed, axis=-1)[..., None] == np.arange(values.shape[-1])
    return sign * np.where(unique_first, ordered[..., -2, None], ordered[..., -1, None])


def _largest_by_cell(by_cell: CellGradient, units: Array, *, missing: bool) -> float:
    """Largest |G_rj - G_rr| of an index of a single table whose gradient has no factors."""
    rows, k = np.flatnonzero(units), len(units)
    right = by_cell(rows, rows)
    effects = (
        (np.abs(by_cell(rows, np.full(rows.shape, j)) - right) * units[rows]).max(initial=0.0)
        for j in range(k + missing)
    )
    return float(max(effects, default=0.0))


Target = tuple[int, int | None]
"""Position of an index among the overall or the reported per-class ones, and of the class."""


def correlation(
    pairs: PairedItems | None, sides: tuple[SideGradients, SideGradients], targets: Sequence[Target]
) -> Array:
    """Correlate differences.

    Those of two independent single tables where there are no pairs; the sides are baseline and
    candidate. Shape (m, m): rows and columns of NaN where an index has no influences, because it
    has no derivative or reads scores. A difference without variance correlates with no other.

    Notes
    -----
    With the influence phi of each paired item on the differences the covariance is
    sum T phi phi' - (sum T phi)(sum T phi)' / w; influences are summed within groups first. For
    two independent tables the covariances of the sides add up.
    """
    with np.errstate(all="ignore"):
        if pairs is not None:
            covariance = _paired(pairs, *sides, targets)
        else:
            covariance = np.add(*(_of_table(side, targets) for side in sides))
        deviation = np.sqrt(np.diag(covariance))
        result = covariance / np.outer(deviation, deviation)
    for places, value in ((deviation == 0, 0.0), (np.isnan(deviation), np.nan)):
        result[places] = result[:, places] = value
    np.fill_diagonal(result, np.where(np.isnan(deviation), np.nan, 1.0))
    return np.clip(result, -1.0, 1.0)


def _paired(
    pairs: PairedItems, old: SideGradients, new: SideGradients, targets: Sequence[Target]
) -> Array:
    joint = pairs.joint

    def influences(part: slice) -> Array:
        true = joint.true[part]
        after = _influences(new, true, joint.new[part], targets)
        return after - _influences(old, true, joint.old[part], targets)

    if pairs.groups is None:
        return _covariance(influences, joint.items, len(targets))
    groups, combination = pairs.grouping
    phi = influences(slice(None))
    centred = phi - (joint.items @ phi) / joint.total
    sums = np.array([np.bincount(groups, column[combination]) for column in centred.T])
    return np.asarray(sums @ sums.T)


def _of_table(side: SideGradients, targets: Sequence[Target]) -> Array:
    # A spurious prediction has no true class, so it is no item.
    codes, items = coordinates(replace(side.values.table, spurious=None))
    true, predicted = np.divmod(codes, side.values.table.k + 1)
    return _covariance(
        lambda part: _influences(side, true[part], predicted[part], targets), items, len(targets)
    )


def _covariance(influences: Callable[[slice], Array], items: Array, count: int) -> Array:
    sums, products = np.zeros(count), np.zeros((count, count))
    for part in parts_of(len(items), count):
        phi = influences(part)
        weighted = phi * items[part, None]
        sums += np.add.reduce(weighted, axis=0)
        products += phi.T @ weighted
    return np.asarray(products - np.outer(sums, sums) / np.add.reduce(items))


def _influences(
    side: SideGradients, true: Array, predicted: Array, targets: Sequence[Target]
) -> Array:
    """Return the influence of an item of each given cell on each target, shape (cells, m)."""
    influences = np.empty((true.size, len(targets)))
    of_class = np.array([label is not None for _, label in targets])
    for i in np.flatnonzero(~of_class).tolist():
        influences[:, i] = side.overall.only(targets[i][0]).at(true, predicted)[0]
    if of_class.any():
        place, label = np.array([target for target in targets if target[1] is not None]).T
        influences[:, of_class] = _of_classes(side, true[:, None], predicted[:, None], place, label)
    return influences


def _of_classes(
    side: SideGradients, true: Array, predicted: Array, place: Array, label: Array
) -> Array:
    """Return the influence of items of each cell (c, 1) on per-class indices (m), as (c, m)."""
    kinds = TN - 2 * (true == label) - (predicted == label)  # TP, FN, FP or TN of the class
    table = side.of_classes.kinds[:, place, label]
    influences = table.ravel().take(kinds * len(label) + np.arange(len(label)))
    unclassified = predicted == side.values.table.k
    if unclassified.any():
        silent = unclassified & classified_entries(side.values.selection)[place]
        influences = np.where(silent, 0.0 * influences, influences)
    return np.asarray(influences)
