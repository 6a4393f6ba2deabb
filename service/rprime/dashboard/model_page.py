"""The page of a model: its versions over time, and which of them an alias points at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError
from starlette.responses import RedirectResponse

from rprime.auth.access import access_of, requires
from rprime.auth.sessions import form_session, read_form, remember, session_of
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.dashboard.class_query import given_of, slice_text
from rprime.dashboard.compare_view import CompareQuery
from rprime.dashboard.listings import cell_of, entry_of, legend_of, measure_of, pointers, pointing
from rprime.dashboard.page import show
from rprime.history.series import Measured, Point, filters_of
from rprime.history.stored_values import values_of_classes
from rprime.problems.problem import Problem, validated
from rprime.report.history_charts import (
    MOST_FALLEN,
    ClassHistory,
    FigureStep,
    TrendChart,
    course_of,
)
from rprime.report.marks import axis_of
from rprime.report.measures import Measure
from rprime.report.text import decimal, isolated, shown, signed
from rprime.report.view import term
from rprime.routes.aliases import point
from rprime.routes.negotiation import CompressedRoute
from rprime.routes.services import get_services, get_store, in_render
from rprime.schemas.fields import IndexKey
from rprime.schemas.history import Narrowed
from rprime.schemas.population import Prevalence
from rprime.store import Alias, AliasChangedError, Expected, Filters, Store
from rprime.store.ids import created_at

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

PATH = "/ui/projects/{project}/models/{model:path}"
_ETAG = "etag:"
MOST_CHANGES = 20
"""Of an alias that are shown: the newest."""
CHANGED_MEANWHILE = "Somebody else moved this alias meanwhile. Look where it points now."
NOT_A_NAME = "An alias starts with a letter or digit, then also . _ + and -, 128 in all."
MOST_STEPS = 200
"""What a list of the store has at most."""
MOST_LISTED = 50
"""Of the classes whose names match."""
ITEMS = "about the items"


class ModelQuery(Narrowed):
    """What is shown of a model: an index of its classes and an overall index."""

    index: IndexKey = "r_prime"
    overall: IndexKey = "macro_f1"
    limit: Annotated[int, Field(ge=2, le=MOST_STEPS)] = 40
    spacing: Literal["versions", "dates"] = "versions"
    """Whether the versions of a chart have equal distances, or lie at their dates."""
    prevalence: Prevalence = None
    name: Annotated[str, Field(max_length=255)] = ""
    """A part of the names of the classes whose values are listed; empty: those that stand out."""
    promoted: Annotated[str | None, Field(max_length=128)] = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion that was not carried out: it awaits a confirmation, or was refused."""

    alias: str
    evaluation: str
    refused: str = ""
    """The reason; empty if the reader only has to confirm."""


@router.get(PATH)
@requires("read", cost="render")
async def model(request: Request, project: str, model: str) -> Response:
    """Show a model over its versions."""
    return await _shown(request, project, model)


@router.post(PATH)
@requires("write", cost="render")
async def promote(request: Request, project: str, model: str) -> Response:
    """Point an alias at one of its evaluations, as long as nobody else has changed it.

    An alias that points at something already moves only after a confirmation.
    """
    fields = await read_form(request)
    alias, evaluation = fields.get("alias", "").strip(), fields.get("evaluation", "")
    etag = fields.get(f"{_ETAG}{alias}")
    if etag is not None and "confirmed" not in fields:
        return await _shown(request, project, model, Promotion(alias, evaluation))
    expectation = Expected(etags=None if etag is None else {etag}, absent=etag is None)
    try:
        await point(request, (project, alias), evaluation, expectation)
    except AliasChangedError:
        promotion = Promotion(alias, evaluation, CHANGED_MEANWHILE)
        return await _shown(request, project, model, promotion, HTTPStatus.PRECONDITION_FAILED)
    except ValidationError:
        promotion = Promotion(alias, evaluation, NOT_A_NAME)
        return await _shown(request, project, model, promotion, HTTPStatus.UNPROCESSABLE_ENTITY)
    where = urlencode({**request.query_params, "promoted": alias})
    return RedirectResponse(f"?{where}", HTTPStatus.SEE_OTHER)


async def _shown(
    request: Request,
    project: str,
    model: str,
    promotion: Promotion | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    query = validated(ModelQuery, {**given_of(request), "model": model})
    content = await in_render(request, _content, get_store(request), project, query)
    if not content["steps"] and query == ModelQuery(model=model):
        raise Problem("not_found")
    session = form_session(request)
    content |= {"project": project, "model": model, "query": query, "promotion": promotion}
    content["may_promote"] = access_of(request).may("write")
    content["token"] = get_services(request).sessions.csrf_token(session)
    title = f"{shown(model)} · {shown(project)}"
    response = show(request, "model.html", title, status=status, **content)
    response.headers["Cache-Control"] = "no-store"
    if session_of(request) is None:
        remember(request, response, session)
    return response


def _content(store: Store, project: str, query: ModelQuery) -> dict[str, Any]:
    aliases = store.aliases(project)
    pointed = pointers(store, aliases)
    return {
        **model_history(store, project, query, pointing(aliases)),
        "aliases": [
            {**pointer, "changes": _changes(store, pointer["alias"])} for pointer in pointed
        ],
        "pointing": pointing(aliases),
        "branches": store.branches(project),
        "slices": [slice_text(n) for n in store.slice_names(project, Filters(model=query.model))],
        "sliced": slice_text(query.slice),
        "class_indices": measurable(CLASS_INDICES),
        "overall_indices": measurable(OVERALL_INDICES),
        "etag": _ETAG,
    }


def _changes(store: Store, alias: Alias) -> list[dict[str, Any]]:
    """Describe what an alias pointed at, newest first; no id where it was deleted."""
    return [
        {
            **{name: shown(getattr(change, name) or "") for name in ("model", "version", "by")},
            "id": change.evaluation,
            "time": change.evaluation and f"{created_at(change.evaluation):%Y-%m-%d %H:%M}",
            "moment": change.changed_at,
        }
        for change in store.alias_changes(alias.project, alias.name, limit=MOST_CHANGES)
    ]


def measurable(indices: Mapping[str, Index]) -> list[tuple[str, str]]:
    """Return keys and names of the indices that need only a stored table."""
    return [(e.key, e.name) for e in indices.values() if e.needs is None and not e.scored]


def model_history(
    store: Store, project: str, query: ModelQuery, aliases: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Measure a model over its versions, for the template. It reads.

    The names of the aliases are by the id of the evaluation that they point at. 422 if there is no
    such index, or there are too many values.
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
    stored = {
        summary.id: summary for summary in store.page(project, named, limit=query.limit).items
    }
    # One may have been deleted in between.
    ids = [i for i in series.ids if i in stored and any(p.evaluation == i for p in points)]
    values = series.of_classes(index)[[series.ids.index(identifier) for identifier in ids]]
    chosen = [point for point in points if point.evaluation in set(ids)]
    steps = [entry_of(stored[identifier]) for identifier in ids]
    drawn = tuple(FigureStep(e["version"] or e["time"], stored[e["id"]].verdict) for e in steps)
    falling = index.higher_is_better is False
    of_classes = (index.name, drawn, series.labels, values)
    classes = ClassHistory(*of_classes, falling=falling, within=index.range)
    measures = [measure_of(trend.index, point) for point in chosen]
    numbers = [(m.value, m.low, m.high) for m in measures]
    course = course_of(trend.index.name, 0, np.arange(len(numbers)), numbers, lone=True)
    return {
        "index": term(index),
        "overall": term(trend.index),
        **_rows(steps, measures, classes),
        "legend": legend_of(measures),
        "classes": len(series.labels),
        "about_items": ITEMS,
        "populations": list(dict.fromkeys(_about(point) for point in chosen)),
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


def _about(point: Point) -> str:
    with_options = point.options and f", with {point.options}"
    return f"{point.population or ITEMS}{with_options}"


def _rows(
    steps: Sequence[dict[str, Any]], measures: Sequence[Measure], classes: ClassHistory
) -> dict[str, Any]:
    """Return the rows of the table, newest first, and the ends of the axis of their values."""
    axis = axis_of(measures)
    rows = []
    for entry, measure, row, at in zip(steps, measures, classes.values, classes.worst, strict=True):
        lowest = ("", "") if at is None else (shown(classes.labels[at]), decimal(row[at]))
        rows.append({"entry": entry, "cell": cell_of(measure, axis), "lowest": lowest})
    return {"axis": axis.ends, "steps": rows[::-1]}


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
    of: dict[str, Any] = {"slice": dict(query.slice)}
    of |= {"prevalence": query.prevalence} if query.prevalence else {}

    def change(label: str, at: int) -> str:
        if not at:
            return ""
        sides = {"candidate": ids[at], "baseline": ids[at - 1]}
        return CompareQuery.model_validate(sides | of).row(label)

    lines = []
    for number in _listed(history, query.name):
        label, values = history.labels[number], history.values[:, number].tolist()
        cells = [(decimal(value), change(label, at)) for at, value in enumerate(values)]
        lines.append((shown(label), cells[::-1]))
    return lines


def _listed(history: ClassHistory, name: str) -> Sequence[int]:
    """Return the numbers of the classes that are listed: those with this part of a name."""
    if not name:
        return history.drawn
    part = name.casefold()
    labels = enumerate(history.labels)
    return [i for i, label in labels if part in shown(label).casefold()][:MOST_LISTED]


def _fallen(history: ClassHistory) -> list[tuple[str, str]]:
    """Name the classes that fell most since the version before, with their changes."""
    good, labels = history.good, history.labels
    if len(good) < 2:  # noqa: PLR2004 (a change)
        return []
    changes = good[-1] - good[-2]
    order = np.argsort(changes, kind="stable")[:MOST_FALLEN].tolist()
    return [(shown(labels[i]), signed(float(changes[i]))) for i in order if changes[i] < 0]
