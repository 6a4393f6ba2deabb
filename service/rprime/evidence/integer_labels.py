"""Convert arrays of integer labels, and number their distinct values."""

from array import array
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.evidence import names
from rprime.evidence.numbers import MOST, raise_places
from rprime.problems.problem import invalid

DENSE_RANGE = 1 << 20
"""Largest range of integers that are looked up in a table; others are searched."""


def integers_of(values: list[Any], pointer: str, *, null: bool, without_booleans: bool) -> Array:
    """Convert a list of integers; to float64 with NaN for null if `array` refuses the list."""
    if (found := plain_integers(values, without_booleans=without_booleans)) is not None:
        return _bounded(found, pointer)
    allowed = {int, float, type(None)} if null else {int, float}
    if not set(map(type, values)) <= allowed:
        raise invalid(names.mixed(values, pointer, null=null, like=0))
    numbers = np.array(values, dtype=np.float64)
    if (np.rint(numbers) != numbers)[~np.isnan(numbers)].any():
        raise invalid(names.mixed(values, pointer, null=null, like=0))
    return _bounded(numbers, pointer)


def plain_integers(values: list[Any], *, without_booleans: bool) -> Array | None:
    """Convert a list of nothing but integers; else None."""
    try:
        found = np.frombuffer(bytes(values), dtype=np.uint8)
    except (TypeError, ValueError):
        try:
            found = np.array(array("q", values))
        except (TypeError, OverflowError):
            return None
    # In JSON only true and false have this letter; a look at each type takes three times as long.
    return found if without_booleans or b"e" not in orjson.dumps(values) else None


def _bounded(values: Array, pointer: str) -> Array:
    # Of NaN alone the extremes are NaN, and no place is bad.
    if not (np.fmin.reduce(values) >= -MOST and np.fmax.reduce(values) <= MOST):
        bad = np.argwhere((values < -MOST) | (values > MOST))
        raise_places(bad, pointer, "out_of_range", names.INTEGER_RULE)
    return values


def numbered(*arrays: Array) -> tuple[Array, list[Array]]:
    """Return the distinct integers of arrays, ascending, and the position of each item in them.

    NaN means unclassified; its position is the number of distinct integers.
    """
    missing = [np.isnan(values) if values.dtype == np.float64 else None for values in arrays]
    whole = [
        values if gone is None else values[~gone].astype(np.int64)
        for values, gone in zip(arrays, missing, strict=True)
    ]
    low = min(int(values.min()) for values in whole if values.size)
    high = max(int(values.max()) for values in whole if values.size)
    found: list[Array]
    if high - low >= DENSE_RANGE:
        distinct = np.unique(np.concatenate([np.unique(values) for values in whole]))
        found = [np.searchsorted(distinct, values).astype(np.uint32) for values in whole]
    else:
        offsets = [values if low == 0 else values.astype(np.int64) - low for values in whole]
        size = high - low + 1
        counts = np.sum([np.bincount(values, minlength=size) for values in offsets], axis=0)
        distinct = np.flatnonzero(counts) + low
        table = np.cumsum(counts > 0, dtype=np.uint32) - np.uint32(1)
        found = [values if distinct.size == size else table[values] for values in offsets]
    for i, gone in enumerate(missing):
        if gone is not None:
            positions = np.full(gone.size, distinct.size, np.uint32)
            positions[~gone] = found[i]
            found[i] = positions
    return distinct, found
