"""Correlation of indices over the same models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index

MOST_COMPARISONS = 4_000_000
"""Comparisons of two models under an index that are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Correlation of indices at positions a and b over n models: those with both of them.

    Coefficients are of the values, of their ranks, ties sharing the mean rank, and tau-b; NaN where
    one does not exist.
    """

    a: int
    b: int
    n: int
    pearson: float
    spearman: float
    kendall: float
    rmse: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Pairs of models that the indices at positions a and b order in opposite ways.

    They are `count` of the `compared` pairs without a tie under either index. `models` has some of
    them: the model that a prefers, and the one that b prefers.
    """

    a: int
    b: int
    count: int
    compared: int
    models: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Box:
    """The numbers of a box plot of n values: extremes and linearly interpolated quartiles."""

    n: int
    minimum: float
    lower: float
    median: float
    upper: float
    maximum: float


def agreements(values: Array) -> list[Agreement]:
    """Correlate every two indices; values of shape (index, model), NaN where there is none.

    References
    ----------
    Zhang, Su, Dou 2021, section 4.2; Kendall 1945 for tau-b.
    """
    if not values.size:
        return []
    defined = np.isfinite(values)
    filled = np.where(defined, values, 0.0)
    taus, ranks = _orderings(filled, defined)
    result = []
    for a in range(len(values) - 1):
        later = slice(a + 1, None)
        both = defined[a] & defined[later]
        n, first, others = both.sum(axis=-1), np.broadcast_to(filled[a], both.shape), filled[later]
        with np.errstate(all="ignore"):
            pearson = _correlation(first, others, both)
            spearman = _correlation(ranks[a, later], ranks[later, a], both)
            rmse = np.sqrt(np.add.reduce((first - others) ** 2, axis=-1, where=both) / n)
        columns = (column.tolist() for column in (n, pearson, spearman, taus[a, later], rmse))
        result += [Agreement(a, b, *row) for b, row in enumerate(zip(*columns, strict=True), a + 1)]
    return result


def disagreements(values: Array, directions: Sequence[int], listed: int) -> Iterator[Disagreement]:
    """Yield every two indices that disagree about which model of some pair is better.

    A tie under one of the two is no disagreement. Values have the shape (index, model), NaN where
    there is none; `directions` is as `direction` says. At most `listed` pairs of models are named.
    """
    oriented = np.where(np.isfinite(values), values, np.nan) * np.array(directions)[:, None]
    first, second = np.triu_indices(values.shape[1], 1)
    # An order that involves a missing value counts as a tie.
    orders = [np.nan_to_num(np.sign(row[first] - row[second])).astype(np.int8) for row in oriented]
    for a, b in combinations(range(len(values)), 2):
        product = orders[a] * orders[b]
        opposed = np.flatnonzero(product < 0)
        if opposed.size:
            named = opposed[:listed]
            swapped = orders[a][named] < 0
            better = np.where(swapped, second[named], first[named]).tolist()
            worse = np.where(swapped, first[named], second[named]).tolist()
            models = tuple(zip(better, worse, strict=True))
            yield Disagreement(a, b, int(opposed.size), int(np.count_nonzero(product)), models)


def box(values: Array) -> Box | None:
    """Summarise values of shape (model,), NaN where one does not exist; None if none exists."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    return Box(int(finite.size), *np.quantile(finite, (0, 0.25, 0.5, 0.75, 1)).tolist())


def direction(index: Index | None) -> int:
    """Return 1 if larger is better or the index is unknown, else -1."""
    return -1 if index is not None and index.higher_is_better is False else 1


def _correlation(left: Array, right: Array, where: Array) -> Array:
    """Correlate the rows of two arrays; NaN where one of them is constant."""
    n = where.sum(axis=-1, keepdims=True)
    sides = []
    for side in (left, right):
        # The mean of equal numbers can differ from them in the last bit.
        low = np.minimum.reduce(side, axis=-1, where=where, initial=np.inf)
        high = np.maximum.reduce(side, axis=-1, where=where, initial=-np.inf)
        centre = np.add.reduce(side, axis=-1, where=where, keepdims=True) / n
        deviation = np.where(where, side - centre, 0.0)
        spread = np.sqrt(np.add.reduce(deviation * deviation, axis=-1))
        sides.append(deviation / np.where(low < high, spread, np.nan)[:, None])
    return np.clip(np.add.reduce(sides[0] * sides[1], axis=-1), -1.0, 1.0)


def _orderings(values: Array, defined: Array) -> tuple[Array, Array]:
    """Compare all models with all others, under every index, block by block.

    Returns Kendall's tau-b, shape (index, index); and the ranks of the models under an index among
    those with a value of the other index, shape (index, index, model), centred and doubled.
    """
    indices, models = values.shape
    present = defined.astype(np.float64)
    ranks = np.empty((indices, indices, models))
    concordance, decided = np.zeros((2, indices, indices))
    block = max(1, MOST_COMPARISONS // (indices * models))
    for start in range(0, models, block):
        part = slice(start, start + block)
        order = np.sign(values[:, part, None] - values[:, None, :])
        order *= present[:, part, None] * present[:, None, :]
        ranks[:, :, part] = (order @ present.T).transpose(0, 2, 1)
        flat = order.reshape(indices, -1)
        pairs = (present[:, part, None] * present[:, None, :]).reshape(indices, -1)
        concordance += flat @ flat.T
        decided += np.abs(flat) @ pairs.T
    with np.errstate(all="ignore"):
        taus = concordance / np.sqrt(decided * decided.T)
    return np.where(decided * decided.T > 0, taus, np.nan), ranks
