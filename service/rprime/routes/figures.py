"""Figures as SVG, PNG or PDF: of an evaluation, and of the history of a project."""

from collections.abc import Callable, Container, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from rprime import __version__
from rprime.auth.access import requires
from rprime.history.figures import (
    FIGURES,
    LIBRARY,
    HistoryFigure,
    figure_of_history,
    figure_of_stored,
)
from rprime.problems.problem import Problem, refuse, responses
from rprime.report.charts import evaluation as of_evaluation
from rprime.report.charts.sheet import MEDIA_TYPES, Canvas, library
from rprime.routes.descriptions import ETAG, IMAGES, PROBLEMS, UNCHANGED, response_of
from rprime.routes.evaluations import find_evaluation
from rprime.routes.negotiation import PAGE_POLICY, CompressedRoute, etag_of, is_known
from rprime.routes.services import Parameters, in_store
from rprime.routes.trend import require_some
from rprime.routes.workers import PAGE_SECONDS, in_worker_with_store
from rprime.schemas.history import FigureQuery, HistoryFigureQuery

router = APIRouter(route_class=CompressedRoute, tags=["History"], default_response_class=Response)

RESPONSES: dict[int | str, dict[str, Any]] = {
    **responses("not_found", "overloaded", "invalid_request", "internal_error"),
    200: response_of("The image.", IMAGES, ETAG),
    304: {"description": UNCHANGED.format("image")},
}
_OF_STORED = RESPONSES | responses("not_found", "overloaded", *PROBLEMS)
_SIZES = (
    "`form` is `svg`, `png` or `pdf`. SVG keeps text as text. The same data always give the same "
    "image."
)


@router.get(
    "/v1/evaluations/{evaluation}/figures/{name}.{form}",
    summary="A figure of an evaluation",
    description="`name` is `confusion`, the table as a heat map; `radar`, the classes around a "
    "circle, with the baseline, if any, and overall indices as regular polygons; `per_class`, a "
    "row for each class with its intervals; `card`, the verdict, what changed and the classes that "
    "decide it; or, of an evaluation that was stored with `curves`, "
    "`roc`, `precision_recall`, `reliability`, `risk_coverage` or `scores`, histograms by class. "
    f"Of many classes only the worst are shown; fewer than four have bars, no radar. {_SIZES}",
    responses=_OF_STORED,
)
@requires("read", cost="heavy")
async def get_evaluation_figure(
    request: Request, evaluation: str, name: str, form: str, query: Parameters[FigureQuery]
) -> Response:
    """Return the image."""
    sheet = _sheet(name, of_evaluation.FIGURES, form, query)
    if query.index and name in of_evaluation.WITHOUT_INDEX:
        raise refuse("/query/index", "misplaced", f"The figure `{name}` has no index.")
    stored = await in_store(request, find_evaluation, request, evaluation)
    # Stored evaluations never change, so these parts determine every byte.
    etag = etag_of(stored.id, __version__, library(), name, sheet, *query.index, query.slice)
    if is_known(request, etag):
        return unchanged(etag)
    figure = name, tuple(dict.fromkeys(query.index))
    work = partial(figure_of_stored, stored=stored, figure=figure, slice_=query.slice, canvas=sheet)
    image = await draw_figure_of(request, work)
    return answer_image(image, etag, sheet)


@router.get(
    "/v1/projects/{project}/figures/{name}.{form}",
    summary="A figure of a history",
    description="`name` is `trend`, indices with their intervals over the evaluations; `lines`, "
    "indices of the classes over them; or `boxes`, their quartiles over the classes or, with "
    "`by=class`, over the evaluations. Overall indices stand beside those of classes. The filters "
    f"are those of the trend. {_SIZES}",
    responses=_OF_STORED,
)
@requires("read", cost="heavy")
async def get_project_figure(
    request: Request, project: str, name: str, form: str, query: Parameters[HistoryFigureQuery]
) -> Response:
    """Return the image."""
    sheet = _sheet(name, FIGURES, form, query)
    await in_store(request, require_some, request, project)
    figure = HistoryFigure(name, project, query)
    image = await draw_figure_of(request, partial(figure_of_history, figure=figure, canvas=sheet))
    return answer_image(image, etag_of(image), sheet)


def _sheet(
    name: str, names: Container[str], form: str, query: FigureQuery | HistoryFigureQuery
) -> Canvas:
    if name not in names or form not in MEDIA_TYPES:
        raise Problem("not_found")
    return Canvas(form, query.width, query.scale)


async def draw_figure_of(
    request: Request, work: Callable[..., bytes], body: Iterable[bytes] = ()
) -> bytes:
    """Draw in a worker, which has the library for it."""
    return await in_worker_with_store(
        request, work, body, imports=LIBRARY, wait_seconds=PAGE_SECONDS
    )


def answer_image(image: bytes, etag: str, sheet: Canvas) -> Response:
    """Answer with an image."""
    return Response(image, headers=_headers(etag), media_type=MEDIA_TYPES[sheet.form])


def unchanged(etag: str) -> Response:
    """Answer that the client has the image already."""
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=_headers(etag))


def _headers(etag: str) -> dict[str, str]:
    # A browser opens an image by itself as a document.
    return {"ETag": etag, "Content-Security-Policy": PAGE_POLICY}
