"""How often the intervals of drawn tables contain the value of their population."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from rprime.core.intervals.intervals import intervals
from rprime.core.options import Options
from rprime.core.selection import Selection, select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute
from tests.simulation.populations import FloatArray, Population

CHUNK = 1 << 19
"""Cells drawn at once."""
MANY = 1e12
"""Items of the table that stands for a whole population."""


@dataclass(frozen=True)
class Coverage:
    """Counts of intervals, and of those that contain the value of the population.

    Parameters
    ----------
    existing, covering
        Per class of shape (n, k), overall of shape (n,).
    """

    selection: Selection
    existing: tuple[FloatArray, FloatArray]
    covering: tuple[FloatArray, FloatArray]

    def __add__(self, other: Self) -> "Coverage":
        """Add the counts of two runs."""
        return Coverage(
            self.selection,
            (self.existing[0] + other.existing[0], self.existing[1] + other.existing[1]),
            (self.covering[0] + other.covering[0], self.covering[1] + other.covering[1]),
        )

    def rates(self) -> dict[str, FloatArray]:
        """Return the coverage of each index, one number for each class or a single one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = [c / e for c, e in zip(self.covering, self.existing, strict=True)]
        per_class, overall = self.selection.per_class, self.selection.overall
        return {
            **{f"class {entry.key}": row for entry, row in zip(per_class, shares[0], strict=True)},
            **{entry.key: row[None] for entry, row in zip(overall, shares[1], strict=True)},
        }


def coverage(population: Population, replicates: int, seed: int, **options: object) -> Coverage:
    """Draw tables of a population and count the intervals that contain its values."""
    random = np.random.default_rng(seed)
    chosen = Options(**options)  # type: ignore[arg-type] # fields of Options, by name
    truth = _values(population.shares * MANY, chosen)
    size = max(CHUNK // population.k**2, 1)
    sizes = [min(size, replicates - start) for start in range(0, replicates, size)]
    parts = [_counted(population.draw(n, random), truth, chosen) for n in sizes]
    result = parts[0]
    for part in parts[1:]:
        result += part
    return result


def _values(counts: FloatArray, options: Options) -> Values:
    return compute(ConfusionTable.dense(counts), options, select(options))


def _counted(counts: FloatArray, truth: Values, options: Options) -> Coverage:
    bounds = intervals(_values(counts, options))
    reported = truth.selection.reported
    low, high = bounds.per_class_low[:reported], bounds.per_class_high[:reported]
    true = truth.per_class[:reported, None]
    exists, covers = _contains(low, high, true, axis=1)
    over_exists, over_covers = _contains(
        bounds.overall_low, bounds.overall_high, truth.overall[:, None], axis=1
    )
    return Coverage(truth.selection, (exists, over_exists), (covers, over_covers))


def _contains(
    low: FloatArray, high: FloatArray, true: FloatArray, axis: int
) -> tuple[FloatArray, FloatArray]:
    # An infinite end is not a number in the core.
    exists = ~(np.isnan(low) & np.isnan(high))
    inside = exists & ~(low > true + 1e-9) & ~(high < true - 1e-9)
    return exists.sum(axis, dtype=np.float64), inside.sum(axis, dtype=np.float64)
