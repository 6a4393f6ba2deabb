"""Errors of class indices put together from those of the strata (MOVER)."""

import numpy as np

from rprime.core.arrays import Array, positions
from rprime.core.counts import Counts
from rprime.core.intervals.delta import row_gradients
from rprime.core.intervals.methods import MISSES, RECALL
from rprime.core.populations.population import Population, StratumCounts
from rprime.core.populations.sums import StratumSums
from rprime.core.values import Values, class_values

Z = 1.959963984540054
"""The quantile at which errors are taken."""


def part_errors(values: Values, population: Population, strata: StratumCounts) -> Array:
    """Compute the errors of class indices on both sides: the distances from their limits, by Z.

    Returns
    -------
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
    own = np.diagonal(steps, axis1=-2, axis2=-1)
    at = np.stack((_moved(values, [0, margin], own), _moved(values, [margin], both)))
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
    found = class_values(selection, counts)
    for place in selection.functions:
        entry = selection.computed[place]
        if entry.reads == "counts":
            found[place] = entry.formula(counts if entry.universe == "all" else classified)
    return found
