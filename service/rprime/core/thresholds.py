"""Comparisons with a threshold that a value may exactly reach."""

from typing import Any

from rprime.core.arrays import Array

MARGIN = 1e-12
"""Rounding of shares and of indices near 1; no table of fewer than a million items is nearer."""


def reaches(value: Array | float, threshold: float) -> Any:  # noqa: ANN401 (an array or a bool)
    """Whether a value is at least a threshold, also where its last digits were rounded down."""
    return value >= threshold - MARGIN


def falls_short(value: Array | float, threshold: float) -> Any:  # noqa: ANN401 (an array or a bool)
    """Whether a value is below a threshold; False for NaN."""
    return value < threshold - MARGIN


def exceeds(value: Array | float, threshold: float) -> Any:  # noqa: ANN401 (an array or a bool)
    """Whether a value is above a threshold, and not because its last digits were rounded up."""
    return value > threshold + MARGIN
