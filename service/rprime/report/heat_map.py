"""Heat map: the confusion table as rows of shaded cells, for pages and files alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.quantities import plural
from rprime.report.text import count, decimal, isolated, shown

MOST_DRAWN = 40
"""Classes of a chart: those with most errors; of hundreds nobody sees more."""
MOST_CLASSES = 30
"""Of an HTML table, which has a cell for each two of them."""
MOST_WITH_NUMBERS = 15
LEVELS = 10
POWERS = {"right": 1.0, "wrong": 0.5}
"""A shade is this power of a share: errors are rare, and their roots show the small ones."""
TINTS = (0.1, 0.62)
"""Parts of the hue in the lightest and in the darkest shade, on which ink is still read."""
LONGEST_UPRIGHT = 5
"""Characters of a class name that still stands upright above its column."""

Cell = tuple[str, str, str]
"""What stands in a cell, the class of its shade, and what it says of its items, if any."""


@dataclass(frozen=True, eq=False)
class ConfusionChart:
    """What a heat map shows of a table: of all its classes, those at some `places`.

    Parameters
    ----------
    counts
        Shape (n, n), or (n, n + 1) with unclassified items.
    support, predicted
        Items and predictions of each class, shape (n,).
    total
        Number of classes there are.
    """

    places: Array
    labels: tuple[str, ...]
    counts: Array
    support: Array
    predicted: Array
    total: int

    @classmethod
    def of(cls, evaluation: Evaluation) -> "ConfusionChart":
        """Take all classes of a table or, of many, those with most errors."""
        table, k = evaluation.table, len(evaluation.labels)
        wrong = table.support + table.predicted - 2 * table.correct
        places = np.sort(np.argsort(-wrong, kind="stable")[:MOST_DRAWN])
        number = np.full(k, -1)
        number[places] = np.arange(places.size)
        rows, columns, items = table.cells.coordinates()
        true, predicted = number[rows], number[columns]
        kept = (true >= 0) & (predicted >= 0)
        counts = np.zeros((places.size, places.size))
        counts[true[kept], predicted[kept]] = items[kept]
        if table.unclassified is not None:
            counts = np.column_stack((counts, table.unclassified[places]))
        labels = tuple(evaluation.labels[place] for place in places)
        return cls(places, labels, counts, table.support[places], table.predicted[places], k)

    @property
    def unclassified(self) -> bool:
        """Whether the last column is of items without a prediction."""
        return bool(self.counts.shape[1] > len(self.labels))

    @property
    def shares(self) -> Array:
        """Parts of the true class, of the shape of `counts`; 0 of a class without items."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(self.counts / self.support[:, None])

    @property
    def left_out(self) -> str:
        """Say which classes are shown where not all are."""
        if len(self.labels) == self.total:
            return ""
        return f"Shown are the {len(self.labels)} of {self.total:,} classes with most errors."


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
        sentence = words and f"{names[row]} predicted as {names[column]}: {words}"
        return {"text": text, "shade": shade, "words": sentence}

    fits, rows = len(names) <= MOST_WITH_NUMBERS, []
    for row, items in enumerate(support.tolist()):
        cells = [drawn(row, column) for column in range(len(names))]
        rows.append({"label": names[row], "cells": cells, "support": count(items)})
    turned = max(map(len, names)) > (LONGEST_UPRIGHT if fits else 2)
    table = {"columns": names, "rows": rows, "unclassified": unclassified}
    return {**table, "numbers": fits, "turned": turned}


def heat_map(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what `shaded_table` does, and totals, `predicted`; None of too many classes."""
    if len(evaluation.labels) > MOST_CLASSES:
        return None
    chart = ConfusionChart.of(evaluation)
    shares = chart.shares

    def cell(row: int, column: int) -> Cell:
        number, share = float(chart.counts[row, column]), float(shares[row, column])
        kind = "right" if row == column else "wrong"
        if not number:
            return "", kind if row == column else "", ""
        shade = f"{kind} s{ceil(LEVELS * share ** POWERS[kind])}"
        return count(number), shade, f"{plural(number, 'item')}, {decimal(share)} of the class"

    table = shaded_table(chart.labels, chart.support, cell, unclassified=chart.unclassified)
    totals = [*chart.predicted, *chart.counts[:, len(chart.labels) :].sum(axis=0)]
    return {**table, "predicted": [count(float(items)) for items in totals]}
