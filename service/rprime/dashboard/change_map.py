"""Change map: how the shares of the true classes moved from one table to another, as a heat map."""

from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rprime.dashboard.class_query import ROWS
from rprime.report.decimals import MINUS, bound, decimal, signed
from rprime.report.heat_map import LEVELS, Cell, shaded_table
from rprime.store import StoredEvaluation

DARKEST_CHANGE = 0.2
"""At least this change of a share is the darkest, so that no small one is."""


def change_map(candidate: StoredEvaluation, baseline: StoredEvaluation) -> dict[str, Any] | None:
    """Draw candidate minus baseline, cell by cell, in shares of the true class.

    Returns
    -------
    The members of `shaded_table`; how many classes are `common` to both, and `darkest`, the change
    that is drawn darkest. Shown are the classes whose rows and columns moved most. None where
    nothing moved.
    """
    labels = [label for label in candidate.labels if label in set(baseline.labels)]
    after, before = (_shares(side, labels) for side in (candidate, baseline))
    moved = abs(after - before)
    total = moved.sum(axis=1) + moved[:, : len(labels)].sum(axis=0)
    places = np.sort(np.argsort(-total, kind="stable")[:ROWS])
    places = places[total[places] > 0]
    if not places.size:
        return None
    tables = (candidate.table, baseline.table)
    silent = [len(labels)] if any(table.unclassified is not None for table in tables) else []
    cells = np.ix_(places, [*places, *silent])
    new, old = after.tocsr()[cells].toarray(), before.tocsr()[cells].toarray()
    darkest = max(float(abs(new - old).max()), DARKEST_CHANGE)
    number = {label: i for i, label in enumerate(candidate.labels)}
    names = [labels[place] for place in places]

    def cell(row: int, column: int) -> Cell:
        then, now = float(old[row, column]), float(new[row, column])
        change = now - then
        if not change:
            return "", "", ""
        # Rounded, so that equal changes are equally dark.
        level = ceil(round(LEVELS * abs(change) / darkest, 9))
        shade = "right" if (row == column) == (change > 0) else "wrong"
        text = f"{'+' if change > 0 else MINUS}{100 * abs(change):.1f}"
        words = f"{decimal(then)} to {decimal(now)} of the class, {signed(change)}"
        return text, f"{shade} s{max(level, 1)}", words

    support = candidate.table.support[[number[name] for name in names]]
    found = shaded_table(names, support, cell, unclassified=bool(silent))
    return {**found, "darkest": bound(darkest), "common": len(labels)}


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
