"""Intervals of weighted sums of proportions of strata, and errors put together from them."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array, positions
from rprime.core.counts import CountRow, Counts
from rprime.core.families.one_vs_rest import RECALL
from rprime.core.intervals.delta import row_gradients
from rprime.core.intervals.methods import MISSES
from rprime.core.intervals.proportions import ScoreCounts
from rprime.core.populations.plan import ScopePlan
from rprime.core.populations.population import Population, StratumCounts
from rprime.core.values import Values, class_values

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
