"""Model history: a model over its versions, as its page shows it in words and charts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from rprime.core.arrays import Array
from rprime.dashboard.compare_view import CompareQuery
from rprime.dashboard.tables import cell_of, entry_of, legend_of, measure_of
from rprime.history.series import Measured, filters_of
from rprime.history.stored_values import values_of_classes
from rprime.report.decimals import decimal, signed
from rprime.report.history_charts import (
    MOST_FALLEN,
    ClassHistory,
    FigureStep,
    TrendChart,
    course_of,
)
from rprime.report.marks import axis_of
from rprime.report.names import isolated, shown
from rprime.report.view import term
from rprime.schemas.fields import IndexKey
from rprime.schemas.history import Narrowed, Prevalence
from rprime.store import Filters, Store

MOST_STEPS = 200
"""What a list of the store has at most."""
ITEMS = "about the items"


class ModelQuery(Narrowed):
    """What is shown of a model: an index of its classes and an overall index."""

    index: IndexKey = "r_prime"
    overall: IndexKey = "macro_f1"
    limit: Annotated[int, Field(ge=2, le=MOST_STEPS)] = 40
    spacing: Literal["versions", "dates"] = "versions"
    """Whether the versions of a chart have equal distances, or lie at their dates."""
    prevalence: Prevalence = None
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
    uniform = query.prevalence is not None
    trend = Measured.of(query.overall, None, uniform=uniform)
    points = trend.points(store, project, filters_of(query), query.limit)
    named = Filters(ids=tuple(point.evaluation for point in points), slice=query.slice)
    series = values_of_classes(
        store, project, named, newest=query.limit, indices=[index], uniform=uniform
    )
    summaries = store.page(project, named, limit=query.limit).items
    verdicts = {summary.id: summary.verdict for summary in summaries}
    entries = {summary.id: entry_of(summary) for summary in summaries}
    # One may have been deleted in between.
    ids = [i for i in series.ids if i in entries and any(p.evaluation == i for p in points)]
    stored = [series.ids.index(identifier) for identifier in ids]
    values = series.of_classes(index)[stored]
    chosen = [point for point in points if point.evaluation in set(ids)]
    steps = [entries[identifier] for identifier in ids]
    drawn = tuple(FigureStep(e["version"] or e["time"], verdicts[e["id"]]) for e in steps)
    falling = index.higher_is_better is False
    classes = ClassHistory(
        index.name, drawn, series.labels, values, falling=falling, within=index.range
    )
    measures = [measure_of(trend.index, point) for point in chosen]
    numbers = [(m.value, m.low, m.high) for m in measures]
    course = course_of(trend.index.name, 0, np.arange(len(numbers)), numbers, lone=True)
    axis = axis_of(measures)
    return {
        "index": term(index),
        "overall": term(trend.index),
        "axis": axis.ends,
        "steps": [
            {
                "entry": entry,
                "cell": cell_of(measure, axis),
                "lowest": ("", "") if at is None else (shown(series.labels[at]), decimal(row[at])),
            }
            for entry, measure, row, at in zip(steps, measures, values, classes.worst, strict=True)
        ][::-1],
        "legend": legend_of(measures),
        "classes": len(series.labels),
        "about_items": ITEMS,
        "populations": list(dict.fromkeys(point.population or ITEMS for point in chosen)),
        "lines": _lines(classes, ids, query),
        "fallen": _fallen(classes),
        "charts": {
            "spacing": query.spacing,
            "steps": [_step(entry, aliases.get(entry["id"], [])) for entry in steps],
            "index": index.name,
            "trend": TrendChart("", "", drawn, (course,), trend.index.range).data(),
            **classes.data(),
        },
    }


def _step(entry: dict[str, Any], aliases: Sequence[str]) -> dict[str, Any]:
    return {
        "id": entry["id"],
        "name": isolated(entry["version"] or entry["time"]),
        "time": entry["time"],
        "milliseconds": round(1000 * entry["moment"].timestamp()),
        "verdict": entry["verdict"].word,
        "aliases": [isolated(alias) for alias in aliases],
    }


def _lines(
    history: ClassHistory, ids: Sequence[str], query: ModelQuery
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the values of classes, newest first, each with the way to its change."""

    def change(label: str, at: int) -> str:
        if not at:
            return ""
        sides: dict[str, Any] = {
            "candidate": ids[at],
            "baseline": ids[at - 1],
            "slice": dict(query.slice),
        }
        sides |= {"prevalence": query.prevalence} if query.prevalence else {}
        return CompareQuery.model_validate(sides).row(label)

    def newest_first(values: Array) -> list[tuple[int, float]]:
        return list(enumerate(values.tolist()))[::-1]

    return [
        (
            shown(one.name),
            [(decimal(value), change(one.name, at)) for at, value in newest_first(one.values)],
        )
        for one in history.series
    ]


def _fallen(history: ClassHistory) -> list[tuple[str, str]]:
    """Name the classes that fell most since the version before, with their changes."""
    good, labels = history.good, history.labels
    if len(good) < 2:  # noqa: PLR2004 (a change)
        return []
    changes = good[-1] - good[-2]
    order = np.argsort(changes, kind="stable")[:MOST_FALLEN].tolist()
    return [(shown(labels[i]), signed(float(changes[i]))) for i in order if changes[i] < 0]
