"""The trend of one index over the evaluations of a project."""

from collections.abc import Iterator
from typing import Any

import orjson

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
        measured.refuse_unknown_class(store, project, filters)
    document = {
        "index": measured.index.key,
        "class": measured.label,
        "items": list(_items(columns)),
    }
    return orjson.dumps(document, option=orjson.OPT_NAIVE_UTC)


def _items(columns: Columns) -> Iterator[dict[str, Any]]:
    evaluations, _, versions, _, verdicts, values, intervals, reasons = columns
    moments = ids.creation_times(evaluations)
    rows = zip(evaluations, versions, moments, values, intervals, verdicts, reasons, strict=True)
    for evaluation, version, created_at, value, interval, verdict, reason in rows:
        item = {
            "evaluation": evaluation,
            "version": version,
            "created_at": created_at,
            "value": value,
            "interval": interval,
            "verdict": verdict,
        }
        if reason:
            item["reason"] = reason
        yield item
