"""The intervals that rest on little: few items or groups, few errors, or few rights."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array, positions
from rprime.core.counts import CountRow
from rprime.core.index import Index
from rprime.core.intervals.delong import ItemMean, ranked_key
from rprime.core.intervals.delta import classified_entries
from rprime.core.intervals.design_effect import EFFECTIVE, GROUPS
from rprime.core.intervals.groups import FEW_EFFECTIVE_GROUPS
from rprime.core.intervals.methods import BY_LOGARITHM
from rprime.core.intervals.plan import ScopeMethods
from rprime.core.intervals.prepared import PreparedIntervals
from rprime.core.intervals.proportions import ScoreCounts
from rprime.core.scores.scores import Scores
from rprime.core.thresholds import falls_short
from rprime.core.values import Values

FEW_ITEMS = 10
FEW_ERRORS = 5
FEW_RANKED = 20
MANY_SMALL = 0.1
"""From this share of the items on, classes of few items decide a weighted average."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """Which entries rest on little, boolean arrays.

    Parameters
    ----------
    few_items
        Per class, on few items or groups, shape (computed, ..., k).
    few_errors
        Per class, on few errors, rights or items that contribute, the same shape.
    overall
        On little of any kind, shape (overall, ...).
    """

    few_items: Array
    few_errors: Array
    overall: Array

    @classmethod
    def of_counts(cls, prepared: PreparedIntervals) -> "Reliability":
        """Judge by the counts of the tables, the groups, and the influences of the items."""
        values, plan, effects = prepared.behind, prepared.plan, prepared.grouped
        rows = values.counts.rows
        items = _fewest(values, plan.per_class.rests_on) < FEW_ITEMS
        errors = _few_errors(rows[..., :-1], items.shape, prepared.proportions, plan.per_class)
        overall = _little(rows[..., -1], prepared)
        if values.averaged_classes is not None:
            averages = positions(e.reads in AVERAGED for e in values.selection.overall)
            overall[averages] = _little(values.pooled_rows, prepared)[averages]
        if effects is not None:
            items |= _few_groups(effects.of_classes)
            overall |= _few_groups(effects.of_all)
        of_classes, of_all = prepared.contributing
        errors |= falls_short(of_classes, FEW_ERRORS)
        overall |= falls_short(of_all, FEW_ERRORS)
        overall |= _few_right(values) | _many_small(values, plan.weighted)
        overall[plan.open_below] |= values.overall[plan.open_below] < 0
        return cls(items, errors, overall)

    def judge_scored(self, values: Values, scores: Scores) -> None:
        """Judge the indices of scores anew: counts say nothing of them.

        Areas and precisions rest on few items where a class has few in it, or outside of it.
        """
        selection, inside = values.selection, scores.effective
        of_classes, of_all = list(selection.scored), list(selection.overall_scored)
        self.few_errors[of_classes] = False
        few = np.minimum(inside, np.add.reduce(inside) - inside) < FEW_RANKED
        for place in of_classes:
            entry = selection.computed[place]
            if ranked_key(entry) is not None or entry.item_influence is not None:
                self.few_items[place] = few
        for place in of_all:
            entry = selection.overall[place]
            ranked = ranked_key(entry) is not None or entry.item_influence is not None
            there = inside > 0
            if entry.reads in AVERAGED and values.averaged_classes is not None:
                there &= values.averaged_classes
            self.overall[place] = few[there].any() if ranked else _few_contributing(values, entry)
        shares = scores.group_shares
        if shares is not None and 1 / (shares @ shares) < FEW_EFFECTIVE_GROUPS:
            self.few_items[of_classes] = True
            self.overall[of_all] = True


def reliability(
    prepared: PreparedIntervals, class_low: Array, overall_low: Array
) -> tuple[Array, Array, Array]:
    """Find the intervals that rest on little.

    The lower limits, (computed, ..., k) and (overall, ...), are NaN without an interval.

    Returns
    -------
    Per class: whether it rests on few items or groups, and whether on little of any kind; overall:
    whether on little of any kind. An average with equal weights rests on its smallest class.
    """
    values, plan, highest = prepared.behind, prepared.plan, prepared.highest
    marks = Reliability.of_counts(prepared)
    items, errors, overall = marks.few_items, marks.few_errors, marks.overall
    if values.scores is not None:
        marks.judge_scored(values, values.scores)
    if values.kept_scores is not None:
        for place in values.selection.overall_scored:
            kept = values.kept_scores.of(values.selection.overall[place].key)
            overall[place] = kept.low_reliability
    if highest is not None:
        classes, whole = highest.places
        items[classes], errors[classes], overall[whole] = reliability(
            highest.intervals, class_low[classes], overall_low[whole]
        )
    exists = np.isfinite(class_low)
    items &= exists
    smallest = items[plan.weakest_of]
    if values.averaged_classes is not None:
        smallest &= values.averaged_classes
    np.logical_or.at(overall, plan.weakest, smallest.any(-1))
    return items, items | errors & exists, overall & np.isfinite(overall_low)


def _fewest(values: Values, rests_on: Array) -> Array:
    """Return the fewest items of a kind that each per-class entry rests on."""
    fewest = np.minimum.reduce(values.counts.rows[rests_on, ..., :-1], axis=1)
    if values.classified_counts is not values.counts:
        outside = classified_entries(values.selection)
        classified = values.classified_counts.rows[rests_on[outside], ..., :-1]
        fewest[outside] = np.minimum.reduce(classified, axis=1)
    return np.asarray(fewest)


AVERAGED = ("macro", "weighted", "micro", "means")
"""What overall indices read that rest on the classes that averages are over."""


def _little(pooled: Array, prepared: PreparedIntervals) -> Array:
    """Whether each overall entry rests on few items, few errors or few rights."""
    plan = prepared.plan.overall
    few = np.minimum.reduce(pooled[plan.rests_on, ...], axis=1) < FEW_ITEMS
    return few | _few_errors(pooled, few.shape, prepared.pooled, plan)


def _few_right(values: Values) -> Array:
    """Whether a class has fewer than 5 right items, for the index that is 0 if one has none."""
    few = np.zeros(values.overall.shape, dtype=bool)
    place = values.selection.overall_place.get(BY_LOGARITHM)
    if place is not None:
        right, support = values.table.correct, values.averaged_items[0]
        few[place] = ((right < FEW_ERRORS) & (support > 0)).any(-1)
    return few


def _many_small(values: Values, places: Array) -> Array:
    """Whether classes with fewer than 10 items have a tenth of the weight of averages, or more."""
    few, (support, total) = np.zeros(values.overall.shape, dtype=bool), values.averaged_items
    small = np.where(support < FEW_ITEMS, support, 0.0)
    few[places] = np.add.reduce(small, axis=-1) >= MANY_SMALL * total
    return few


def _few_contributing(values: Values, entry: Index) -> bool:
    """Whether the variance of a mean over the items rests on fewer than 5."""
    if entry.of_items is None or entry.interval is None:
        return False
    mean = ItemMean.of(values, entry)
    return mean is not None and bool(falls_short(mean.contributing, FEW_ERRORS))


def _few_errors(
    rows: Array, shape: tuple[int, ...], shares: ScoreCounts, methods: ScopeMethods
) -> Array:
    """Whether there are fewer than 5 errors, or fewer than 5 rights, behind each entry."""
    errors = rows[CountRow.fn] + rows[CountRow.fp]
    few = np.empty(shape, dtype=bool)
    few[...] = np.minimum(rows[CountRow.tp], errors) < FEW_ERRORS
    hits = shares.successes
    few[methods.proportions] = np.minimum(hits, shares.trials - hits) < FEW_ERRORS
    return few


def _few_groups(effects: Array) -> Array:
    """Whether there are fewer than 10 groups, or fewer than 8 effective ones."""
    few = effects[EFFECTIVE] < FEW_EFFECTIVE_GROUPS
    return np.asarray(few | (effects[GROUPS] < FEW_ITEMS))
