"""Intervals and standard errors of the indices of a population, stratified by the true class.

With the influences phi of the items on an index, and W of the population in a stratum of n items,
the variance is the sum over the strata of W^2 / n times the variance of phi within the stratum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array, integers, positions
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.families.one_vs_rest import PREVALENCE, RECALL
from rprime.core.index import Index
from rprime.core.intervals.delta import (
    class_gradient,
    classified_entries,
    overall_gradient,
    row_gradients,
    smooth_overall_indices,
)
from rprime.core.intervals.gradient import ClassGradient, Gradient
from rprime.core.intervals.methods import (
    AVERAGE,
    MISSES,
    PARTS,
    PROPORTION,
    SCORE,
    IntervalMethod,
    method_in,
    pooled_ratio,
)
from rprime.core.intervals.methods import interval_plan as plan_of_sample
from rprime.core.intervals.plan import Bounds, IntervalPlan, ScopeMethods, Setting
from rprime.core.intervals.prepared import PreparedIntervals
from rprime.core.intervals.proportions import ScoreCounts, ScoreIntervals
from rprime.core.intervals.universe import LogRatios, at, of_expressions, widen
from rprime.core.intervals.variance import as_observed
from rprime.core.population import Population, Strata, StratumCounts, joint_cells
from rprime.core.selection import Selection
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, class_values, compute

FIXED: dict[Strata, RatioRows] = {
    "true": (CountRow.support, CountRow.negatives),
    "predicted": (CountRow.predicted, CountRow.predicted_negatives),
    "own": (CountRow.total, CountRow.total),
}
"""The counts of a class that the design fixes, those of its own stratum first."""
ITEMS = (CountRow.tp, CountRow.fn, CountRow.fp, CountRow.tn, CountRow.support, CountRow.predicted)
"""Numerators that count items of a class."""
POOLED = (CountRow.tp, CountRow.fn, CountRow.not_wrong, CountRow.answered)
"""Numerators that count items overall."""


@dataclass(frozen=True, eq=False)
class ScopePlan:
    """The entries of one scope; all arrays hold positions.

    `sums` are sums over the strata, with their terms as `CountRow`s; `logs` ratios without a
    largest value; those `without` have no interval.
    """

    sums: Array
    numerators: Array
    denominators: Array
    logs: Array
    without: Array


@lru_cache(maxsize=256)
def population_plan(
    selection: Selection, setting: Setting, strata: Strata, bound: Bounds
) -> tuple[IntervalPlan, ScopePlan, ScopePlan]:
    """Plan the intervals of the entries of a selection, in the setting of the sample.

    Returns how reports call them, and what they rest on: per class, and overall.
    """
    kinds = [_class_kind(entry, setting, strata) for entry in selection.computed]
    whole = [_overall_kind(entry, setting, strata) for entry in selection.overall]
    plan = plan_of_sample(selection, setting, bound)
    plan = replace(
        plan,
        per_class=_named(plan.per_class, kinds, setting, strata),
        overall=_named(plan.overall, whole, setting, strata),
        affine=(),
    )
    return plan, _scope(kinds), _scope(whole)


Kind = tuple[IntervalMethod | None, RatioRows | None]
"""A method, and the terms of a sum over the strata."""


def _class_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    method = method_in(setting, entry)
    if method is None or entry.scored or entry.resampled:
        return None, None
    fixed = (CountRow.total, *FIXED[strata])
    if entry.reads == "ratio" and entry.rows[1] in fixed and entry.rows[0] in ITEMS:
        if entry.rows[0] in fixed:
            return None, None  # by design, it does not vary
        return (PROPORTION if entry.rows[1] == fixed[1] != fixed[0] else AVERAGE), entry.rows
    if method.logarithmic:
        return method, None
    return (SCORE if strata == "own" else PARTS), None


def _overall_kind(entry: Index, setting: Setting, strata: Strata) -> Kind:
    method = method_in(setting, entry)
    if method is None or entry.scored or entry.resampled:
        return None, None
    ratio = pooled_ratio(entry, setting)
    whole = (CountRow.total,) if setting.unclassified else (CountRow.total, CountRow.answered)
    if ratio is None or ratio[0] not in POOLED or ratio[1] not in whole:
        of_classes = strata != "own" and entry.reads in {"macro", "weighted", "means"}
        return (AVERAGE if of_classes else SCORE), None
    return AVERAGE, ratio


def _named(
    methods: ScopeMethods, kinds: Iterable[Kind], setting: Setting, strata: Strata
) -> ScopeMethods:
    by_parts = strata != "own"  # ratios, too, have the wider of two intervals
    shown = (PARTS if by_parts and kind and kind.logarithmic else kind for kind, _ in kinds)
    names = tuple("" if kind is None else kind.reported_as(exact=setting.exact) for kind in shown)
    return replace(
        methods, proportions=integers(()), ratios=(), names=names, named=positions(map(bool, names))
    )


def _scope(kinds: list[Kind]) -> ScopePlan:
    sums = [(i, terms) for i, (_, terms) in enumerate(kinds) if terms is not None]
    return ScopePlan(
        sums=integers(i for i, _ in sums),
        numerators=integers(terms[0] for _, terms in sums),
        denominators=integers(terms[1] for _, terms in sums),
        logs=positions(kind is not None and kind.logarithmic for kind, _ in kinds),
        without=positions(kind is None for kind, _ in kinds),
    )


Z = 1.959963984540054
"""The quantile at which errors are taken."""


@dataclass(frozen=True, eq=False)
class StratumSums:
    """Indices that are weighted sums of proportions of the strata, (n, ..., H).

    Their weights sum to 1, and are 0 where a stratum takes no part. `ratio`, shape (n, ...), is the
    reduced quantile as a share of the quantile; `exact` says whether the limits are exact.

    Notes
    -----
    Source: Yan, Su 2010 for the reduced quantile: with l = weight sqrt(p (1 - p) / n) of each
    stratum and p = (x + 1/2) / (n + 1), it is z sqrt(sum l^2) / sum l.
    """

    counts: ScoreCounts
    weights: Array
    ratio: Array
    exact: bool

    @classmethod
    def of(cls, successes: Array, trials: Array, weights: Array, *, exact: bool) -> "StratumSums":
        """Find the reduced quantiles; the weights need not sum to 1."""
        used = weights > 0
        weights = weights / np.add.reduce(weights, axis=-1)[..., None]
        shrunk = (successes + 0.5) / (trials + 1)
        spread = np.where(used, weights * np.sqrt(shrunk * (1 - shrunk) / trials), 0.0)
        ratio = np.sqrt(np.vecdot(spread, spread)) / np.add.reduce(spread, axis=-1)
        return cls(ScoreCounts.of(successes, trials), weights, ratio, exact)

    @classmethod
    def of_classes(
        cls, plan: ScopePlan, strata: StratumCounts, shares: Array, *, beta: float, exact: bool
    ) -> "StratumSums":
        """Prepare the sums of the classes, shape (n, ..., k, H)."""
        margins = np.empty((4, *strata.support.shape))
        margins[0], margins[1], margins[2] = strata.correct, strata.support, strata.predicted
        margins[3] = items = strata.items[..., None]
        linear = row_gradients(beta)
        hits, trials = (
            np.swapaxes(np.tensordot(linear[rows], margins, 1), -1, -2)
            for rows in (plan.numerators, plan.denominators)
        )
        sizes = np.swapaxes(items, -1, -2)
        weights = np.where(trials > 0, shares[..., None, :] * trials / sizes, 0.0)
        return cls.of(hits, trials, weights, exact=exact)

    @classmethod
    def of_overall(
        cls, plan: ScopePlan, strata: StratumCounts, shares: Array, *, exact: bool
    ) -> "StratumSums":
        """Prepare the overall sums, shape (n, ..., H)."""
        items, correct = strata.items, np.add.reduce(strata.correct, axis=-1)
        answered = np.add.reduce(strata.answered, axis=-1)
        hits = {
            CountRow.tp: correct,
            CountRow.fn: items - correct,
            CountRow.not_wrong: correct + items - answered,
            CountRow.answered: answered,
        }
        every = [hits[CountRow(row)] for row in plan.numerators]
        successes = np.array(every).reshape(len(every), *items.shape)
        trials = np.broadcast_to(items, successes.shape)
        weights = np.broadcast_to(np.where(items > 0, shares, 0.0), successes.shape)
        return cls.of(successes, trials, weights, exact=exact)

    @property
    def alone(self) -> Array:
        """Whether one stratum alone takes part, shape (n, ...)."""
        return np.asarray(np.count_nonzero(self.weights > 0, axis=-1) == 1)

    @property
    def trials(self) -> Array:
        """Items of the strata that take part, shape (n, ...)."""
        return np.asarray(np.where(self.weights > 0, self.counts.trials, 0.0).sum(-1))

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (2, n, ...)."""
        z = (self.ratio * quantile)[..., None]
        limits = self.counts.exact_limits(z) if self.exact else self.counts.limits(z)
        parts = np.where(self.weights > 0, limits * self.weights, 0.0)
        return np.asarray(np.add.reduce(parts, axis=-1))


def part_errors(values: Values, population: Population, strata: StratumCounts) -> Array:
    """Compute the errors of class indices on both sides (MOVER): distances from limits, by Z.

    Shape (2, computed, ..., k); NaN where strata are their own, and for the recall of a class that
    every other stratum shows.

    Notes
    -----
    Source: Zou, Donner 2008. The share of the class's own stratum and those of the others are two
    parts, each at its limits with the other one as observed. The others together have the wider of
    the limits of their sum at the reduced quantile, too narrow where one stratum outweighs the
    others, and of the root of their summed squared distances, too narrow where each of many strata
    holds few items.

    The influences on recall know each stratum that shows an item of the class, so that effective
    items alone are enough. Of strata without one they know half an item, spread over all classes.
    """
    if population.strata == "own":
        return np.full((2, *values.per_class.shape), np.nan)
    margin = 2 if population.strata == "true" else 1
    hits = np.swapaxes(strata.predicted if margin == 2 else strata.support, -1, -2)
    trials = np.broadcast_to(strata.items[..., None, :], hits.shape)
    shares = np.where(trials > 0, hits / trials, 0.0)
    sizes = (population.shares * values.table.total[..., None])[..., None, :]
    weights = np.where(trials > 0, sizes, 0.0)
    others = np.where(np.eye(values.table.k, dtype=bool), 0.0, weights)
    sums = StratumSums.of(hits, trials, others, exact=False)
    reduced = sums.limits(Z) - np.vecdot(sums.weights, shares)
    reduced *= np.add.reduce(others, axis=-1)
    steps = np.where(weights > 0, (sums.counts.limits(Z) - shares) * weights, 0.0)
    root = np.sqrt(np.vecdot(steps * (others > 0), steps))
    both = np.stack((np.fmin(reduced[0], -root[0]), np.fmax(reduced[1], root[1])))
    diagonal = np.diagonal(steps, axis1=-2, axis2=-1)
    at = np.stack((_moved(values, [0, margin], diagonal), _moved(values, [margin], both)))
    distances = (at - values.per_class[:, None]) / Z
    recalls = positions(entry.rows in {RECALL, MISSES} for entry in values.selection.computed)
    unseen = ((hits == 0) & (others > 0)).any(-1)
    distances[:, recalls] = np.where(unseen, distances[:, recalls], np.nan)
    lower, upper = distances.clip(max=0).min(2), distances.clip(min=0).max(2)
    return np.stack((-np.hypot(*lower), np.hypot(*upper)))


def _moved(values: Values, margins: list[int], items: Array) -> Array:
    """Compute the indices with more items (2, ..., k) in margins, shape (computed, 2, ..., k)."""
    linear, selection = row_gradients(values.options.beta), values.selection
    steps = np.multiply.outer(np.add.reduce(linear[:, margins], axis=-1), items)
    both = values.counts, values.classified_counts
    counts, classified = (Counts(each.classes.rows[:, None] + steps) for each in both)
    moved = class_values(selection, counts)
    for place in selection.functions:
        entry = selection.computed[place]
        if entry.reads == "counts":
            moved[place] = entry.formula(counts if entry.universe == "all" else classified)
    return moved


SMOOTHED, OBSERVED = 0, 1
"""Positions of the two estimated tables in their stack."""
ROUNDING = 1e-13
"""A variance below this share of the squared influences is rounding."""
PRODUCTS = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 2, 2], [0, 1, 2, 3]])
"""Which of correct, support, predicted and total an item counts in that counts in two of them."""
BLOCK = 2**20
"""Influences in one part, so that many classes fit into the memory."""


@dataclass(frozen=True, eq=False)
class Stratified:
    """The strata of a stack of tables.

    `factors` is W^2 / n, times the squared total of the estimated table, shape (..., H).
    """

    population: Population
    counts: StratumCounts
    factors: Array

    @classmethod
    def of(
        cls, population: Population, parts: tuple[StratumCounts, StratumCounts], total: Array
    ) -> "Stratified":
        """Stack the strata of the smoothed table and of the observed one, which has n - 1.

        `total` is that of the estimated tables, shape (2, ...).
        """
        counts = StratumCounts(*(np.stack(each) for each in zip(*parts, strict=True)))
        scaled = population.shares * total[..., None]
        sizes = counts.items
        sizes[OBSERVED] -= 1
        return cls(population, counts, np.where(scaled > 0, scaled**2 / sizes, 0.0))

    def of_classes(self, selection: Selection, gradient: ClassGradient) -> Array:
        """Compute the variances of the per-class indices, shape (n, ..., k)."""
        counts, items = self.counts, self.counts.items[..., None]
        whole = self._covariance(counts.support, items)
        result = _quadratic(gradient.margins, whole)
        outside = classified_entries(selection)
        if outside.any() and (counts.answered != counts.support).any():
            answered = np.add.reduce(counts.answered, axis=-1)[..., None]
            inside = self._covariance(counts.answered, answered)
            result[outside] = _quadratic(gradient.margins[:, outside], inside)
        return result

    def _covariance(self, support: Array, total: Array) -> tuple[Array, Array]:
        """Sum over the strata the squares of what an item adds to the margins of a class.

        Returns the covariances and the mean products by correct, support, predicted and total,
        (..., k, 4, 4) each.
        """
        counts = self.counts
        items = np.where(counts.items > 0, counts.items, 1.0)
        margins = np.broadcast_arrays(counts.correct, support, counts.predicted, total)
        mean = np.stack(margins, axis=-1) / items[..., None, None]
        mean = np.swapaxes(mean, -3, -2)
        scaled = mean * self.factors[..., None, :, None]
        squares = np.add.reduce(scaled, axis=-2)[..., PRODUCTS]
        return squares - np.swapaxes(scaled, -1, -2) @ mean, squares

    def of_overall(self, gradient: Gradient) -> tuple[Array, Array]:
        """Compute the variances of the overall indices, shape (n, ...).

        Also the numbers of items that they rest on, (sum v^2)^2 / sum v^4, where v is W / n times
        an influence minus the mean of its stratum.
        """
        cells = self.counts.cells
        k = gradient.factors.shape[-1]
        rows, columns = (grid.ravel() for grid in np.mgrid[:k, : k + 1])
        number = gradient.factors.shape[1]
        size = max(1, BLOCK // (k * k * cells[..., 0, 0].size))
        items = np.where(self.counts.items > 0, self.counts.items, 1.0)[..., None]
        shares = cells / items
        result, numbers = np.empty((2, number, *cells.shape[:-2]))
        for start in range(0, number, size):
            part = gradient.part(start, start + size).at(rows, columns)
            phi = self.population.arranged(part.reshape(*part.shape[:-1], k, k + 1))
            mean, square = np.vecdot(shares, phi), np.vecdot(shares, phi * phi)
            variance = np.vecdot(square - mean * mean, self.factors)
            result[start : start + size] = _rounded(variance, np.vecdot(square, self.factors))
            apart = np.square(phi - mean[..., None])
            second = np.vecdot(np.vecdot(shares, apart), self.factors)
            fourth = np.vecdot(np.vecdot(shares, apart * apart), self.factors**2 / items[..., 0])
            numbers[start : start + size] = np.where(fourth > 0, second * second / fourth, 0.0)
        return result, numbers


def _quadratic(margins: Array, covariance: tuple[Array, Array]) -> Array:
    """Combine derivatives (4, n, ..., k) with covariances; 0 where only rounding is left."""
    derivatives = np.moveaxis(margins, 0, -1)[..., None]
    variance, size = (
        np.add.reduce((matrix @ derivatives) * derivatives, axis=(-2, -1)) for matrix in covariance
    )
    return _rounded(variance, size)


def _rounded(variances: Array, squares: Array) -> Array:
    return np.where(variances <= ROUNDING * squares, 0.0, variances)


@dataclass(frozen=True, eq=False)
class ScopeIntervals:
    """The intervals of the entries of one scope.

    `scores` are those of all entries by effective items, `sums` those of sums over the strata, and
    `logs` those on the logarithmic scale. The others are of all entries: `errors` are standard
    errors, `sides` those by MOVER on both sides, NaN for none.
    """

    plan: ScopePlan
    scores: ScoreIntervals
    sums: StratumSums
    logs: LogRatios
    errors: Array
    values: Array
    sides: Array

    @classmethod
    def of(
        cls, plan: ScopePlan, estimates: tuple[Array, ...], sums: StratumSums, **about: Array
    ) -> "ScopeIntervals":
        """Prepare the intervals of entries.

        `estimates` are their values, those of both estimated tables, the variances of these, and
        errors by MOVER; `about` are `growth` and `bounds` of the score intervals.
        """
        values, estimated, variances, sides = estimates
        smooth, spread = estimated[:, SMOOTHED], variances[:, SMOOTHED]
        spread[plan.without] = variances[plan.without, OBSERVED] = np.nan
        scores = ScoreIntervals.of(values, smooth, spread, **about)
        sides[:, [*plan.sums, *plan.without]] = np.nan
        apart = np.where(np.isfinite(sides[0, plan.logs]), np.nan, spread[plan.logs])
        logs = LogRatios.of(values[plan.logs], smooth[plan.logs], apart)
        errors = np.sqrt(variances[:, OBSERVED])
        errors = np.where(np.isfinite(values), errors, np.nan)
        return cls(plan, scores, sums, logs, errors, values, sides)

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the entries, shape (2, n, ...)."""
        limits = self.scores.scaled(self.scores.counts.limits(quantile))
        of_sums, of_logs = self.plan.sums, self.plan.logs
        if len(of_sums):
            limits[:, of_sums] = np.where(self.sums.alone, np.nan, limits[:, of_sums])
            shares = self.sums.limits(at(quantile, of_sums))
            widen(limits, of_sums, self.scores.take(of_sums).scaled(shares))
        limits[:, of_logs] = self.logs.limits(at(quantile, of_logs))
        widen(limits, np.arange(len(self.values)), self.values + quantile * self.sides)
        return limits

    @property
    def items(self) -> Array:
        """Effective numbers of items, shape (n, ...); those of a stratum where it is alone."""
        items, sums = self.scores.items.copy(), self.plan.sums
        items[sums] = np.where(self.sums.alone, self.sums.trials, items[sums])
        return items


@dataclass(frozen=True, eq=False)
class PopulationIntervals(PreparedIntervals):
    """The intervals of the indices of a population, up to their quantile.

    Notes
    -----
    Standard errors are those of Olofsson et al. 2014 and Stehman 2014, with n - 1 in each stratum.
    Intervals are Wilson's on the effective number of items, with half an item more in each
    stratum; of sums over the strata, the wider of these and of the sum of the Wilson intervals of
    the strata at a reduced quantile. Where strata are classes, other indices of a class have the
    wider of these and of MOVER on the strata, and averages take the errors of the classes.
    """

    of_classes: ScopeIntervals
    of_overall: ScopeIntervals
    overall_contributing: Array

    @classmethod
    @np.errstate(all="ignore")
    def of_population(cls, values: Values, population: Population) -> "PopulationIntervals":
        """Prepare the intervals of the values of a population."""
        options, sample = values.options, values.sampled
        setting = Setting(
            f1=options.beta == 1,
            exact=options.exact,
            unclassified=sample.unclassified is not None,
            averages_all=options.average_over is None,
        )
        bound = Bounds.of_options(sample.k, options)
        plan, per_class, overall = population_plan(
            values.selection, setting, population.strata, bound
        )
        # No proportions: every interval is of a `ScopeIntervals`.
        empty = (np.zeros((0, *part.shape[1:])) for part in (values.per_class, values.overall))
        proportions, pooled = (ScoreCounts.of(nothing, nothing) for nothing in empty)
        unsuitable = np.asarray(sample.weighted | sample.fractional)
        common = (values, None, plan, proportions, pooled, (), None, None, unsuitable, None)
        return cls(*common, *_scopes(per_class, overall, values, population))

    @cached_property
    def behind(self) -> Values:
        """The values with the counts of the sampled items."""
        values, sample = self.values, self.values.sampled
        counts = Counts.of(sample)
        classified = Counts.of(sample.classified) if sample.has_omissions else counts
        return replace(values, table=sample, counts=counts, classified_counts=classified)

    @cached_property
    def contributing(self) -> tuple[Array, Array]:
        """The numbers of items that variances rest on; not known of classes."""
        return np.full(self.values.per_class.shape, np.inf), self.overall_contributing

    @property
    def effective_items(self) -> tuple[Array, Array]:
        """Effective numbers of items, per class and overall."""
        return self.of_classes.items, self.of_overall.items

    @property
    def standard_errors(self) -> tuple[Array, Array]:
        """Standard errors with n - 1 in each stratum, per class and overall."""
        return self.of_classes.errors, self.of_overall.errors

    @np.errstate(all="ignore")
    def class_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the per-class indices, shape (2, computed, ..., k)."""
        limits = self.of_classes.limits(quantile)
        return self._masked(self.values.observed, limits, self.plan.per_class)

    @np.errstate(all="ignore")
    def overall_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the overall indices, shape (2, overall, ...)."""
        limits = self.of_overall.limits(quantile)
        return self._masked(self.values.overall, limits, self.plan.overall)


def _scopes(
    of_classes: ScopePlan, of_overall: ScopePlan, values: Values, population: Population
) -> tuple[ScopeIntervals, ScopeIntervals, Array]:
    """Return the intervals of the classes, the overall ones, and how many items these rest on."""
    sample = values.sampled
    refined, more = population.smoothed(sample)
    both = np.stack([joint_cells(refined.table(more)), joint_cells(population.table(sample))])
    tables = ConfusionTable.dense(both[..., :-1], both[..., -1])
    options = replace(values.options, population=None, cell_weights=None, undefined="null")
    estimates = compute(tables, options, values.selection)
    gradient = class_gradient(estimates)
    estimates = as_observed(np.arange(len(gradient.margins[0])), values, estimates, gradient)
    counts = population.sampled(sample)
    strata = Stratified.of(population, (refined.sampled(more), counts), tables.total)
    growth, beta, exact = sample.total / more.total, options.beta, options.exact
    bound, selection = Bounds.of_options(sample.k, options), values.selection
    shares = population.shares
    spread = strata.of_classes(selection, gradient)
    whole, numbers = strata.of_overall(overall_gradient(estimates, gradient))
    ratio = np.sqrt(whole) / (_averages(estimates, np.sqrt(spread)) - estimates.overall)
    classes = ScopeIntervals.of(
        of_classes,
        (values.observed, estimates.per_class, spread, part_errors(values, population, counts)),
        StratumSums.of_classes(of_classes, counts, shares, beta=beta, exact=exact),
        growth=growth[..., None],
        bounds=_bounds(of_classes, selection.computed, bound),
    )
    distances = (classes.limits(Z) - values.observed) / Z
    sides = np.stack([_averages(values, side) for side in distances]) - values.overall
    if population.strata == "own":
        sides[...] = np.nan
    overall = ScopeIntervals.of(
        of_overall,
        (values.overall, estimates.overall, whole, ratio[:, SMOOTHED] * sides),
        StratumSums.of_overall(of_overall, counts, shares, exact=exact),
        growth=growth,
        bounds=of_expressions(
            values,
            np.arange(len(selection.overall)),
            _bounds(of_overall, selection.overall, bound),
            whole[:, SMOOTHED],
        ),
    )
    return classes, overall, numbers[:, SMOOTHED]


@np.errstate(all="ignore")
def _averages(values: Values, distances: Array) -> Array:
    """Compute averages, and functions of these, at distances of the classes; else NaN."""
    # The mean prevalence is fixed, although the prevalences may vary.
    fixed = positions(entry.rows == PREVALENCE for entry in values.selection.computed)
    averaged = values.averaged + np.where(np.isnan(distances), 0.0, distances)
    averaged[fixed] = values.averaged[fixed]
    moved, entries = replace(values, averaged=averaged), smooth_overall_indices(values.selection)
    averages, places = moved.averages(), [*entries.macro, *entries.weighted]
    result = np.full(averages.shape, np.nan)
    result[places] = averages[places]
    for place in entries.means:
        result[place] = moved.formula(values.selection.overall[place])
    return result


def _bounds(plan: ScopePlan, entries: tuple[Index, ...], bound: Bounds) -> Array:
    """Ranges of the score intervals, (2, n): a sum of shares, as overall R', is one."""
    ranges = bound.ranges(entries)
    ranges[:, [i for i in plan.sums if entries[i].score_range is None]] = [[0.0], [1.0]]
    return ranges
