"""The trend of one index over the evaluations of a project."""

from collections.abc import Iterator
from typing import Any

import orjson

from rprime.core.gates.sliced import Slice
from rprime.history.series import Columns, Measured
from rprime.store import Filters, Store, ids


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
    anchors = _values_of_anchors(store, project, measured, columns, filters.slice)
    document = {
        "index": measured.index.key,
        "class": measured.label,
        "slice": dict(filters.slice) or None,
        "items": list(_items(columns, anchors)),
    }
    return orjson.dumps(document, option=orjson.OPT_NAIVE_UTC)


def _values_of_anchors(
    store: Store, project: str, measured: Measured, columns: Columns, one: Slice
) -> dict[str, float | None]:
    """Compute the values of the anchors by id, like all others from their tables."""
    anchors = tuple(set(filter(None, columns[5])))
    if not anchors:
        return {}
    found = measured.points(store, project, Filters(ids=anchors, slice=one), len(anchors))
    return {point.evaluation: point.value for point in found}


_MEMBERS = (
    "evaluation",
    "model",
    "version",
    "created_at",
    "verdict",
    "anchor",
    "value",
    "interval",
)


def _items(columns: Columns, anchors: dict[str, float | None]) -> Iterator[dict[str, Any]]:
    evaluations, models, versions, _, verdicts, anchored, *measured, _, populations = columns
    moments = ids.creation_times(evaluations)
    parts = (evaluations, models, versions, moments, verdicts, anchored, *measured, populations)
    for row in zip(*parts, strict=True):
        item = dict(zip((*_MEMBERS, "reason", "population"), row, strict=True))
        anchor = item.pop("anchor")
        for name in ("reason", "population"):
            if not item[name]:
                del item[name]
        if anchor is not None:
            then, value = anchors.get(anchor), item["value"]
            item["since_anchor"] = None if value is None or then is None else value - then
        yield item
