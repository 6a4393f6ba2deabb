"""Multiplicity: p-values adjusted over all results of a gate."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rprime.core import special
from rprime.core.arrays import FloatArray

MOST_STEPPED = 200
"""Most tested results for max-T; a larger family is adjusted by Holm's procedure."""
PART = 512
MOST_PARTS = 8
"""Draws of a joint law come in parts, until a tail is precise."""
PRECISION = 0.015
"""Standard error at which a tail is precise, relative to it."""
RIDGE = 1e-7
_SMALLEST: float = float(np.finfo(np.float64).tiny)
SEED = 1993
NEAR = 1.2
"""Between two known tails that differ by no more than this factor, others are interpolated."""


def holm(p: ArrayLike, size: int = 0) -> FloatArray:
    """Adjust p-values for the family-wise error rate, each last axis one family.

    Parameters
    ----------
    p
        Shape (..., m), in [0, 1]. NaN marks a result without a test: it stays NaN and does not
        enlarge the family.
    size
        Number of tests of the family if that is more: the others count as if they never rejected.

    Returns
    -------
    The smallest family-wise level at which each would be rejected, at most 1.

    Notes
    -----
    Source: Holm 1979. Valid under any dependence between the results.
    """
    values = np.asarray(p, dtype=np.float64)
    rows = np.atleast_1d(values)
    order = np.argsort(rows, axis=-1)  # NaN comes last
    tested = np.count_nonzero(~np.isnan(rows), axis=-1, keepdims=True)
    still_standing = np.maximum(np.maximum(tested, size) - np.arange(rows.shape[-1]), 1)
    stepped = np.take_along_axis(rows, order, axis=-1) * still_standing
    adjusted = np.empty_like(rows)
    np.put_along_axis(
        adjusted, order, np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0), axis=-1
    )
    return adjusted.reshape(values.shape)


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Adjust the p-values of one family for the false discovery rate.

    Returns the smallest rate at which each would be rejected, shape (m,).

    Notes
    -----
    Source: Benjamini, Hochberg 1995. Valid for independent or positively dependent results.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    adjusted = np.full(values.shape, np.nan)
    stepped = values[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum.accumulate(stepped[::-1])[::-1]
    return adjusted


@dataclass(frozen=True, eq=False)
class Block:
    """Results of a family whose test statistics have a known joint normal law.

    Parameters
    ----------
    places
        Shape (n,): their positions in the family.
    correlation
        Shape (n, n): correlations of the statistics, large values speaking for rejection.
    """

    places: NDArray[np.intp]
    correlation: FloatArray

    @cached_property
    def root(self) -> FloatArray:
        """A root of the correlation, shape (n, n): independent draws @ it have the joint law."""
        # Differences that determine each other make it singular, and rounding not even positive.
        positive = self.correlation + RIDGE * np.eye(len(self.places))
        return np.asarray(np.linalg.cholesky(positive).T)

    def tail(self, standing: NDArray[np.bool_], p: float) -> float:
        """Return the probability that some p-value of the standing results is at most `p`.

        Notes
        -----
        Importance sampling of a union of events (Naiman, Priebe 2001): each draw has one of the
        statistics beyond the critical value, the others follow from it, and counts by one over
        the number of those beyond. So the estimate lies between `p` and Bonferroni's bound.
        """
        rows = np.flatnonzero(standing)
        if rows.size <= 1:
            return rows.size * p
        p = max(p, _SMALLEST)  # a p-value of 0 has no critical value
        points = self._tails.setdefault(standing.tobytes(), [])
        place = bisect_left(points, (p, 0.0))
        around = points[max(place - 1, 0) : place + 1]
        if len(around) > 1 and around[1][1] <= NEAR * around[0][1]:
            return float(np.exp(np.interp(np.log(p), *np.log(around).T)))
        points.insert(place, (p, self._sampled(rows, p)))
        return points[place][1]

    @cached_property
    def _tails(self) -> dict[bytes, list[tuple[float, float]]]:
        """The tails found so far, by the standing results: p-values and tails in order."""
        return {}

    def _sampled(self, rows: NDArray[np.intp], p: float) -> float:
        """Estimate the tail of some results from draws."""
        shares = np.empty(0)
        for part in range(MOST_PARTS):
            shares = np.append(shares, self._shares(part, rows, p))
            if shares.std() <= PRECISION * shares.mean() * np.sqrt(shares.size):
                break
        return float(rows.size * p * shares.mean())

    def _shares(self, part: int, rows: NDArray[np.intp], p: float) -> FloatArray:
        """Return one over the number of statistics beyond, of draws given each one in turn."""
        n = rows.size
        each = -(-PART // n)
        normal, uniform = _draws(part, len(self.places))
        beyond = -special.ndtri(p * uniform[: each * n].reshape(each, n))
        drawn = (normal[: each * n] @ self.root[:, rows]).reshape(each, n, n)
        shift = beyond - np.diagonal(drawn, axis1=1, axis2=2)
        drawn += self.correlation[np.ix_(rows, rows)] * shift[..., None]
        others = drawn >= -special.ndtri(p)
        others[:, np.arange(n), np.arange(n)] = True
        return np.asarray(1 / np.count_nonzero(others, axis=-1))


@lru_cache(maxsize=2 * MOST_PARTS)
def _draws(part: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Standard normal draws (PART + count, count) and as many uniform ones; the same each time."""
    random, size = np.random.default_rng((SEED, part)), PART + count
    return random.standard_normal((size, count)), (random.permutation(size) + 0.5) / size


Blocks = Callable[[], Sequence[Block]]
"""Returns the blocks of a family."""


def step_down(p: ArrayLike, level: float, blocks: Blocks | None = None) -> FloatArray:
    """Adjust p-values by Holm's procedure, and by max-T where that can change a decision.

    Parameters
    ----------
    p
        Shape (..., m), as for `holm`.
    level
        Of the family; a result with an adjusted p-value below it is rejected.
    blocks
        Returns results with a known joint law, no result in two blocks; called only where max-T
        can change a decision. The probabilities of the blocks, and of the results in none of
        them, add up (Bonferroni). None: no joint law is known.

    Returns
    -------
    A family of more than `MOST_STEPPED` results has Holm's values, and so has one in which no
    p-value is below the level while its Holm value is not.

    Notes
    -----
    Source: Westfall, Young 1993, step-down max-T over the joint normal law. It rejects whatever
    Holm's procedure rejects. Results after the first one that is not rejected keep Holm's values,
    which are not below the level.
    """
    values = np.asarray(p, dtype=np.float64)
    adjusted = holm(values)
    tested = np.count_nonzero(~np.isnan(values), axis=-1).max(initial=0)
    deciding = ((values < level) & (adjusted >= level)).any(-1)
    if blocks is None or tested > MOST_STEPPED or not deciding.any() or not (laws := blocks()):
        return adjusted
    for place in map(tuple, np.argwhere(deciding)):
        adjusted[place] = _stepped(values[place], adjusted[place], level, laws)
    return adjusted


def _stepped(p: FloatArray, bound: FloatArray, level: float, blocks: Sequence[Block]) -> FloatArray:
    adjusted, largest = bound.copy(), 0.0
    standing = ~np.isnan(p)
    alone = standing.copy()
    for block in blocks:
        alone[block.places] = False
    for i in np.argsort(p)[: np.count_nonzero(p < level)]:
        joint = sum(block.tail(standing[block.places], float(p[i])) for block in blocks)
        joint += float(p[i]) * np.count_nonzero(standing & alone)
        largest = max(largest, min(joint, float(bound[i])))
        adjusted[i] = largest
        if largest >= level:
            break
        standing[i] = False
    return adjusted
