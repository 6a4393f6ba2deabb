"""The largest difference of an index between slices, with simultaneous limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rprime.core.arrays import Array
from rprime.core.comparison.compared_side import LimitSource
from rprime.core.comparison.mover import REFERENCE, MoverLimits, unit_scale
from rprime.core.gates.estimate import Estimate
from rprime.core.intervals.proportions import binomial_tail_p, effective_items

CELLS = 64
"""Parts of the range in which two slices may have the same value."""
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class GapLimits(MoverLimits):
    """Limits of the largest difference between slices, which share no items.

    The value is that of the candidate, and the baseline 0. `of_slices` are the values of the
    slices, shape (s, ..., m); NaN for a slice that takes no part. The source has a side for each
    slice, or is of one stack; then `places` has the shape of `of_slices`.

    Notes
    -----
    Each difference of two slices has the limits of two independent samples (MOVER). The largest
    of their lower limits, at the level divided by the number of ordered pairs, is a lower limit of
    the largest difference (Bonferroni); the largest of their upper limits needs no adjustment
    (intersection-union: all differences are within a bound if each is).
    """

    of_slices: Array

    @classmethod
    def of(cls, known: Sequence[Estimate], least: float) -> "GapLimits":
        """Take the estimates of the slices, without values that rest on fewer items."""
        values = np.array([np.where(one.items < max(least, 1), np.nan, one.value) for one in known])
        sides = tuple(side for one in known for side in one.statistic.source.sides)
        return cls._of(values, LimitSource(sides), known[0].statistic.places)

    @classmethod
    def of_stack(cls, known: Estimate, slices: list[int], least: float) -> "GapLimits":
        """Take some slices of a stack, its last axis."""
        few = known.items < max(least, 1)
        parts = (np.where(few, np.nan, known.value), known.statistic.places)
        values, places = (np.moveaxis(part[..., slices, :], -2, 0) for part in parts)
        return cls._of(values, known.statistic.source, places)

    @classmethod
    def _of(cls, values: Array, source: LimitSource, places: Array) -> "GapLimits":
        there = np.isfinite(values)
        largest = np.where(there, values, -np.inf).max(0) - np.where(there, values, np.inf).min(0)
        gap = np.where(there.sum(0) > 1, largest, np.nan)
        return cls(gap, np.zeros_like(gap), source, places, values)

    def __getitem__(self, position: Any) -> "GapLimits":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index of the last axis."""
        names = ("candidate", "baseline", "places", "of_slices")
        return replace(self, **{name: getattr(self, name)[position] for name in names})

    @classmethod
    def join(cls, parts: "Sequence[MoverLimits]") -> MoverLimits:
        """Return the only part: each has slices, and so a source, of its own."""
        (part,) = parts
        return part

    @property
    def centre(self) -> Array:
        """The mean value of the slices."""
        there = np.isfinite(self.of_slices)
        total = np.where(there, self.of_slices, 0.0).sum(0)
        return total / np.where(there.any(0), there.sum(0), np.nan)

    @property
    def pairs(self) -> Array:
        """Number of ordered pairs of slices, shape (m,)."""
        count = np.isfinite(self.of_slices).sum(0)
        return np.maximum(count * (count - 1), 1)

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:
        """Return the one-sided limits, each at this level; no difference is below 0."""
        low, high = super().limits(np.asarray(level) / self.pairs)[0], super().limits(level)[1]
        return np.maximum(low, 0.0), high

    def p(self, threshold: ArrayLike) -> tuple[Array, Array]:
        """Return the smallest levels at which it is shown to be below, and above, a threshold."""
        below, above = super().p(threshold)
        return below, np.minimum(above * self.pairs, 1.0)

    def tails(self, threshold: Array, span: Array) -> tuple[Array, Array]:
        """Return exact p-values; NaN for those of being below, which nobody needs.

        Notes
        -----
        If slice i lies above slice j by no more than t, then for some c slice i is at most c + t
        and slice j at least c. The binomial tails at both are independent, and their product q has
        the p-value q (1 - log q) (Fisher's combination). The largest over c in `CELLS` cells
        counts: in each the one tail is taken at its upper, the other at its lower end.
        """
        low, high = unit_scale(self._limits_of_slices(REFERENCE), span[:, None])
        values, width = unit_scale(self.of_slices, span), threshold / (span[1] - span[0])
        there = np.isfinite(values)
        bottom, top = np.where(there, values, 1.0).min(0), np.where(there, values, 0.0).max(0)
        ends = np.linspace(bottom, np.maximum(top - width, bottom), CELLS + 1)[:, None]
        more, fewer = (effective_items(REFERENCE, values, limit) for limit in (low, high))
        above = binomial_tail_p(values * more, more, ends[1:] + width)
        below = binomial_tail_p((1 - values) * fewer, fewer, 1 - ends[:-1])
        least = np.ones(self.candidate.shape)
        for i, own in enumerate(np.moveaxis(above, 1, 0)):
            joint = (own[:, None] * below).max(0)
            joint[i] = np.nan
            least = np.fmin(least, np.fmin.reduce(joint))
        joined = least * (1 - np.log(np.maximum(least, TINY)))
        return np.full_like(joined, np.nan), np.minimum(joined * self.pairs, 1.0)

    def _limits_of_slices(self, quantile: float | Array) -> Array:
        """Return both limits of the slices, shape (2, s, ..., m)."""
        found = self.source.at(quantile)
        if self.places.ndim == self.of_slices.ndim:
            return found[0][:, self.places]
        return np.moveaxis(found[..., self.places], 1, 0)

    def _distances(self, quantile: Array) -> tuple[Array, Array]:
        """Return how far the limits are from the value, below and above."""
        wanted: float | Array = float(quantile) if quantile.ndim == 0 else self._spread(quantile)
        low, high = self._limits_of_slices(wanted)
        values, there = self.of_slices, np.isfinite(self.of_slices)
        lowest, highest = np.full((2, *self.candidate.shape), -np.inf)
        for i, value in enumerate(values):
            pairs = there & there[i]
            pairs[i] = False
            below = value - values - np.hypot(value - low[i], high - values)
            above = value - values + np.hypot(high[i] - value, values - low)
            lowest = np.maximum(lowest, np.where(pairs, below, -np.inf).max(0))
            highest = np.maximum(highest, np.where(pairs, above, -np.inf).max(0))
        return self.candidate - lowest, highest - self.candidate
