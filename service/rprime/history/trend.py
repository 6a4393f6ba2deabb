"""The trend of one index over the evaluations of a project."""

from collections.abc import Iterator
from typing import Any

import orjson

from rprime.history.series import Columns, Measured
from rprime.store import Filters, Store, ids

_SHOWN = ("evaluation", "model", "version", "created_at", "value", "interval", "verdict")


def trend_document(
    store: Store, project: str, measured: Measured, filters: Filters, newest: int
) -> bytes:
    """Return the series as JSON. Reads the store.

    Raises
    ------
    Problem
        404 if no evaluation has the class.
    """
    columns = measured.columns(store, project, filters, newest)
    if not columns[0]:
        measured.refuse_unknown(store, project, filters)
    anchors = Filters(ids=tuple(set(filter(None, columns[5]))), slice=filters.slice)
    # Like all others from their tables, now.
    found = measured.points(store, project, anchors, len(anchors.ids)) if anchors.ids else ()
    document = {
        "index": measured.index.key,
        "class": measured.label,
        "slice": dict(filters.slice) or None,
        "prevalence": "uniform" if measured.uniform else None,
        "items": list(_items(columns, {point.evaluation: point.value for point in found})),
    }
    return orjson.dumps(document, option=orjson.OPT_NAIVE_UTC)


def _items(columns: Columns, anchors: dict[str, float | None]) -> Iterator[dict[str, Any]]:
    evaluations, models, versions, _, verdicts, anchored, values, pairs, reasons, _, about = columns
    moments = ids.creation_times(evaluations)
    shown = zip(evaluations, models, versions, moments, values, pairs, verdicts, strict=True)
    for row, reason, population, anchor in zip(shown, reasons, about, anchored, strict=True):
        item: dict[str, Any] = dict(zip(_SHOWN, row, strict=True))
        if reason:
            item["reason"] = reason
        if population:
            item["population"] = population
        if anchor is not None:
            then, value = anchors.get(anchor), item["value"]
            item["since_anchor"] = None if value is None or then is None else value - then
        yield item
