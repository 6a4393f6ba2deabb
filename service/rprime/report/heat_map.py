"""Heat map: the confusion table as rows of shaded cells."""

from collections.abc import Iterator
from math import ceil, sqrt
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.report.decimals import count, decimal
from rprime.report.names import isolated, shown

MOST_CLASSES = 30
MOST_WITH_NUMBERS = 15
LEVELS = 10
DARKEST_ERROR = 0.2
"""At least this share of a class is the darkest error, so that one rare error is not."""
LONGEST_UPRIGHT = 5
"""Characters of a class name that still stands upright above its column."""


def heat_map(evaluation: Evaluation) -> dict[str, Any] | None:
    """Draw the table of an evaluation; None where it has too many classes to be read.

    Returns
    -------
    `columns`, the names of what is predicted, with a last one for `unclassified` items, if any;
    `rows`; `darkest_error`, the share of a true class that is drawn darkest where it is wrong, in
    words; whether there are `errors`, whether there is room for `numbers`, and whether the names
    of the columns are too long to stand upright, so that they are `turned`.
    """
    table, labels = evaluation.table, evaluation.labels
    if len(labels) > MOST_CLASSES:
        return None
    counts = _counts(evaluation)
    with np.errstate(all="ignore"):
        shares = np.nan_to_num(counts / table.support[:, None])
    wrong = shares.copy()
    np.fill_diagonal(wrong, 0.0)
    largest = float(wrong.max(initial=0.0))
    darkest = max(largest, DARKEST_ERROR)
    names = (*(isolated(shown(label)) for label in labels), "unclassified")[: counts.shape[1]]
    fits = len(names) <= MOST_WITH_NUMBERS
    return {
        "columns": names,
        "rows": [
            {
                "label": names[i],
                "cells": list(_cells(names, i, counts[i], shares[i], darkest)),
                "support": count(table.support[i]),
            }
            for i in range(len(labels))
        ],
        "unclassified": len(names) > len(labels),
        "darkest_error": decimal(darkest),
        "errors": largest > 0,
        "numbers": fits,
        "turned": max(map(len, names)) > (LONGEST_UPRIGHT if fits else 2),
    }


def _counts(evaluation: Evaluation) -> Array:
    """Return the cells, shape (k, k), or (k, k + 1) with unclassified items."""
    table, k = evaluation.table, len(evaluation.labels)
    rows, columns, items = table.cells.coordinates()
    counts = np.zeros((k, k))
    counts[rows, columns] = items
    if table.unclassified is None:
        return counts
    return np.column_stack((counts, table.unclassified))


def _cells(
    names: tuple[str, ...], row: int, items: Array, shares: Array, darkest: float
) -> Iterator[dict[str, str]]:
    """Yield the number of each cell, the class of its shade, and what it says."""
    for column, (name, number, share) in enumerate(
        zip(names, items.tolist(), shares.tolist(), strict=True)
    ):
        shade = "right" if row == column else "wrong"
        if not number:
            yield {"text": "", "shade": "right" if row == column else "", "words": ""}
            continue
        # Errors are rare: by the square root the small ones are seen beside the largest.
        part = share if row == column else sqrt(share / darkest)
        amount = count(number)
        words = f"{names[row]} predicted as {name}: {amount} items, {decimal(share)} of the class"
        yield {"text": amount, "shade": f"{shade} s{ceil(LEVELS * part)}", "words": words}
