"""Show a report: in a terminal with rich, in a notebook as HTML."""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import ConsoleRenderable, Group
from rich.table import Table
from rich.text import Text

from rprime.report.decimals import count, decimal, span
from rprime.report.measures import CLASS_HEADLINES, OVERALL_HEADLINES
from rprime.report.names import clipped, isolated, shown
from rprime.report.remarks import MARKS

if TYPE_CHECKING:
    from rprime.client.report import Report
    from rprime.client.values import Values

MOST_CLASSES = 20
MOST_WARNINGS = 10
MOST_INSTEAD = 6
"""Most indices shown if a request asked for none of the headlines."""
LONGEST_NAME = 60

Row = list[str]


def overview(report: "Report") -> ConsoleRenderable:
    """Return a renderable of rich: the headlines, the classes, the warnings."""
    tables = [_table(title, columns, rows) for title, columns, rows in _tables(report)]
    return Group(Text(title_of(report), style="bold"), *tables, *map(Text, _remarks(report)))


def html(report: "Report") -> str:
    """Return HTML for a notebook; all foreign text is escaped and cannot reorder its line."""
    parts = [f"<p><strong>{escape(title_of(report))}</strong></p>"]
    for title, columns, rows in _tables(report):
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
        parts.append(
            f"<table><caption>{escape(title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    remarks = "".join(f"<li>{_text(remark)}</li>" for remark in _remarks(report))
    return "".join(parts) + (f"<ul>{remarks}</ul>" if remarks else "")


def title_of(report: "Report") -> str:
    """Describe the size of the evaluation and the verdict."""
    classes = len(report.labels)
    size = f"{classes:,} class{'' if classes == 1 else 'es'}, {count(report.counts.total)} items"
    return size if report.verdict is None else f"{report.verdict}: {size}"


def _tables(report: "Report") -> Iterator[tuple[str, Row, list[Row]]]:
    keys = _chosen(OVERALL_HEADLINES, report.overall)
    partial = _classified_only(report)
    rows = [[key, *_value(report.overall, key, partial)] for key in keys]
    yield "Overall", ["index", "value", "interval"], rows
    classes = list(islice(report.per_class.items(), MOST_CLASSES))
    keys = _chosen(CLASS_HEADLINES, classes[0][1])
    rows = [
        [_name(label), count(found.support), *(decimal(found[key].value) for key in keys)]
        for label, found in classes
    ]
    left = len(report.labels) - len(classes)
    title = f"Classes, the first {len(classes)} of {len(report.labels):,}" if left else "Classes"
    yield title, ["class", "support", *keys], rows


def _chosen(wanted: Iterable[str], values: "Values") -> list[str]:
    return [key for key in wanted if key in values] or list(islice(values, MOST_INSTEAD))


def _classified_only(report: "Report") -> set[str]:
    """Return the keys of the indices that leave unclassified items out."""
    return {key for note in report.notes if note.code == "classified_only" for key in note.indices}


def _value(values: "Values", key: str, partial: set[str]) -> tuple[str, str]:
    found = values[key]
    low, high = found.interval or (None, None)
    marks = MARKS["classified"] if key in partial else ""
    apart = found.excluded or found.excluded_elsewhere or found.counted_as_zero
    marks += MARKS["excluded"] if apart else ""
    value = f"{found.reason}" if found.value is None else f"{decimal(found.value)}{marks}"
    return value, span(low, high)


def _remarks(report: "Report") -> Iterator[str]:
    if _classified_only(report).intersection(report.overall):
        yield f"{MARKS['classified']} on the classified items alone"
    apart = [v for v in report.overall.values() if v.excluded or v.excluded_elsewhere]
    if apart or any(value.counted_as_zero for value in report.overall.values()):
        text = "without the classes in `excluded`, those in `counted_as_zero` with a precision of 0"
        yield f"{MARKS['excluded']} {text}"
    found = report.warnings
    for warning in found[:MOST_WARNINGS]:
        yield shown(f"{warning.code}: {warning.detail}")
    if len(found) > MOST_WARNINGS:
        yield f"and {len(found) - MOST_WARNINGS:,} more warnings"


def _name(label: str) -> str:
    return clipped(shown(label), LONGEST_NAME)


def _table(title: str, columns: Row, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", overflow="ellipsis")
    for first, *others in rows:
        table.add_row(Text(isolated(first)), *map(Text, others))
    return table


def _cells(row: Row) -> str:
    first, *others = row
    return f"<th>{_text(first)}</th>" + "".join(f"<td>{escape(text)}</td>" for text in others)


def _text(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"
