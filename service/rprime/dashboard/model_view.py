"""Model history: a model over its versions, as its page shows it in words and charts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.studies.correlation import Box, box
from rprime.dashboard.compare_view import CompareQuery
from rprime.dashboard.tables import cell_of, entry_of, legend_of, measure_of
from rprime.history.series import Measured, filters_of
from rprime.history.stored_values import values_of_classes
from rprime.report.charts import DIGITS, finite_range
from rprime.report.decimals import decimal, signed
from rprime.report.marks import axis_of
from rprime.report.measures import Measure
from rprime.report.names import isolated, shown
from rprime.report.view import term
from rprime.schemas.fields import IndexKey
from rprime.schemas.history import Narrowed
from rprime.store import Filters, Store

MOST_STEPS = 200
"""What a list of the store has at most."""
MOST_LINES = 14
"""Classes up to which each has a line; of more, the weakest and those that fell most have one."""
MOST_WEAKEST = 5
MOST_FALLEN = 3


class ModelQuery(Narrowed):
    """What is shown of a model: an index of its classes and an overall index."""

    index: IndexKey = "r_prime"
    overall: IndexKey = "macro_f1"
    limit: Annotated[int, Field(ge=2, le=MOST_STEPS)] = 40
    spacing: Literal["versions", "dates"] = "versions"
    """Whether the versions of a chart have equal distances, or lie at their dates."""
    promoted: Annotated[str | None, Field(max_length=128)] = None


def model_history(
    store: Store, project: str, query: ModelQuery, aliases: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Measure a model over its versions, for the template. It reads.

    Parameters
    ----------
    aliases
        Names of the aliases that point at an evaluation, by its id.

    Raises
    ------
    Problem
        422 if there is no such index, or there are too many values.
    """
    # A class is only named so that an overall index is refused.
    index = Measured.of(query.index, "").index
    trend = Measured.of(query.overall, None)
    points = trend.points(store, project, filters_of(query), query.limit)
    named = Filters(ids=tuple(point.evaluation for point in points), slice=query.slice)
    series = values_of_classes(store, project, named, newest=query.limit, indices=[index])
    summaries = store.page(project, named, limit=query.limit).items
    entries = {summary.id: entry_of(summary) for summary in summaries}
    # One may have been deleted in between.
    ids = [i for i in series.ids if i in entries and any(p.evaluation == i for p in points)]
    stored = [series.ids.index(identifier) for identifier in ids]
    values = series.of_classes(index)[stored]
    chosen = [point for point in points if point.evaluation in set(ids)]
    steps = [entries[identifier] for identifier in ids]
    drawn = _drawn(index, values)
    measures = [measure_of(trend.index, point) for point in chosen]
    axis = axis_of(measures)
    return {
        "index": term(index),
        "overall": term(trend.index),
        "axis": axis.ends,
        "steps": [
            {
                "entry": entry,
                "cell": cell_of(measure, axis),
                "lowest": _lowest(series.labels, row, index),
            }
            for entry, measure, row in zip(steps, measures, values, strict=True)
        ][::-1],
        "legend": legend_of(measures),
        "classes": len(series.labels),
        "lines": _lines(series.labels, values, drawn, ids),
        "fallen": _fallen(series.labels, values * _sign(index)),
        "charts": {
            "spacing": query.spacing,
            "steps": [_step(entry, aliases.get(entry["id"], [])) for entry in steps],
            "trend": _trend(trend.index, measures),
            **_of_classes(index, series.labels, values, drawn),
        },
    }


def _step(entry: dict[str, Any], aliases: Sequence[str]) -> dict[str, Any]:
    return {
        "id": entry["id"],
        "name": isolated(entry["version"] or entry["time"]),
        "time": entry["time"],
        "milliseconds": round(1000 * entry["moment"].timestamp()),
        "verdict": entry["verdict"].word,
        "tone": entry["verdict"].tone,
        "aliases": [isolated(alias) for alias in aliases],
    }


def _trend(index: Index, measures: Sequence[Measure]) -> dict[str, Any]:
    return {
        "name": index.name,
        "range": finite_range(index),
        "values": [_short(m.value) for m in measures],
        "low": [_short(m.low) for m in measures],
        "high": [_short(m.high) for m in measures],
    }


def _of_classes(
    index: Index, labels: tuple[str, ...], values: Array, drawn: Sequence[int]
) -> dict[str, Any]:
    return {
        "index": {"name": index.name, "range": finite_range(index)},
        "classes": len(labels),
        "lines": [
            {
                "label": isolated(shown(labels[column])),
                "values": [_short(value) for value in values[:, column].tolist()],
            }
            for column in drawn
        ],
        "boxes": [_quartiles(box(row)) for row in values],
    }


def _lines(
    labels: tuple[str, ...], values: Array, drawn: Sequence[int], ids: Sequence[str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the values of classes, newest first, each with the way to its change."""

    def change(label: str, at: int) -> str:
        return CompareQuery(candidate=ids[at], baseline=ids[at - 1]).row(label) if at else ""

    newest_first = range(len(ids))[::-1]
    return [
        (
            shown(labels[column]),
            [
                (decimal(_short(float(values[at, column]))), change(labels[column], at))
                for at in newest_first
            ],
        )
        for column in drawn
    ]


def _fallen(labels: tuple[str, ...], good: Array) -> list[tuple[str, str]]:
    """Name the classes that fell most since the version before, with their changes."""
    if len(good) < 2:  # noqa: PLR2004 (a change)
        return []
    changes = good[-1] - good[-2]
    order = np.argsort(changes, kind="stable")[:MOST_FALLEN].tolist()
    return [(shown(labels[i]), signed(float(changes[i]))) for i in order if changes[i] < 0]


def _drawn(index: Index, values: Array) -> list[int]:
    """Choose the classes that have a line: all, or the weakest and those that fell most."""
    steps, classes = values.shape
    if classes <= MOST_LINES or not steps:
        return list(range(classes))
    good = values * _sign(index)
    weakest = np.argsort(good[-1], kind="stable")[:MOST_WEAKEST]
    fallen = np.argsort(good[-1] - good[-2], kind="stable") if steps > 1 else weakest
    others = [column for column in fallen.tolist() if column not in set(weakest.tolist())]
    return [*weakest.tolist(), *others[:MOST_FALLEN]]


def _lowest(labels: tuple[str, ...], row: Array, index: Index) -> tuple[str, str]:
    """Name the worst class of an evaluation, with its value."""
    if not np.isfinite(row).any():
        return "", ""
    worst = int(np.nanargmin(row * _sign(index)))
    return shown(labels[worst]), decimal(float(row[worst]))


def _sign(index: Index) -> int:
    return -1 if index.higher_is_better is False else 1


def _quartiles(found: Box | None) -> list[float | None] | None:
    if found is None:
        return None
    parts = (found.minimum, found.lower, found.median, found.upper, found.maximum)
    return [_short(part) for part in parts]


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else round(value, DIGITS)
