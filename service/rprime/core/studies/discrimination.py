"""Discrimination lines: where two kinds of classifier have the same value of an index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

Series = Literal["x", "y"]

ALMOST_ZERO = 1e-300
"""Replaces a rate of 0: a class that is never predicted has no precision, so averages would leave
it out and jump. At this rate they have the limit of the index."""
TOLERANCE = 1e-13
"""Largest relative difference of values that count as equal."""
MOST_CELLS = 1_000_000
"""Cells of the tables of one series that are in memory at the same time."""


@dataclass(frozen=True, eq=False)
class TracedIndex:
    """An index that needs no option; of a per-class one the number of the class, from 1."""

    index: Index
    class_: int | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """The discrimination line of an index for k classes with the imbalance p.

    An index that is not monotone in the rates has several lines.

    Parameters
    ----------
    points
        Shape (n, 2): (c_x, c_y), in the order of the line.
    prefers
        The series that is mostly better by the index and never worse, so that no line exists.
    reason
        Why neither a line nor a preference exists: "indifferent" (the two series always have
        the same value) or "undefined" (no values to compare).
    """

    subject: TracedIndex
    k: int
    p: float
    points: Array
    prefers: Series | None = None
    reason: Literal["indifferent", "undefined"] | None = None


def proportions(k: int, imbalance: Array) -> Array:
    """Shares of k classes, from equal ones (p = 0) to ones that halve from class to class (1).

    For p of shape (...), (1 - p) / k + p 2^(k - i) / (2^k - 1), shape (..., k): Labatut, Cherifi
    2011, section 5.
    """
    halving = 2.0 ** np.arange(k - 1, -1, -1) / (2.0**k - 1)
    p = np.asarray(imbalance, dtype=np.float64)[..., None]
    return np.asarray((1 - p) / k + p * halving)


def series_tables(shares: Array, rates: Array, unequal: Array) -> ConfusionTable:
    """Build the tables of classifiers that spread their errors evenly over the other classes.

    For the proportions of the classes, shape (..., k), and the probability of being right, shape
    (...). It is that of class 1 alone where `unequal`: other classes are always predicted correctly
    (series y); else that of every class (series x).
    """
    k = shares.shape[-1]
    shape = np.broadcast_shapes(shares.shape[:-1], rates.shape, unequal.shape)
    right = np.where(unequal[..., None], 1.0, rates[..., None])
    right = np.broadcast_to(right, (*shape, k)).copy()
    right[..., 0] = rates
    counts = np.repeat(((1 - right) * shares / (k - 1))[..., None], k, axis=-1)
    counts[..., range(k), range(k)] = right * shares
    return ConfusionTable.dense(counts)


def discriminate(
    subjects: Sequence[TracedIndex], k: int, imbalances: Sequence[float], resolution: int
) -> list[Line]:
    """Trace the lines of indices for k classes (Labatut, Cherifi 2011).

    Parameters
    ----------
    imbalances
        Values of p, from 0 to 1.
    resolution
        Number of values of each rate from 0 to 1, at least 3. The points are where a line
        crosses the grid, exact to the precision of the index.
    """
    block = max(1, MOST_CELLS // (resolution * max(resolution, k * k)))
    grid, starts = np.linspace(0, 1, resolution), range(0, len(imbalances), block)
    blocks = [_traced(subjects, k, imbalances[i : i + block], grid) for i in starts]
    return [line for lines in zip(*blocks, strict=True) for part in lines for line in part]


def _traced(
    subjects: Sequence[TracedIndex], k: int, imbalances: Sequence[float], grid: Array
) -> list[list[Line]]:
    """Trace the lines of every subject, all tables of the grid in one stack."""
    shares = proportions(k, np.array(imbalances, dtype=np.float64))
    rates = np.maximum(grid, ALMOST_ZERO)
    table = series_tables(shares[:, None, None], rates, np.array([False, True])[:, None])
    options = Options(indices=tuple(dict.fromkeys(s.index.key for s in subjects)))
    values = compute(table, options, select(options))
    traced = (_Tracing(subject, shares, grid, _of(values, subject)) for subject in subjects)
    return [list(tracing.lines(imbalances)) for tracing in traced]


def _of(values: Values, subject: TracedIndex) -> Array:
    numbers = values.lookup(subject.index.scope, subject.index.key)
    numbers = numbers if subject.class_ is None else numbers[..., subject.class_ - 1]
    exists = np.isfinite(numbers)
    for key in subject.index.of:
        # An average that leaves out classes in only one series cannot compare the two.
        exists &= values.defined[values.selection.place[key]].all(axis=-1)
    return np.where(exists, numbers, np.nan)


@dataclass(frozen=True, eq=False)
class _Tracing:
    """The lines of one index for several imbalances.

    `shares` has the shape (p, k), `grid` n rates, and `values` those of series x and y at every
    rate, shape (p, 2, n).
    """

    subject: TracedIndex
    shares: Array
    grid: Array
    values: Array

    def lines(self, imbalances: Sequence[float]) -> Iterator[Line]:
        """Yield the lines, or the reason why none exists, in the order of the imbalances."""
        x, y = self.values[:, 0, :, None], self.values[:, 1, None, :]
        same = np.abs(x - y) <= TOLERANCE * (1 + np.maximum(np.abs(x), np.abs(y)))
        # Of every pair of rates, shape (p, n, n); NaN where undefined.
        signs = np.where(same, 0.0, np.sign(x - y))
        edges, corners = _edges(signs), _vertices(signs)
        every = np.concatenate((self._points(edges), self.grid[corners[:, 1:]]))
        places = np.concatenate((edges[:, 0], corners[:, 0]))
        k = self.shares.shape[-1]
        for place, p in enumerate(imbalances):
            points = every[places == place]
            if len(points) > 1:
                for branch in self._branches(place, points):
                    yield Line(self.subject, k, p, branch)
            else:
                prefers, reason = self._verdict(signs[place])
                yield Line(self.subject, k, p, np.empty((0, 2)), prefers, reason)

    def _points(self, edges: Array) -> Array:
        """Find where lines cross edges of the grid, all at once, shape (n, 2)."""
        from scipy.optimize import elementwise  # noqa: PLC0415 (takes as long to import as the service to start)

        place, fixed, below, unequal = edges.T
        rates = np.maximum(self.grid, ALMOST_ZERO)
        # The value at the unknown rate equals the value of the other series.
        target = self.values[place, 1 - unequal, fixed]
        unknown = np.empty(target.size)
        block = max(1, MOST_CELLS // self.shares.shape[-1] ** 2)
        for start in range(0, target.size, block):
            part = slice(start, start + block)
            ends = rates[below[part]], rates[below[part] + 1]
            args = place[part], unequal[part], target[part]
            unknown[part] = elementwise.find_root(self._excess, ends, args=args).x
        unknown[unknown <= ALMOST_ZERO] = 0.0
        fixed_rates = self.grid[fixed]
        both = np.where(unequal, (fixed_rates, unknown), (unknown, fixed_rates))
        return both.T

    def _excess(self, rates: Array, place: Array, unequal: Array, target: Array) -> Array:
        table = series_tables(self.shares[place.astype(np.intp)], rates, unequal > 0)
        options = Options(indices=(self.subject.index.key,))
        return _of(compute(table, options, select(options)), self.subject) - target

    def _branches(self, place: int, points: Array) -> Iterator[Array]:
        """Split points into lines along which both series are monotone, and order them."""
        pieces, slopes = [], []
        for axis in (0, 1):
            rising = _directions(self.values[place, axis])
            piece = np.cumsum(np.diff(rising, prepend=rising[0]) != 0)
            interval = np.searchsorted(self.grid[1:-1], points[:, axis], side="right")
            pieces.append(piece[interval])
            slopes.append(rising[interval])
        # Along a line the values of both series move together.
        falling = slopes[0] * slopes[1] < 0
        order = np.lexsort((np.where(falling, -1, 1) * points[:, 1], points[:, 0], *pieces))
        ordered, branch = points[order], np.stack(pieces, axis=-1)[order]
        ends = np.flatnonzero((branch[1:] != branch[:-1]).any(axis=-1)) + 1
        yield from (part for part in np.split(ordered, ends) if len(part) > 1)

    def _verdict(
        self, signs: Array
    ) -> tuple[Series | None, Literal["indifferent", "undefined"] | None]:
        if not np.isfinite(signs[1:-1, 1:-1]).all():
            return None, "undefined"
        over, under = bool((signs > 0).any()), bool((signs < 0).any())
        if not (over or under):
            return None, "indifferent"
        return ("x" if over == (self.subject.index.higher_is_better is not False) else "y"), None


def _edges(signs: Array) -> Array:
    """Find the edges of the grid at whose ends the signs are opposite, shape (n, 4).

    Position among the imbalances; numbers of the grid value on whose line the edge lies, and of the
    one just below the other rate, the unknown one; 1 if this is that of series y, else 0.
    """
    of_y = np.argwhere(signs[:, :, :-1] * signs[:, :, 1:] < 0)
    of_x = np.argwhere(signs[:, :-1] * signs[:, 1:] < 0)[:, [0, 2, 1]]
    unequal = np.repeat((1, 0), (len(of_y), len(of_x)))
    return np.column_stack((np.concatenate((of_y, of_x)), unequal))


def _vertices(signs: Array) -> Array:
    """Find points of the grid on a line: equality, and both signs around it.

    If the two series agree in a whole region, or along a border of the square, no line exists.
    Shape (n, 3): place and the two numbers of grid values.
    """
    padded = np.pad(signs, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    candidates = np.argwhere(signs == 0)
    around = windows[tuple(candidates.T)]
    both = (around > 0).any(axis=(-2, -1)) & (around < 0).any(axis=(-2, -1))
    return candidates[both]


def _directions(values: Array) -> Array:
    """Return 1 where values rise and -1 where they fall; flat intervals keep the last sign."""
    steps = np.diff(values)
    steps[~(np.abs(steps) > TOLERANCE * (1 + np.abs(values[1:])))] = 0
    signs = np.sign(steps)
    moving = np.where(signs != 0, np.arange(len(signs)), -1)
    last = np.maximum.accumulate(moving)
    first = np.argmax(signs != 0)
    return np.where(last >= 0, signs[last], signs[first])
