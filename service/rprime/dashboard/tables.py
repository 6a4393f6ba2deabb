"""Tabulation: what the overview lists, in words and marks, ready for its templates."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.dashboard.listings import HEADLINES, ListingRow
from rprime.history.series import Point
from rprime.report.decimals import decimal, span
from rprime.report.marks import Axis, axis_of, mark_of
from rprime.report.measures import Measure
from rprime.report.names import shown
from rprime.report.reasons import explained
from rprime.report.remarks import Remark
from rprime.report.verdicts import HEADLINES as VERDICTS
from rprime.report.view import term
from rprime.store import Alias, EvaluationMissingError, EvaluationSummary, Store

if TYPE_CHECKING:
    from rprime.core.gates.result import GateVerdict


def entry_of(summary: EvaluationSummary) -> dict[str, Any]:
    """Describe an evaluation of a list; names are those that were given, or empty."""
    named = ("model", "version", "branch", "test_set")
    return {
        **{name: shown(getattr(summary, name) or "") for name in named},
        "id": summary.id,
        "moment": summary.created_at,
        "time": f"{summary.created_at:%Y-%m-%d %H:%M}",
        "tags": [shown(tag) for tag in summary.tags],
        "verdict": VERDICTS.get(cast("GateVerdict | None", summary.verdict), VERDICTS[None]),
        "waived": summary.waived,
    }


def table_of(rows: Sequence[ListingRow]) -> dict[str, Any]:
    """Put evaluations into words and marks; all marks of an index have one axis."""
    indices = [index for key in HEADLINES if (index := find("overall", key))]
    measured = [
        [measure_of(index, point) for index, point in zip(indices, points, strict=True)]
        for _, points in rows
    ]
    axes = [axis_of(column) for column in zip(*measured, strict=True)] or [Axis(0, 1)] * 3
    return {
        "columns": [
            {"term": term(index), "ends": axis.ends}
            for index, axis in zip(indices, axes, strict=True)
        ],
        "rows": [
            (entry_of(summary), list(map(cell_of, of_row, axes)))
            for (summary, _), of_row in zip(rows, measured, strict=True)
        ],
        "legend": legend_of(measure for of_row in measured for measure in of_row),
    }


def legend_of(measures: Iterable[Measure]) -> str:
    """Explain the mark of values on the classified items alone; empty where none has it."""
    marked = any(measure.marks for measure in measures)
    return f"{CLASSIFIED_ONLY.mark} {CLASSIFIED_ONLY.before}" if marked else ""


def cell_of(measure: Measure, axis: Axis) -> dict[str, Any]:
    """Put a value into words, and place it on an axis."""
    return {
        "value": f"{decimal(measure.value)}{measure.marks}",
        "interval": "" if measure.low is None else span(measure.low, measure.high),
        "why": explained(measure.reason) if measure.value is None and measure.reason else "",
        "mark": mark_of(measure, axis),
    }


def find_entry(store: Store, project: str, evaluation: str) -> dict[str, Any] | None:
    """Describe an evaluation of the project; None if there is no such one (any more)."""
    try:
        found = store.get(evaluation)
    except EvaluationMissingError:
        return None
    return entry_of(found) if found.project == project else None


def pointers(store: Store, project: str) -> list[dict[str, Any]]:
    """Return the aliases of a project, each with what it points at."""
    return [
        {
            "name": shown(alias.name),
            "alias": alias,
            "entry": find_entry(store, project, alias.evaluation),
        }
        for alias in store.aliases(project)
    ]


def pointing(aliases: Sequence[Alias]) -> dict[str, list[str]]:
    """Return the names of the aliases that point at each evaluation."""
    found: dict[str, list[str]] = {}
    for alias in aliases:
        found.setdefault(alias.evaluation, []).append(shown(alias.name))
    return found


def measure_of(index: Index, point: Point) -> Measure:
    """Return the value of a stored evaluation as a rendering shows it."""
    low, high = point.interval or (None, None)
    remarks = (CLASSIFIED_ONLY,) if point.classified_only else ()
    return Measure(index, point.value, low, high, point.reason, remarks=remarks)


CLASSIFIED_ONLY = Remark("classified", "on the classified items alone")
