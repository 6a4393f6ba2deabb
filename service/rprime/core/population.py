"""The population that the indices are about, where it is not the items that were sent."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.smoothing import POOLED, full, smoothed
from rprime.core.table import ConfusionTable

Strata = Literal["true", "predicted", "own"]
"""What divides the items into strata: true classes, predicted classes, or strata of their own."""

MOST_CLASSES = 300
"""The strata of so many classes take 70 MiB, those of 1000 ten times as much."""


class StratumCounts(NamedTuple):
    """The items of the strata: by the cells that a stratum can hold, (..., H, c), and by class.

    The latter have the shape (..., H, k); `answered` is of true classes, with a prediction.
    """

    cells: Array
    correct: Array
    support: Array
    predicted: Array
    answered: Array

    @property
    def items(self) -> Array:
        """Number of items of each stratum, shape (..., H)."""
        return np.asarray(np.add.reduce(self.cells, axis=-1))


@dataclass(frozen=True, eq=False)
class Population:
    """Shares of strata in the population; the items of a stratum are a random sample of it.

    Parameters
    ----------
    strata
        "true": the prevalence of the classes is known. "predicted": the shares of the predicted
        classes are, as on a map. "own": the items have strata of their own.
    shares
        Shape (H,), sum 1: for classes in the order of the table, 0 for those that are not in the
        population. Of a stack of tables (..., H) if each has a population of its own.
    names
        The H names of strata of their own; empty for classes.
    counts
        Shape (H, k, k + 1): the items of strata of their own, the last column unclassified ones.
    evaluation
        Id of the stored evaluation that the shares are of, if any.

    Notes
    -----
    Sources: Olofsson et al. 2014 for predicted classes, Stehman 2014 for other strata.
    """

    strata: Strata
    shares: Array
    names: tuple[str, ...] = ()
    counts: Array | None = None
    evaluation: str | None = None

    @classmethod
    def uniform(cls, sample: ConfusionTable) -> "Population":
        """Return equal shares of the classes that a table has items of, for each of a stack."""
        there = sample.support > 0
        return cls("true", there / np.maximum(np.add.reduce(there, axis=-1, keepdims=True), 1))

    def sizes(self, sample: ConfusionTable) -> Array:
        """Return the numbers of items of the strata, shape (..., H)."""
        if self.counts is not None:
            return np.asarray(self.counts.sum((1, 2)))
        return sample.support if self.strata == "true" else sample.predicted

    def weights(self, sample: ConfusionTable) -> Array:
        """Return what an item of each stratum counts in the estimated table, shape (..., H)."""
        return _ratio(self.shares * sample.total[..., None], self.sizes(sample))

    def table(self, sample: ConfusionTable) -> ConfusionTable:
        """Estimate the table of the population, scaled to the number of items.

        `sample` is a stack of any shape without spurious predictions; a single table where strata
        are their own.
        """
        factors = self.weights(sample)
        if self.counts is not None:
            counts = np.tensordot(factors, self.counts, 1)
            return ConfusionTable.dense(counts[:, :-1], counts[:, -1])
        cells, silent = sample.cells, sample.unclassified
        true = self.strata == "true"
        weights = cells.by_row(factors) if true else cells.by_column(factors)
        silent = None if silent is None else silent * factors
        return ConfusionTable(replace(cells, counts=cells.counts * weights), silent)

    def sampled(self, sample: ConfusionTable) -> StratumCounts:
        """Count the items of the strata of dense tables."""
        cells, identity = joint_cells(sample), np.eye(sample.k)
        if self.counts is not None:
            every, inside = self.counts.reshape(len(self.counts), -1), self.counts[..., :-1]
            correct, support = np.diagonal(inside, axis1=-2, axis2=-1), self.counts.sum(-1)
            return StratumCounts(every, correct, support, inside.sum(-2), inside.sum(-1))
        correct, inside = identity * sample.correct[..., None, :], cells[..., : sample.k]
        if self.strata == "true":
            support = identity * sample.support[..., None, :]
            answered = identity * sample.answered[..., None, :]
            return StratumCounts(cells, correct, support, inside, answered)
        turned = np.swapaxes(inside, -1, -2)
        return StratumCounts(
            turned, correct, turned, identity * sample.predicted[..., None, :], turned
        )

    def arranged(self, influences: Array) -> Array:
        """Arrange influences by cell, (..., k, k + 1), as `StratumCounts.cells`."""
        if self.strata == "true":
            return influences
        if self.strata == "predicted":
            return np.swapaxes(influences[..., :-1], -1, -2)
        return influences.reshape(*influences.shape[:-2], 1, -1)

    def smoothed(self, sample: ConfusionTable) -> "tuple[Population, ConfusionTable]":
        """Add half an item to each stratum that has items, so that no variance is 0 without need.

        Returns the population, with smoothed counts where strata are their own, and the smoothed
        sample.

        Notes
        -----
        The half item is spread over the true classes of the stratum's predicted class as that of a
        row of the pooled table is over the predicted ones; where strata are their own, it has the
        predicted classes of the stratum in their proportions.
        """
        if self.strata == "true":
            return self, _pooled(sample)
        turned = ConfusionTable.dense(np.swapaxes(full(sample.cells), -1, -2))
        more = np.swapaxes(full(_pooled(turned).cells), -1, -2)
        if self.counts is None:
            return self, ConfusionTable.dense(more)
        by_class = self.counts.sum(1)
        shares = _ratio(by_class, by_class.sum(-1, keepdims=True))
        counts = self.counts.copy()
        counts[..., :-1] += (more - full(sample.cells)) * shares[:, None, :-1]
        counts[..., -1] += 0.5 * shares[:, -1:] * (sample.support / sample.total)
        cells = counts.sum(0)
        return replace(self, counts=counts), ConfusionTable.dense(cells[:, :-1], cells[:, -1])

    def effective_items(self, sample: ConfusionTable) -> float:
        """Return Kish's effective number of items of a single table: 1 / sum W^2 / n."""
        return float(1 / np.vecdot(self.shares, _ratio(self.shares, self.sizes(sample))))

    def onto(self, places: Array, k: int) -> "Population":
        """Return the population over k classes, with those of the table at these places."""
        if self.counts is not None:
            raise ValueError("strata of their own belong to one list of classes")
        shares = np.zeros(k)
        shares[places] = self.shares
        return replace(self, shares=shares)


def joint_cells(table: ConfusionTable) -> Array:
    """Return the cells of dense tables with a column of unclassified items, (..., k, k + 1)."""
    silent = table.unclassified
    last = np.zeros(table.support.shape) if silent is None else silent
    return np.concatenate((full(table.cells), last[..., None]), axis=-1)


def _pooled(table: ConfusionTable) -> ConfusionTable:
    both = smoothed(table)
    silent = None if both.unclassified is None else both.unclassified[POOLED]
    return ConfusionTable.dense(full(both.cells)[POOLED], silent)


def _ratio(shares: Array, sizes: Array) -> Array:
    """Divide shares by sizes, 0 where a stratum has no items."""
    nothing = np.zeros(np.broadcast(shares, sizes).shape)
    return np.divide(shares, sizes, out=nothing, where=sizes > 0)
