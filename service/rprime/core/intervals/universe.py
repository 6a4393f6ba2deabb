"""The intervals of the indices of one universe, up to their quantile."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.custom import Extent
from rprime.core.families.agreement import corrected
from rprime.core.intervals.delta import macro_weights
from rprime.core.intervals.design_effect import DesignEffects, Weights
from rprime.core.intervals.plan import Averages, PartIntervals, UniversePlan
from rprime.core.intervals.proportions import ScoreCounts, ScoreIntervals
from rprime.core.intervals.smoothing import POOLED, ROW_WISE
from rprime.core.intervals.variance import Smoothed
from rprime.core.table import ConfusionTable, Universe
from rprime.core.values import Values


@dataclass(frozen=True, eq=False)
class ClassIntervals:
    """Intervals by parts, and by effective items, with one array of all their proportions.

    `counts` are the proportions of the terms of the parts, then the shares of the others.
    """

    parts: PartIntervals
    scores: ScoreIntervals
    counts: ScoreCounts

    @classmethod
    def of(cls, parts: PartIntervals, scores: ScoreIntervals) -> "ClassIntervals":
        """Join the proportions."""
        successes = np.concatenate((parts.successes, scores.shares * scores.items))
        trials = np.concatenate((parts.trials, scores.items))
        return cls(parts, scores, ScoreCounts.of(successes, trials))

    def limits(self, quantile: float | Array) -> tuple[Array, Array]:
        """Compute the limits by parts and by effective items, (2, n, ..., k) each.

        The quantile is a number, or an array that broadcasts to all proportions.
        """
        limits, terms = self.counts.limits(quantile), len(self.parts.layout.of)
        return self.parts.combine(limits[:, :terms]), self.scores.scaled(limits[:, terms:])


@dataclass(frozen=True, eq=False)
class AverageIntervals:
    """Averages over classes as means of class intervals at a reduced quantile.

    Parameters
    ----------
    averages
        The m entries.
    classes
        Intervals of the averaged indices.
    shares, absent
        Shape (m, ..., k): the weights of the classes, and where these are 0; None if nowhere.
    ratio
        Shape (m, ...): the reduced quantile as a share of the quantile.
    fixed
        Shape (m, ..., k): the values of classes that are fixed, NaN for the others; None where
        no class is.
    r_prime_is_recall
        Shape (...): where macro R' equals macro recall.
    yule
        The odds ratios of the classes behind averages of Yule's Q; None if it is not selected.
    """

    averages: Averages
    classes: ClassIntervals
    shares: Array
    absent: Array | None
    ratio: Array
    fixed: Array | None
    r_prime_is_recall: Array
    yule: "LogRatios | None"

    @property
    def chance(self) -> Array:
        """Balanced accuracy of guessing behind each adjusted average, shape (n, ...)."""
        return np.asarray(1 / np.count_nonzero(self.shares[self.averages.adjusted], axis=-1))

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (2, m, ...), at a number or an array of shape (m, ...)."""
        averages = self.averages
        reduced = (self.ratio * quantile)[averages.rows, ..., None]
        each = np.empty((2, *self.shares.shape))
        each[:, averages.by_parts], each[:, averages.by_scores] = self.classes.limits(reduced)
        if self.yule is not None:
            place = averages.of_yule
            each[:, place] = yule_of_odds(
                self.yule.limits((self.ratio * quantile)[place, ..., None])
            )
        if self.fixed is not None:
            each = np.where(np.isnan(self.fixed), each, self.fixed)
        if averages.logarithmic.size:
            each[:, averages.logarithmic] = np.log(np.maximum(each[:, averages.logarithmic], 0.0))
        each *= self.shares
        if self.absent is not None:
            each[:, self.absent] = 0.0
        result: Array = np.add.reduce(each, axis=-1)
        if averages.logarithmic.size:
            result[:, averages.logarithmic] = np.exp(result[:, averages.logarithmic])
        if averages.adjusted.size:
            result[:, averages.adjusted] = corrected(result[:, averages.adjusted], self.chance)
        if averages.equal is not None:
            left, right = averages.equal
            result[:, left] = np.where(self.r_prime_is_recall, result[:, right], result[:, left])
        return result


class LogRatios(NamedTuple):
    """Ratios (...), their logarithms, finite where a ratio is 0 or infinite, and the standard
    errors of these.
    """

    values: Array
    centres: Array
    errors: Array

    @classmethod
    def of(cls, values: Array, smoothed: Array, variances: Array) -> "LogRatios":
        """Take the logarithms of ratios, or of smoothed ones where these have none."""
        usual = np.isfinite(values) & (values > 0)
        centres = np.log(np.where(usual, values, smoothed))
        return cls(values, centres, np.sqrt(variances) / smoothed)

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (2, ...)."""
        half = self.errors * quantile
        low = np.where(self.values > 0, np.exp(self.centres - half), self.values)
        high = np.where(self.values < np.inf, np.exp(self.centres + half), self.values)
        return np.stack((low, high))


@dataclass(frozen=True, eq=False)
class UniverseIntervals:
    """The prepared intervals of the entries of one plan.

    Those of the classes, and overall ones by effective items; `averages` are None where nothing is
    averaged, the odds ratios (..., k) and those behind Yule's Q None if not selected;
    `contributing` are the numbers of items that the variances of the entries rest on, per class and
    overall.
    """

    plan: UniversePlan
    classes: ClassIntervals
    scores: ScoreIntervals
    averages: AverageIntervals | None
    log_odds: LogRatios | None
    yule: LogRatios | None
    contributing: tuple[Array, Array]

    @classmethod
    def of(
        cls,
        plan: UniversePlan,
        values: Values,
        universe: Universe,
        *,
        effects: DesignEffects | None,
        weights: Weights | None,
    ) -> "UniverseIntervals":
        """Prepare the intervals of a plan from the values of the observed tables.

        The effects are on the entries of the plan: those of groups, or of the weights, if any.
        """
        counts, table = values.counts_of(universe).classes, values.table.universe(universe)
        fixed_rows = values.options.sampling == "fixed_rows"
        squares = None if weights is None else (weights.counts(universe).classes, weights.scale)
        parts = PartIntervals.at(plan.parts, counts, squares, fixed_rows=fixed_rows)
        if table.spurious is not None:
            # R' of a class is no function of its rates if predictions have no item.
            stray, mixed = np.asarray(table.spurious.any(-1)), plan.with_prevalence
            parts.values[mixed] = np.where(stray[..., None], np.nan, parts.values[mixed])
        more = Smoothed.of(plan, values, table)
        if effects is not None:
            np.multiply(more.class_variances, effects.per_class[:, None], out=more.class_variances)
            np.multiply(more.variances, effects.overall[:, None], out=more.variances)
            if weights is None:
                parts = parts.divided(effects.per_class[plan.parts_of])
        class_scores = _class_scores(plan, values, more)
        averages = None
        if len(plan.averages.entries):
            chosen = class_scores.take(plan.averages.scores)
            of_classes = ClassIntervals.of(parts.take(plan.average_parts), chosen)
            averages = _averages(plan, values, more, of_classes, table)
        spread = _overall_bounds(plan, averages), more.variances[:, POOLED]
        scores = ScoreIntervals.of(
            values.overall[plan.overall_places],
            more.overall[:, POOLED],
            more.variances[:, POOLED],
            growth=more.growth,
            bounds=of_expressions(values, plan.overall_places, *spread),
        )
        if len(plan.own_scores) < len(plan.class_scores):  # averages alone need the others
            class_scores = class_scores.take(plan.own_scores)
        classes = ClassIntervals.of(parts.take(plan.class_parts), class_scores)
        numbers = more.class_contributing, more.contributing
        odds = _log_odds(plan, values, more), _odds_of_yule(plan, values, more)
        return cls(plan, classes, scores, averages, *odds, numbers)

    def class_limits(self, quantile: float | Array, limits: Array) -> None:
        """Fill the limits (2, computed, ..., k) of the per-class entries of the plan."""
        plan = self.plan
        by_parts, by_scores = self.classes.limits(at(quantile, plan.class_rows))
        limits[:, plan.class_parts_of] = by_parts
        widen(limits, plan.class_scores_of, by_scores)
        if self.log_odds is not None and plan.odds_ratio is not None:
            place = plan.class_places[plan.odds_ratio]
            limits[:, place] = self.log_odds.limits(at(quantile, place))
        if self.yule is not None and plan.yule_q is not None:
            place = plan.class_places[plan.yule_q]
            if place >= 0:
                limits[:, place] = yule_of_odds(self.yule.limits(at(quantile, place)))

    def fill_items(self, per_class: Array, overall: Array) -> None:
        """Fill in the effective numbers of items of the entries of the plan that rest on one."""
        plan, classes = self.plan, self.classes
        per_class[plan.class_parts_of] = classes.parts.trials[classes.parts.layout.starts]
        per_class[plan.class_scores_of] = classes.scores.items
        overall[plan.overall_places] = self.scores.items

    def fill_contributing(self, per_class: Array, overall: Array) -> None:
        """Fill in the numbers of items that variances rest on, of the entries of the plan."""
        placed = self.plan.class_places >= 0
        per_class[self.plan.class_places[placed]] = self.contributing[0][placed]
        overall[self.plan.overall_places] = self.contributing[1]

    def overall_limits(self, quantile: float | Array, limits: Array) -> None:
        """Fill the limits (2, overall, ...) of the overall entries of the plan."""
        plan, scores = self.plan, self.scores
        shares = scores.counts.limits(at(quantile, plan.overall_places))
        limits[:, plan.overall_places] = scores.scaled(shares)
        if self.averages is not None:
            wider = self.averages.limits(at(quantile, plan.average_places))
            widen(limits, plan.average_places[plan.averages.kept], wider[:, plan.averages.kept])


def at(quantile: float | Array, places: Array | int) -> float | Array:
    """Return the quantiles of some entries, if these differ."""
    return quantile if np.ndim(quantile) == 0 else np.asarray(quantile)[places]


def widen(limits: Array, places: Array, wider: Array) -> None:
    """Widen limits on each side to the found ones; where one is missing, take the other."""
    limits[0, places] = np.fmin(limits[0, places], wider[0])
    limits[1, places] = np.fmax(limits[1, places], wider[1])


def _class_scores(plan: UniversePlan, values: Values, more: Smoothed) -> ScoreIntervals:
    rows, places = plan.class_scores, plan.class_places[plan.class_scores]
    return ScoreIntervals.of(
        _rows(values.observed, places),
        more.values.per_class[rows, POOLED],
        more.class_variances[rows, POOLED],
        growth=more.growth[..., None],
        bounds=plan.class_bounds,
    )


def _rows(values: Array, places: Array) -> Array:
    """Return rows of per-class values; NaN at -1, an index that is averaged but not computed."""
    there = places >= 0
    if there.all():
        return values[places]
    rows = np.full((len(places), *values.shape[1:]), np.nan)
    rows[there] = values[places[there]]
    return rows


WIDE = 1e5
"""Standard errors from a value to the ends of a range that is wide enough for a normal interval."""


def of_expressions(values: Values, places: Array, bounds: Array, variances: Array) -> Array:
    """Put the ranges of indices of one's own into bounds (2, n, ...) of the overall `places`.

    Where an expression has no finite range, it has one around the value, so wide that the interval
    is that of the standard error.
    """
    entries = values.selection.overall
    chosen = [n for n, place in enumerate(places.tolist()) if entries[place].reads == "custom"]
    if not chosen:
        return bounds
    ranges = np.empty((2, *variances.shape))
    ranges[...] = bounds.reshape(*bounds.shape, *(1,) * (ranges.ndim - bounds.ndim))
    for n in chosen:
        custom = values.custom(entries[places[n]].key)
        extent = Extent() if custom is None else custom.extent(values.table)
        half = WIDE * np.sqrt(variances[n])
        observed = values.overall[places[n]]
        if np.isfinite((extent.low, extent.high)).all() and extent.low < extent.high:
            ranges[0, n], ranges[1, n] = extent.low, extent.high
        else:
            ranges[0, n], ranges[1, n] = observed - half, observed + half
    return ranges


def _overall_bounds(plan: UniversePlan, averages: AverageIntervals | None) -> Array:
    """Ranges of the score intervals, (2, o, ...): that of recall where macro R' equals it."""
    bounds, layout = plan.overall_bounds, plan.averages
    if averages is None or not (layout.equal or layout.adjusted.size):
        return bounds
    same = averages.r_prime_is_recall
    ranges = np.empty((*bounds.shape, *np.shape(same)))
    ranges[...] = bounds.reshape(*bounds.shape, *(1,) * np.ndim(same))
    if layout.equal is not None:
        place = layout.entries[layout.equal[0]]
        ranges[0, place] = np.where(same, 0.0, ranges[0, place])
    ranges[0, layout.entries[layout.adjusted]] = corrected(np.zeros(()), averages.chance)
    return ranges


def _log_odds(plan: UniversePlan, values: Values, more: Smoothed) -> LogRatios | None:
    """Return the odds ratios, smoothed as the row-wise table's."""
    if plan.odds_ratio is None:
        return None
    row, place = plan.odds_ratio, plan.class_places[plan.odds_ratio]
    smooth, spread = more.values.per_class[row, ROW_WISE], more.class_variances[row, ROW_WISE]
    return LogRatios.of(values.per_class[place], smooth, spread)


def yule_of_odds(ratios: Array) -> Array:
    """Map odds ratios to Yule's Q; an infinite one to 1."""
    return np.asarray(1 - 2 / (ratios + 1))


def _odds_of_yule(plan: UniversePlan, values: Values, more: Smoothed) -> LogRatios | None:
    """Return the odds ratios behind Yule's Q, smoothed as the row-wise table's.

    An effective number of items is of no use here: it is largest at both ends of the range, and
    half an item takes a class without right items from one end nearly to the other.
    """
    if plan.yule_q is None:
        return None
    row = plan.yule_q
    observed = _rows(values.observed, plan.class_places[[row]])[0]
    smooth, spread = more.values.per_class[row, ROW_WISE], more.class_variances[row, ROW_WISE]
    slope = 2 / (1 - smooth) ** 2
    return LogRatios.of(_odds(observed), _odds(smooth), spread * slope * slope)


def _odds(yule: Array) -> Array:
    return np.asarray((1 + yule) / (1 - yule))


def _averages(
    plan: UniversePlan,
    values: Values,
    more: Smoothed,
    classes: ClassIntervals,
    table: ConfusionTable,
) -> AverageIntervals:
    averages = plan.averages
    shares = _shares(plan, values, table)
    absent = shares == 0
    some = bool(absent.any())
    errors = np.sqrt(more.class_variances[averages.of, ROW_WISE])
    whole = np.sqrt(more.variances[averages.entries, ROW_WISE])
    if averages.logarithmic.size:
        errors[averages.logarithmic] /= more.values.per_class[
            averages.of[averages.logarithmic], ROW_WISE
        ]
        whole[averages.logarithmic] /= more.overall[
            averages.entries[averages.logarithmic], ROW_WISE
        ]
    if averages.adjusted.size:
        whole[averages.adjusted] *= 1 - 1 / np.count_nonzero(shares[averages.adjusted], axis=-1)
    weighted = shares * errors
    if some:
        weighted[absent] = 0.0
    ratio = whole / np.add.reduce(weighted, axis=-1)
    # Above 1 it is the weights of the classes that vary, which effective items account for.
    ratio = np.where(ratio > 0, np.minimum(ratio, 1.0), np.nan)
    about = (_fixed(plan, values), _r_prime_is_recall(values), _odds_of_yule(plan, values, more))
    return AverageIntervals(averages, classes, shares, absent if some else None, ratio, *about)


def _fixed(plan: UniversePlan, values: Values) -> Array | None:
    """Values of classes that are replaced, so that they do not vary, (m, ..., k); else NaN."""
    if values.options.undefined == "null":
        return None
    places = plan.class_places[plan.averages.of]
    replaced = ~np.isfinite(_rows(values.per_class, places))
    replaced[places < 0] = False
    return np.where(replaced, _rows(values.averaged, places), np.nan)


def _shares(plan: UniversePlan, values: Values, table: ConfusionTable) -> Array:
    """Weights of the classes in the averages, shape (m, ..., k)."""
    averages = plan.averages
    places = plan.class_places[averages.of]
    items = table.support / table.total[..., None]
    result = np.empty((len(averages.of), *items.shape))
    result[averages.macro] = macro_weights(values, places[averages.macro])
    alone = averages.macro[places[averages.macro] < 0]
    if alone.size:  # recall, which macro R' may equal, but nobody asked for
        result[alone] = (items > 0) / np.count_nonzero(items > 0, axis=-1)[..., None]
    if averages.weighted.size:
        support, total = values.averaged_items
        result[averages.weighted] = support / total[..., None]
    if averages.peirce.size:
        squares = np.add.reduce(items * items, axis=-1)[..., None]
        result[averages.peirce] = items * (1 - items) / (1 - squares)
    return result


def _r_prime_is_recall(values: Values) -> Array:
    """Whether the macro averages of R' and recall are equal, shape (...)."""
    table = values.table
    outside = np.where(table.support > 0, 0.0, table.predicted)
    for items in (table.unclassified, table.spurious):
        if items is not None:
            outside = outside + items
    equal = ~np.asarray(outside.any(-1))
    of_all = values.options.undefined == "null" and values.averaged_classes is None
    return equal if of_all else np.zeros_like(equal)
