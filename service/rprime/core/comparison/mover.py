"""Differences of two independent samples from the limits of each side (MOVER)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rprime.core.arrays import Array

LimitFunction = Callable[[float | Array], Array]
"""Maps a quantile, a number or one for each value, to lower and upper limits, shape (2, ...)."""

Narrow = Callable[[int], tuple[tuple[LimitFunction, LimitFunction], tuple[int, ...], int]]

FARTHEST = 12.0
"""Largest quantile of the search; the p-value beyond it is 0."""
REFERENCE = 1.6448536269514722
"""Where the search begins: the one-sided level .05."""
ROUNDS = 80
TOLERANCE = 1e-9
NOTHING = 1e-14
"""A threshold this close to D is D."""


@dataclass(frozen=True, eq=False)
class MoverLimits:
    """Limits of candidate minus baseline at any quantile.

    Parameters
    ----------
    candidate, baseline
        Values, of any shape.
    sides
        Limits of the candidate and of the baseline, as functions of the quantile; their results
        have one shape (2, *`whole`).
    whole
        The shape of all values that the sides know.
    places
        Flat positions among these, in the shape of the values.
    narrow
        Returns the sides, the whole and the row of one row alone, which costs less where many
        quantiles are searched; None if it does not help.

    Notes
    -----
    Source: Zou, Donner 2008. With limits (l, u) of each side, the lower limit of D = c - b is
    D - sqrt((c - l_c)^2 + (u_b - b)^2) and the upper one D + sqrt((u_c - c)^2 + (b - l_b)^2).
    For proportions with Wilson's limits that is Newcombe's hybrid score method (Newcombe 1998).
    """

    candidate: Array
    baseline: Array
    sides: tuple[LimitFunction, LimitFunction]
    whole: tuple[int, ...]
    places: Array
    narrow: Narrow | None = None

    def __getitem__(self, position: Any) -> "MoverLimits":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        parts = (
            np.asarray(part[position]) for part in (self.candidate, self.baseline, self.places)
        )
        candidate, baseline, places = parts
        return replace(self, candidate=candidate, baseline=baseline, places=places)

    @property
    def value(self) -> Array:
        """The differences."""
        return np.asarray(self.candidate - self.baseline)

    def at(self, quantile: ArrayLike) -> tuple[Array, Array]:
        """Return the lower and the upper limits.

        Parameters
        ----------
        quantile
            Of the normal distribution, positive; broadcasts to the elements.

        Returns
        -------
        Two arrays; NaN where a side has no interval.
        """
        low, high = (self._limits(side, np.asarray(quantile)) for side in self.sides)
        with np.errstate(all="ignore"):
            below = np.hypot(self.candidate - low[0], high[1] - self.baseline)
            above = np.hypot(low[1] - self.candidate, self.baseline - high[0])
        return self.value - below, self.value + above

    @cached_property
    def standard_error(self) -> Array:
        """Half the width of the interval at the level .05, in quantiles; NaN without limits."""
        lower, upper = self.at(REFERENCE)
        return np.asarray((upper - lower) / (2 * REFERENCE))

    def p_below(self, threshold: ArrayLike) -> Array:
        """Return the smallest one-sided level at which the upper limit is below a threshold."""
        return np.asarray(special.ndtr(-self._quantile(threshold)))

    def p_above(self, threshold: ArrayLike) -> Array:
        """Return the smallest one-sided level at which the lower limit is above a threshold."""
        return np.asarray(special.ndtr(self._quantile(threshold)))

    def _limits(self, side: LimitFunction, quantile: Array) -> Array:
        if quantile.ndim:
            every = np.full(self.whole, REFERENCE)
            every.reshape(-1)[self.places] = quantile
            found = side(every)
        else:
            found = side(float(quantile))
        return found.reshape(2, -1)[:, self.places]

    @cached_property
    def _known(self) -> dict[float, Array]:
        """Quantiles found so far: a gate asks for both p-values at one threshold."""
        return {}

    def _quantile(self, threshold: ArrayLike) -> Array:
        """Return the quantile of the upper limit at the threshold; minus that of the lower one."""
        if np.ndim(threshold):
            return self._search(np.broadcast_to(threshold, self.value.shape))
        t = float(np.asarray(threshold))
        if t not in self._known:
            self._known[t] = self._search(np.full(self.value.shape, t))
        return self._known[t]

    def _search(self, threshold: Array) -> Array:
        """Find the quantiles where the distance of the limit from D is that of the threshold."""
        goal, upward, source = np.abs(threshold - self.value), threshold > self.value, self._source

        def distance(z: Array) -> Array:
            lower, upper = source.at(z)
            return np.where(upward, upper - self.value, self.value - lower)

        with np.errstate(all="ignore"):
            found = reach(distance, goal)
        return np.where(upward, found, -found)

    @cached_property
    def _source(self) -> "MoverLimits":
        """The same from sides that know no other row, if all elements are of one row."""
        size = int(np.prod(self.whole[1:]))
        rows = np.unique(self.places // size)
        if self.narrow is None or len(rows) != 1 or self.whole[0] == 1:
            return self
        sides, whole, row = self.narrow(int(rows[0]))
        places = self.places + (row - rows[0]) * size
        return replace(self, sides=sides, whole=whole, places=places, narrow=None)


def reach(distance: Callable[[Array], Array], goal: Array) -> Array:
    """Find where an increasing function from (0, 0) reaches its goal.

    Infinite where it does not up to `FARTHEST`, NaN where it is not a number.

    Secants within a bracket: where one leaves it, the far end is tried once, then the middle.
    """
    low, high = np.zeros(goal.shape), np.full(goal.shape, FARTHEST)
    before, at_before, tried = low, low, low > 0
    none = goal <= NOTHING
    z = np.full(goal.shape, REFERENCE)
    at = distance(z)
    lost = np.isnan(at)
    done = none | lost
    for _ in range(ROUNDS):
        short = at < goal
        tried = tried | (z >= FARTHEST)
        low, high = np.where(short, z, low), np.where(short, high, z)
        secant = z + (goal - at) * (z - before) / (at - at_before)
        done = done | ~(np.fmin(np.abs(secant - z), high - low) > TOLERANCE)
        if done.all():
            break
        inside = (secant > low) & (secant < high)
        other = np.where(short & ~tried, FARTHEST, (low + high) / 2)
        following = np.where(done, z, np.where(inside, secant, other))
        before, at_before, z = z, at, following
        at = distance(z)
    found = np.where(low >= FARTHEST, np.inf, z)
    return np.where(lost, np.nan, np.where(none, 0.0, found))
