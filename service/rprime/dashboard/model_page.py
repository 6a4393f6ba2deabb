"""The page of a model: its versions over time, and which of them an alias points at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError
from starlette.responses import RedirectResponse

from rprime.auth.access import access_of, requires
from rprime.auth.sessions import form_session, read_form, remember, session_of
from rprime.core.arrays import Array
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.dashboard.class_query import given_of, slice_text
from rprime.dashboard.listings import (
    cell_of,
    legend_of,
    listing_entry,
    measure_of,
    pointers,
    pointing,
)
from rprime.dashboard.page import root_of, show
from rprime.history.class_changes import ClassChanges
from rprime.history.series import Measured, Point, filters_of
from rprime.history.stored_values import StoredValues, values_of_classes
from rprime.problems.problem import Problem, validated
from rprime.report.charts.drawing import Drawing
from rprime.report.charts.history import Step, plot_trend
from rprime.report.charts.strip import Strip, plot_strip
from rprime.report.history_charts import FigureStep, TrendChart, course_of
from rprime.report.marks import common_axis
from rprime.report.measures import Measure
from rprime.report.text import decimal, isolated, shown, signed, span
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
MOST_LISTED = 1000
"""Classes of the page, which a search narrows down."""
MOST_ROWS = 12
"""Classes that stand there first."""
WIDE, NARROW = 1120.0, 356.0
"""Widths of a chart in a wide and in a narrow window."""
CHAMPION = "champion"
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
    """A part of the names of the classes that are listed."""
    by: Literal["loss", "weakest"] = "loss"
    """Which classes come first."""
    all: bool = False
    """Whether all classes are listed."""
    promoted: Annotated[str | None, Field(max_length=128)] = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion that was not carried out: it awaits a confirmation, or was refused."""

    alias: str
    evaluation: str
    refused: str = ""
    """The reason; empty if the reader only has to confirm."""


@dataclass(frozen=True, slots=True)
class Way:
    """The ways from a page of a project to others."""

    root: str
    """To the root of the service."""
    project: str
    spacing: Literal["versions", "dates"] = "versions"

    def evaluation(self, identifier: str) -> str:
        """Return the way to a stored evaluation."""
        return f"{self.root}ui/evaluations/{identifier}"

    def class_page(self, query: Narrowed, label: str) -> str:
        """Return the way to the page of a class of a model."""
        members = {"model": query.model, "class": label}
        members |= {"branch": query.branch} if query.branch else {}
        members |= {"slice": slice_text(query.slice)} if query.slice else {}
        return f"{self.root}ui/projects/{quote(self.project, safe='')}/classes?{urlencode(members)}"


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
    way = Way(root_of(request), project, query.spacing)
    content = await in_render(request, _content, get_store(request), way, query)
    if not content["steps"] and query == ModelQuery(model=model):
        raise Problem("not_found")
    session = form_session(request)
    content |= {"project": project, "model": model, "query": query, "promotion": promotion}
    content["asked"] = {name: value for name, value in request.query_params.items() if value}
    subset = {"slice": slice_text(query.slice), "prevalence": query.prevalence}
    content["subset"] = {name: value for name, value in subset.items() if value}
    content["may_promote"] = access_of(request).may("write")
    content["token"] = get_services(request).sessions.csrf_token(session)
    title = f"{shown(model)} · {shown(project)}"
    response = show(request, "model.html", title, status=status, **content)
    response.headers["Cache-Control"] = "no-store"
    if session_of(request) is None:
        remember(request, response, session)
    return response


def _content(store: Store, way: Way, query: ModelQuery) -> dict[str, Any]:
    project = way.project
    aliases = store.aliases(project)
    pointed = pointers(store, aliases)
    return {
        **model_history(store, way, query, pointing(aliases)),
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
    store: Store, way: Way, query: ModelQuery, aliases: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Measure a model over its versions, for the template. It reads.

    The names of the aliases are by the id of the evaluation that they point at. 422 if there is no
    such index, or there are too many values.
    """
    # A class is only named so that an overall index is refused.
    index = Measured.of(query.index, "").index
    uniform = query.prevalence is not None
    trend = Measured.of(query.overall, None, uniform=uniform)
    points = trend.points(store, way.project, filters_of(query), query.limit)
    named = Filters(ids=tuple(point.evaluation for point in points), slice=query.slice)
    series = values_of_classes(
        store, way.project, named, newest=query.limit, indices=[index], uniform=uniform, limits=True
    )
    stored = {
        summary.id: summary for summary in store.page(way.project, named, limit=query.limit).items
    }
    # One may have been deleted in between.
    ids = [i for i in series.ids if i in stored and any(p.evaluation == i for p in points)]
    chosen = [point for point in points if point.evaluation in set(ids)]
    steps = [listing_entry(stored[identifier]) for identifier in ids]
    measures = [measure_of(trend.index, point) for point in chosen]
    changes = changes_of(series, index, ids, aliases)
    return {
        "index": term(index),
        "overall": term(trend.index),
        **_rows(steps, measures, changes),
        "legend": legend_of(measures),
        "classes": len(series.labels),
        "about_items": ITEMS,
        "populations": list(dict.fromkeys(_about(point) for point in chosen)),
        "trend": trend_of(trend.index, steps, measures, aliases, way),
        **_strip(changes, steps, query, aliases, way),
    }


def changes_of(
    series: StoredValues, index: Index, ids: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> ClassChanges:
    """Return the changes of the classes over evaluations, since the champion or the first one.

    Without an alias among them it is the one before the newest.
    """
    rows = [series.ids.index(identifier) for identifier in ids]
    place = series.selection.place[index.key]
    values, low, high = (part[place][rows] for part in (series.per_class, series.low, series.high))
    pointed = [number for number, identifier in enumerate(ids) if aliases.get(identifier)]
    named = [n for n in pointed if CHAMPION in aliases[ids[n]]]
    reference = (named or pointed or [max(len(ids) - 2, 0)])[-1]
    return ClassChanges(index, series.labels, values, low, high, reference)


def trend_of(
    index: Index,
    steps: Sequence[dict[str, Any]],
    measures: Sequence[Measure],
    aliases: Mapping[str, Sequence[str]],
    way: Way,
) -> tuple[Drawing, ...]:
    """Draw an index over the versions, for wide windows and for narrow ones."""
    numbers = [(m.value, m.low, m.high) for m in measures]
    course = course_of(index.name, 0, np.arange(len(numbers)), numbers, lone=True)
    drawn = tuple(FigureStep(step_name(e), e["key"]) for e in steps)
    tips = [
        Step(
            f"{step_name(e)}: {index.name} {decimal(m.value)} {span(m.low, m.high)}; "
            f"{e['verdict'].word}; {e['time']}",
            way.evaluation(e["id"]),
            ", ".join(isolated(alias) for alias in aliases.get(e["id"], ())),
        )
        for e, m in zip(steps, measures, strict=True)
    ]
    times = [e["moment"].timestamp() for e in steps] if way.spacing == "dates" else None
    chart = TrendChart(f"{index.name} over versions", "", drawn, (course,), index.range)
    return tuple(plot_trend(chart, width, tips, times) for width in (WIDE, NARROW))


def step_name(entry: Mapping[str, Any]) -> str:
    """Return what an evaluation is called in a chart of one model."""
    return isolated(entry["version"] or entry["time"])


def _strip(
    changes: ClassChanges,
    steps: Sequence[dict[str, Any]],
    query: ModelQuery,
    aliases: Mapping[str, Sequence[str]],
    way: Way,
) -> dict[str, Any]:
    """Draw the changes of classes since a version, and say what they show in a sentence."""
    if not steps:
        return {}
    places = _listed(changes, query)
    shown_places = places if query.all or query.name else places[:MOST_ROWS]
    reference = steps[changes.reference]
    since = ", ".join([step_name(reference), *aliases.get(reference["id"], ())])
    names = [step_name(entry) for entry in steps]
    strip = Strip(
        [isolated(shown(changes.labels[i])) for i in shown_places],
        names,
        changes.sign * changes.gains[:, shown_places].T,
        changes.shown[:, shown_places].T,
        changes.reference,
        upward=changes.sign > 0,
        beside=[decimal(value) for value in finite_or_none(changes.values[-1, shown_places])],
    )
    rows: dict[str, Any] = {
        "links": [way.class_page(query, changes.labels[i]) for i in shown_places],
        "tips": [_said(changes, i, names) for i in shown_places],
        "data": [{"class": shown(changes.labels[i])} for i in shown_places],
    }
    return {
        "strip": tuple(plot_strip(strip, width, **rows) for width in (WIDE, NARROW)),
        "since": since,
        "sentence": sentence_of(changes, names, since),
        "listed": len(shown_places),
        "matching": len(places),
    }


def finite_or_none(numbers: Array) -> list[float | None]:
    """Return numbers, None for those that are not there."""
    return [number if np.isfinite(number) else None for number in numbers.tolist()]


def _said(changes: ClassChanges, place: int, names: Sequence[str]) -> str:
    """Say the newest value of a class and its change."""
    value, gain = (float(n) for n in (changes.values[-1, place], changes.gains[-1, place]))
    if not np.isfinite(value):
        return f"{shown(changes.labels[place])}: undefined in {names[-1]}"
    then = names[changes.reference]
    change = signed(changes.sign * gain) if np.isfinite(gain) else "not comparable"
    return f"{shown(changes.labels[place])}: {decimal(value)} in {names[-1]}; {change} since {then}"


def sentence_of(changes: ClassChanges, names: Sequence[str], since: str) -> str:
    """Say which classes are shown to be worse in the newest version, and since when."""
    if len(names) < 2 or changes.reference == len(names) - 1:  # noqa: PLR2004 (a change)
        return ""
    worse = [place for place in changes.order if changes.lost[-1, place]]
    if not worse:
        return f"No class is shown to be worse in {names[-1]} than in {since}."
    place = worse[0]
    first = changes.since(place)
    then, now = (changes.values[i, place] for i in (changes.reference, -1))
    begin = "" if first is None else f" since {names[first]}"
    text = f"Class {isolated(shown(changes.labels[place]))} is worse{begin} than in {since}: "
    before, after = decimal(float(then)), decimal(float(now))
    text += f"{changes.index.name} {before} before, {after} in {names[-1]}."
    others = len(worse) - 1
    if others:
        verb = "is" if others == 1 else "are"
        text += f" {plural(others, 'other class')} {verb} shown to be worse, too."
    return text


def _about(point: Point) -> str:
    with_options = point.options and f", with {point.options}"
    return f"{point.population or ITEMS}{with_options}"


def _rows(
    steps: Sequence[dict[str, Any]], measures: Sequence[Measure], changes: ClassChanges
) -> dict[str, Any]:
    """Return the rows of the table, newest first, and the ends of the axis of their values."""
    axis = common_axis(measures)
    rows = []
    for number, (entry, measure) in enumerate(zip(steps, measures, strict=True)):
        before = steps[number - 1] if number else None
        row: dict[str, Any] = {"entry": entry, "cell": cell_of(measure, axis), "before": before}
        row["worse"] = [shown(changes.labels[i]) for i in np.flatnonzero(changes.lost[number])]
        rows.append(row)
    return {"axis": axis.ends, "steps": rows[::-1]}


def _listed(changes: ClassChanges, query: ModelQuery) -> list[int]:
    """Return the classes in their order, those with a part of a name where one is given."""
    order = changes.weakest if query.by == "weakest" else changes.order
    part = query.name.casefold()
    kept = [i for i in order if part in shown(changes.labels[i]).casefold()]
    return kept[:MOST_LISTED]
