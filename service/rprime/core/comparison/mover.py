"""Differences of two independent samples from the limits of each side (MOVER)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.intervals.proportions import binomial_tail_p, effective_items, one_sided_quantile

FARTHEST = 12.0
"""Largest quantile of the search; the p-value beyond it is 0."""
REFERENCE = 1.6448536269514722
"""Where the search begins: the one-sided level .05."""
ROUNDS = 80
STEP = 1e-5
"""The search ends with a secant as short as this: the error is smaller by orders."""
NOTHING = 1e-14
"""A threshold this close to D is D."""


class SingleTests:
    """Statistics about the candidate's values, each of which is one test."""

    candidate: Array

    @property
    def centre(self) -> Array:
        """The values of the candidate."""
        return self.candidate

    @property
    def pairs(self) -> Array:
        """The number of tests that each p-value is adjusted for by itself: 1."""
        return np.ones(self.candidate.shape)


@dataclass(frozen=True, eq=False)
class MoverLimits(SingleTests):
    """Limits of candidate minus baseline, or of the candidate alone, at any quantile.

    Parameters
    ----------
    candidate, baseline
        Values, of any shape; the baseline is 0 for the candidate alone.
    source, places
        Limits of the sides, and positions among these, in the shape of the values.

    Notes
    -----
    Source: Zou, Donner 2008. With limits (l, u) of each side, the lower limit of D = c - b is
    D - sqrt((c - l_c)^2 + (u_b - b)^2) and the upper one D + sqrt((u_c - c)^2 + (b - l_b)^2).
    For proportions with Wilson's limits that is Newcombe's hybrid score method (Newcombe 1998).
    """

    candidate: Array
    baseline: Array
    source: LimitSource
    places: Array

    def __getitem__(self, position: Any) -> "MoverLimits":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        candidate, baseline, places = (
            np.asarray(part[position]) for part in (self.candidate, self.baseline, self.places)
        )
        return MoverLimits(candidate, baseline, self.source, places)

    @classmethod
    def join(cls, parts: "Sequence[MoverLimits]") -> "MoverLimits":
        """Concatenate elements of one source along the last axis, without its other indices."""
        candidate, baseline, places = (
            np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("candidate", "baseline", "places")
        )
        return cls(candidate, baseline, *parts[0].source.only(places))

    @property
    def value(self) -> Array:
        """The differences."""
        return np.asarray(self.candidate - self.baseline)

    def at(self, quantile: ArrayLike) -> tuple[Array, Array]:
        """Return the lower and the upper limits at a positive normal quantile.

        It broadcasts to the elements. NaN where a side has no interval.
        """
        with np.errstate(all="ignore"):
            below, above = self._distances(np.asarray(quantile))
        return self.value - below, self.value + above

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return the one-sided limits, each at this level."""
        return self.at(one_sided_quantile(level))

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the values, below and above."""
        quantiles: float | Array = float(quantile) if quantile.ndim == 0 else self._spread(quantile)
        (low, high), *other = self.source.at(quantiles)[..., self.places]
        below, above = self.candidate - low, high - self.candidate
        for low, high in other:
            below, above = (
                np.hypot(below, high - self.baseline),
                np.hypot(above, self.baseline - low),
            )
        return below, above

    def _spread(self, quantile: Array) -> Array:
        every = np.full(sum(int(np.prod(shape)) for shape in self.source.shapes), REFERENCE)
        every[self.places] = quantile
        return every

    @property
    def standard_error(self) -> Array:
        """Half the width of the interval at the level .05, in quantiles; NaN without limits."""
        lower, upper = self.at(REFERENCE)
        return np.asarray((upper - lower) / (2 * REFERENCE))

    def p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the smallest one-sided levels at which D is shown to be below, or above, it."""
        threshold = np.broadcast_to(threshold, self.value.shape)
        goal, upward = np.abs(threshold - self.value), threshold > self.value

        def distance(z: Array) -> Array:
            below, above = self._distances(z)
            return np.where(upward, above, below)

        with np.errstate(all="ignore"):
            reached = _reached(distance, goal)
        # That of the upper limit at the threshold; minus that of the lower one.
        quantile = np.where(upward, reached, -reached)
        return np.asarray(special.ndtr(-quantile)), np.asarray(special.ndtr(quantile))

    @property
    def p_of_no_change(self) -> tuple[Array, Array]:
        """The smallest levels at which D is shown to be below, and above, 0."""
        return self.p(0.0)

    @property
    def exact_p_of_no_change(self) -> tuple[Array, Array]:
        """The same: two samples have no exact test here."""
        return self.p_of_no_change

    def tails(self, threshold: Array, span: Array) -> tuple[Array, Array]:
        """Return exact p-values of the candidate alone below, and above, a threshold (m,).

        The lowest and the highest possible value are the span (2, m). NaN where the range is
        infinite, or where no number of items is behind it.

        Notes
        -----
        The binomial tail with the effective number of items. The normal distribution is too light
        in the tails that decide among many results.
        """
        at, value = unit_scale(threshold, span), unit_scale(self.candidate, span)
        low, high = (unit_scale(limit, span) for limit in self.at(REFERENCE))
        fewer, more = (effective_items(REFERENCE, value, limit) for limit in (high, low))
        below = binomial_tail_p((1 - value) * fewer, fewer, 1 - at)
        return below, binomial_tail_p(value * more, more, at)


def unit_scale(values: Array, span: Array) -> Array:
    """Map values from their possible range to [0, 1]; NaN where that is infinite."""
    with np.errstate(all="ignore"):
        return np.clip((values - span[0]) / (span[1] - span[0]), 0.0, 1.0)


def _reached(distance: Callable[[Array], Array], goal: Array) -> Array:
    """Find where an increasing function from (0, 0) reaches its goal.

    Infinite where it does not up to `FARTHEST`, NaN where it is not a number.

    Inverse parabolas within a bracket, at first a secant: where one leaves it, the far end is tried
    once, then the middle.
    """
    low, high = np.zeros(goal.shape), np.full(goal.shape, FARTHEST)
    older = at_older = before = at_before = low
    tried = low > 0
    z, at = np.full(goal.shape, REFERENCE), distance(np.asarray(REFERENCE))
    none, lost = goal <= NOTHING, np.isnan(at)
    done = none | lost
    for _ in range(ROUNDS):
        short = at < goal
        tried = tried | (z >= FARTHEST)
        low, high = np.where(short, z, low), np.where(short, high, z)
        slope, rest = (z - before) / (at - at_before), goal - at
        bend = (slope - (before - older) / (at_before - at_older)) / (at - at_older)
        turn = rest * (goal - at_before) * bend
        guess = z + rest * slope + np.where(np.isfinite(turn), turn, 0.0)
        inside = (guess >= low) & (guess <= high)
        other = np.where(short & ~tried, FARTHEST, (low + high) / 2)
        following = np.where(done, z, np.where(inside, guess, other))
        step = np.where(inside, np.abs(guess - z), np.inf)
        done = done | (np.fmin(step, high - low) <= STEP)
        older, at_older, before, at_before, z = before, at_before, z, at, following
        if done.all():
            break
        at = distance(z)
    reached = np.where(low >= FARTHEST, np.inf, z)
    return np.where(lost, np.nan, np.where(none, 0.0, reached))
