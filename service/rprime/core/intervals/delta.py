"""Exact derivatives of smooth indices by the counts, for the delta method.

The complex step differentiates a formula without changes: Im f(x + ih) / h is exact to the last
digit, since nothing is subtracted. It needs formulas without abs, max or rounding, so entries
without an interval have no gradient here.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.counts import CountRow, Counts
from rprime.core.custom import CELLS, COUNTS, ITEMS, CustomIndex, Term
from rprime.core.intervals.gradient import CellGradient, ClassGradient, Gradient
from rprime.core.selection import Selection
from rprime.core.values import Values, taken

STEP = 1e-30
# One item changes a bounded index by about 1 at most; more means the square root of a zero.
STEEPEST = 100.0


@lru_cache(maxsize=256)
def classified_entries(selection: Selection) -> Array:
    """Whether the universe of the per-class entries is the classified items, shape (computed,)."""
    return np.array([entry.universe == "classified" for entry in selection.computed], dtype=bool)


@lru_cache(maxsize=256)
def smooth_class_indices(selection: Selection) -> tuple[tuple[int, ...], Array, Array]:
    """Return the functions of counts with a derivative, without one, and those of finite range."""
    computed = selection.computed
    smooth = tuple(i for i in selection.functions if computed[i].interval is not None)
    rough = integers(i for i in selection.functions if computed[i].interval is None)
    return smooth, rough, integers(i for i in smooth if np.isfinite(computed[i].range).all())


@dataclass(frozen=True, eq=False)
class SmoothOverallIndices:
    """The differentiable overall indices of a selection, by what they read.

    Parameters
    ----------
    macro, weighted, means, pooled, moments, by_cell, custom
        Positions among the overall entries.
    averaged
        Positions of the per-class entries behind macro, weighted and means, in this order; several
        for a function of several means.
    means_from
        Start of the averages of each function of means among theirs.
    numerators, denominators
        Terms of the pooled ratios, as `CountRow`s.
    micro
        Which of the pooled ratios are averages.
    """

    macro: Array
    weighted: Array
    means: Array
    averaged: Array
    means_from: Array
    pooled: Array
    numerators: Array
    denominators: Array
    micro: Array
    moments: Array
    by_cell: Array
    custom: Array


@lru_cache(maxsize=256)
def smooth_overall_indices(selection: Selection) -> SmoothOverallIndices:
    """Group the differentiable overall entries of a selection."""
    overall, place = selection.overall, selection.place
    smooth = [(i, entry) for i, entry in enumerate(overall) if entry.interval and not entry.scored]

    def reading(*kinds: str) -> Array:
        return integers(i for i, entry in smooth if entry.reads in kinds)

    macro, weighted, means = reading("macro"), reading("weighted"), reading("means")
    pooled = reading("micro", "ratio")
    sizes = [len(overall[i].of) for i in means]
    return SmoothOverallIndices(
        macro=macro,
        weighted=weighted,
        means=means,
        averaged=integers(
            place[key] for kind in (macro, weighted, means) for i in kind for key in overall[i].of
        ),
        means_from=integers(sum(sizes[:i]) for i in range(len(sizes))),
        pooled=pooled,
        numerators=integers(overall[i].rows[0] for i in pooled),
        denominators=integers(overall[i].rows[1] for i in pooled),
        micro=positions(overall[i].reads == "micro" for i in pooled),
        moments=reading("moments"),
        by_cell=reading("table", "association"),
        custom=reading("custom"),
    )


@lru_cache(maxsize=64)
def row_gradients(beta: float, classes: int = 1) -> Array:
    """Derivatives of the `CountRow`s of `Counts`, which are linear in the margins.

    Shape (len(CountRow), 4): by a, m, s and w, `answered` for a classified item. If the counts pool
    several classes, w enters the pooled TN once for each.
    """
    correct, support, predicted, total = np.eye(4)
    margins = np.array((correct, support, predicted, support))
    return Counts.from_margins(margins, total=total, outcomes=classes * total, beta=beta).rows


@np.errstate(all="ignore")
def class_gradient(values: Values, per_class: Array | None = None) -> ClassGradient:
    """Differentiate all computed per-class indices at once; zero where a value does not exist.

    Ratios of counts by the quotient rule, other formulas by the complex step, which computes their
    values, too: these are filled into `per_class`.
    """
    selection = values.selection
    functions, rough, bounded = smooth_class_indices(selection)
    margins = np.zeros((4, *values.per_class.shape))
    _step_functions(values, functions, margins, per_class)
    margins /= STEP
    if np.fmax.reduce(margins[3], axis=None, initial=0.0) > STEEPEST:
        # No tangent: G-mean where no item is rejected.
        steep = margins[3, bounded] > STEEPEST
        margins[:, bounded] = np.where(steep, np.nan, margins[:, bounded])
    margins[:, rough] = np.nan
    linear = row_gradients(values.options.beta).T[..., None]
    linear = linear.reshape(*linear.shape[:2], *(1,) * (margins.ndim - 2))
    steps = linear[:, selection.denominators] * values.per_class[selection.ratios]
    np.subtract(linear[:, selection.numerators], steps, out=steps)
    steps /= values.counts.rows[..., :-1][selection.denominators]
    margins[:, selection.ratios] = steps
    exists = np.isfinite(values.per_class)
    if not exists.all():
        margins[:, ~exists] = 0.0
    return ClassGradient(margins)


def _step_functions(
    values: Values, functions: tuple[int, ...], margins: Array, per_class: Array | None
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
        stepped = entry.formula(everything if entry.universe == "all" else classified)
        margins[:, place] = stepped.imag
        if per_class is not None:
            per_class[place] = stepped[0].real


def _stepped(counts: Counts, beta: float) -> Counts:
    """Step each margin of the class in turn into the imaginary direction."""
    rows = counts.rows[..., :-1]
    linear = row_gradients(beta)
    stepped = np.empty((len(CountRow), 4, *rows.shape[1:]), dtype=np.complex128)
    stepped.real = rows[:, None]
    stepped.imag = STEP * linear.reshape(*linear.shape, *(1,) * (rows.ndim - 1))
    return Counts(stepped)


@np.errstate(all="ignore")
def overall_gradient(
    values: Values, gradient: ClassGradient | None = None, overall: Array | None = None
) -> Gradient:
    """Differentiate all overall indices of the selection; NaN for those without a derivative.

    The `gradient` is that of `class_gradient`, if already computed. The values of functions of
    `Moments`, which the complex step computes, too, are filled into `overall`.
    """
    selection, table = values.selection, values.table
    entries = smooth_overall_indices(selection)
    shape = (len(selection.overall), *table.support.shape)
    result = Gradient(
        np.full((3, *shape), np.nan),
        None if table.unclassified is None else np.full(shape, np.nan),
        tuple(
            (place, partial(entry.influence, table, taken(values.options, entry)))
            for place in entries.by_cell.tolist()
            if (entry := selection.overall[place]).cell_gradient is not None
        )
        + _of_expressions(values, entries.custom),
    )
    if entries.averaged.size:
        of_classes = class_gradient(values) if gradient is None else gradient
        _differentiate_averages(values, entries, of_classes, result)
    if entries.pooled.size:
        _differentiate_pooled(values, entries, result)
    if entries.moments.size:
        _differentiate_moments(values, entries, overall, result)
    return result


def _of_expressions(values: Values, places: Array) -> tuple[tuple[int, CellGradient], ...]:
    """Return the gradients of indices of one's own, by their positions."""
    if not places.size:
        return ()
    behind = values.behind_custom
    of_classes = class_gradient(behind)
    parts = of_classes, overall_gradient(behind, of_classes)
    entries = [(place, values.selection.overall[place]) for place in places.tolist()]
    declared = [(place, values.custom(entry.key)) for place, entry in entries]
    return tuple((place, _of_expression(values, c, *parts)) for place, c in declared if c)


def _of_expression(
    values: Values, custom: CustomIndex, of_classes: ClassGradient, whole: Gradient
) -> CellGradient:
    """Differentiate an expression by its terms, and these by the cells: the chain rule.

    One that grows with the counts has no gradient here, since its variance does, too.
    """
    expression, behind = custom.read, values.behind_custom
    observed = [value for value, _ in values.terms(custom)]
    slopes = []
    for place in range(len(observed)):
        stepped = [*observed[:place], observed[place] + STEP * 1j, *observed[place + 1 :]]
        slopes.append(np.imag(expression.of(stepped, np.float64)) / STEP)
    numbers = dict(custom.places)
    outside = classified_entries(behind.selection)
    linear = row_gradients(values.options.beta)

    def of_term(term: Term, rows: Array, columns: Array) -> Array:
        at = [values.table.k if label is None else numbers[label] for label in term.classes]
        if term.key == ITEMS:
            return np.ones(rows.shape)
        if term.key == CELLS:
            return ((rows == at[0]) & (columns == at[1])).astype(np.float64)
        if not at:
            return whole.at(rows, columns)[behind.selection.overall_place[term.key]]
        if term.key in COUNTS:
            return _of_class(linear[COUNTS[term.key]], at[0], rows, columns)
        place = behind.selection.place[term.key]
        change = _of_class(of_classes.margins[:, place, ..., at[0]], at[0], rows, columns)
        return np.where(outside[place] & (columns == values.table.k), 0.0, change)

    def gradient(rows: Array, columns: Array) -> Array:
        changes = np.full((*values.table.stack_shape, rows.size), 0.0)
        if not expression.scale_invariant:
            return changes * np.nan
        with np.errstate(all="ignore"):
            for term, slope in zip(expression.terms, slopes, strict=True):
                changes += np.asarray(slope)[..., None] * of_term(term, rows, columns)
        return changes

    return gradient


def _of_class(margins: Array, number: int, rows: Array, columns: Array) -> Array:
    """Return the change of a number of one class, with margins (4, ...), by cells: (..., c)."""
    kinds = ClassGradient(margins[:, None]).kinds[:, 0]
    wrong = np.where(columns == number, 0, 1)
    return np.moveaxis(kinds[np.where(rows == number, wrong, 2 + wrong)], 0, -1)


def macro_weights(values: Values, places: Array) -> Array:
    """Compute each class's share in macro averages of per-class entries, shape (n, ..., k)."""
    if values.complete:
        return np.full((len(places), *values.table.support.shape), 1 / values.table.k)
    defined = values.defined[places]
    return np.asarray(defined / np.add.reduce(defined, axis=-1)[..., None])


def _differentiate_averages(
    values: Values, entries: SmoothOverallIndices, gradient: ClassGradient, result: Gradient
) -> None:
    """Fill in macro and weighted averages, and functions of macro averages."""
    table, places = values.table, entries.averaged
    first, last = len(entries.macro), len(entries.macro) + len(entries.weighted)
    weighted_of = places[first:last]
    coefficients = np.empty((len(places), *table.support.shape))
    coefficients[:first] = macro_weights(values, places[:first])
    support, total = values.averaged_items
    coefficients[first:last] = support / total[..., None]
    if last < len(places):
        coefficients[last:] = macro_weights(values, places[last:])
        _through_means(values, entries, coefficients[last:])
    # An item also moves weighted averages through the weight m_i of its class.
    averaged = values.averaged[weighted_of]
    if not values.complete:
        averaged = np.where(values.defined[weighted_of], averaged, 0.0)
    moved = (averaged - values.weighted[weighted_of][..., None]) / total[..., None]
    if values.averaged_classes is not None:
        moved *= values.averaged_classes
    parts = gradient.margins.take(places, axis=1)
    parts *= coefficients
    factors, row = parts[:3], parts[1]
    row += np.add.reduce(parts[3], axis=-1)[..., None]
    targets = [(result.factors, factors)]
    if result.unclassified is not None:
        outside = classified_entries(values.selection)[places]
        silent = np.where(outside.reshape(-1, *(1,) * (row.ndim - 1)), 0.0, row)
        silent[first:last] += moved
        targets.append((result.unclassified[None], silent[None]))
    row[first:last] += moved
    averages = np.concatenate((entries.macro, entries.weighted))
    for target, part in targets:
        target[:, averages] = part[:, :last]
        if last < len(places):
            sums = np.add.reduceat(part[:, last:], entries.means_from, axis=1)
            target[:, entries.means] = sums


def _through_means(values: Values, entries: SmoothOverallIndices, weights: Array) -> None:
    """Multiply weights in macro averages by the derivatives of the functions of these averages."""
    place = 0
    for entry in (values.selection.overall[i] for i in entries.means):
        means = values.means(entry)
        for i, key in enumerate(entry.of):
            stepped = [*means[:i], means[i] + STEP * 1j, *means[i + 1 :]]
            weights[place] *= (entry.formula(*stepped).imag / STEP)[..., None]
            if key == "prevalence" and values.averaged_classes is not None:  # see `Values.means`
                weights[place] = 0.0
            if entry.through is not None:
                row = values.selection.place[key]
                weights[place] *= entry.through(values.averaged[row] + STEP * 1j).imag / STEP
                weights[place, ~values.defined[row]] = 0.0
            place += 1


def _differentiate_pooled(values: Values, entries: SmoothOverallIndices, result: Gradient) -> None:
    """Fill in ratios of pooled counts by the quotient rule."""
    inside = values.averaged_classes
    if inside is None:
        _differentiate_ratios(values, entries, np.arange(len(entries.pooled)), result)
        return
    whole = np.setdiff1d(np.arange(len(entries.pooled)), entries.micro)
    _differentiate_ratios(values, entries, whole, result)
    _differentiate_ratios(values, entries, entries.micro, result, inside)


def _differentiate_ratios(
    values: Values,
    entries: SmoothOverallIndices,
    chosen: Array,
    result: Gradient,
    inside: Array | None = None,
) -> None:
    """Fill in some of the ratios of pooled counts, of all classes or of those `inside`, (k,)."""
    table, above, beneath = values.table, entries.numerators[chosen], entries.denominators[chosen]
    classes = table.k if inside is None else int(np.count_nonzero(inside))
    linear = row_gradients(values.options.beta, classes).T
    shape = (4, len(above), *(1,) * (table.support.ndim - 1))
    pooled = values.counts.rows[..., -1] if inside is None else values.pooled_rows
    below = pooled[beneath]
    ratios = pooled[above] / below
    steps = linear[:, beneath].reshape(shape) * ratios
    np.subtract(linear[:, above].reshape(shape), steps, out=steps)
    steps /= below
    of_class = np.ones(1) if inside is None else inside
    parts = steps[..., None] * of_class
    parts[1] += steps[3][..., None]
    result.factors[:, entries.pooled[chosen]] = parts[:3]
    if result.unclassified is not None:
        answered = ((rows == CountRow.answered).reshape(shape[1:]) for rows in (above, beneath))
        by_numerator, by_denominator = answered
        silent = (by_numerator - ratios * by_denominator) / below
        result.unclassified[entries.pooled[chosen]] = parts[1] - silent[..., None] * of_class


def _differentiate_moments(
    values: Values, entries: SmoothOverallIndices, overall: Array | None, result: Gradient
) -> None:
    """Fill in functions of `Moments`: by the sums, then by the chain rule."""
    table, moments = values.table.classified, values.moments
    names = ("total", "correct", "products", "support_squares", "predicted_squares")
    sums = np.array([getattr(moments, name) for name in names])
    # Step each sum in turn into the imaginary direction; no smooth index reads the others.
    directions = np.eye(len(sums)).reshape(len(sums), len(sums), *(1,) * (sums.ndim - 1))
    steps = sums[:, None] + 1j * STEP * directions
    stepped = replace(moments, **dict(zip(names, steps, strict=True)))
    by_sum = np.empty((len(sums), len(entries.moments), *table.stack_shape, 1))
    for i, place in enumerate(entries.moments):
        change = values.selection.overall[place].formula(stepped)
        by_sum[:, i, ..., 0] = change.imag
        if overall is not None:
            overall[place] = change[0].real
    by_sum /= STEP
    total, correct, products, support_squares, predicted_squares = by_sum
    places = entries.moments
    result.factors[0, places] = correct
    by_class = products * table.predicted + 2 * support_squares * table.support
    result.factors[1, places] = total + by_class
    result.factors[2, places] = products * table.support + 2 * predicted_squares * table.predicted
    if result.unclassified is not None:
        result.unclassified[places] = 0.0
