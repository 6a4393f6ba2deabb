"""The page of the slices of a stored evaluation: where the model fails, the worst first."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from rprime.auth.access import requires
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.index import Index
from rprime.dashboard.class_query import ClassQuery, given_of, slice_text
from rprime.dashboard.model_page import measurable
from rprime.dashboard.page import show
from rprime.history.stored_report import StoredReport, stored_report
from rprime.problems.problem import Problem, validated
from rprime.report.slices import slice_table
from rprime.report.text import shown as fit
from rprime.report.view import slice_plot
from rprime.routes.evaluations import find_evaluation
from rprime.routes.negotiation import CompressedRoute
from rprime.routes.services import get_services, get_store, in_render, in_store
from rprime.schemas.history import ClassWanted

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

MOST_CHOSEN = 50
"""Classes up to which a form lists them; a reader writes the name of one of more."""


class SliceQuery(ClassQuery):
    """Which slices, under which index, of which class; `name` is a part of the slice."""

    class_: ClassWanted = None
    column: Annotated[str, Field(max_length=1000)] = ""
    prevalence: None = None
    family: None = None


@router.get("/ui/evaluations/{evaluation}/slices")
@requires("read", cost="render")
async def slices(request: Request, evaluation: str) -> Response:
    """Show the slices of a stored evaluation, worst first."""
    query = validated(SliceQuery, given_of(request))
    stored = await in_store(request, find_evaluation, request, evaluation)
    store, most = get_store(request), get_services(request).limits.top_confusions
    content = await in_render(request, lambda: _content(stored_report(stored, store, most), query))
    title = f"{fit(content['name'])}, slices · {fit(stored.project)}"
    return show(request, "slices.html", title, stored=stored, asked=query, **content)


def _content(report: StoredReport, query: SliceQuery) -> dict[str, Any]:
    """Put the slices into words and marks. It reads."""
    labels, label = report.stored.labels, query.class_
    if label is not None and label not in labels:
        raise Problem("not_found", "The evaluation has no class of this name.")
    place = None if label is None else labels.index(label)
    index = _index(query)
    if index is not None:
        report = replace(report, indices=(index.key,))
    table = slice_table(report.evaluation, index, place)
    if table is None:
        raise Problem("not_found", "No slices are stored of this evaluation.")
    columns = sorted({line.column for line in table.lines})
    kept = [line for line in table.lines if query.column in ("", line.column)]
    selected = query.selection.of(kept, lambda line: line.text)
    scope = OVERALL_INDICES if label is None else CLASS_INDICES
    return {
        "name": report.subject.title,
        "found": slice_plot(table, selected.lines),
        "selected": selected,
        "slice_text": slice_text,
        "columns": columns,
        "all": len(table.lines),
        "indices": measurable(scope),
        "labels": labels if len(labels) <= MOST_CHOSEN else (),
    }


def _index(query: SliceQuery) -> Index | None:
    """Return the index that is asked for; None: the one that the evaluation orders slices by.

    Another class keeps the chosen index if a class has it, too.
    """
    scope = OVERALL_INDICES if query.class_ is None else CLASS_INDICES
    index = scope.get(query.index)
    if index is not None and index.needs is None and not index.scored:
        return index
    return None if query.class_ is None else CLASS_INDICES["recall"]
