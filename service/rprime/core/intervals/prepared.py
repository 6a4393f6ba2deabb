"""The intervals of a stack of tables, up to their quantile."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.index import IndexScope
from rprime.core.intervals.design_effect import DesignEffects, Weights
from rprime.core.intervals.methods import INTERVALS, Methods, ScopeMethods, Setting, methods_of
from rprime.core.intervals.parts import ratio_counts
from rprime.core.intervals.plan import Bounds, plan_of
from rprime.core.intervals.proportions import ScoreCounts, mover_r, student
from rprime.core.intervals.top_k import highest_of, of_highest
from rprime.core.intervals.universe import UniverseIntervals, at
from rprime.core.intervals.variance import CANCELLED
from rprime.core.items import Items
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class PreparedIntervals:
    """The part of the intervals that does not depend on their quantile.

    Parameters
    ----------
    values
        Values of a stack of tables, with the options `exact` and `sampling`.
    proportions, pooled
        The plain proportions, per class (n, ..., k), those of the likelihood ratios last, and
        overall (n, ...).
    universes
        The intervals that need smoothed tables; none where no table has intervals.
    effects
        The design effects of the groups, or of the weights, of the items, if any.
    weights
        The sample weights of the items, if they have any; `values` then has the counts of Kish's
        effective number of items.
    unsuitable
        Whether the counts are no numbers of items, broadcastable to the stack.
    """

    values: Values
    methods: Methods
    proportions: ScoreCounts
    pooled: ScoreCounts
    universes: tuple[UniverseIntervals, ...]
    effects: DesignEffects | None
    weights: Weights | None
    unsuitable: Array

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, values: Values, items: Items | None = None) -> "PreparedIntervals":
        """Prepare the intervals of values; items matter if they have groups or weights."""
        weights = Weights.of(values, items)
        if weights is not None:
            values = weights.scaled(values)
        options, table = values.options, values.table
        unsuitable = np.asarray(table.weighted | table.fractional & (weights is None))
        grouped = items is not None and items.groups is not None
        setting = Setting(
            f1=options.beta == 1,
            exact=options.exact,
            fixed_rows=options.sampling == "fixed_rows",
            unclassified=table.unclassified is not None,
            spurious=table.spurious is not None,
            effects=grouped or weights is not None,
        )
        methods = methods_of(values.selection, setting)
        bound = Bounds.of_options(table.k, options)
        apart = () if unsuitable.all() else setting.universes
        planned = [(plan_of(values.selection, setting, one, bound), one or "all") for one in apart]
        plans = [(plan, one) for plan, one in planned if plan is not None]
        of_plans: list[DesignEffects] = []
        if weights is not None:
            of_plans = [weights.effects(plan.selection, values, one) for plan, one in plans]
        elif items is not None and grouped:
            of_plans = [DesignEffects.of(p.selection, values, items, one) for p, one in plans]
        effects = DesignEffects.scattered(values, [plan for plan, _ in plans], of_plans)
        universes = tuple(
            UniverseIntervals.of(plan, values, one, effects=own, weights=weights)
            for (plan, one), own in zip(plans, of_plans or (None,) * len(plans), strict=True)
        )
        of_classes = of_pooled = None
        if weights is not None:
            squares = weights.counts("all")
            of_classes = squares.classes, weights.scale
            of_pooled = Counts(squares.rows[..., -1]), weights.scale
        last = Counts(values.counts.rows[..., -1])
        shares = ratio_counts(values.counts.classes, methods.class_ratios, of_classes)
        whole = ratio_counts(last, methods.overall.ratios, of_pooled)
        if effects is not None and weights is None:
            shares = shares / effects.per_class[methods.class_rows]
            whole = whole / effects.overall[methods.overall.proportions]
        proportions, pooled = ScoreCounts.of(*shares), ScoreCounts.of(*whole)
        return cls(values, methods, proportions, pooled, universes, effects, weights, unsuitable)

    @property
    def behind(self) -> Values:
        """The values with the counts that they rest on."""
        return self.values

    @property
    def effective_items(self) -> tuple[Array, Array] | None:
        """Effective numbers of items, per class and overall; None if every item counts once."""
        if self.effects is None:
            return None
        methods, values = self.methods, self.values
        per_class = np.full(values.per_class.shape, np.nan)
        overall = np.full(values.overall.shape, np.nan)
        for universe in self.universes:
            universe.fill_items(per_class, overall)
        if self.highest is not None and self.highest.effective_items is not None:
            own, whole = highest_of(values.selection)[1]
            per_class[own], overall[whole] = self.highest.effective_items
        plain = methods.per_class.proportions
        per_class[plain] = self.proportions.trials[: len(plain)]
        overall[methods.overall.proportions] = self.pooled.trials
        return per_class, overall

    @cached_property
    def highest(self) -> "PreparedIntervals | None":
        """The intervals of the table of the k highest scores; None if no index is one of it."""
        found = of_highest(self.values)
        return None if found is None else PreparedIntervals.of(*found)

    @property
    def standard_errors(self) -> tuple[Array, Array] | None:
        """Standard errors, per class and overall, where reports have them."""
        return None

    @property
    def grouped(self) -> DesignEffects | None:
        """The effects of groups, which take Student's quantile."""
        return self.effects if self.weights is None else None

    def limits(self, scope: IndexScope, quantile: float | Array) -> Array:
        """Compute the limits of all indices of a scope, (2, computed, ..., k) or (2, overall, ...).

        The normal quantile, above 0, is that of the one-sided level of each limit: a number, or an
        array that broadcasts to the values. NaN without an interval. The same array for the same
        number, so that a report, a comparison and a gate compute it once.
        """
        compute = self.class_limits if scope == "class" else self.overall_limits
        if np.ndim(quantile):
            return compute(quantile)
        place = scope, round(float(quantile), 12)
        if place not in self._known:
            self._known[place] = compute(quantile)
        return self._known[place]

    @cached_property
    def _known(self) -> dict[tuple[IndexScope, float], Array]:
        """The limits found so far, by scope and quantile."""
        return {}

    @np.errstate(all="ignore")
    def class_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the per-class indices, shape (2, computed, ..., k).

        Indices of precision that count as if it were 0 have the limits of that value.
        """
        values, own = self.values, self.methods.per_class
        limits = np.full((2, *values.per_class.shape), np.nan)
        normal = z = _spread(quantile, values.per_class)
        if self.grouped is not None:
            z = student(z, self.grouped.class_groups)
        quantiles = at(z, self.methods.class_rows)
        shares = self.proportions.limits(quantiles)
        plain = len(own.proportions)
        exact = values.options.exact
        found = self.proportions.exact_limits(quantiles) if exact else shares
        limits[:, own.proportions] = found[:, :plain]
        for universe in self.universes:
            universe.class_limits(z, limits)
        if len(self.methods.likelihood_ratios):
            counts = self.proportions
            ratios = counts.successes[plain:] / counts.trials[plain:]
            pairs = (-1, 2, *ratios.shape[1:])
            limits[:, self.methods.likelihood_ratios] = mover_r(
                ratios.reshape(pairs).swapaxes(0, 1),
                shares[:, plain:].reshape(2, *pairs).swapaxes(1, 2),
            )
        for place in self.methods.log_ratios:
            limits[:, place] = self._log_ratio(place, at(z, place))
        _score_limits(values, normal, limits)
        if self.highest is not None:
            places = highest_of(values.selection)[1][0]
            limits[:, places] = self.highest.class_limits(at(normal, places))
        if values.table.spurious is not None:
            places, stray = self.methods.predictions, np.asarray(values.table.spurious.any(-1))
            limits[:, places] = np.where(stray[..., None], np.nan, limits[:, places])
        return self._masked(values.observed, limits, own)

    @np.errstate(all="ignore")
    def overall_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the overall indices, shape (2, overall, ...)."""
        values, own = self.values, self.methods.overall
        limits = np.full((2, *values.overall.shape), np.nan)
        normal = z = _spread(quantile, values.overall)
        if self.grouped is not None:
            z = student(z, self.grouped.groups)
        for universe in self.universes:
            universe.overall_limits(z, limits)
        quantiles = at(z, own.proportions)
        limits_of = self.pooled.exact_limits if values.options.exact else self.pooled.limits
        shares = limits_of(quantiles)
        for i, place in self.methods.affine:
            low, high = Bounds(values.table.k).of(values.selection.overall[place])
            shares[:, i] = low + (high - low) * shares[:, i]
        mixed = self.methods.mixed
        scores = limits[:, mixed]
        limits[:, own.proportions] = shares
        if values.table.spurious is not None:
            limits[:, mixed] = np.where(values.table.spurious.any(-1), scores, limits[:, mixed])
        _score_limits(values, normal, limits)
        if self.highest is not None:
            places = highest_of(values.selection)[1][1]
            limits[:, places] = self.highest.overall_limits(at(normal, places))
        return self._masked(values.overall, limits, own)

    def _masked(self, values: Array, limits: Array, methods: ScopeMethods) -> Array:
        """Clip limits to the range; remove those without a value, a width or suitable counts."""
        last = (limits.ndim - self.unsuitable.ndim - 2) * (None,)
        lowest, highest = methods.bounds.reshape(2, -1, *(1,) * (limits.ndim - 2))
        np.maximum(limits, lowest, out=limits)
        np.minimum(limits, highest, out=limits)
        lost = ~(limits[0] < limits[1])
        lost |= np.isnan(values)
        if self.unsuitable.any():  # weights of the items of scores have come with the scores
            lost[methods.counted] |= self.unsuitable[(..., *last)]
        np.copyto(limits, np.nan, where=lost)
        return limits

    def _log_ratio(self, place: int, z: float | Array) -> Array:
        """Limits of the lift by the delta method on its logarithm."""
        values = self.values
        counts = values.classified_counts.classes
        by_class = 1 / counts.support
        by_prediction = 1 / counts.predicted
        whole = 1 / counts.total
        kinds = (
            (counts.tp, 1 / counts.tp + whole - by_class - by_prediction),
            (counts.fn, whole - by_class),
            (counts.fp, whole - by_prediction),
            (counts.tn, whole),
        )
        variance = sum(items * influence * influence for items, influence in kinds)
        variance = np.where(variance > CANCELLED / counts.tp, variance, np.nan)
        if self.effects is not None:
            variance = variance * self.effects.per_class[place]
        half = np.sqrt(variance) * z
        value = values.per_class[place]
        return np.array((value / np.exp(half), value * np.exp(half)))


def _spread(quantile: float | Array, values: Array) -> float | Array:
    """Return a quantile for every value, if these differ."""
    return quantile if np.ndim(quantile) == 0 else np.broadcast_to(quantile, values.shape)


def _score_limits(values: Values, quantile: float | Array, limits: Array) -> None:
    """Fill in the limits of indices of scores, per class or overall, at a normal quantile."""
    if values.scores is None:
        return
    selection, places = values.selection, values.selection.overall_scored
    entries, found = selection.overall, values.overall
    if limits.ndim > 2:
        places, entries, found = selection.scored, selection.computed, values.per_class
    for place in places:
        method = INTERVALS.get(entries[place].interval or "")
        if method is not None and method.limits is not None:
            own = np.asarray(found[place])
            limits[:, place] = method.limits(values, entries[place], own, at(quantile, place))
