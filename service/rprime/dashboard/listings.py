"""Listings: evaluations with values, in words and marks, as the pages list them."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.index import Index
from rprime.history.series import Measured, Point
from rprime.report.class_selection import Order
from rprime.report.marks import Axis, common_axis, mark_of
from rprime.report.measures import Measure, Remark
from rprime.report.subject import evaluation_name
from rprime.report.text import decimal, explained, shown, span
from rprime.report.verdicts import HEADLINES as VERDICTS
from rprime.report.view import term
from rprime.store import (
    Alias,
    EvaluationMissingError,
    EvaluationSummary,
    Filters,
    InvalidCursorError,
    Store,
)

if TYPE_CHECKING:
    from rprime.core.gates.results import GateVerdict

HEADLINES = ("r_prime", "macro_f1", "kappa")
"""Overall indices that a page shows of every evaluation, of those of a list by HTTP.

Accuracy is left out: it is mostly the same number as R'."""
MOST_SORTED = 10_000
"""Of the newest evaluations: the others are left out of a list that is not by time."""

NEWEST_FIRST = Order("-date")
"""The order of the store. Others are by "model", "version", "verdict" or the key of an index."""
ListingRow = tuple[EvaluationSummary, tuple[Point, ...]]
"""An evaluation with a value for each of the `HEADLINES`."""
CLASSIFIED_ONLY = Remark("classified", "only on the classified items")
OTHER_OPTIONS = Remark("options", "with beta, cell_weights or undefined of its request")
_NAMED = {
    "date": attrgetter("evaluation"),
    "model": attrgetter("model"),
    "version": attrgetter("version"),
    "verdict": attrgetter("verdict"),
}


def listing(
    store: Store, project: str, filters: Filters, order: Order, *, limit: int, cursor: str | None
) -> tuple[list[ListingRow], str | None]:
    """List evaluations with their headline indices, and say where the next part starts. It reads.

    Raises an `InvalidCursorError` if no part of the list gave the cursor.
    """
    if order == NEWEST_FIRST:
        page = store.page(project, filters, limit=limit, cursor=cursor)
        return _rows(store, project, filters, page.items), page.next_cursor
    by_index = order.by not in _NAMED
    measured = Measured.of(order.by if by_index else HEADLINES[0], None)
    points = measured.points(store, project, filters, MOST_SORTED)
    # Of equal ones the newest comes first.
    newest_first = sorted(points, key=attrgetter("evaluation"), reverse=True)
    value = _NAMED.get(order.by, attrgetter("value"))
    ids = [point.evaluation for point in order.sorted(newest_first, value)]
    if cursor is not None and cursor not in ids:
        raise InvalidCursorError
    start = 0 if cursor is None else ids.index(cursor) + 1
    chosen = ids[start : start + limit]
    following = chosen[-1] if start + limit < len(ids) else None
    summaries = store.page(project, Filters(ids=tuple(chosen)), limit=limit).items
    by_id = {summary.id: summary for summary in summaries}
    # One may have been deleted in between.
    stored = tuple(by_id[identifier] for identifier in chosen if identifier in by_id)
    return _rows(store, project, filters, stored), following


def _rows(
    store: Store, project: str, filters: Filters, summaries: tuple[EvaluationSummary, ...]
) -> list[ListingRow]:
    named = Filters(ids=tuple(summary.id for summary in summaries), slice=filters.slice)
    columns = []
    for key in HEADLINES:
        points = Measured.of(key, None).points(store, project, named, len(summaries))
        columns.append({point.evaluation: point for point in points})
    return [
        (summary, tuple(column[summary.id] for column in columns))
        for summary in summaries
        if summary.id in columns[0]
    ]


def listing_entry(summary: EvaluationSummary) -> dict[str, Any]:
    """Describe an evaluation of a list; names are those that were given, or empty."""
    named = ("model", "version", "branch", "test_set")
    return {
        **{name: shown(getattr(summary, name) or "") for name in named},
        "id": summary.id,
        "name": shown(evaluation_name(summary.model, summary.version, summary.created_at)),
        "moment": summary.created_at,
        "time": f"{summary.created_at:%Y-%m-%d %H:%M}",
        "tags": [shown(tag) for tag in summary.tags],
        "key": summary.verdict,
        "verdict": VERDICTS.get(cast("GateVerdict | None", summary.verdict), VERDICTS[None]),
        "waived": summary.waived,
    }


def listing_table(rows: Sequence[ListingRow]) -> dict[str, Any]:
    """Put evaluations into words and marks; all marks of an index have one axis."""
    indices = [OVERALL_INDICES[key] for key in HEADLINES]
    measured = [list(map(measure_of, indices, points)) for _, points in rows]
    axes = [common_axis(column) for column in zip(*measured, strict=True)] or [Axis(0, 1)] * len(
        HEADLINES
    )
    columns = [{"term": term(i), "ends": axis.ends} for i, axis in zip(indices, axes, strict=True)]
    return {
        "columns": columns,
        "rows": [
            (listing_entry(summary), list(map(cell_of, of_row, axes)))
            for (summary, _), of_row in zip(rows, measured, strict=True)
        ],
        "legend": legend_of(measure for of_row in measured for measure in of_row),
    }


def legend_of(measures: Iterable[Measure]) -> str:
    """Explain the marks beside values; empty without any."""
    remarks = dict.fromkeys(remark for measure in measures for remark in measure.remarks)
    return "; ".join(f"{remark.mark} {remark.before}" for remark in remarks)


def cell_of(measure: Measure, axis: Axis) -> dict[str, Any]:
    """Put a value into words, and place it on an axis."""
    return {
        "value": f"{decimal(measure.value)}{measure.marks}",
        "interval": "" if measure.low is None else span(measure.low, measure.high),
        "why": explained(measure.reason) if measure.value is None and measure.reason else "",
        "mark": mark_of(measure, axis),
    }


def pointers(store: Store, aliases: Iterable[Alias]) -> list[dict[str, Any]]:
    """Return aliases, each with the entry that it points at, if that is there."""
    entries = []
    for alias in aliases:
        entry = None
        with suppress(EvaluationMissingError):
            evaluation = store.get(alias.evaluation)
            entry = listing_entry(evaluation) if evaluation.project == alias.project else None
        entries.append({"name": shown(alias.name), "alias": alias, "entry": entry})
    return entries


def pointing(aliases: Sequence[Alias]) -> dict[str, list[str]]:
    """Return the names of the aliases that point at each evaluation."""
    names: dict[str, list[str]] = {}
    for alias in aliases:
        names.setdefault(alias.evaluation, []).append(shown(alias.name))
    return names


def measure_of(index: Index, point: Point) -> Measure:
    """Return the value of a stored evaluation as a rendering shows it."""
    low, high = point.interval or (None, None)
    conditions = {CLASSIFIED_ONLY: point.classified_only, OTHER_OPTIONS: bool(point.options)}
    remarks = tuple(remark for remark, holds in conditions.items() if holds)
    return Measure(index, point.value, low, high, point.reason, remarks=remarks)
