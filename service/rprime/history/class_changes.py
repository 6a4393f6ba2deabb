"""Changes of the classes of a model over its versions, since one of them."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.intervals.proportions import quantile_of


@dataclass(frozen=True, eq=False)
class ClassChanges:
    """An index of classes over versions, oldest first, shape (version, class) each.

    Parameters
    ----------
    values, low, high
        Values with their intervals; NaN where there is none.
    reference
        The number of the version that the others are compared with.
    confidence
        Of the intervals.
    """

    index: Index
    labels: tuple[str, ...]
    values: Array
    low: Array
    high: Array
    reference: int
    confidence: float = 0.95

    @property
    def sign(self) -> float:
        """What makes gains of changes: -1 where small values are the good ones."""
        return -1.0 if self.index.higher_is_better is False else 1.0

    @property
    def gains(self) -> Array:
        """How much better each value is than that of the reference."""
        gains: Array = self.sign * (self.values - self.values[self.reference])
        return gains

    def limits(self, stretch: float = 1.0) -> tuple[Array, Array]:
        """Return the interval of each gain, from the intervals of both sides (MOVER).

        The versions share their items, so that the intervals are rather too wide.
        """
        gains, (below, above) = self.gains, self._distances()
        before_below, before_above = (part[self.reference] for part in (below, above))
        return (
            gains - stretch * np.hypot(below, before_above),
            gains + stretch * np.hypot(above, before_below),
        )

    def _distances(self) -> tuple[Array, Array]:
        """Return how far the limits of a good value are below and above it."""
        below, above = self.values - self.low, self.high - self.values
        return (below, above) if self.sign > 0 else (above, below)

    @property
    def shown(self) -> Array:
        """Which changes hold for all classes together, by Bonferroni."""
        level = (1 - self.confidence) / max(len(self.labels), 1)
        low, high = self.limits(quantile_of(1 - level) / quantile_of(self.confidence))
        shown: Array = (low > 0) | (high < 0)
        shown[self.reference] = False
        return shown

    @property
    def order(self) -> list[int]:
        """The classes, that with the surest loss in the newest version first.

        A loss is as sure as the end of its interval next to zero. Without one the loss itself
        counts, if it is none; classes without a change come last.
        """
        gain = self.gains[-1]
        end = np.where(np.isfinite(self.limits()[1][-1]), self.limits()[1][-1], np.maximum(gain, 0))
        keys = np.lexsort((np.nan_to_num(gain, nan=np.inf), np.where(np.isnan(gain), np.inf, end)))
        order: list[int] = keys.tolist()
        return order

    @property
    def weakest(self) -> list[int]:
        """The classes from the worst one in the newest version."""
        order: list[int] = np.argsort(self.sign * self.values[-1], kind="stable").tolist()
        return order

    @property
    def lost(self) -> Array:
        """Where a class is shown to be worse than in the reference."""
        lost: Array = self.shown & (self.gains < 0)
        return lost

    def since(self, label: int) -> int | None:
        """Return the version since which a class has been shown to be worse; None: it is not."""
        lost = self.lost[:, label]
        if not lost[-1]:
            return None
        held = np.flatnonzero(~lost)
        return int(held[-1]) + 1 if held.size else 0
