"""Variances of indices by the delta method, from their gradients."""

from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import Cells, DenseCells, SparseCells
from rprime.core.counts import CountRow, Counts
from rprime.core.intervals.delta import class_gradient, classified_entries, overall_gradient
from rprime.core.intervals.gradient import CellGradient, ClassGradient, Gradient
from rprime.core.intervals.plan import UniversePlan
from rprime.core.intervals.smoothing import POOLED, SmoothedCells, column_spread, smoothed
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, class_values, pooled_values

Sampling = Literal["random", "fixed_rows"]

# A variance below these shares of its summands is rounding: of the influences (a classifier that
# is always wrong), and of the terms of the influences (one that is never wrong).
ROUNDING = 1e-13
CANCELLED = 1e-24
# Numbers in one part: they fit into the cache, and 100 000 classes into the memory.
BLOCK = 2**17
ENOUGH = 6
"""A variance that rests on so many items rests on no `FEW_ERRORS` of `reliability`."""
MARGINS = np.array([CountRow.tp, CountRow.support, CountRow.predicted, CountRow.total])


@np.errstate(all="ignore")
def class_variances(
    values: Values, gradient: ClassGradient, sampling: Sampling | None = None
) -> Array:
    """Compute the variance of the computed per-class indices by the delta method.

    Shape (computed, ..., k): sum N G^2 - (sum N G)^2 / w, or that within each row where the class
    sizes are fixed by design; exactly 0 where only rounding is left.
    """
    table, kinds = values.table, gradient.kinds
    fixed = (sampling or values.options.sampling) == "fixed_rows"
    result = _within_rows(table, table, kinds) if fixed else _random(table, values.counts, kinds)
    if table.unclassified is not None:
        outside = classified_entries(values.selection)
        classified, kinds, counts = table.classified, kinds[:, outside], values.classified_counts
        result[outside] = (
            _within_rows(classified, table, kinds) if fixed else _random(classified, counts, kinds)
        )
    margins = values.counts.rows[MARGINS, ..., :-1][:, None]
    scale = np.add.reduce(margins * (gradient.margins * gradient.margins), axis=0)
    scale *= CANCELLED
    result[result <= scale] = 0.0
    return result


def _random(table: ConfusionTable, counts: Counts, kinds: Array) -> Array:
    """Compute the variance over all items by kind: TP, FN, FP and TN."""
    items = counts.rows[CountRow.tp : CountRow.tn + 1, ..., :-1]
    if table.spurious is None:
        # The indices do not change with the scale, so their influences have mean 0.
        return np.asarray(np.add.reduce(items[:, None] * (kinds * kinds), axis=0))
    items = items.copy()
    items[2] -= table.spurious
    items[3] -= np.add.reduce(table.spurious, axis=-1)[..., None] - table.spurious
    items = items[:, None]
    mean = np.add.reduce(items * kinds, axis=0) / table.total[..., None]
    return np.asarray(np.add.reduce(items * (kinds - mean) ** 2, axis=0))


def _within_rows(table: ConfusionTable, whole: ConfusionTable, kinds: Array) -> Array:
    """Compute the variance within the rows; items outside the table have no influence.

    Within a row of m items, x of one kind and u without influence, of which the others differ by
    X and Y: x (1 - x/m) X^2 + u (1 - u/m) Y^2 - 2 x u/m X Y.
    """
    correct, support = table.correct, _positive(whole.support)
    gain, error = kinds[0] - kinds[1], kinds[2] - kinds[3]
    spread = table.cells.column_sums - correct - column_spread(table.cells, 1 / support)[1]
    of_correct = correct * (1 - correct / support) * gain**2
    result = of_correct + spread * error**2
    if table is whole or whole.unclassified is None:
        return result
    share = whole.unclassified / support
    left = whole.unclassified * (1 - share)
    others = np.add.reduce(left, axis=-1)[..., None] - left
    met = column_spread(table.cells, share)[0]
    result += left * kinds[1] ** 2 + others * kinds[3] ** 2
    result += 2 * (correct * share * gain * kinds[1] + met * error * kinds[3])
    return result


def _positive(counts: Array) -> Array:
    return np.where(counts > 0, counts, 1.0)


@np.errstate(all="ignore")
def variances(gradient: Gradient, table: ConfusionTable, sampling: Sampling) -> Array:
    """Compute the variance of overall indices by the delta method, shape (n, ...).

    Notes
    -----
    Random sampling adds the variance between the rows to that within them. Both are centred at
    the influence of the correct items, so that nothing large cancels if errors are few.
    """
    indices = gradient.factors.shape[1]
    block = max(1, BLOCK // max(1, table.support.size))
    starts = range(0, max(1, indices), block)
    parts = [_by_factors(gradient.part(i, i + block), table, sampling) for i in starts]
    result = parts[0] if len(parts) == 1 else np.concatenate(parts)
    for place, by_cell in gradient.by_cell:
        result[place] = _variance_by_cell(by_cell, table, sampling)
    return result


def _by_factors(gradient: Gradient, table: ConfusionTable, sampling: Sampling) -> Array:
    diagonal, row, column = gradient.factors
    cells, support = table.cells, table.support
    lost = column + diagonal
    # Over the confusions column[j] - lost[r]: summed by row, squared, and the squared parts.
    wrong, errors = cells.row_sums - table.correct, cells.column_sums - table.correct
    confused = _confused(cells, column)
    drift = confused - wrong * lost
    size = np.vecdot(column * column, errors) + np.vecdot(lost * lost, wrong)
    square = size - 2 * np.vecdot(lost, confused)
    right = row + lost
    if table.unclassified is not None and gradient.unclassified is not None:
        silent = gradient.unclassified - right
        more = np.vecdot(silent * silent, table.unclassified)
        drift, square, size = drift + table.unclassified * silent, square + more, size + more
    shift = drift / (support if support.all() else _positive(support))
    square -= np.vecdot(drift, shift)
    if sampling == "random":
        right += shift
        size += np.vecdot(right * right, support)
        right -= (np.vecdot(right, support) / table.total)[..., None]
        square += np.vecdot(right * right, support)
    scale = np.vecdot(diagonal * diagonal, table.correct) + np.vecdot(row * row, support)
    scale += np.vecdot(column * column, cells.column_sums)
    square[square <= ROUNDING * size + CANCELLED * scale] = 0.0
    return np.asarray(square)


@np.errstate(all="ignore")
def contributing_to_classes(gradient: ClassGradient, counts: Counts, at: int) -> Array:
    """Count the items that variances of per-class indices rest on, shape (computed, ..., k).

    (sum phi^2)^2 / sum phi^4 over the items of table `at` of a stack (2, ...), 0 where nothing
    varies.
    """
    items = counts.rows[CountRow.tp : CountRow.tn + 1, at, ..., :-1][:, None]
    squares = np.square(gradient.kinds[:, :, at])
    weighted = items * squares
    return _number(np.add.reduce(weighted, axis=0), np.add.reduce(weighted * squares, axis=0))


@np.errstate(all="ignore")
def contributing(gradient: Gradient, table: ConfusionTable, at: int, variances: Array) -> Array:
    """Count the items that variances of overall indices rest on, shape (n, ...).

    As for classes; infinite if the variances (n, ...) show that all are enough. The powers of
    row[r] + column[j] are expanded, so that no cell is visited.
    """
    diagonal, row, column = gradient.factors[:, :, at]
    right = diagonal + row + column
    # (sum phi^2)^2 / sum phi^4 is at least sum phi^2 / max phi^2, the sum at least the variance.
    largest = np.maximum(_largest(row) + _largest(column), _largest(right))
    if gradient.unclassified is not None:
        largest = np.maximum(largest, _largest(gradient.unclassified[:, at]))
    if (variances > ENOUGH * largest * largest).all():
        return np.full(variances.shape, np.inf)
    cells: Cells | SmoothedCells = table.cells
    if isinstance(cells, SmoothedCells):
        cells = SmoothedCells(cells.base, cells.more[at], cells.spread[at], cells.weight)
    elif isinstance(cells, DenseCells):
        cells = DenseCells(cells.counts[at])
    hits = cells.diagonal
    rows, columns = cells.row_sums - hits, cells.column_sums - hits
    second, b2 = row * row, column * column
    once, twice, thrice = (_confused(cells, power) for power in (column, b2, b2 * column))
    right = np.square(right)
    square = np.vecdot(second, rows) + np.vecdot(b2, columns) + 2 * np.vecdot(row, once)
    fourth = np.vecdot(second * second, rows) + np.vecdot(b2 * b2, columns)
    fourth += 4 * np.vecdot(second * row, once) + 6 * np.vecdot(second, twice)
    fourth += 4 * np.vecdot(row, thrice)
    square, fourth = square + np.vecdot(right, hits), fourth + np.vecdot(right * right, hits)
    if table.unclassified is not None and gradient.unclassified is not None:
        silent, items = np.square(gradient.unclassified[:, at]), table.unclassified[at]
        square, fourth = square + np.vecdot(silent, items), fourth + np.vecdot(silent**2, items)
    for place, by_cell in gradient.by_cell:
        square[place], fourth[place] = _moments_by_cell(by_cell, table, at)
    return _number(square, fourth)


def _largest(influences: Array) -> Array:
    return np.asarray(np.maximum.reduce(np.abs(influences), axis=-1))


def _number(square: Array, fourth: Array) -> Array:
    return np.where(fourth > 0, square * square / fourth, np.where(np.isnan(fourth), np.nan, 0.0))


def _moments_by_cell(by_cell: CellGradient, table: ConfusionTable, at: int) -> tuple[Array, Array]:
    """Sum the squares and the fourth powers of an influence by cell, shape (...)."""
    cells = table.cells
    rows, columns = np.broadcast_arrays(*cells.positions())
    influence = np.ascontiguousarray(by_cell(rows.ravel(), columns.ravel()))
    squares = np.square(influence.reshape(cells.counts.shape)[at])
    counts, sums = cells.counts[at], []
    silent = None
    if table.unclassified is not None:
        silent = np.square(by_cell(np.arange(table.k), np.full(table.k, table.k)))[at]
    for power in (1, 2):
        total = np.add.reduce(counts * squares**power, axis=(-2, -1))
        if silent is not None and table.unclassified is not None:
            total = total + np.add.reduce(table.unclassified[at] * silent**power, axis=-1)
        sums.append(np.asarray(total))
    return sums[0], sums[1]


MOST_BY_DOTS = 50
"""Most classes for which a product row by row costs no more than a matrix product."""


def _confused(cells: Cells | SmoothedCells, column: Array) -> Array:
    """Sum N_rj column[j] over the confusions of every row, shape (n, ..., k)."""
    if isinstance(cells, SmoothedCells):
        return np.asarray(_confused(cells.base, column) + cells.confused(column))
    if not isinstance(cells, DenseCells):
        sums = np.empty_like(column)
        for place, part in enumerate(column):
            sums[place] = _row_sums(cells, part)
        return sums - column * cells.diagonal
    if cells.k <= MOST_BY_DOTS:
        # The last digit of a result must not depend on the other tables of the stack.
        product = np.vecdot(column[..., None, :], cells.counts)
    else:
        moved = np.moveaxis(column, 0, -2)
        product = np.moveaxis(moved @ np.swapaxes(cells.counts, -1, -2), -2, 0)
    # With an exact product for a diagonal table, the difference is exactly 0 there.
    return np.asarray(product - column * cells.diagonal)


def _row_sums(cells: SparseCells, column: Array) -> Array:
    parts = cells.counts * cells.by_column(column)
    if parts.ndim > 2:
        return cells.row_totals(parts)
    sums = [np.bincount(cells.rows, part, cells.k) for part in np.atleast_2d(parts)]
    return np.stack(sums).reshape(*parts.shape[:-1], cells.k)


def _variance_by_cell(by_cell: CellGradient, table: ConfusionTable, sampling: Sampling) -> Array:
    """Compute the variance of an index with a gradient by cell, shape (...)."""
    cells = table.cells
    rows, columns = np.broadcast_arrays(*cells.positions())
    # In rows, so that the last digit of a sum does not depend on the other tables of the stack.
    influence = np.ascontiguousarray(by_cell(rows.ravel(), columns.ravel()))
    influence = influence.reshape(cells.counts.shape)
    counts = cells.counts
    squares, sums = counts * influence**2, cells.row_totals(counts * influence)
    square = cells.row_totals(squares)
    if table.unclassified is not None:
        silent = by_cell(np.arange(table.k), np.full(table.k, table.k))
        square += table.unclassified * silent**2
        sums += table.unclassified * silent
    total = np.add.reduce(square, axis=-1)
    if sampling == "random":
        explained = np.add.reduce(sums, axis=-1) ** 2 / table.total
    else:
        explained = np.add.reduce(sums**2 / _positive(table.support), axis=-1)
    return np.where(total - explained <= ROUNDING * total, 0.0, total - explained)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The smoothed tables of a plan with their values and variances.

    Values are of the stack (2, ...) of the pooled and the row-wise table, the overall ones of shape
    (o, 2, ...) in the order of the plan. Variances have the shapes (c, 2, ..., k) and (o, 2, ...).
    `growth`, shape (...), is the items of the observed table divided by those of the pooled one.
    `class_contributing` (c, ..., k) and `contributing` (o, ...) are the numbers of items of the
    pooled table that the variances rest on.
    """

    values: Values
    overall: Array
    class_variances: Array
    variances: Array
    growth: Array
    class_contributing: Array
    contributing: Array

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, plan: UniversePlan, values: Values, table: ConfusionTable) -> "Smoothed":
        """Smooth the table of a universe of the observed values."""
        more = smoothed(table)
        if plan.by_cell:
            more = replace(more, cells=cast("SmoothedCells", more.cells).dense())
        options, selection = values.options, plan.selection
        if options.cell_weights is not None or options.undefined != "null":
            options = replace(options, cell_weights=None, undefined="null")
        counts = Counts.of(more, options.beta)
        ratios = class_values(selection, counts)
        per_class, pooled = ratios[..., :-1], pooled_values(selection, ratios, more, options)
        smooth = Values(more, options, selection, counts, counts, per_class, pooled, per_class)
        slopes = class_gradient(smooth, per_class)
        smooth = as_observed(plan.class_places, values, smooth, slopes, plan.odds_ratio)
        overall = smooth.averages()
        gradient = overall_gradient(smooth, slopes, overall)
        for place in plan.formulas:
            overall[place] = smooth.formula(selection.overall[place])
        of_classes = class_variances(smooth, slopes, options.sampling)
        whole = variances(gradient, more, options.sampling)
        numbers = (
            contributing_to_classes(slopes, counts, POOLED),
            contributing(gradient, more, POOLED, whole[:, POOLED]),
        )
        growth = table.total / more.total[POOLED]
        return cls(smooth, overall, of_classes, whole, growth, *numbers)


def as_observed(
    places: Array,
    values: Values,
    smooth: Values,
    gradient: ClassGradient,
    odds_ratio: int | None = None,
) -> Values:
    """Let the same classes take part as at the observed tables, with the same fixed values.

    Changes the gradient of the smoothed values `smooth`. The places are those of the per-class
    entries among the observed ones, -1 for none; the odds ratio keeps its own values.
    """
    if values.complete and values.class_reasons is None:
        return smooth
    per_class, averaged = smooth.per_class.copy(), smooth.per_class.copy()
    for i in np.flatnonzero(places >= 0):
        if i == odds_ratio:
            continue
        observed = values.per_class[places[i]]
        fixed = ~np.isfinite(observed)
        if values.counted_as_zero is not None:
            fixed &= ~values.counted_as_zero[places[i]]
        filler = np.where(values.defined[places[i]], values.averaged[places[i]], np.nan)
        per_class[i] = np.where(fixed, np.nan, per_class[i])
        averaged[i] = np.where(fixed | np.isnan(filler), filler, averaged[i])
        gradient.margins[:, i] = np.where(fixed, 0.0, gradient.margins[:, i])
    result = replace(smooth, per_class=per_class, averaged=averaged)
    if values.options.undefined != "null":
        options = replace(smooth.options, undefined=values.options.undefined)
        result = replace(result, options=options)
    return result
