"""Heat map: the confusion table as rows of shaded cells."""

from collections.abc import Callable, Sequence
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

Cell = tuple[str, str, str]
"""What stands in a cell, the class of its shade, and what it says of its items, if any."""


def shaded_table(
    labels: Sequence[str], support: Array, cell: Callable[[int, int], Cell], *, unclassified: bool
) -> dict[str, Any]:
    """Lay out a heat map whose cells are drawn by `cell`, a function of row and column.

    Returns
    -------
    `columns`, the names of what is predicted, with a last one for `unclassified` items, if any;
    `rows`; whether there is room for `numbers`, and whether the names of the columns are too long
    to stand upright, so that they are `turned`.
    """
    names = [*(isolated(shown(label)) for label in labels), *["unclassified"] * unclassified]

    def drawn(row: int, column: int) -> dict[str, str]:
        text, shade, words = cell(row, column)
        said = words and f"{names[row]} predicted as {names[column]}: {words}"
        return {"text": text, "shade": shade, "words": said}

    fits = len(names) <= MOST_WITH_NUMBERS
    return {
        "columns": names,
        "rows": [
            {
                "label": names[row],
                "cells": [drawn(row, column) for column in range(len(names))],
                "support": count(items),
            }
            for row, items in enumerate(support.tolist())
        ],
        "unclassified": unclassified,
        "numbers": fits,
        "turned": max(map(len, names)) > (LONGEST_UPRIGHT if fits else 2),
    }


def heat_map(evaluation: Evaluation) -> dict[str, Any] | None:
    """Draw the table of an evaluation; None where it has too many classes to be read.

    Returns
    -------
    The members of `shaded_table`; `darkest_error`, the share of a true class that is drawn darkest
    where it is wrong, in words; and whether there are `errors`.
    """
    table, labels = evaluation.table, evaluation.labels
    if len(labels) > MOST_CLASSES:
        return None
    rows, columns, items = table.cells.coordinates()
    counts = np.zeros((len(labels), len(labels)))
    counts[rows, columns] = items
    if table.unclassified is not None:
        counts = np.column_stack((counts, table.unclassified))
    with np.errstate(all="ignore"):
        shares = np.nan_to_num(counts / table.support[:, None])
    wrong = shares.copy()
    np.fill_diagonal(wrong, 0.0)
    largest = float(wrong.max(initial=0.0))
    darkest = max(largest, DARKEST_ERROR)

    def cell(row: int, column: int) -> Cell:
        number, share, right = float(counts[row, column]), float(shares[row, column]), row == column
        if not number:
            return "", "right" if right else "", ""
        # Errors are rare: by the square root the small ones are seen beside the largest.
        part = share if right else sqrt(share / darkest)
        shade = f"{'right' if right else 'wrong'} s{ceil(LEVELS * part)}"
        return count(number), shade, f"{count(number)} items, {decimal(share)} of the class"

    found = shaded_table(labels, table.support, cell, unclassified=table.unclassified is not None)
    return {**found, "darkest_error": decimal(darkest), "errors": largest > 0}
