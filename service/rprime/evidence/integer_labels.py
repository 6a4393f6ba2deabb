"""Convert arrays of integer labels, and number their distinct values."""

from array import array
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct integers of the label arrays, ascending.

    ``table`` holds the position of `value - values[0]` if the integers lie close together.
    """

    values: Array
    table: Array | None

    @classmethod
    def of(cls, *arrays: Array) -> "Distinct":
        """Find the distinct integers of arrays in which NaN means unclassified."""
        whole = [
            values[~np.isnan(values)].astype(np.int64) if values.dtype == np.float64 else values
            for values in arrays
        ]
        low = min(int(values.min()) for values in whole if values.size)
        high = max(int(values.max()) for values in whole if values.size)
        if high - low >= DENSE_RANGE:
            return cls(np.unique(np.concatenate([np.unique(values) for values in whole])), None)
        present = np.zeros(high - low + 1, dtype=bool)
        for values in whole:
            present |= np.bincount(_offsets(values, low), minlength=present.size) > 0
        table = np.cumsum(present, dtype=np.uint32) - np.uint32(1)
        return cls(np.flatnonzero(present) + low, table)

    def positions(self, values: Array) -> Array:
        """Return the position of every integer; for NaN, the number of distinct integers."""
        if values.dtype != np.float64:
            return self._found(values)
        missing = np.isnan(values)
        positions = self._found(np.where(missing, self.values[0], values).astype(np.int64))
        return np.where(missing, np.uint32(self.values.size), positions)

    def _found(self, values: Array) -> Array:
        if self.table is None:
            return np.searchsorted(self.values, values).astype(np.uint32)
        low = int(self.values[0])
        if low == 0 and self.values.size == self.table.size:
            return values
        return self.table[_offsets(values, low)]


def _offsets(values: Array, low: int) -> Array:
    return values if low == 0 else values.astype(np.int64) - low
