"""Resampling: two sets of predictions by an unchanged model, in stacks of replicates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.table import ConfusionTable

MOST_DRAWN = 10**8
"""Most items of a class for drawing a coincidence; above, the mean replaces it."""
GRID = 2.0**20


@dataclass(frozen=True, eq=False)
class SimulatedPredictions:
    """Old and new predictions of the same items, cell by cell; arrays of shape (..., k, k).

    Parameters
    ----------
    kept
        Items that the new model does not predict anew: both models predict the same class.
    old, new
        The other items, as each model predicts them.
    both
        The other items that both models put into the same cell.
    joint
        Shape (..., k, k, k): items by true class, old and new prediction; None where unknown,
        then the expected coincidences of the other items are used.
    """

    kept: FloatArray
    old: FloatArray
    new: FloatArray
    both: FloatArray
    joint: FloatArray | None = None

    @property
    def baseline(self) -> ConfusionTable:
        """Tables of the old model."""
        return ConfusionTable.dense(self.kept + self.old)

    @property
    def candidate(self) -> ConfusionTable:
        """Tables of the new model."""
        return ConfusionTable.dense(self.kept + self.new)

    @property
    def moving(self) -> FloatArray:
        """Items of each class that are not kept, shape (..., k)."""
        return np.add.reduce(self.old, axis=-1)


@dataclass(frozen=True, eq=False)
class UnchangedModel:
    """An unchanged model with the class-wise behaviour of a table.

    Parameters
    ----------
    counts
        Shape (k, k), whole numbers.
    redrawn
        Shape (k,): share of the items of each class that the new model predicts anew, in the
        same proportions; 1 for another test set.
    """

    counts: FloatArray
    redrawn: FloatArray

    @classmethod
    def paired(cls, counts: FloatArray, discordance: float) -> "UnchangedModel":
        """Make a given share of the items discordant: only one of the two models gets them right.

        Two predictions made anew are discordant with probability 2 rho (1 - rho), so classes
        that are almost always right or wrong reach less: no unchanged model differs more.
        """
        support = np.add.reduce(counts, axis=-1)
        recall = np.diagonal(counts) / np.where(support > 0, support, 1.0)
        most = 2 * recall * (1 - recall)
        return cls(counts, np.minimum(discordance / np.where(most > 0, most, np.inf), 1.0))

    @classmethod
    def unpaired(cls, counts: FloatArray) -> "UnchangedModel":
        """Predict every item anew."""
        return cls(counts, np.ones(counts.shape[0]))

    @property
    def support(self) -> FloatArray:
        """Items of each class, shape (k,)."""
        return np.asarray(np.add.reduce(self.counts, axis=-1))

    def expected(self) -> SimulatedPredictions:
        """Return the expected counts, stack shape ()."""
        # Rounded to a grid on which sums are exact, so that the tables stay whole.
        moving = np.rint(self.counts * self.redrawn[:, None] * GRID) / GRID
        total = np.add.reduce(moving, axis=-1, keepdims=True)
        both = moving * moving / np.where(total > 0, total, 1.0)
        return SimulatedPredictions(self.counts - moving, moving, moving, both)

    def draw(self, replicates: int, random: np.random.Generator) -> SimulatedPredictions:
        """Draw replicates with the class sizes of the table, stack shape (replicates,)."""
        support = np.rint(self.support).astype(np.int64)
        shares = self.counts / np.where(support > 0, support, 1)[:, None]
        shares[support == 0, 0] = 1.0
        moving = random.binomial(support, self.redrawn, (replicates, len(support)))
        kept, old, new = (random.multinomial(n, shares) for n in (support - moving, moving, moving))
        both = _coincidences(old, new, moving, random)
        return SimulatedPredictions(*(part.astype(np.float64) for part in (kept, old, new, both)))


def _coincidences(
    old: NDArray[np.int64],
    new: NDArray[np.int64],
    moving: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.int64] | FloatArray:
    """Draw the items in the same cell of two independent predictions, given both margins."""
    total = moving[..., None]
    if moving.max(initial=0) > MOST_DRAWN:
        return np.rint(old * (new / np.maximum(total, 1)))
    return random.hypergeometric(old, total - old, new)
