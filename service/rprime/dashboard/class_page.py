"""The page of a class of a model: since when it is worse, into what, and in which slices."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field

from rprime.auth.access import requires
from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES
from rprime.core.index import Index
from rprime.core.items import Items
from rprime.core.quantities import plural
from rprime.dashboard.class_query import given_of, slice_text
from rprime.dashboard.listings import cell_of, legend_of, listing_entry, measure_of, pointing
from rprime.dashboard.model_page import MOST_STEPS, Way, changes_of, measurable, step_name, trend_of
from rprime.dashboard.page import root_of, show
from rprime.history.class_changes import ClassChanges
from rprime.history.series import Measured, filters_of
from rprime.history.stored_report import stored_report
from rprime.history.stored_values import values_of_classes
from rprime.problems.problem import Problem, validated
from rprime.report.marks import common_axis
from rprime.report.slices import slice_table
from rprime.report.text import count, decimal, shown, signed
from rprime.report.view import slice_plot, term
from rprime.routes.negotiation import CompressedRoute
from rprime.routes.services import get_services, get_store, in_render
from rprime.schemas.fields import IndexKey
from rprime.schemas.history import ClassWanted, Narrowed
from rprime.store import Filters, Store, StoredEvaluation

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

MOST_CONFUSIONS = 12
MOST_PLACES = 12
"""Of the items that changed in one way."""
MOST_SLICES = 8


class ClassPageQuery(Narrowed):
    """Which class of which model, under which index."""

    class_: ClassWanted = None
    index: IndexKey = "recall"
    limit: Annotated[int, Field(ge=2, le=MOST_STEPS)] = 40


@router.get("/ui/projects/{project}/classes")
@requires("read", cost="render")
async def class_over_versions(request: Request, project: str) -> Response:
    """Show a class over the versions of a model."""
    query = validated(ClassPageQuery, given_of(request))
    if query.class_ is None or query.model is None:
        raise Problem("invalid_request", "Name a model and one of its classes.")
    most = get_services(request).limits.top_confusions
    way = Way(root_of(request), project)
    content = await in_render(request, _content, get_store(request), way, query, most)
    title = f"{shown(query.class_)} of {shown(query.model)} · {shown(project)}"
    return show(request, "class.html", title, project=project, query=query, **content)


def _content(store: Store, way: Way, query: ClassPageQuery, most: int) -> dict[str, Any]:
    """Measure a class over the versions of a model. It reads."""
    label, project = query.class_, way.project
    assert label is not None  # noqa: S101 (asked for before)
    trend = Measured.of(query.index, label)
    points = trend.points(store, project, filters_of(query), query.limit)
    if not points:
        raise Problem("not_found", "No evaluation of this model has a class of this name.")
    named = Filters(ids=tuple(point.evaluation for point in points), slice=query.slice)
    series = values_of_classes(
        store, project, named, newest=query.limit, indices=[trend.index], limits=True
    )
    stored = {
        summary.id: summary for summary in store.page(project, named, limit=len(points)).items
    }
    points = [point for point in points if point.evaluation in stored]
    ids = [point.evaluation for point in points]
    aliases = pointing(store.aliases(project))
    changes = changes_of(series, trend.index, ids, aliases)
    steps = [listing_entry(stored[identifier]) for identifier in ids]
    measures = [measure_of(trend.index, point) for point in points]
    names = [step_name(entry) for entry in steps]
    since = ", ".join([names[changes.reference], *aliases.get(ids[changes.reference], ())])
    axis = common_axis(measures)
    newest, reference = store.get(ids[-1]), store.get(ids[changes.reference])
    return {
        "model": query.model,
        "label": shown(label),
        "index": term(trend.index),
        "class_indices": measurable(CLASS_INDICES),
        "sentence": _sentence(changes, label, names, since),
        "since": since,
        "trend": trend_of(trend.index, steps, measures, aliases, way),
        "axis": axis.ends,
        "steps": _rows(changes, label, steps, [cell_of(m, axis) for m in measures]),
        "legend": legend_of(measures),
        "pointing": aliases,
        "newest": steps[-1],
        "reference": steps[changes.reference],
        "confusions": _confusions(label, newest, reference),
        "changed": _changed_items(store, label, newest, reference),
        "slices": _slices(store, newest, label, trend.index, most),
        "slice_text": slice_text,
    }


def _rows(
    changes: ClassChanges, label: str, steps: Sequence[dict[str, Any]], cells: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each version, newest first, with the change since the reference."""
    place = changes.labels.index(label)
    gains = (changes.sign * changes.gains[:, place]).tolist()
    rows = []
    for number, (entry, cell) in enumerate(zip(steps, cells, strict=True)):
        tone = ""
        if changes.shown[number, place]:
            tone = "worse" if changes.lost[number, place] else "better"
        gain = gains[number] if np.isfinite(gains[number]) else None
        before = steps[number - 1] if number else None
        row = {"entry": entry, "cell": cell, "change": signed(gain), "tone": tone}
        rows.append(row | {"before": before})
    return rows[::-1]


def _sentence(changes: ClassChanges, label: str, names: Sequence[str], since: str) -> str:
    """Say since when a class is worse, or that it is not shown to be."""
    place = changes.labels.index(label)
    values = changes.values[:, place]
    numbers = f"{changes.index.name} {decimal_of(values[changes.reference])} in {since}, "
    numbers += f"{decimal_of(values[-1])} in {names[-1]}."
    if changes.reference == len(names) - 1:
        return f"{changes.index.name} {decimal_of(values[-1])} in {names[-1]}, the newest version."
    first = changes.since(place)
    if first is None:
        return f"Not shown to be worse in {names[-1]} than in {since}: {numbers}"
    return f"Worse since {names[first]}: {numbers}"


def decimal_of(value: float) -> str:
    """Write a value that may not be there."""
    return decimal(float(value) if np.isfinite(value) else None)


def _confusions(label: str, after: StoredEvaluation, before: StoredEvaluation) -> dict[str, Any]:
    """Return what items of the class are predicted as, and what else is predicted as it."""
    sides = [_cells_of(side, label) for side in (before, after)]
    weighted = before.table.weighted or after.table.weighted
    tables: dict[str, Any] = {"counted": "Weight" if weighted else "Items"}
    for name, number in (("as", 0), ("of", 1)):
        was, now = (side[number] for side in sides)
        moved = {key: now.get(key, 0.0) - was.get(key, 0.0) for key in (*now, *was)}
        order = sorted(moved, key=lambda key: (-moved[key], -now.get(key, 0.0)))
        tables[name] = [
            (_predicted(key), count(was.get(key, 0.0)), count(now.get(key, 0.0)), moved[key])
            for key in order[:MOST_CONFUSIONS]
        ]
    return tables


Counts = dict[str | None, float]


def _cells_of(side: StoredEvaluation, label: str) -> tuple[Counts, Counts]:
    """Return the wrong items of a class by what they are predicted as, and those of others."""
    if label not in side.labels:
        return {}, {}
    place, table = side.labels.index(label), side.table
    rows, columns, items = table.cells.coordinates()
    wrong = rows != columns
    as_, of = (wrong & (part == place) for part in (rows, columns))
    into: Counts = {side.labels[j]: float(n) for j, n in zip(columns[as_], items[as_], strict=True)}
    if table.unclassified is not None and table.unclassified[place]:
        into[None] = float(table.unclassified[place])
    return into, {side.labels[i]: float(n) for i, n in zip(rows[of], items[of], strict=True)}


def _changed_items(
    store: Store, label: str, after: StoredEvaluation, before: StoredEvaluation
) -> dict[str, Any] | None:
    """Return the items of the class whose prediction changed, by what it was and what it is.

    They are named by their places from 1 on, since a store keeps no ids. None where the items of
    one side are not stored, or are not those of the other.
    """
    ours, theirs = store.items(after.id), store.items(before.id)
    pairs = None if ours is None or theirs is None else _common_places(after, ours, before, theirs)
    if ours is None or theirs is None or pairs is None or after.id == before.id:
        return None
    names, names_before = ((*side.labels, None) for side in (after, before))
    places: dict[tuple[str | None, str | None], list[int]] = {}
    of_class = ours.true[pairs[0]] == after.labels.index(label)
    for here, there in zip(*(side[of_class].tolist() for side in pairs), strict=True):
        was, now = names_before[theirs.predicted[there]], names[ours.predicted[here]]
        if was != now and names_before[theirs.true[there]] == label:
            places.setdefault((was, now), []).append(here + 1)
    lost_first = sorted(
        places, key=lambda way: (way[0] != label, way[1] == label, -len(places[way]))
    )
    rows = [(*map(_predicted, way), sorted(places[way])) for way in lost_first[:MOST_CONFUSIONS]]
    return {"rows": rows, "sorted": ours.ids is not None, "most": MOST_PLACES}


def _common_places(
    after: StoredEvaluation, ours: Items, before: StoredEvaluation, theirs: Items
) -> tuple[Array, Array] | None:
    """Return the places of the same items on both sides: by ids, else of one test set in order."""
    if ours.ids is not None and theirs.ids is not None:
        _, here, there = np.intersect1d(
            ours.ids, theirs.ids, assume_unique=True, return_indices=True
        )
        return here, there
    if ours.ids is not None or theirs.ids is not None or after.fingerprint != before.fingerprint:
        return None
    return (np.arange(len(ours.true)),) * 2


def _predicted(label: str | None) -> str:
    return "unclassified" if label is None else shown(label)


def _slices(
    store: Store, newest: StoredEvaluation, label: str, index: Index, most: int
) -> dict[str, Any] | None:
    """Return the weakest slices of the class in the newest version; None without slices."""
    report = replace(stored_report(newest, store, most), indices=(index.key,))
    table = slice_table(report.evaluation, index, newest.labels.index(label))
    if table is None:
        return None
    plot = slice_plot(table, table.lines[:MOST_SLICES])
    return None if plot is None else plot | {"all": plural(len(table.lines), "slice")}
