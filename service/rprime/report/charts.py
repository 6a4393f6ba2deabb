"""Charts: the numbers that the script of the pages draws, to be embedded beside the words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.attribution import HEADLINES
from rprime.core.comparison.costs import costs
from rprime.core.evaluate import Evaluation
from rprime.core.index import Index
from rprime.report.measures import Measures
from rprime.report.names import isolated, shown
from rprime.report.subject import ReportSubject

MOST_CLASSES = 40
"""Of the heat map: those with most errors; of hundreds nobody sees more."""
DIGITS = 7
"""Pages show four decimals; what they add up has some more."""


def charts_of(subject: ReportSubject, shown_first: Sequence[str], by: str) -> dict[str, Any]:
    """Return the data of all charts of an evaluation; NaN stays.

    Parameters
    ----------
    shown_first
        Names of the classes of the table, in its order: the charts beside it have the same.
    by
        The key of the index that orders them, if any.
    """
    measures, evaluation = Measures(subject), subject.evaluation
    table = evaluation.table
    places = _with_most_errors(evaluation)
    silent = table.unclassified
    return {
        "classes": len(evaluation.labels),
        "labels": [isolated(shown(evaluation.labels[i])) for i in places],
        "support": _short(table.support[places]),
        "predicted": _short(table.predicted[places]),
        "correct": _short(table.correct[places]),
        "unclassified": None if silent is None else _short(silent[places]),
        "errors": _errors(evaluation, places),
        "table": _table(measures, shown_first) | {"by": by},
        "costs": _costs(evaluation, places),
    }


def finite_range(index: Index) -> list[float | None]:
    """Return both ends of the range of an index; None for an end without a bound."""
    return [end if np.isfinite(end) else None for end in index.range]


def _with_most_errors(evaluation: Evaluation) -> Array:
    """Return the numbers of the classes of the heat map, in their order."""
    table = evaluation.table
    wrong = table.support + table.predicted - 2 * table.correct
    return np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])


def _errors(evaluation: Evaluation, places: Array) -> dict[str, Any]:
    """Return the errors among some classes, which are counted from 0."""
    rows, columns, items = evaluation.table.cells.coordinates()
    number = np.full(len(evaluation.labels), -1)
    number[places] = np.arange(places.size)
    true, predicted = number[rows], number[columns]
    kept = (true >= 0) & (predicted >= 0) & (true != predicted) & (items > 0)
    return {
        "true": true[kept].tolist(),
        "predicted": predicted[kept].tolist(),
        "items": _short(items[kept]),
    }


def _table(measures: Measures, labels: Sequence[str]) -> dict[str, Any]:
    """Return the values of the classes of the table, in its order."""
    found = measures.columns(measures.class_headlines)
    number = {label: i for i, label in enumerate(found.labels)}
    places = [number[label] for label in labels]
    columns = zip(found.indices, found.values, found.low, found.high, strict=True)
    indices = [
        {
            "key": index.key,
            "name": index.name,
            "range": finite_range(index),
            "values": _short(values[places]),
            "low": _short(low[places]),
            "high": _short(high[places]),
            "baseline": _baselines(measures, index.key, labels),
        }
        for index, values, low, high in columns
    ]
    return {
        "labels": [isolated(shown(label)) for label in labels],
        "support": _short(measures.margins[0][places]),
        "indices": indices,
    }


def _baselines(measures: Measures, key: str, labels: Sequence[str]) -> list[float | None]:
    """Return the values that classes are compared with; None for one without, as a new class."""
    known = {} if measures.changes is None else measures.changes.per_class.get(key, {})
    return [known[label].baseline if label in known else None for label in labels]


def _costs(evaluation: Evaluation, places: Array) -> dict[str, Any]:
    found = costs(evaluation.table, HEADLINES)
    overall = zip(found.overall, found.right, found.wrong, found.silent, strict=True)
    per_class = zip(found.per_class, found.missed, found.taken, strict=True)
    return {
        "overall": [
            {"name": index.name, "right": right, "wrong": wrong, "silent": silent}
            for index, *parts in overall
            for right, wrong, silent in [_precise(parts, places)]
        ],
        "per_class": [
            {"name": index.name, "missed": missed, "taken": taken}
            for index, *parts in per_class
            for missed, taken in [_precise(parts, places)]
        ],
    }


def _short(numbers: Array) -> list[float]:
    found: list[float] = np.round(numbers, DIGITS).tolist()
    return found


def _precise(parts: Sequence[Array], places: Array) -> list[list[float]]:
    """Round to significant digits: one item among millions costs little."""
    return [[float(f"{n:.{DIGITS}g}") for n in part[places].tolist()] for part in parts]
