"""Intervals put together from the score intervals of proportions (MOVER)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow, Counts, RatioRows
from rprime.core.families.one_vs_rest import PREVALENCE
from rprime.core.index import Index, Parts

STEP = 1e-30
Squares = tuple[Counts, float]
"""Sums of squared weights as counts, and the scale of `Weights`."""


@dataclass(frozen=True, eq=False)
class PartLayout:
    """n functions of proportions and their t terms; all arrays hold positions.

    `of`, shape (t,), is the function of each term, and `ratios` are their proportions; `starts`,
    shape (n,), is the first term of each function.
    """

    parts: tuple[Parts, ...]
    of: Array
    starts: Array
    ratios: tuple[RatioRows, ...]

    @cached_property
    def mapped(self) -> list[tuple[int, Callable[[Array], Array]]]:
        """Positions of the functions that are mapped to their index, with the map."""
        return [(i, part.back) for i, part in enumerate(self.parts) if part.back is not None]

    @classmethod
    def of_parts(cls, parts: Sequence[Parts]) -> "PartLayout":
        """Lay out the terms of functions in their order."""
        sizes = np.array([len(part.ratios) for part in parts], dtype=np.intp)
        of = np.repeat(np.arange(len(parts)), sizes)
        ratios = tuple(ratio for part in parts for ratio in part.ratios)
        return cls(tuple(parts), of, np.cumsum(sizes) - sizes, ratios)

    def choice(self, places: Sequence[int]) -> "PartChoice":
        """Choose functions by their positions, in any order and repeatedly."""
        terms = [np.flatnonzero(self.of == place) for place in places]
        return PartChoice(
            PartLayout.of_parts([self.parts[place] for place in places]),
            np.array(places, dtype=np.intp),
            np.concatenate([*terms, np.zeros(0, dtype=np.intp)]),
        )


@dataclass(frozen=True, eq=False)
class PartChoice:
    """Some functions of a layout: their own layout, and the positions of these and their terms."""

    layout: PartLayout
    places: Array
    terms: Array


@dataclass(frozen=True, eq=False)
class PartIntervals:
    """Indices as functions of proportions, with the counts of these.

    `values`, shape (n, ..., k), are what the functions combine to. The others, (t, ..., k), are the
    proportion of each term with its counts, and the derivative of the function by it.
    """

    layout: PartLayout
    values: Array
    successes: Array
    trials: Array
    shares: Array
    slopes: Array

    @classmethod
    def at(
        cls, layout: PartLayout, counts: Counts, weights: Squares | None, *, fixed_rows: bool
    ) -> "PartIntervals":
        """Evaluate the functions on the counts of the classes, without the pooled column.

        Prevalences do not vary where they are `fixed_rows`, by design.
        """
        successes, trials = ratio_counts(counts, layout.ratios, weights)
        shares = successes / trials
        slopes, values = np.ones(shares.shape), shares[layout.starts]
        first = 0
        for i, part in enumerate(layout.parts):
            last = first + len(part.ratios)
            if last - first > 1:  # one proportion stands for itself
                steps = _steps(last - first, shares.ndim)
                stepped = part.combine(*(shares[first:last, None] + steps))
                values[i], slopes[first:last] = stepped[0].real, stepped.imag / STEP
            first = last
        if fixed_rows:
            slopes[[ratio == PREVALENCE for ratio in layout.ratios]] = 0.0
        return cls(layout, values, successes, trials, shares, slopes)

    def divided(self, effects: Array) -> "PartIntervals":
        """Divide the counts by the design effects (n, ..., k) of the functions."""
        by_term = effects[self.layout.of]
        return replace(self, successes=self.successes / by_term, trials=self.trials / by_term)

    def take(self, choice: PartChoice) -> "PartIntervals":
        """Return the chosen functions."""
        by_term = (self.successes, self.trials, self.shares, self.slopes)
        chosen = (part[choice.terms] for part in by_term)
        return PartIntervals(choice.layout, self.values[choice.places], *chosen)

    def combine(self, limits: Array) -> Array:
        """Combine Wilson's limits of the proportions (2, t, ..., k) to those of the functions.

        Notes
        -----
        Source: Zou, Donner 2008. On each side the root of the summed squares of the distances of
        the parts from their limits, each times the slope.
        """
        steps = self.slopes * (self.shares - limits)
        distances = np.empty(steps.shape)
        # A function that falls with a proportion has its lower limit at the upper one of that.
        np.maximum(steps[0], steps[1], out=distances[0])
        np.minimum(steps[0], steps[1], out=distances[1])
        if len(self.layout.of) == len(self.layout.parts):  # one proportion each
            result = np.abs(distances)
        else:
            distances *= distances
            result = np.sqrt(np.add.reduceat(distances, self.layout.starts, axis=1))
        np.negative(result[0], out=result[0])
        result += self.values
        for place, part in self.layout.mapped:
            result[:, place] = part(result[:, place])
        return result


@lru_cache(maxsize=16)
def _steps(number: int, dimensions: int) -> Array:
    directions = np.eye(number) * (STEP * 1j)
    return directions.reshape(number, number, *(1,) * (dimensions - 1))


def ratio_counts(
    counts: Counts, ratios: tuple[RatioRows, ...], weights: Squares | None = None
) -> Array:
    """Return successes and trials of proportions, shape (2, n, ..., k).

    Precision of a class that has items and is never predicted is 0; how much of it could be right
    is bounded by its items, so that these are the trials. The trials of weighted items are the
    smaller of Kish's effective number (sum w)^2 / sum w^2 and of p (1 - p) / V, V the linearised
    variance.
    """
    unweighted = _plain_counts(counts, ratios)
    if weights is None:
        return unweighted
    successes, trials = unweighted
    squares, scale = _plain_counts(weights[0], ratios), weights[1]
    share, whole = successes / trials, (trials / scale) ** 2
    kish = whole / squares[1]
    spread = squares[0] * (1 - share) ** 2 + (squares[1] - squares[0]) * share**2
    linearised = np.where(spread > 0, share * (1 - share) * whole / spread, np.inf)
    effective = np.where((share > 0) & (share < 1), np.fmin(kish, linearised), kish)
    return np.stack((share * effective, effective))


def _plain_counts(counts: Counts, ratios: tuple[RatioRows, ...]) -> Array:
    rows, of_precision, of_discovery = _rows(ratios)
    pairs = counts.rows[rows]
    never = counts.rows[CountRow.predicted] == 0
    if never.any():
        support = np.where(never, counts.rows[CountRow.support], 0.0)
        pairs[1, of_precision] += support
        pairs[0, of_discovery] += support
    return pairs


@lru_cache(maxsize=256)
def _rows(ratios: tuple[RatioRows, ...]) -> tuple[Array, Array, Array]:
    """Return the rows (2, n) of `Counts`, and positions of shares of predictions and of errors."""
    rows = np.array(ratios, dtype=np.intp).reshape(-1, 2).T
    of_precision = rows[1] == CountRow.predicted
    of_discovery = of_precision & (rows[0] == CountRow.fp)
    return rows, np.flatnonzero(of_precision), np.flatnonzero(of_discovery)


def of_index(entry: Index) -> Parts:
    """Return the parts of an index; a plain proportion is its own part."""
    return entry.parts or Parts((entry.rows,), lambda share: share)
