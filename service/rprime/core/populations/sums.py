"""Intervals of weighted sums of proportions of strata."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.intervals.delta import row_gradients
from rprime.core.intervals.proportions import ScoreCounts
from rprime.core.populations.plan import ScopePlan
from rprime.core.populations.population import StratumCounts


@dataclass(frozen=True, eq=False)
class StratumSums:
    """Indices that are weighted sums of proportions of the strata.

    Parameters
    ----------
    counts
        The proportions, shape (n, ..., H).
    weights
        Shape (n, ..., H): they sum to 1; 0 where a stratum takes no part.
    ratio
        Shape (n, ...): the reduced quantile as a share of the quantile.
    exact
        Whether the limits of the proportions are exact.

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
        found = self.counts.exact_limits(z) if self.exact else self.counts.limits(z)
        parts = np.where(self.weights > 0, found * self.weights, 0.0)
        return np.asarray(np.add.reduce(parts, axis=-1))
