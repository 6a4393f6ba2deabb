"""CSV in long format: one line a value, safe to open in a spreadsheet."""

import re
from collections.abc import Iterator
from itertools import chain
from math import isfinite

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import REASONS
from rprime.report.measures import MeasureColumns, Measures, Remarks, remarks_of
from rprime.report.subject import ReportSubject
from rprime.report.text import shown
from rprime.schemas.gate import Delta

HEAD = (
    "scope,class,index,value,low,high,reason,baseline,change,change_low,change_high,change_reason,"
    "universe,excluded,counted_as_zero"
)
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def render_csv(subject: ReportSubject) -> str:
    """Render every value as CSV (RFC 4180), decimals with a point, nothing where undefined.

    Notes
    -----
    A class name that a spreadsheet would take for a formula gets an apostrophe before it, as
    OWASP advises. Numbers stay numbers, the class -1 too.
    """
    measures = Measures(subject)
    rows = chain([HEAD], _overall(measures), _classes(measures))
    return "\r\n".join(rows) + "\r\n"


def field(text: str) -> str:
    """Write foreign text as one field: no formula, no quote that ends it."""
    text = shown(text)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if re.search(r'[,"\r\n;]', text) else text


def csv_number(value: float | None) -> str:
    """Write a number with four decimals; nothing where it is not finite."""
    return "" if value is None or not isfinite(value) else f"{value:.4f}"


def csv_numbers(values: Array) -> list[str]:
    """Write many numbers at once: a report may have a hundred thousand."""
    finite = np.where(np.isfinite(values), values, np.nan).tolist()
    return ["" if value != value else f"{value:.4f}" for value in finite]  # noqa: PLR0124 (NaN)


def _overall(measures: Measures) -> Iterator[str]:
    comparison = measures.subject.comparison
    changes = {} if comparison is None else comparison.overall
    for key, measure in measures.overall.items():
        cells = (*map(csv_number, (measure.value, measure.low, measure.high)), measure.reason)
        parts = (*cells, _delta(changes.get(key)), *_left_out(measure.remarks))
        yield ",".join(("overall", "", key, *parts))


def _left_out(remarks: Remarks) -> tuple[str, str, str]:
    """Write which items the value is of, and how many classes count otherwise."""
    classes = {remark.kind: str(remark.classes) for remark in remarks}
    universe = "classified" if "classified" in classes else "all"
    return universe, classes.get("excluded", ""), classes.get("counted_as_zero", "")


def _classes(measures: Measures) -> Iterator[str]:
    """Write the classes one after the other, each with its counts and every index."""
    columns = measures.columns(measures.class_indices)
    counts = [
        [f"{name},{value:.4f},,,,,,,,,all,," for value in margin.tolist()]
        for name, margin in zip(("support", "predicted", "correct"), measures.margins, strict=True)
    ]
    told = remarks_of(measures.subject.evaluation)
    ends = [",".join(_left_out(told(entry))) for entry in columns.indices]
    comparison = measures.subject.comparison
    indices = _written(columns, {} if comparison is None else comparison.per_class, ends)
    for label, *rows in zip(columns.labels, *counts, *indices, strict=True):
        opening = f"class,{field(label)},"
        yield from (opening + row for row in rows)


def _written(
    columns: MeasureColumns, changes: dict[str, dict[str, Delta]], ends: list[str]
) -> Iterator[list[str]]:
    """Write, for each index, what follows the class in the line of every class."""
    reasons = np.array(REASONS, dtype=object)[columns.reasons]
    parts = (columns.values, columns.low, columns.high)
    for row, (entry, end) in enumerate(zip(columns.indices, ends, strict=True)):
        cells = zip(*(csv_numbers(part[row]) for part in parts), reasons[row].tolist(), strict=True)
        deltas = (_delta(changes.get(label, {}).get(entry.key)) for label in columns.labels)
        yield [
            f"{entry.key},{value},{low},{high},{reason},{delta},{end}"
            for delta, (value, low, high, reason) in zip(deltas, cells, strict=True)
        ]


def _delta(delta: Delta | None) -> str:
    if delta is None:
        return ",,,,"
    parts = (delta.baseline, delta.value, *(delta.interval or (None, None)))
    return ",".join((*map(csv_number, parts), delta.reason or ""))
