"""Example: an index on a small table, and what moves it."""

from functools import cache
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import evaluate
from rprime.core.index import Index
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from rprime.report.decimals import decimal
from rprime.report.heat_map import heat_map
from rprime.report.marks import Axis

LABELS = ("A", "B", "C")
COUNTS = np.array([[45.0, 4, 1], [6, 22, 2], [0, 5, 15]])
STEPS = np.linspace(0, 1, 41)
LEFT, TOP, WIDTH, HEIGHT = 40, 10, 250, 110
"""Of the plot within its picture of 300 x 150."""


@cache
def example_of(index: Index) -> dict[str, Any] | None:
    """Evaluate the small table, and tables into which it changes step by step.

    Returns
    -------
    The table as `heat`, the `values` by class, and `plots`. None for an index that needs more than
    a table.
    """
    if index.scored or index.needs is not None:
        return None
    options = Options(indices=("accuracy",), intervals=False)
    found = np.ravel(_values(index, COUNTS[None]))
    names = ("overall",) if index.scope == "overall" else LABELS
    return {
        "heat": heat_map(evaluate(ConfusionTable.dense(COUNTS), LABELS, options)),
        "values": [(name, decimal(value)) for name, value in zip(names, found, strict=True)],
        "plots": [
            _plot(index, "Share of A that is predicted as B", _confused()),
            _plot(index, "Share of A among all items, each class treated as before", _frequent()),
        ],
    }


def _confused() -> Array:
    """Return tables in which ever more of A are predicted as B."""
    tables = np.tile(COUNTS, (STEPS.size, 1, 1))
    tables[:, 0] = np.outer(1 - STEPS, COUNTS[0]) + np.outer(STEPS, [0, COUNTS[0].sum(), 0])
    return tables


def _frequent() -> Array:
    """Return tables of as many items in which A is ever more frequent."""
    share, total, own = np.clip(STEPS, 0.01, 0.99), COUNTS.sum(), COUNTS[0].sum()
    factors = np.stack((share / own, *[(1 - share) / (total - own)] * 2), axis=-1)
    tables: Array = COUNTS * factors[..., None] * total
    return tables


def _values(index: Index, tables: Array) -> Array:
    """Compute an index, shape (n,) or (n, k); NaN where it does not exist."""
    selection = select(Options(indices=(index.key,)))
    found = compute(ConfusionTable.dense(tables), Options(), selection)
    if index.scope == "overall":
        values = found.overall[selection.overall_place[index.key]]
    else:
        values = found.per_class[selection.place[index.key]]
    return np.asarray(np.where(np.isfinite(values), values, np.nan))


def _plot(index: Index, moved: str, tables: Array) -> dict[str, Any]:
    values = _values(index, tables).reshape(STEPS.size, -1)[:, :2]
    axis = Axis.around(values.ravel().tolist(), index.range)
    names = LABELS if index.scope == "class" else (index.name,)
    lines = []
    for name, column in zip(names, values.T.tolist(), strict=False):
        points = [(x, y) for x, y in zip(STEPS.tolist(), column, strict=True) if np.isfinite(y)]
        if points:
            path = " ".join(
                f"{LEFT + WIDTH * x:.1f},{TOP + HEIGHT * (1 - axis.at(y) / 100):.1f}"
                for x, y in points
            )
            said = f"{name} from {decimal(points[0][1])} to {decimal(points[-1][1])}"
            lines.append((name, path, said))
    return {"moved": moved, "ends": axis.ends, "lines": lines}
