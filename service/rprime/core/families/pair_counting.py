"""Family `association`: pairs of items, and the test behind Pearson's chi-square."""

from dataclasses import dataclass

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.families.association import Association, association


@association(
    symbol="df",
    name="Degrees of freedom of chi-square",
    tex=r"(r - 1)(c - 1)",
    source="Fisher 1922",
    range=(0.0, np.inf),
    best=None,
    undefined=("no_samples",),
)
def chi2_degrees_of_freedom(a: Association) -> Array:
    """Free cells of a table with these margins, over r non-empty rows and c non-empty columns."""
    return np.where(a.table.total > 0, np.multiply.reduce(a.freedom), np.nan)


@association(
    symbol="p",
    name="p-value of Pearson's chi-square test",
    tex=r"P(\chi^2_{df} \ge \chi^2)",
    source="Pearson 1900",
    best=None,
    undefined=("no_samples", "weighted", "single_class"),
    scale_invariant=False,
)
def chi2_p_value(a: Association) -> Array:
    """Probability of such a chi-square if predictions do not depend on the true class."""
    freedom = np.multiply.reduce(a.freedom)
    return np.where(freedom > 0, special.chdtrc(freedom, a.chi_square), np.nan)


FEWEST = 2
"""Items that make a pair; fractions that add up to less are shares, which have no number."""


@dataclass(frozen=True)
class Pairs:
    """Ordered pairs of items: all, those of one true class, of one predicted class, and of both.

    Each is of shape (...); `both` is NaN where counts are no numbers of items.
    """

    every: Array
    true: Array
    predicted: Array
    both: Array

    @classmethod
    def of(cls, a: Association) -> "Pairs":
        """Count n (n - 1) pairs among n items."""
        t = a.table
        true, predicted = (np.add.reduce(m * (m - 1), axis=-1) for m in (t.support, t.predicted))
        whole = np.logical_not(t.fractional) | (t.total >= FEWEST)
        counted = (t.total > 0) & whole & np.logical_not(t.weighted)
        both = np.where(counted, t.cells.total(a.squares - t.cells.counts), np.nan)
        return cls(t.total * (t.total - 1), true, predicted, both)

    @property
    def agreed(self) -> Array:
        """Whether both labellings join the same pairs, even if there are none."""
        return np.asarray(self.true + self.predicted == 2 * self.both)


PAIRS = {"scale_invariant": False, "undefined": ("no_samples", "non_integer_counts", "weighted")}


@association(
    symbol="RI",
    tex=r"1 - \frac{\sum_i m_i^2 + \sum_j s_j^2 - 2 \sum_{ij} n_{ij}^2}{w (w - 1)}",
    source="Rand 1971",
    **PAIRS,
)
def rand_index(a: Association) -> Array:
    """Share of the pairs of items that both labellings join or both labellings separate."""
    p = Pairs.of(a)
    return np.where(p.agreed, 1.0, 1 - (p.true + p.predicted - 2 * p.both) / p.every)


@association(
    symbol="ARI",
    name="Adjusted Rand index",
    tex=r"\frac{RI - E(RI)}{1 - E(RI)}",
    source="Hubert, Arabie 1985",
    range=(-0.5, 1.0),
    **PAIRS,
)
def adjusted_rand_index(a: Association) -> Array:
    """Rand index beyond its expectation for independent labellings with these margins."""
    p = Pairs.of(a)
    chance = p.true * (p.predicted / p.every)
    beyond = (p.both - chance) / ((p.true + p.predicted) / 2 - chance)
    return np.where(p.agreed, 1.0, beyond)


@association(
    symbol="FM_{pairs}",
    name="Fowlkes-Mallows index of pairs",
    tex=r"\frac{\sum_{ij} n_{ij}(n_{ij} - 1)}"
    r"{\sqrt{\sum_i m_i (m_i - 1) \cdot \sum_j s_j (s_j - 1)}}",
    source="Fowlkes, Mallows 1983",
    **PAIRS,
)
def pair_fowlkes_mallows(a: Association) -> Array:
    """Geometric mean of recall and precision of the pairs of items that the true classes join."""
    p = Pairs.of(a)
    mean = np.where(p.both == 0, 0.0, p.both / np.sqrt(p.true) / np.sqrt(p.predicted))
    return np.where(p.agreed, 1.0, mean)
