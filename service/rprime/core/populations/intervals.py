"""Intervals and standard errors of the indices of a population."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array, positions
from rprime.core.counts import Counts
from rprime.core.families.one_vs_rest import PREVALENCE
from rprime.core.index import Index
from rprime.core.intervals.delta import class_gradient, overall_gradient, smooth_overall_indices
from rprime.core.intervals.plan import Bounds, Setting
from rprime.core.intervals.prepared import PreparedIntervals
from rprime.core.intervals.proportions import ScoreCounts, ScoreIntervals
from rprime.core.intervals.smoothed_values import as_observed
from rprime.core.intervals.universe import LogRatios, at, widen
from rprime.core.populations.plan import ScopePlan, plan_of
from rprime.core.populations.population import Population, joint_cells
from rprime.core.populations.sums import StratumSums, Z, part_errors
from rprime.core.populations.variance import OBSERVED, SMOOTHED, Stratified
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute


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
            f1=options.beta == 1, exact=options.exact, unclassified=sample.unclassified is not None
        )
        bound = Bounds.of_options(sample.k, options)
        plan, per_class, overall = plan_of(values.selection, setting, population.strata, bound)
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
        bounds=_bounds(of_overall, selection.overall, bound),
    )
    return classes, overall, numbers[:, SMOOTHED]


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
