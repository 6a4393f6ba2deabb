"""Change map: how the shares of the true classes moved from one table to another, as a heat map."""

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rprime.core.arrays import Array
from rprime.report.decimals import MINUS, bound, count, decimal, signed
from rprime.report.heat_map import (
    DARKEST_ERROR,
    LEVELS,
    LONGEST_UPRIGHT,
    MOST_CLASSES,
    MOST_WITH_NUMBERS,
)
from rprime.report.names import isolated, shown
from rprime.store import StoredEvaluation


def change_map(candidate: StoredEvaluation, baseline: StoredEvaluation) -> dict[str, Any] | None:
    """Draw candidate minus baseline, cell by cell, in shares of the true class.

    Returns
    -------
    The members of `heat_map`; how many classes are `common` to both, and `darkest`, the change
    that is drawn darkest. Shown are the classes whose rows and columns moved most. None where
    nothing moved.
    """
    labels = [label for label in candidate.labels if label in set(baseline.labels)]
    after, before = (_shares(side, labels) for side in (candidate, baseline))
    moved = abs(after - before)
    total = moved.sum(axis=1) + moved[:, : len(labels)].sum(axis=0)
    places = np.sort(np.argsort(-total, kind="stable")[:MOST_CLASSES])
    places = places[total[places] > 0]
    if not places.size:
        return None
    tables = (candidate.table, baseline.table)
    silent = [len(labels)] if any(table.unclassified is not None for table in tables) else []
    names = (*(isolated(shown(labels[i])) for i in places), *["unclassified"][: len(silent)])
    cells = np.ix_(places, [*places, *silent])
    new, old = after.tocsr()[cells].toarray(), before.tocsr()[cells].toarray()
    darkest = max(float(abs(new - old).max()), DARKEST_ERROR)
    fits = len(names) <= MOST_WITH_NUMBERS
    number = {label: i for i, label in enumerate(candidate.labels)}
    return {
        "columns": names,
        "rows": [
            {
                "label": names[row],
                "cells": list(_cells(names, row, new[row], old[row], darkest)),
                "support": count(candidate.table.support[number[labels[place]]]),
            }
            for row, place in enumerate(places)
        ],
        "unclassified": bool(silent),
        "darkest": bound(darkest),
        "numbers": fits,
        "turned": max(map(len, names)) > (LONGEST_UPRIGHT if fits else 2),
        "common": len(labels),
    }


def _shares(side: StoredEvaluation, labels: list[str]) -> csr_array:
    """Return shares of the true class, shape (k, k + 1); unclassified items are the last column."""
    table, k = side.table, len(labels)
    numbers = {label: i for i, label in enumerate(labels)}
    number = np.array([numbers.get(label, -1) for label in side.labels])
    rows, columns, items = table.cells.coordinates()
    if table.unclassified is not None:
        rows = np.concatenate((rows, np.arange(number.size)))
        columns = np.concatenate((columns, np.full(number.size, number.size)))
        items = np.concatenate((items, table.unclassified))
    true, predicted = number[rows], np.append(number, k)[columns]
    kept = (true >= 0) & (predicted >= 0) & (items > 0)
    shares = items[kept] / table.support[rows[kept]]
    return csr_array((shares, (true[kept], predicted[kept])), shape=(k, k + 1))


def _cells(
    names: tuple[str, ...], row: int, new: Array, old: Array, darkest: float
) -> Iterator[dict[str, str]]:
    """Yield the change of each cell in percentage points, its shade, and what it says."""
    for column, (name, after, before) in enumerate(
        zip(names, new.tolist(), old.tolist(), strict=True)
    ):
        change = after - before
        if not change:
            yield {"text": "", "shade": "", "words": ""}
            continue
        # Rounded, so that equal changes are equally dark.
        level = ceil(round(LEVELS * abs(change) / darkest, 9))
        shade = "right" if (row == column) == (change > 0) else "wrong"
        yield {
            "text": f"{'+' if change > 0 else MINUS}{100 * abs(change):.1f}",
            "shade": f"{shade} s{max(level, 1)}",
            "words": f"{names[row]} predicted as {name}: {decimal(before)} to {decimal(after)} "
            f"of the class, {signed(change)}",
        }
