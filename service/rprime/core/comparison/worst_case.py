"""Differences with every missing item counted as wrong for each class."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from rprime.core.catalog import find
from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.missing_items import MissingItems
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute


@cache
def of_one_class(key: str) -> bool:
    """Whether the value of a class is the same where all other classes are one."""
    entry = find("class", key)
    if entry is None or entry.scored or entry.reads == "table":
        return False
    counts, omitted = np.array([[50.0, 4, 7], [9, 40, 2], [1, 12, 30]]), np.array([3.0, 5, 2])
    of_two = np.add.reduceat(np.add.reduceat(counts, [0, 1], 0), [0, 1], 1)
    whole = ConfusionTable.dense(counts, omitted)
    two = ConfusionTable.dense(of_two, np.add.reduceat(omitted, [0, 1]))
    options = Options(indices=(key,), beta=2.0)
    value, other = (
        compute(table, options, select(options)).lookup("class", key)[0] for table in (whole, two)
    )
    return bool(np.isclose(value, other, rtol=0, atol=CLOSE, equal_nan=True))


CLOSE = 1e-9
"""Largest difference of a value by rounding."""


def worst_class_differences(
    missing: MissingItems, key: str, classes: Sequence[str], options: Options
) -> Difference:
    """Return the difference of an index for some classes, each in its worst case, shape (n,).

    Classes without items in the baseline are unknown: all of their numbers are NaN.
    """
    alone = options.population is None and of_one_class(key)
    options = replace(options, indices=(key,), families=(), left_out=())
    if alone:
        options = replace(options, cost=None, kappa_weights=None, cell_weights=None)
    parts = []
    for label in classes:
        missing_items = missing.of_class(label) if alone else missing
        comparison = compare(
            missing_items.worst_case(key, label), missing_items.baseline, options, attributed=()
        )
        there = label in comparison.classes
        parts.append(comparison.of_classes(key, (label,)) if there else Difference.unknown(1))
    return Difference.join(parts) if parts else Difference.unknown(0)
