"""Confusion tables of a class against the rest at thresholds on its score."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

KEYS = (
    "recall",
    "specificity",
    "precision",
    "negative_predictive_value",
    "f1",
    "informedness",
    "class_mcc",
    "r_prime",
)
"""The indices reported for a threshold."""


def tables_at(scores: Scores, classes: Array, thresholds: Array) -> ConfusionTable:
    """Count one-vs-rest tables of classes (t,), each at its own threshold (t,).

    The class is predicted if its score is at least the threshold. The stack (t,) is of two
    classes: the class, and the rest.
    """
    counts = np.empty((len(classes), 2, 2))
    for table, label, threshold in zip(counts, classes, thresholds, strict=True):
        rest = scores.true != label
        missed = scores.values[:, label] < threshold
        table[...] = np.bincount(2 * rest + missed, scores.weights, 4).reshape(2, 2)
    return ConfusionTable.dense(counts, weighted=scores.weights is not None)


def values_at(tables: ConfusionTable) -> dict[str, Array]:
    """Return the indices of every table's class, shape (t,) each; NaN where undefined."""
    options = Options(indices=KEYS)
    values = compute(tables, options, select(options))
    indices = {key: values.lookup("class", key)[..., 0] for key in KEYS}
    return {key: np.where(np.isfinite(v), v, np.nan) for key, v in indices.items()}
