"""Score intervals of any smooth index: Wilson's on the effective number of items."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array


@dataclass(frozen=True, eq=False)
class ScoreIntervals:
    """n indices as shares of their ranges, each with its effective number of items.

    Parameters
    ----------
    shares, items
        Shape (n, ...); NaN or infinite where there is no interval.
    low, width
        Shape (n, ...), broadcastable to them: smallest value of the range, and its width.
    """

    shares: Array
    items: Array
    low: Array
    width: Array

    @classmethod
    def of(
        cls, values: Array, smoothed: Array, variances: Array, *, growth: Array, bounds: Array
    ) -> "ScoreIntervals":
        """Find the effective numbers of items.

        Parameters
        ----------
        values
            Shape (n, ...): the observed values.
        smoothed, variances
            The values and their delta variances at the pooled table.
        growth
            Items of the observed table divided by those of the pooled one.
        bounds
            Shape (2, n) or (2, n, ...): smallest and largest value of each index.
        """
        low, high = bounds.reshape(*bounds.shape, *(1,) * (values.ndim + 1 - bounds.ndim))
        width = high - low
        at, there = (values - low) / width, (smoothed - low) / width
        # What lies outside by rounding is at the end of the range.
        edge = np.minimum(np.maximum(at, 0.0), 1.0)
        inside = np.abs(at - edge) <= ROUNDING
        items = there * (1 - there) / variances * (width * width) * growth
        known = inside & (items > 0) & (variances > (ROUNDED * width) ** 2)
        return cls(edge, np.where(known, items, np.nan), low, width)

    def take(self, places: Array) -> "ScoreIntervals":
        """Return some of the indices."""
        return ScoreIntervals(
            self.shares[places], self.items[places], self.low[places], self.width[places]
        )

    def scaled(self, limits: Array) -> Array:
        """Map limits (2, n, ...) of the shares to the ranges of the indices."""
        return self.low + self.width * limits


ROUNDING = 1e-9
ROUNDED = 1e-14  # of the range; smaller standard errors are rounding
