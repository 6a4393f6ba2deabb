"""Exact derivatives of smooth indices by the counts, for the delta method.

The complex step differentiates a formula without changes: Im f(x + ih) / h is exact to the last
digit, since nothing is subtracted. It needs formulas without abs, max or rounding, so entries
without an interval have no gradient here.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.families.moments import Moments
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.intervals.smooth_indices import (
    SmoothOverallIndices,
    smooth_class_indices,
    smooth_overall_indices,
)
from rprime.core.selection import Selection
from rprime.core.values import Values

STEP = 1e-30
# One item changes a bounded index by about 1 at most; more means the square root of a zero.
STEEPEST = 100.0


@lru_cache(maxsize=64)
def row_gradients(beta: float, classes: int = 1) -> Array:
    """Derivatives of the `CountRow`s of `Counts`, which are linear in the margins.

    Parameters
    ----------
    beta
        Weight of recall in F-beta.
    classes
        Number of classes that the counts pool: w enters the pooled TN once for each.

    Returns
    -------
    Shape (len(CountRow), 4): by a, m, s and w, `answered` for a classified item.
    """
    correct, support, predicted, total = np.eye(4)
    counts = Counts.from_margins(
        correct,
        support,
        predicted,
        total=total,
        outcomes=classes * total,
        answered=support,
        beta=beta,
    )
    return counts.rows


@np.errstate(all="ignore")
def class_gradient(values: Values, found: Array | None = None) -> ClassGradient:
    """Differentiate all computed per-class indices at once.

    Parameters
    ----------
    found
        Filled with the values of functions of the counts, which the complex step computes, too.

    Returns
    -------
    Derivatives of shape (4, computed, ..., k), by the quotient rule for ratios of counts, by the
    complex step for other formulas. Zero where a value does not exist.
    """
    selection = values.selection
    functions, rough, bounded = smooth_class_indices(selection)
    margins = np.zeros((4, *values.per_class.shape))
    _step_functions(values, functions, margins, found)
    exists = np.isfinite(values.per_class)
    margins /= STEP
    if np.fmax.reduce(margins[3], axis=None, initial=0.0) > STEEPEST:
        _drop_singular(bounded, margins)
    margins[:, rough] = np.nan
    ratios = values.per_class[selection.ratios]
    margins[:, selection.ratios] = ratio_margins(
        values, selection.numerators, selection.denominators, ratios
    )
    if not exists.all():
        margins[:, ~exists] = 0.0
    return ClassGradient(margins)


def ratio_margins(values: Values, numerators: Array, denominators: Array, ratios: Array) -> Array:
    """Differentiate ratios of the counts of the classes.

    Parameters
    ----------
    numerators, denominators
        Shape (n,): `CountRow`s.
    ratios
        Shape (n, ..., k): their values.

    Returns
    -------
    Shape (4, n, ..., k).
    """
    linear = row_gradients(values.options.beta).T
    shape = (4, len(numerators), *(1,) * (ratios.ndim - 1))
    by_numerator = linear[:, numerators].reshape(shape)
    by_denominator = linear[:, denominators].reshape(shape)
    result = by_denominator * ratios
    np.subtract(by_numerator, result, out=result)
    result /= values.counts.rows[..., :-1][denominators]
    return result


def _step_functions(
    values: Values, functions: tuple[int, ...], margins: Array, found: Array | None
) -> None:
    """Fill in the derivatives of formulas that are functions of `Counts`."""
    if not functions:
        return
    everything = _stepped(values.counts, values.options.beta)
    classified = everything
    if values.classified_counts is not values.counts:
        classified = _stepped(values.classified_counts, values.options.beta)
    for place in functions:
        entry = values.selection.computed[place]
        counts = everything if entry.universe == "all" else classified
        stepped = entry.formula(counts)
        margins[:, place] = stepped.imag
        if found is not None:
            found[place] = stepped[0].real


def _stepped(counts: Counts, beta: float) -> Counts:
    """Step each margin of the class in turn into the imaginary direction."""
    rows = counts.rows[..., :-1]
    linear = row_gradients(beta)
    stepped = np.empty((len(CountRow), 4, *rows.shape[1:]), dtype=np.complex128)
    stepped.real = rows[:, None]
    stepped.imag = STEP * linear.reshape(*linear.shape, *(1,) * (rows.ndim - 1))
    return Counts(stepped)


def _drop_singular(bounded: Array, margins: Array) -> None:
    """Set gradients without a tangent to NaN: G-mean where no item is rejected."""
    steep = margins[3, bounded] > STEEPEST
    margins[:, bounded] = np.where(steep, np.nan, margins[:, bounded])


@np.errstate(all="ignore")
def overall_gradient(values: Values, gradient: ClassGradient | None = None) -> Gradient:
    """Differentiate all overall indices of the selection.

    Parameters
    ----------
    gradient
        From `class_gradient`, if already computed.

    Returns
    -------
    Gradients in the order of the overall entries; NaN for those without a derivative.
    """
    entries = smooth_overall_indices(values.selection)
    own = class_gradient(values) if gradient is None else gradient
    plain = macro_weights(values, entries.macro_of)
    found = overall_terms(values, own, entries.macro_of, plain)
    shape = (len(values.selection.overall), *values.table.support.shape)
    factors = np.full((3, *shape), np.nan)
    factors[:, entries.order] = found.factors
    unclassified = None
    if found.unclassified is not None:
        unclassified = np.full(shape, np.nan)
        unclassified[entries.order] = found.unclassified
    by_cell = tuple((int(entries.order[i]), cells) for i, cells in found.by_cell)
    return Gradient(factors, unclassified, by_cell)


def macro_weights(values: Values, places: Array) -> Array:
    """Compute each class's share in macro averages of per-class entries, shape (n, ..., k)."""
    if values.complete:
        return np.full((len(places), *values.table.support.shape), 1 / values.table.k)
    defined = values.defined[places]
    return np.asarray(defined / np.add.reduce(defined, axis=-1)[..., None])


def overall_terms(
    values: Values,
    gradient: ClassGradient,
    macro_of: Array,
    macro: Array,
    found: Array | None = None,
) -> Gradient:
    """Differentiate overall indices: given averages, then the other smooth overall indices.

    Parameters
    ----------
    macro_of
        Shape (m,): the per-class entries to average first.
    macro
        Shape (m, ..., k): their coefficients.
    found
        Filled with the overall values of functions of `Moments`, which the complex step computes,
        too.

    Returns
    -------
    Gradients in the order averages, weighted, means, pooled, moments, by cell.
    """
    entries = smooth_overall_indices(values.selection)
    blocks = [
        *_averages(values, gradient, macro_of, macro),
        pooled_gradient(values, entries.numerators, entries.denominators),
        *_moments(values, entries, found),
        *_by_cell(values, entries),
    ]
    factors = np.concatenate([block.factors for block in blocks], axis=1)
    silent = [block.unclassified for block in blocks if block.unclassified is not None]
    first = factors.shape[1] - len(entries.by_cell)
    by_cell = tuple((first + i, g) for block in blocks for i, g in block.by_cell)
    return Gradient(factors, np.concatenate(silent) if silent else None, by_cell)


@lru_cache(maxsize=256)
def classified_entries(selection: Selection) -> Array:
    """Whether the universe of the per-class entries is the classified items, shape (computed,)."""
    return np.array([entry.universe == "classified" for entry in selection.computed], dtype=bool)


def _averages(
    values: Values, gradient: ClassGradient, macro_of: Array, macro: Array
) -> Iterator[Gradient]:
    """Differentiate the given averages, the weighted ones, and functions of macro averages."""
    entries, table = smooth_overall_indices(values.selection), values.table
    places = np.concatenate((macro_of, entries.weighted_of, entries.means_of))
    given, last = len(macro_of), len(macro_of) + len(entries.weighted_of)
    coefficients = np.empty((len(places), *table.support.shape))
    coefficients[:given] = macro
    coefficients[given:last] = table.support / table.total[..., None]
    _mean_weights(values, entries, coefficients[last:])
    parts = gradient.margins.take(places, axis=1)
    parts *= coefficients
    factors, row = parts[:3], parts[1]
    row += np.add.reduce(parts[3], axis=-1)[..., None]
    silent = _silent(values, places, row)
    moved = _moved_weights(values, entries.weighted_of)
    row[given:last] += moved
    if silent is not None:
        silent[given:last] += moved
    yield Gradient(factors[:, :last], None if silent is None else silent[:last])
    if len(entries.means):
        sums = np.add.reduceat(factors[:, last:], entries.means_from, axis=1)
        quiet = None if silent is None else np.add.reduceat(silent[last:], entries.means_from)
        yield Gradient(sums, quiet)


def _silent(values: Values, places: Array, row: Array) -> Array | None:
    """Return the influence of unclassified items on combinations of per-class entries."""
    if values.table.unclassified is None:
        return None
    outside = classified_entries(values.selection)[places]
    return np.where(outside.reshape(-1, *(1,) * (row.ndim - 1)), 0.0, row)


def _moved_weights(values: Values, places: Array) -> Array:
    """Return an item's influence on weighted averages through the weight m_i of its class."""
    averaged = values.averaged[places]
    if not values.complete:
        averaged = np.where(values.defined[places], averaged, 0.0)
    moved = averaged - values.weighted[places][..., None]
    moved /= values.table.total[..., None]
    return np.asarray(moved)


def _mean_weights(values: Values, entries: SmoothOverallIndices, weights: Array) -> None:
    """Fill in the derivatives of functions of macro averages by the values of each class."""
    if not len(entries.means):
        return
    weights[...] = macro_weights(values, entries.means_of)
    place = 0
    for entry in (values.selection.overall[i] for i in entries.means):
        means = values.means(entry)
        for i, key in enumerate(entry.of):
            stepped = [*means[:i], means[i] + STEP * 1j, *means[i + 1 :]]
            weights[place] *= (entry.formula(*stepped).imag / STEP)[..., None]
            if entry.through is not None:
                _through(values, entry.through, values.selection.place[key], weights[place])
            place += 1


def _through(values: Values, function: Callable[[Array], Array], own: int, weights: Array) -> None:
    """Multiply by the derivative of the function that is averaged instead of the values."""
    weights *= function(values.averaged[own] + STEP * 1j).imag / STEP
    weights[~values.defined[own]] = 0.0


def pooled_gradient(values: Values, numerators: Array, denominators: Array) -> Gradient:
    """Differentiate ratios of pooled counts, given as `CountRow`s, by the quotient rule."""
    table = values.table
    linear = row_gradients(values.options.beta, table.k).T
    shape = (4, len(numerators), *(1,) * (table.support.ndim - 1))
    pooled = values.counts.rows[..., -1]
    below = pooled[denominators]
    ratios = pooled[numerators] / below
    steps = linear[:, denominators].reshape(shape) * ratios
    np.subtract(linear[:, numerators].reshape(shape), steps, out=steps)
    steps /= below
    steps[1] += steps[3]
    factors = np.empty((3, len(numerators), *table.support.shape))
    factors[...] = steps[:3, ..., None]
    if table.unclassified is None:
        return Gradient(factors)
    above, beneath = (
        (rows == CountRow.answered).reshape(shape[1:]) for rows in (numerators, denominators)
    )
    silent = steps[1] - (above - ratios * beneath) / below
    return Gradient(factors, np.broadcast_to(silent[..., None], factors.shape[1:]))


def _moments(
    values: Values, entries: SmoothOverallIndices, found: Array | None
) -> Iterator[Gradient]:
    """Differentiate functions of `Moments` by the sums, then by the chain rule."""
    if not len(entries.moments):
        return
    table, sums = values.table.classified, values.moments
    total, correct, products, support_squares, predicted_squares = _stepped_sums(
        sums.total, sums.correct, sums.products, sums.support_squares, sums.predicted_squares
    )
    kept = sums.attainable, sums.k  # no smooth index reads them
    stepped = Moments(total, correct, products, support_squares, predicted_squares, *kept)
    by_sum = np.empty((5, len(entries.moments), *table.stack_shape, 1))
    for i, place in enumerate(entries.moments):
        change = values.selection.overall[place].formula(stepped)
        by_sum[:, i, ..., 0] = change.imag
        if found is not None:
            found[place] = change[0].real
    by_sum /= STEP
    total, correct, products, support_squares, predicted_squares = by_sum
    factors = np.empty((3, len(entries.moments), *table.support.shape))
    factors[0] = correct
    factors[1] = total + products * table.predicted + 2 * support_squares * table.support
    factors[2] = products * table.support + 2 * predicted_squares * table.predicted
    silent = None if values.table.unclassified is None else np.zeros(factors.shape[1:])
    yield Gradient(factors, silent)


def _stepped_sums(*sums: Array) -> Array:
    """Step each of n sums (...) in turn into the imaginary direction, shape (n, n, ...)."""
    number = len(sums)
    stepped = np.zeros((number, number, *np.shape(sums[0])), dtype=np.complex128)
    for i, part in enumerate(sums):
        stepped[i] = part
        stepped[i, i] += 1j * STEP
    return stepped


def _by_cell(values: Values, entries: SmoothOverallIndices) -> Iterator[Gradient]:
    """Yield the gradients of entries whose gradient differs from cell to cell."""
    if not len(entries.by_cell):
        return
    found = [values.selection.overall[place] for place in entries.by_cell]
    gradients = tuple(
        (i, partial(entry.cell_gradient, values.table, *values.option(entry)))
        for i, entry in enumerate(found)
        if entry.cell_gradient is not None
    )
    factors = np.full((3, len(found), *values.table.support.shape), np.nan)
    yield Gradient(factors, None if values.table.unclassified is None else factors[1], gradients)
