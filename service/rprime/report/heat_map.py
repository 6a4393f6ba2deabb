"""Heat map: what it shows of a confusion table, for pages and files alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.report.measures import counted_noun
from rprime.report.text import count, isolated, shown

MOST_DRAWN = 40
"""Classes of a chart: those with most errors; of hundreds nobody sees more."""
MOST_CLASSES = 30
"""Of an HTML table, which has a cell for each two of them."""
LEVELS = 10
POWERS = {"right": 1.0, "wrong": 0.5}
"""A shade is this power of a share: errors are rare, and their roots show the small ones."""
TINTS = (0.1, 0.62)
"""Parts of the hue in the lightest and in the darkest shade, on which ink is still read."""


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
    weighted
        Whether the counts are weights.
    """

    places: Array
    labels: tuple[str, ...]
    counts: Array
    support: Array
    predicted: Array
    total: int
    weighted: bool

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
        margins = table.support[places], table.predicted[places]
        return cls(places, labels, counts, *margins, k, table.weighted)

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


def count_table(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the counts as a table; None of too many classes.

    `counted`, what it counts; `columns`, the names of what is predicted, with a last one for
    unclassified items, if any; `rows`, each with its name, its cells and its total; and the totals,
    `predicted`.
    """
    if len(evaluation.labels) > MOST_CLASSES:
        return None
    chart = ConfusionChart.of(evaluation)
    names = [isolated(shown(label)) for label in chart.labels]
    rows = zip(names, chart.counts.tolist(), chart.support.tolist(), strict=True)
    totals = [*chart.predicted, *chart.counts[:, len(chart.labels) :].sum(axis=0)]
    return {
        "counted": counted_noun(evaluation.table),
        "columns": [*names, *["unclassified"] * chart.unclassified],
        "rows": [(name, [count(n) if n else "" for n in row], count(n)) for name, row, n in rows],
        "predicted": [count(float(number)) for number in totals],
    }
