"""Stored evaluations: lists, reports, renderings, verdicts."""

from functools import partial
from http import HTTPStatus

import orjson
from fastapi import APIRouter, Request, Response

from rprime import __version__
from rprime.auth.access import check_project, requires
from rprime.core.catalog import OVERALL_INDICES
from rprime.core.families.averages import AVERAGES
from rprime.history.series import filters_of, listed_values
from rprime.history.stored_report import StoredReport, stored_report
from rprime.problems.problem import NO_PROJECT, Problem, refuse, responses
from rprime.report.formats import BY_SUFFIX, Format
from rprime.routes.descriptions import (
    ETAG,
    PROBLEMS,
    REPORT,
    TEXT,
    UNCHANGED,
    VERDICT,
    route_responses,
)
from rprime.routes.negotiation import (
    JSON,
    RENDERINGS,
    CompressedRoute,
    etag_of,
    is_known,
    rendered,
    verdict_header,
    wanted_format,
)
from rprime.routes.services import (
    Parameters,
    get_services,
    get_store,
    in_render,
    in_store,
    visible_history,
)
from rprime.routes.workers import in_worker
from rprime.schemas.history import EvaluationPage, IndicesQuery, ListQuery, ReportQuery
from rprime.store import EvaluationSummary, StoredEvaluation

router = APIRouter(route_class=CompressedRoute, tags=["History"], default_response_class=Response)

PARTS = (
    *("overall", "averages", "per_class", "top_confusions", "slices", "comparison", "gate"),
    "warnings",
)
"""Parts of a report that `include` can select."""
ADDED = frozenset({"table", "cells", "curves"})
"""Parts that `include` adds to the whole report."""
MOST_CLASSES, MOST_SLICES = 200, 300
"""Of a stored evaluation that is rendered in this process; a worker renders a larger one."""
_OF_SLICES = ("weakest", "weakest_by")
_ALWAYS_LEFT_OUT = {*PARTS, *_OF_SLICES, "notes", *ADDED}


@router.get(
    "/v1/projects/{project}/evaluations",
    summary="The evaluations of a project",
    description="Newest first, as summaries with `values`, which are computed now from the stored "
    "tables as one stack; an evaluation must match every filter.",
    responses=route_responses("A page.", EvaluationPage, "not_found", *PROBLEMS),
)
@requires("read", cost="render")
def list_evaluations(request: Request, project: str, query: Parameters[ListQuery]) -> Response:
    """Return a page of summaries."""
    filters = filters_of(query)
    store = get_store(request)
    page = store.page(project, filters, limit=query.limit, cursor=query.cursor)
    if not page.items:
        require_project(request, project)
    names = ["id", "created_at", *(n for n in EvaluationSummary.__dataclass_fields__ if n != "id")]
    listed = [summary.id for summary in page.items]
    values = listed_values(store, project, query.index, listed, filters)
    items = [
        {**{name: getattr(stored, name) for name in names}, "values": values[stored.id]}
        for stored in page.items
    ]
    document = {"items": items, "next_cursor": page.next_cursor}
    return Response(orjson.dumps(document), media_type=JSON)


def require_project(request: Request, project: str) -> None:
    """Answer 404 if there is no such project, with the nearest ones that the caller sees."""
    # Called only if nothing was found, so listing all projects may be slow.
    history = visible_history(request)
    if project not in history.projects:
        raise Problem("not_found", NO_PROJECT + history.nearest(project))


@router.get(
    "/v1/evaluations/{evaluation}",
    summary="The report on an evaluation",
    description="Computed now from the stored table; `index` and `family` choose what it has. The "
    "comparison and the verdict are those of the first answer, and left out of a slice.",
    responses={
        **route_responses(
            "The report.", REPORT, "not_found", "not_acceptable", *PROBLEMS, headers=ETAG | VERDICT
        ),
        304: {"description": UNCHANGED.format("report")},
    },
)
@requires("read", cost="heavy")
async def get_evaluation(
    request: Request, evaluation: str, query: Parameters[ReportQuery]
) -> Response:
    """Return the report or a rendering of it."""
    form, parts = wanted_format(request), _parts(query.include)
    return await _represented(request, evaluation, form, parts, query)


@router.get(
    "/v1/evaluations/{evaluation}/report.{suffix}",
    summary="A rendering of the report",
    description="`suffix` is one of " + ", ".join(f"`{suffix}`" for suffix in BY_SUFFIX) + ".",
    responses={
        **route_responses("The rendering.", RENDERINGS, "not_found", *PROBLEMS),
        304: {"description": UNCHANGED.format("report")},
    },
)
@requires("read", cost="heavy")
async def get_rendering(
    request: Request, evaluation: str, suffix: str, query: Parameters[IndicesQuery]
) -> Response:
    """Return the rendering that the path names."""
    if suffix not in BY_SUFFIX:
        raise Problem("not_found")
    return await _represented(request, evaluation, BY_SUFFIX[suffix], (), query)


async def _represented(
    request: Request,
    evaluation: str,
    form: Format | None,
    parts: tuple[str, ...],
    query: IndicesQuery,
) -> Response:
    slice_ = query.slice
    stored = await in_store(request, find_evaluation, request, evaluation)
    confusions = get_services(request).limits.top_confusions
    # Stored evaluations never change, so these parts determine every byte.
    variant = (form.name if form else "json", *parts, slice_, query.index, query.family)
    etag = etag_of(stored.id, __version__, confusions, *variant)
    headers = {"ETag": etag, "Vary": "Accept", **verdict_header(None if slice_ else stored.verdict)}
    if is_known(request, etag):
        return rendered(b"", form, HTTPStatus.NOT_MODIFIED, headers)
    report = await in_store(request, stored_report, stored, get_store(request), confusions, slice_)
    if form:
        report = await in_store(request, report.with_baseline_name, get_store(request))
    report = report.of_indices(query.index, query.family)
    if is_large(report):
        render = partial(_render, report=report, form=form, parts=parts)
        content = await in_worker(request, render, [])
    else:
        content = await in_render(request, _render, b"", report=report, form=form, parts=parts)
    return rendered(content, form, headers=headers)


def is_large(report: StoredReport) -> bool:
    """Whether a worker renders a stored evaluation, since it takes more than some milliseconds."""
    slices = 0 if report.slices is None else len(report.slices.names)
    return report.stored.table.k > MOST_CLASSES or slices > MOST_SLICES or report.items is not None


def _render(
    _body: bytes, *, report: StoredReport, form: Format | None, parts: tuple[str, ...]
) -> bytes:
    return form.render(report.subject) if form else _report(report, parts)


def find_evaluation(request: Request, evaluation: str) -> StoredEvaluation:
    """Read an evaluation; 404 if the caller may not see it, as if it did not exist."""
    stored = get_store(request).get(evaluation)
    check_project(request, stored.project)
    return stored


def _parts(include: str) -> tuple[str, ...]:
    """Return the distinct parts that `include` names."""
    names = {*include.split(",")} if include else set()
    if not names <= {*PARTS, *ADDED}:
        detail = f"The parts of a report are table, cells, curves, {', '.join(PARTS)}."
        raise refuse("/query/include", "unknown_parameter", detail)
    return tuple(sorted(names))


def _report(source: StoredReport, parts: tuple[str, ...]) -> bytes:
    whole = source.report(include=parts)
    if not set(parts) - ADDED:
        return whole
    report = orjson.loads(whole)
    if "averages" in parts and "overall" not in parts:
        averages = {key for key, index in OVERALL_INDICES.items() if index.reads in AVERAGES}
        report["overall"] = {k: v for k, v in report["overall"].items() if k in averages}
    stored = {*parts, *(["overall"] if "averages" in parts else [])}
    stored |= {*_OF_SLICES} if "slices" in parts else set()
    left_out = _ALWAYS_LEFT_OUT - stored
    return orjson.dumps({name: part for name, part in report.items() if name not in left_out})


@router.delete(
    "/v1/evaluations/{evaluation}",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Delete an evaluation",
    description="The looks at its test set stay counted. An evaluation with an alias cannot be "
    "deleted.",
    responses=responses("not_found", "evaluation_aliased", "store_full", *PROBLEMS),
)
@requires("write", cost="store")
def delete_evaluation(request: Request, evaluation: str) -> None:
    """Delete the evaluation."""
    get_store(request).delete(find_evaluation(request, evaluation).id)


@router.get(
    "/v1/evaluations/{evaluation}/verdict",
    summary="The verdict in one word",
    description="`pass`, `fail`, `inconclusive`, `no_rules`, `no_baseline`; `no_gate` if "
    "the request had no gates.",
    responses=route_responses("The verdict.", {"text/plain": TEXT}, "not_found", *PROBLEMS),
)
@requires("read", cost="store")
def get_verdict(request: Request, evaluation: str) -> Response:
    """Return the verdict as one word."""
    return Response(
        find_evaluation(request, evaluation).verdict or "no_gate", media_type="text/plain"
    )
