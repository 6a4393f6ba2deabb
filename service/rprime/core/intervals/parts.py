"""Intervals put together from the score intervals of proportions (MOVER)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts
from rprime.core.index import Index, Parts
from rprime.core.intervals.proportions import wilson

STEP = 1e-30
PREVALENCE = (CountRow.support, CountRow.total)


@dataclass(frozen=True, eq=False)
class PartIntervals:
    """Indices as functions of proportions, with the counts of these.

    Parameters
    ----------
    parts
        The n functions.
    of
        Shape (t,): the function that each of the t terms belongs to, in order.
    successes, trials
        Shape (t, ..., k): the counts of the proportion of each term.
    slopes
        Shape (t, ..., k): derivative of the function by the proportion.
    values
        Shape (n, ..., k): what the functions combine to.
    """

    parts: tuple[Parts, ...]
    of: Array
    successes: Array
    trials: Array
    slopes: Array
    values: Array

    @classmethod
    def at(cls, parts: Sequence[Parts], counts: Counts, *, fixed_rows: bool) -> "PartIntervals":
        """Evaluate the functions on the counts of the classes.

        Parameters
        ----------
        counts
            Without the pooled column.
        fixed_rows
            Whether prevalences are fixed by design.
        """
        ratios = [ratio for part in parts for ratio in part.ratios]
        successes, trials = ratio_counts(counts, ratios)
        slopes, values = np.empty(successes.shape), np.empty((len(parts), *successes.shape[1:]))
        shares, first = successes / trials, 0
        for i, part in enumerate(parts):
            last = first + len(part.ratios)
            values[i], slopes[first:last] = _combined(part, shares[first:last])
            first = last
        if fixed_rows:
            slopes[[ratio == PREVALENCE for ratio in ratios]] = 0.0
        of = np.repeat(np.arange(len(parts)), [len(part.ratios) for part in parts])
        return cls(tuple(parts), of, successes, trials, slopes, values)

    def divided(self, effects: Array) -> "PartIntervals":
        """Divide the counts by the design effects (n, ..., k) of the functions."""
        by_term = effects[self.of]
        return replace(self, successes=self.successes / by_term, trials=self.trials / by_term)

    def take(self, places: Array) -> "PartIntervals":
        """Return some of the functions, repeated as asked for."""
        terms = [np.flatnonzero(self.of == place) for place in places]
        chosen = np.concatenate(terms) if terms else np.zeros(0, dtype=np.intp)
        return PartIntervals(
            tuple(self.parts[place] for place in places),
            np.repeat(np.arange(len(terms)), [len(own) for own in terms]),
            self.successes[chosen],
            self.trials[chosen],
            self.slopes[chosen],
            self.values[places],
        )

    def limits(self, quantile: float | Array) -> Array:
        """Compute the limits, shape (2, n, ..., k).

        Parameters
        ----------
        quantile
            A number, or an array that broadcasts to (n, ..., k).

        Notes
        -----
        Source: Zou, Donner 2008. On each side the root of the summed squares of the distances of
        the parts from their limits, each times the slope.
        """
        z = quantile if np.ndim(quantile) == 0 else np.asarray(quantile)[self.of]
        low, high = wilson(self.successes, self.trials, z)
        shares = self.successes / self.trials
        below, above = self.slopes * (shares - low), self.slopes * (high - shares)
        rising = self.slopes > 0
        distances = np.where(rising, (below, above), (above, below))
        distances *= distances
        starts = np.flatnonzero(np.diff(self.of, prepend=-1))
        squares = np.add.reduceat(distances, starts, axis=1) if len(starts) else distances
        result = self.values + np.sqrt(squares) * SIDES.reshape(2, *(1,) * self.values.ndim)
        for place, part in enumerate(self.parts):
            if part.back is not None:
                result[:, place] = part.back(result[:, place])
        return np.asarray(result)


SIDES = np.array([-1.0, 1.0])


def _combined(part: Parts, shares: Array) -> tuple[Array, Array]:
    """Return the function of proportions (t, ..., k) and its slopes, by the complex step."""
    if len(shares) == 1:
        return part.combine(*shares), np.ones(1)
    own = np.eye(len(shares)).reshape(len(shares), len(shares), *(1,) * (shares.ndim - 1))
    found = part.combine(*(shares[:, None] + STEP * 1j * own))
    return found[0].real, found.imag / STEP


def ratio_counts(counts: Counts, ratios: Sequence[tuple[int, int]]) -> tuple[Array, Array]:
    """Return successes and trials of proportions, shape (n, ..., k) each.

    Precision of a class that has items and is never predicted is 0; how much of it could be right
    is bounded by its items, so that these are the trials.
    """
    numerators = np.array([ratio[0] for ratio in ratios], dtype=np.intp)
    denominators = np.array([ratio[1] for ratio in ratios], dtype=np.intp)
    successes, trials = counts.rows[numerators], counts.rows[denominators]
    never = counts.rows[CountRow.predicted] == 0
    if never.any():
        of_precision = np.flatnonzero(denominators == CountRow.predicted)
        support = np.where(never, counts.rows[CountRow.support], 0.0)
        trials[of_precision] += support
        successes[of_precision[numerators[of_precision] == CountRow.fp]] += support
    return successes, trials


def of_index(entry: Index) -> Parts:
    """Return the parts of an index; a plain proportion is its own part."""
    if entry.parts is not None:
        return entry.parts
    ratio = (CountRow(entry.rows[0]), CountRow(entry.rows[1]))
    return Parts(ratios=(ratio,), combine=lambda share: share)
