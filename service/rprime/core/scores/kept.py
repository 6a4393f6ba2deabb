"""Overall indices of scores that are known without the scores, as a store keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import CODE


class KeptValue(NamedTuple):
    """A value, its limits, NaN where missing, why they are, and whether they rest on little."""

    value: float
    low: float
    high: float
    code: int
    low_reliability: bool = False


MISSING = KeptValue(np.nan, np.nan, np.nan, CODE["no_scores"])


@dataclass(frozen=True, eq=False)
class KeptScores:
    """Overall indices of scores by key, with their limits at one normal quantile."""

    quantile: float
    values: Mapping[str, KeptValue]

    def of(self, key: str) -> KeptValue:
        """Return an index; `MISSING` if it was not kept."""
        return self.values.get(key, MISSING)

    def standard_error(self, key: str) -> float:
        """Return half the width of the interval, in quantiles; NaN without an interval."""
        kept = self.of(key)
        return (kept.high - kept.low) / (2 * self.quantile)

    def at(self, key: str, quantile: float) -> KeptValue:
        """Return an index with its limits at a normal quantile."""
        low, high = self.limits(key, quantile).tolist()
        return self.of(key)._replace(low=low, high=high)

    def limits(self, key: str, quantile: float | Array) -> Array:
        """Return the limits at a normal quantile, shape (2, ...): those kept where it is theirs.

        Notes
        -----
        Their distances from the value grow with the quantile, as those of a normal estimate do.
        """
        kept, share = self.of(key), np.asarray(quantile) / self.quantile
        low = kept.value + (kept.low - kept.value) * share
        high = kept.value + (kept.high - kept.value) * share
        return np.where(
            share == 1,
            np.array([kept.low, kept.high]).reshape(2, *(1,) * share.ndim),
            np.stack([low, high]),
        )
