"""The intervals of a stack of tables, up to their quantile."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import Counts
from rprime.core.index import IndexScope
from rprime.core.intervals.bootstrap import add_bootstrap, add_score_bootstrap, can_resample
from rprime.core.intervals.design_effect import DEGREES, EFFECTIVE, LOW, DesignEffects, Weights
from rprime.core.intervals.plan import Bounds, IntervalPlan, ScopeMethods, ratio_counts
from rprime.core.intervals.proportions import ScoreCounts, quantile_of, student
from rprime.core.intervals.smoothing import POOLED, smoothed
from rprime.core.intervals.universe import UniverseIntervals
from rprime.core.items import Items
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class PreparedIntervals:
    """The part of the intervals that does not depend on their quantile.

    Parameters
    ----------
    values
        Values of a stack of tables, with the options `exact` and `sampling`.
    items
        The items of a single table, if they are known.
    proportions, pooled
        The plain proportions, per class (n, ..., k) and overall (n, ...).
    universes
        The intervals that need smoothed tables; none where no table has intervals.
    effects
        The design effects of the groups, or of the weights, of the items, if any.
    weights
        The sample weights of the items, if they have any; `values` then has the counts of Kish's
        effective number of items.
    unsuitable
        Whether the counts are no numbers of items, broadcastable to the stack.
    highest
        The intervals of the table of the k highest scores; None if no index is one of it.
    """

    values: Values
    items: Items | None
    plan: IntervalPlan
    proportions: ScoreCounts
    pooled: ScoreCounts
    universes: tuple[UniverseIntervals, ...]
    effects: DesignEffects | None
    weights: Weights | None
    unsuitable: Array
    highest: "HighestScores | None"

    @property
    def behind(self) -> Values:
        """The values with the counts that they rest on."""
        return self.values

    @property
    def effective_items(self) -> tuple[Array, Array] | None:
        """Effective numbers of items, per class and overall; None if every item counts once."""
        if self.effects is None:
            return None
        plan, values = self.plan, self.values
        per_class = np.full(values.per_class.shape, np.nan)
        overall = np.full(values.overall.shape, np.nan)
        for universe in self.universes:
            universe.fill_items(per_class, overall)
        if self.highest is not None:
            effective, (of_classes, whole) = (
                self.highest.intervals.effective_items,
                self.highest.places,
            )
            if effective is not None:
                per_class[of_classes], overall[whole] = effective
        per_class[plan.per_class.proportions] = self.proportions.trials
        overall[plan.overall.proportions] = self.pooled.trials
        return per_class, overall

    @cached_property
    def contributing(self) -> tuple[Array, Array]:
        """The numbers of items that variances rest on, (computed, ..., k) and (overall, ...).

        (sum phi^2)^2 / sum phi^4 of the influences of the items of the pooled table; infinite where
        an interval rests on counts alone.
        """
        values = self.values
        per_class = np.full(values.per_class.shape, np.inf)
        overall = np.full(values.overall.shape, np.inf)
        for universe in self.universes:
            universe.fill_contributing(per_class, overall)
        for place in self.plan.lifts.tolist():
            per_class[place] = _contributing_to_lift(values)
        return per_class, overall

    @cached_property
    def pairs(self) -> ScoreCounts:
        """The proportions of `plan.pair_ratios`, shape (2 n, ..., k)."""
        plan, weights = self.plan, self.weights
        squares = None if weights is None else (weights.counts("all").classes, weights.scale)
        shares = ratio_counts(self.values.counts.classes, plan.pair_ratios, squares)
        if self.grouped is not None:
            shares = shares / self.grouped.per_class[np.repeat(plan.pairs, 2)]
        return ScoreCounts.of(*shares)

    @cached_property
    def bootstrap(self) -> tuple[Array, Array]:
        """Bootstrap limits at the confidence of the report, per class and overall."""
        values = self.values
        per_class = np.full((2, *values.per_class.shape), np.nan)
        overall = np.full((2, *values.overall.shape), np.nan)
        if can_resample(values, self.items):
            add_bootstrap(values, per_class, overall)
        add_score_bootstrap(values, per_class, overall)
        self._fill_kept(overall, quantile_of(values.options.confidence))
        return per_class, overall

    @property
    def standard_errors(self) -> tuple[Array, Array] | None:
        """Standard errors, per class and overall, where reports have them."""
        return None

    @property
    def grouped(self) -> DesignEffects | None:
        """The effects of groups, which take Student's quantile."""
        return self.effects if self.weights is None else None

    @property
    def effective_groups(self) -> tuple[Array, Array] | None:
        """Effective numbers of groups, (computed, k) and (overall,); None without groups.

        With fewer than `FEW_EFFECTIVE_GROUPS` a rule about the value must not pass. Infinite where
        nothing is known, as of an index without an interval.
        """
        values = self.values
        shares = None if values.scores is None else values.scores.group_shares
        if self.grouped is None and shares is None:
            return None
        per_class = np.full(values.per_class.shape, np.inf)
        overall = np.full(values.overall.shape, np.inf)
        if self.grouped is not None:
            np.fmin(self.grouped.of_classes[EFFECTIVE], per_class, out=per_class)
            np.fmin(self.grouped.of_all[EFFECTIVE], overall, out=overall)
        if shares is not None:
            per_class[list(values.selection.scored)] = 1 / (shares @ shares)
            overall[list(values.selection.overall_scored)] = 1 / (shares @ shares)
        if self.highest is not None and self.highest.intervals.effective_groups is not None:
            of_classes, whole = self.highest.places
            per_class[of_classes], overall[whole] = self.highest.intervals.effective_groups
        return per_class, overall

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

    def limits_on_request(self, scope: IndexScope, quantile: float | Array) -> Array:
        """Compute `limits`, those of the bootstrap included, a new array."""
        methods = self.plan.per_class if scope == "class" else self.plan.overall
        limits = self.limits(scope, quantile).copy()
        scope_limits = ScopeLimits(self, methods, limits, quantile, quantile)
        for fill, places in methods.on_request:
            fill(scope_limits, places)
        return limits

    @cached_property
    def _known(self) -> dict[tuple[IndexScope, float], Array]:
        """The limits found so far, by scope and quantile."""
        return {}

    @np.errstate(all="ignore")
    def class_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the per-class indices, shape (2, computed, ..., k).

        Indices of precision that count as if it were 0 have the limits of that value.
        """
        values, methods = self.values, self.plan.per_class
        limits = np.full((2, *values.per_class.shape), np.nan)
        normal = z = _spread(quantile, values.per_class)
        if self.grouped is not None:
            z = student(z, self.grouped.of_classes[DEGREES] + 1)
        scope_limits = ScopeLimits(self, methods, limits, normal, z)
        for fill, places in methods.functions:
            fill(scope_limits, places)
        if self.grouped is not None:
            _add_half_group(limits, values.observed, self.grouped.of_classes, methods.logarithmic)
        if values.table.spurious is not None:
            places, stray = self.plan.predictions, np.asarray(values.table.spurious.any(-1))
            limits[:, places] = np.where(stray[..., None], np.nan, limits[:, places])
        return self._masked(values.observed, limits, methods)

    @np.errstate(all="ignore")
    def overall_limits(self, quantile: float | Array) -> Array:
        """Compute the limits of the overall indices, shape (2, overall, ...)."""
        values, methods = self.values, self.plan.overall
        limits = np.full((2, *values.overall.shape), np.nan)
        normal = z = _spread(quantile, values.overall)
        if self.grouped is not None:
            z = student(z, self.grouped.of_all[DEGREES] + 1)
        scope_limits = ScopeLimits(self, methods, limits, normal, z)
        for fill, places in methods.functions:
            fill(scope_limits, places)
        if self.grouped is not None:
            _add_half_group(limits, values.overall, self.grouped.of_all, methods.logarithmic)
        self._fill_kept(limits, normal)
        return self._masked(values.overall, limits, methods)

    def _fill_kept(self, limits: Array, quantile: float | Array) -> None:
        """Fill in the limits (2, overall) of indices of scores that are kept without these."""
        kept, selection = self.values.kept_scores, self.values.selection
        if kept is None:
            return
        for place in selection.overall_scored:
            at = quantile if np.ndim(quantile) == 0 else np.asarray(quantile)[place]
            limits[:, place] = kept.limits(selection.overall[place].key, at)

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


@dataclass(frozen=True, eq=False)
class HighestScores:
    """The intervals of the table of the k highest scores, and which entries they are of.

    `places` are positions among the per-class and among the overall entries.
    """

    intervals: PreparedIntervals
    places: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class ScopeLimits:
    """The limits of one scope, which the functions of interval methods fill in.

    Parameters
    ----------
    limits
        To be filled in, shape (2, n, ..., k) or (2, n, ...).
    normal, quantile
        The normal quantile, and Student's in its place where items are grouped: a number, or an
        array of the shape of the values.
    """

    prepared: PreparedIntervals
    methods: ScopeMethods
    limits: Array
    normal: float | Array
    quantile: float | Array

    @property
    def of_classes(self) -> bool:
        """Whether these are the per-class indices."""
        return self.methods is self.prepared.plan.per_class

    def ratios(self, places: Array) -> ScoreCounts:
        """Return the proportions of some entries, by effective items, shape (n, ...)."""
        counts = self.prepared.proportions if self.of_classes else self.prepared.pooled
        every = self.methods.proportions
        if len(places) == len(every):
            return counts
        rows = np.searchsorted(every, places)
        return ScoreCounts.of(counts.successes[rows], counts.trials[rows])

    def set_shares(self, places: Array, shares: Array) -> None:
        """Fill in the limits (2, n, ...) of proportions: mapped to the range of their indices.

        Overall R' keeps the limits by effective items where predictions have no item.
        """
        limits, plan, values = self.limits, self.prepared.plan, self.prepared.values
        if self.of_classes:
            limits[:, places] = shares
            return
        mixed = plan.mixed
        scores = limits[:, mixed]
        limits[:, places] = shares
        for place in plan.affine:
            if place in places:
                low, high = Bounds(values.table.k).of(values.selection.overall[place])
                limits[:, place] = low + (high - low) * limits[:, place]
        if values.table.spurious is not None:
            limits[:, mixed] = np.where(values.table.spurious.any(-1), scores, limits[:, mixed])


@np.errstate(all="ignore")
def _contributing_to_lift(values: Values) -> Array:
    """Count the items that the variance of the lift rests on, shape (..., k)."""
    counts = Counts.of(smoothed(values.table.classified)).classes
    influences = lift_influences(counts)
    squares = [(items * phi * phi, phi * phi) for items, phi in influences]
    second = sum(weighted for weighted, _ in squares)
    fourth = sum(weighted * square for weighted, square in squares)
    return np.asarray(second * second / fourth)[POOLED]


def lift_influences(counts: Counts) -> tuple[tuple[Array, Array], ...]:
    """Return TP, FN, FP and TN of the classes, each with its influence on the logarithm of lift."""
    by_class = 1 / counts.support
    by_prediction = 1 / counts.predicted
    whole = 1 / counts.total
    return (
        (counts.tp, 1 / counts.tp + whole - by_class - by_prediction),
        (counts.fn, whole - by_class),
        (counts.fp, whole - by_prediction),
        (counts.tn, whole),
    )


def _spread(quantile: float | Array, values: Array) -> float | Array:
    """Return a quantile for every value, if these differ."""
    return quantile if np.ndim(quantile) == 0 else np.broadcast_to(quantile, values.shape)


def _add_half_group(limits: Array, values: Array, effects: Array, logarithmic: Array) -> None:
    """Move limits by what half an effective group more changes, ratios on their logarithm."""
    moved = np.nan_to_num(effects[LOW:])
    factor = np.exp(np.nan_to_num(moved[:, logarithmic] / values[logarithmic]))
    ratios = limits[:, logarithmic] * factor
    limits += moved
    limits[:, logarithmic] = ratios
