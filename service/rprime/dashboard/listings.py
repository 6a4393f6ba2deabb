"""Overview: the evaluations of a project with values, as the pages list them."""

from operator import attrgetter

from rprime.history.series import Measured, Point
from rprime.report.class_selection import Order
from rprime.store import EvaluationSummary, Filters, InvalidCursorError, Store

HEADLINES = ("r_prime", "macro_f1", "kappa")
"""Overall indices that a list shows of every evaluation."""
MOST_SORTED = 10_000
"""Of the newest evaluations: the others are left out of a list that is not by time."""

NEWEST_FIRST = Order("-date")
"""The order of the store. Others are by "model", "version", "verdict" or the key of an index."""
ListingRow = tuple[EvaluationSummary, tuple[Point, ...]]
"""An evaluation with a value for each of the `HEADLINES`."""


def listing(
    store: Store,
    project: str,
    filters: Filters,
    order: Order,
    *,
    limit: int,
    cursor: str | None = None,
) -> tuple[list[ListingRow], str | None]:
    """List evaluations with their headline indices, and say where the next part starts. It reads.

    Raises
    ------
    InvalidCursorError
        If no part of the list gave the cursor.
    """
    if order == NEWEST_FIRST:
        page = store.page(project, filters, limit=limit, cursor=cursor)
        return _rows(store, project, filters, page.items), page.next_cursor
    chosen, following = _chosen(store, project, filters, order, limit=limit, cursor=cursor)
    found = store.page(project, Filters(ids=tuple(chosen)), limit=limit).items
    by_id = {summary.id: summary for summary in found}
    # One may have been deleted in between.
    stored = tuple(by_id[identifier] for identifier in chosen if identifier in by_id)
    return _rows(store, project, filters, stored), following


def _rows(
    store: Store, project: str, filters: Filters, summaries: tuple[EvaluationSummary, ...]
) -> list[ListingRow]:
    named = Filters(ids=tuple(summary.id for summary in summaries), slice=filters.slice)
    columns = [
        {
            point.evaluation: point
            for point in Measured.of(key, None).points(store, project, named, len(summaries))
        }
        for key in HEADLINES
    ]
    return [
        (summary, tuple(column[summary.id] for column in columns))
        for summary in summaries
        if summary.id in columns[0]
    ]


def _chosen(
    store: Store, project: str, filters: Filters, order: Order, *, limit: int, cursor: str | None
) -> tuple[list[str], str | None]:
    """Return the ids of a page of a list: those after the cursor."""
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
    part = ids[start : start + limit]
    return part, part[-1] if start + limit < len(ids) else None


_NAMED = {
    "date": attrgetter("evaluation"),
    "model": attrgetter("model"),
    "version": attrgetter("version"),
    "verdict": attrgetter("verdict"),
}
