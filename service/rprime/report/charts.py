"""Charts: the numbers that the script of the pages draws, to be embedded beside the words."""

from typing import Any

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.attribution import HEADLINES
from rprime.core.comparison.costs import costs
from rprime.core.evaluate import Evaluation
from rprime.report.measures import Measures
from rprime.report.names import isolated, shown
from rprime.report.subject import ReportSubject

MOST_CELLS = 5_000
"""The largest errors; of hundreds of classes nobody sees more."""
DIGITS = 7
"""Pages show four decimals; what they add up has some more."""


def charts_of(subject: ReportSubject) -> dict[str, Any]:
    """Return the data of all charts of an evaluation; NaN stays."""
    measures, evaluation = Measures(subject), subject.evaluation
    table = evaluation.table
    return {
        "labels": [isolated(shown(label)) for label in evaluation.labels],
        "support": _short(table.support),
        "predicted": _short(table.predicted),
        "correct": _short(table.correct),
        "unclassified": None if table.unclassified is None else _short(table.unclassified),
        "errors": _errors(evaluation),
        "indices": _indices(measures),
        "costs": _costs(evaluation),
    }


def _errors(evaluation: Evaluation) -> dict[str, Any]:
    true, predicted, items = evaluation.table.cells.largest_errors(MOST_CELLS)
    return {"true": true.tolist(), "predicted": predicted.tolist(), "items": _short(items)}


def _indices(measures: Measures) -> list[dict[str, Any]]:
    found = measures.columns(measures.class_headlines)
    columns = zip(found.indices, found.values, found.low, found.high, strict=True)
    return [
        {
            "key": index.key,
            "name": index.name,
            "range": [end if np.isfinite(end) else None for end in index.range],
            "values": _short(values),
            "low": _short(low),
            "high": _short(high),
        }
        for index, values, low, high in columns
    ]


def _costs(evaluation: Evaluation) -> dict[str, Any]:
    found = costs(evaluation.table, HEADLINES)
    overall = zip(found.overall, found.right, found.wrong, found.silent, strict=True)
    per_class = zip(found.per_class, found.missed, found.taken, strict=True)
    return {
        "overall": [
            {"name": index.name, "right": right, "wrong": wrong, "silent": silent}
            for index, *parts in overall
            for right, wrong, silent in [map(_precise, parts)]
        ],
        "per_class": [
            {"name": index.name, "missed": missed, "taken": taken}
            for index, *parts in per_class
            for missed, taken in [map(_precise, parts)]
        ],
    }


def _short(numbers: Array) -> list[float]:
    found: list[float] = np.round(numbers, DIGITS).tolist()
    return found


def _precise(numbers: Array) -> list[float]:
    """Round to significant digits: one item among millions costs little."""
    found: list[float] = [float(f"{number:.{DIGITS}g}") for number in numbers.tolist()]
    return found
