"""Numbers proportional to the quantile of a limit."""

from collections.abc import Callable

import numpy as np

from rprime.core.arrays import Array

ScaleDistance = Callable[[Array, Array], Array]
"""Maps a threshold and a value to a number proportional to the quantile of that limit."""


def score(at: Array, share: Array) -> Array:
    """Return the score statistic of a share for one item; it is the quantile at Wilson limits."""
    return np.asarray((at - share) / np.sqrt(at * (1 - at)))
