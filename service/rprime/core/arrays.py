"""Array types."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""float64, or complex128 when the delta method perturbs the margins."""
FloatArray = NDArray[np.float64]


def positions(flags: Iterable[bool]) -> Array:
    """Positions of the flags that are set."""
    return integers(i for i, flag in enumerate(flags) if flag)


def integers(values: Iterable[int]) -> Array:
    """Return positions as an array."""
    return np.fromiter(values, dtype=np.intp)
