"""Populations whose tables and pairs of predictions the simulations draw."""

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

REPLICATES = int(os.environ.get("RPRIME_TEST_REPLICATES", "500"))
"""Draws of each simulation; `bash .ci/run --full` asks for 10 000."""


@dataclass(frozen=True)
class Population:
    """Classes of expected sizes, with one recall each.

    The errors of a class go half in proportion to the sizes of the other classes, half evenly.
    """

    name: str
    sizes: tuple[float, ...]
    recalls: tuple[float, ...]

    @classmethod
    def even(cls, k: int, items: float, recall: float) -> "Population":
        """Return k classes of the same size and recall."""
        return cls(f"{k} x {items:g}, recall {recall:g}", (items,) * k, (recall,) * k)

    @classmethod
    def long_tail(cls, k: int, total: int, recall: float, ratio: float = 100.0) -> "Population":
        """Return k classes whose sizes fall geometrically from `ratio` to 1."""
        sizes = ratio ** np.linspace(0, -1, k)
        sizes *= total / sizes.sum()
        name = f"{k} classes {ratio:g} : 1, {total} items, recall {recall:g}"
        return cls(name, tuple(sizes.tolist()), (recall,) * k)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.sizes)

    @property
    def items(self) -> int:
        """Items of each draw."""
        return round(sum(self.sizes))

    @property
    def errors(self) -> FloatArray:
        """Expected errors of each class, shape (k,)."""
        return np.asarray(np.array(self.sizes) * (1 - np.array(self.recalls)))

    @property
    def promised(self) -> bool:
        """Whether each class has 30 items and 5 expected errors: there coverage is promised."""
        return min(self.sizes) >= 30 and bool(self.errors.min() >= 5 - 1e-9)

    @cached_property
    def confusion(self) -> FloatArray:
        """Probability of each prediction given the true class, shape (k, k)."""
        sizes, recalls = np.array(self.sizes), np.array(self.recalls)
        off = np.tile(sizes.astype(np.float64), (self.k, 1))
        np.fill_diagonal(off, 0.0)
        off /= off.sum(-1, keepdims=True)
        even = (1 - np.eye(self.k)) / (self.k - 1)
        return np.asarray(
            np.diag(recalls) + (1 - recalls)[:, None] * (off + even) / 2, dtype=np.float64
        )

    @property
    def shares(self) -> FloatArray:
        """Probability of each cell, shape (k, k)."""
        sizes = np.array(self.sizes)
        return np.asarray(self.confusion * (sizes / sizes.sum())[:, None])

    def draw(self, replicates: int, random: np.random.Generator) -> FloatArray:
        """Draw tables of independent items, shape (replicates, k, k)."""
        cells = random.multinomial(self.items, self.shares.ravel(), replicates)
        return cells.reshape(replicates, self.k, self.k).astype(np.float64)


NAMED = (
    Population.even(2, 30, 0.98),
    Population("2000 and 20", (2000, 20), (0.98, 0.9)),
    Population.even(3, 30, 0.98),
    Population("900, 90, 10", (900, 90, 10), (0.95, 0.9, 0.8)),
    Population.even(10, 10, 0.98),
    Population.even(10, 30, 0.9),
    Population.even(10, 200, 0.98),
    Population.even(10, 200, 0.999),
    Population.long_tail(10, 2000, 0.9),
    Population.even(50, 10, 0.98),
    Population.even(50, 30, 0.9),
    Population.even(50, 200, 0.9),
    Population.even(3, 30, 0.5),
)
"""The thirteen populations in which the rules of docs/statistics.md were chosen."""

LARGE_ENOUGH = (
    *(population for population in NAMED if population.promised),
    Population.even(2, 60, 0.9),
    Population("1000, 100, 40", (1000, 100, 40), (0.95, 0.9, 0.8)),
    Population.even(10, 50, 0.85),
    Population.even(10, 300, 0.98),
    Population.even(50, 30, 0.8),
)
"""Populations with 30 items and 5 expected errors in each class."""
