"""Array types."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
"""float64, or complex128 when the delta method perturbs the margins."""
FloatArray = NDArray[np.float64]


ROUNDING = 2.0**-45
"""Largest relative difference of two sums of the same numbers in another order."""


def snapped(values: Array, whole: Array) -> Array:
    """Replace sums that differ from the sum of all by rounding alone.

    Sums of weights depend on the order of addition, so a difference of two that are equal need not
    be 0. Sums of fewer than 3e13 whole items are exact and stay as they are.
    """
    return np.where(np.abs(values - whole) <= ROUNDING * whole, whole, values)


def broadcast(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """Return numbers as arrays of one shape."""
    arrays = tuple(np.asarray(value, dtype=np.float64) for value in values)
    if all(array.shape == arrays[0].shape for array in arrays):  # numpy takes ten times as long
        return arrays
    return np.broadcast_arrays(*arrays)


def chosen(flags: Array, values: Array, others: Array) -> Array:
    """Return `np.where` of arrays of one shape; one of them itself if all flags are equal.

    On few numbers a choice costs as much as five multiplications, and most choices are of one side.
    """
    number = np.count_nonzero(flags)
    if number in (0, flags.size):
        return values if number else others
    return np.where(flags, values, others)


def or_nothing(values: Array) -> Array:
    """Replace NaN by 0."""
    missing = np.isnan(values)
    return np.where(missing, 0.0, values) if np.count_nonzero(missing) else values


def within(values: Array, bounds: Array) -> Array:
    """Move values (n, ...) that rounding took beyond their bounds (2, n) to them, in place."""
    low, high = bounds.reshape(*bounds.shape, *(1,) * (values.ndim - 1))
    beyond = (values < low) | (values > high)
    if np.count_nonzero(beyond):
        nearest = np.clip(values, low, high)
        with np.errstate(invalid="ignore"):
            beyond &= np.abs(values - nearest) <= OUTSIDE
        np.copyto(values, nearest, where=beyond)
    return values


OUTSIDE = 1e-9
"""What is farther outside of a range is no rounding, but an error that must show."""


def positions(flags: Iterable[bool]) -> Array:
    """Positions of the flags that are set."""
    return integers(i for i, flag in enumerate(flags) if flag)


def integers(values: Iterable[int]) -> Array:
    """Return positions as an array."""
    return np.fromiter(values, dtype=np.intp)
