"""The values of a table by key, for tests of the core."""

from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.intervals.gradient import Gradient
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

CORE = Options(families=("core",))
"""What asks for more than the summary."""


def values_of(table: ConfusionTable, **options: Any) -> Values:
    """Compute the catalog on a table, all families unless indices or families are named."""
    named = options.keys() & {"indices", "families"}
    settings = Options(**options if named else options | {"families": ("all",)})
    return compute(table, settings, select(settings))


def per_class(values: Values) -> dict[str, Any]:
    """Per-class values by key, NaN where undefined."""
    return {e.key: v for e, v in zip(values.selection.computed, values.per_class, strict=True)}


def overall(values: Values) -> dict[str, Any]:
    """Overall values by key, NaN where undefined."""
    return {e.key: v for e, v in zip(values.selection.overall, values.overall, strict=True)}


def dense(counts: Any, *vectors: Any) -> ConfusionTable:
    """Build a table from nested lists."""
    return ConfusionTable.dense(np.array(counts, dtype=float), *(np.array(v) for v in vectors))


def assert_near(actual: dict[Any, Any], expected: dict[Any, Any]) -> None:
    """Check all expected values at once, and only if that fails one by one, by name."""
    left, right = (np.hstack([part[name] for name in expected]) for part in (actual, expected))
    if np.allclose(left, right, rtol=1e-9, atol=1e-9, equal_nan=True):
        return
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-9, atol=1e-9, err_msg=str(name))
    message = "as many values, but not of the same shapes"
    raise AssertionError(message)


def at_every_cell(gradient: Gradient) -> Array:
    """Gradient at every cell, shape (n, ..., k, k + 1); the last column is unclassified."""
    k = gradient.factors.shape[-1]
    rows, columns = (grid.ravel() for grid in np.indices((k, k + 1)))
    flat = gradient.at(rows, columns)
    return flat.reshape(*flat.shape[:-1], k, k + 1)
