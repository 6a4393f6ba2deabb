"""Figures as SVG or PNG: of an evaluation, and of the history of a project."""

from collections.abc import Callable, Container
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from rprime import __version__
from rprime.auth.access import requires
from rprime.history.figures import FIGURES, HistoryFigure, figure_of
from rprime.history.stored_report import stored_report
from rprime.problems.problem import Problem, refuse, responses
from rprime.report.figures import evaluation as of_evaluation
from rprime.report.figures.sheet import MEDIA_TYPES, Canvas, library
from rprime.routes.compressed_route import CompressedRoute
from rprime.routes.descriptions import ETAG, IMAGES, PROBLEMS, UNCHANGED, response_of
from rprime.routes.evaluations import find
from rprime.routes.negotiation import PAGE_POLICY, etag_of, is_known
from rprime.routes.services import Parameters, get_services, get_store
from rprime.routes.trend import require_some
from rprime.schemas.history import FigureQuery, HistoryFigureQuery
from rprime.server.pools import Slots
from rprime.settings import Limits

router = APIRouter(route_class=CompressedRoute, tags=["History"], default_response_class=Response)

RESPONSES: dict[int | str, dict[str, Any]] = {
    **responses("not_found", "not_installed", "overloaded", "invalid_request", "internal_error"),
    200: response_of("The image.", IMAGES, ETAG),
    304: {"description": UNCHANGED.format("image")},
}
_OF_STORED = RESPONSES | responses("not_found", "not_installed", "overloaded", *PROBLEMS)
_SIZES = (
    "`form` is `svg` or `png`. SVG keeps text as text. The same data always give the same image."
)


def drawing_of(limits: Limits) -> Slots:
    """Make the places for figures: one at a time, since drawing holds the interpreter lock."""
    return Slots(1, limits.large_waiting)


@router.get(
    "/v1/evaluations/{evaluation}/figures/{name}.{form}",
    summary="A figure of an evaluation",
    description="`name` is `confusion`, the table as a heat map; `radar`, the classes around a "
    "circle, with the baseline, if any, and overall indices as regular polygons; `per_class`, a "
    "row for each class with its intervals; or, of an evaluation that was stored with `curves`, "
    "`roc`, `precision_recall`, `reliability`, `risk_coverage` or `scores`, histograms by class. "
    f"Of many classes only the worst are shown; fewer than four have bars, no radar. {_SIZES}",
    responses=_OF_STORED,
)
@requires("read")
async def get_evaluation_figure(
    request: Request, evaluation: str, name: str, form: str, query: Parameters[FigureQuery]
) -> Response:
    """Return the image."""
    sheet = _sheet(name, of_evaluation.FIGURES, form, query)
    if query.index and name in of_evaluation.WITHOUT_INDEX:
        raise refuse("/query/index", "misplaced", f"The figure `{name}` has no index.")
    stored = await run_in_threadpool(find, request, evaluation)
    # Stored evaluations never change, so these parts determine every byte.
    etag = etag_of(stored.id, __version__, library(), name, sheet, *query.index, query.slice)
    if is_known(request, etag):
        return unchanged(etag)
    store, indices = get_store(request), tuple(dict.fromkeys(query.index))
    # Listing options do not matter here.
    report = await run_in_threadpool(stored_report, stored, store, 0, query.slice)
    image = await draw_in_pool(request, lambda: figure_of(name, report, indices, sheet))
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
@requires("read")
async def get_project_figure(
    request: Request, project: str, name: str, form: str, query: Parameters[HistoryFigureQuery]
) -> Response:
    """Return the image."""
    sheet = _sheet(name, FIGURES, form, query)
    await run_in_threadpool(require_some, request, project)
    figure = HistoryFigure(name, project, query)
    store = get_store(request)
    image = await draw_in_pool(request, lambda: figure.draw(store, sheet))
    return answer_image(image, etag_of(image), sheet)


def _sheet(
    name: str, known: Container[str], form: str, query: FigureQuery | HistoryFigureQuery
) -> Canvas:
    if name not in known or form not in MEDIA_TYPES:
        raise Problem("not_found")
    return Canvas(form, query.width, query.scale)


async def draw_in_pool(request: Request, work: Callable[[], bytes]) -> bytes:
    """Draw in a thread when there is a place; 503 if too many wait."""
    async with get_services(request).drawing.place():
        return await to_thread.run_sync(work, abandon_on_cancel=True)


def answer_image(image: bytes, etag: str, sheet: Canvas) -> Response:
    """Answer with an image."""
    return Response(image, headers=_headers(etag), media_type=MEDIA_TYPES[sheet.form])


def unchanged(etag: str) -> Response:
    """Answer that the client has the image already."""
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=_headers(etag))


def _headers(etag: str) -> dict[str, str]:
    # A browser opens an image by itself as a document.
    return {"ETag": etag, "Content-Security-Policy": PAGE_POLICY}
