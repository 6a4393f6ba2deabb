"""Sides of a comparison, made from joint tables or from arrays of codes."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.difference_intervals import discordance_bounds, tango_z
from rprime.core.items import Items
from rprime.core.table import ConfusionTable

FOLDER = Path(__file__).parents[1] / "reference"
PAIRED = json.loads((FOLDER / "statistics_visible.json").read_text(encoding="utf-8"))["paired"]
JOINT = PAIRED["joint3_n1000_drop2pt"]
PAPER = json.loads((FOLDER / "beyond_ap_tables.json").read_text(encoding="utf-8"))["matrices"]


def names(k: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(k))


def table_of(true: Array, predicted: Array, k: int) -> ConfusionTable:
    codes = np.asarray(true, dtype=np.int64) * (k + 1) + predicted
    counts = np.bincount(codes, minlength=k * (k + 1)).reshape(k, k + 1)
    return ConfusionTable.dense(counts[:, :k], counts[:, k])


def side_of(
    true: Array,
    predicted: Array,
    k: int,
    groups: Array | None = None,
    labels: tuple[str, ...] | None = None,
) -> Side:
    return Side(
        labels=names(k) if labels is None else labels,
        table=table_of(true, predicted, k),
        items=Items(true, predicted, groups),
        fingerprint="same",
    )


def unrolled(joint: ArrayLike) -> tuple[Array, Array, Array]:
    """True, old and new codes of every item of a joint table."""
    counts = np.asarray(joint)
    flat = (np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape))
    true, old, new = (codes.astype(np.uint8) for codes in flat)
    return true, old, new


def sides_of(joint: ArrayLike) -> tuple[Side, Side]:
    """Candidate and baseline of a joint table (true, old, new); a last prediction is none."""
    true, old, new = unrolled(joint)
    k = len(np.asarray(joint))
    return side_of(true, new, k), side_of(true, old, k)


def table_side(table: ConfusionTable, test_set: str | None = None) -> Side:
    return Side(labels=names(table.k), table=table, test_set=test_set)


def paper_side(name: str) -> Side:
    case = PAPER[name]
    return Side(labels=tuple(case["classes"]), table=ConfusionTable.dense(case["counts"]))


def p_pass(gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, margin: ArrayLike) -> Array:
    """Return the one-sided p-value against "the drop is `margin` or more" (Tango 1998)."""
    return np.asarray(special.ndtr(-tango_z(gains, losses, trials, -np.asarray(margin))))


def p_fail(gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, margin: ArrayLike) -> Array:
    """Return the one-sided p-value against "the drop is at most `margin`" (Tango 1998)."""
    return np.asarray(special.ndtr(tango_z(gains, losses, trials, -np.asarray(margin))))


def bracket(
    old: float, new: float, n: float, p_value: Callable[[Array, Array, Array], Array]
) -> tuple[Array, Array]:
    """Return the smallest and the largest paired p-value that two tables of a test set allow."""
    ends = [
        p_value((total + new - old) / 2, (total - new + old) / 2, np.asarray(n))
        for total in discordance_bounds(old, new, n)
    ]
    return np.minimum(*ends), np.maximum(*ends)
