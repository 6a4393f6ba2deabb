"""Two models of the same or of different items, drawn from a population."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rprime.core.comparison.alignment import Side
from tests.core.comparison_sides import side_of, table_of, table_side
from tests.simulation.populations import FloatArray, Population

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Pair:
    """A baseline, and a candidate that differs from it by chance and by what it lost.

    Parameters
    ----------
    population
        Classes, their sizes and the recalls of the baseline.
    discordance
        Share of the items of each class that only one of two equal models predicts correctly.
    lost
        Share of all items of a class that the candidate predicts wrongly though it would
        have predicted them correctly, by class number.
    """

    population: Population
    discordance: float = 0.06
    lost: dict[int, float] = field(default_factory=dict)

    @cached_property
    def cumulative(self) -> FloatArray:
        """Cumulative probabilities of the predictions of each class, shape (k, k)."""
        return np.asarray(np.cumsum(self.population.confusion, axis=-1))

    @property
    def kind(self) -> np.dtype[np.unsignedinteger]:
        """The narrowest type of the codes."""
        return np.min_scalar_type(self.population.k)

    @property
    def anew(self) -> FloatArray:
        """Share of the items of each class that the candidate predicts anew, shape (k,)."""
        recalls = np.array(self.population.recalls)
        return np.asarray(np.minimum(self.discordance / (2 * recalls * (1 - recalls)), 1.0))

    @property
    def tables(self) -> tuple[FloatArray, FloatArray]:
        """Cell probabilities of the candidate and of the baseline, shape (k, k) each."""
        baseline = self.population.shares
        candidate = baseline.copy()
        sizes = np.array(self.population.sizes)
        for label, share in self.lost.items():
            fallen = share * sizes[label] / sizes.sum()
            candidate[label, label] -= fallen
            candidate[label, (label + 1) % len(sizes)] += fallen
        return candidate, baseline

    def draw(self, random: np.random.Generator) -> tuple[Codes, Codes, Codes]:
        """Draw true classes and both predictions of the items of one test set."""
        true, old = self._baseline(random)
        again = random.random(len(true)) < self.anew[true]
        new = np.where(again, self._predicted(true, random), old)
        return true, old, self._worse(true, new, random)

    def paired(self, random: np.random.Generator) -> tuple[Side, Side]:
        """Return candidate and baseline with the predictions of each item."""
        true, old, new = self.draw(random)
        k = self.population.k
        return side_of(true, new, k), side_of(true, old, k)

    def unpaired(self, random: np.random.Generator) -> tuple[Side, Side]:
        """Return candidate and baseline as tables of different items."""
        true, old = self._baseline(random)
        others, new = self._baseline(random)
        new = self._worse(others, new, random)
        k = self.population.k
        return table_side(table_of(others, new, k)), table_side(table_of(true, old, k))

    def _baseline(self, random: np.random.Generator) -> tuple[Codes, Codes]:
        sizes = np.array(self.population.sizes)
        true = random.choice(len(sizes), self.population.items, p=sizes / sizes.sum())
        return true.astype(self.kind), self._predicted(true, random)

    def _predicted(self, true: NDArray[np.integer], random: np.random.Generator) -> Codes:
        draws = random.random(len(true))[:, None] > self.cumulative[true]
        last = self.population.k - 1
        return np.asarray(np.minimum(draws.sum(-1), last), dtype=self.kind)

    def _worse(self, true: Codes, new: Codes, random: np.random.Generator) -> Codes:
        for label, share in self.lost.items():
            recall = self.population.recalls[label]
            right = (true == label) & (new == label)
            fallen = right & (random.random(len(true)) < share / recall)
            new = np.where(fallen, (label + 1) % self.population.k, new).astype(self.kind)
        return new
