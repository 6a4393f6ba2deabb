"""Studies of indices: discrimination lines, and agreement over many models."""

from functools import partial

from fastapi import APIRouter, Request, Response

from rprime import __version__
from rprime.application.evaluate import RenderedReport, ResponseOptions, evaluate_stream
from rprime.application.studies import FIGURES, agreement_request, discrimination_request
from rprime.auth.access import requires
from rprime.evidence import MEDIA_TYPES as COLUMN_KINDS
from rprime.history.figures import figure_of_lines, printed_figure
from rprime.problems.problem import Problem, refuse
from rprime.report.charts.sheet import MEDIA_TYPES, Canvas, library
from rprime.routes.descriptions import (
    BODY_PROBLEMS,
    COLUMNS,
    IMAGES,
    REQUEST_PARAMETER,
    TEXT,
    json_body,
    json_content,
    route_responses,
)
from rprime.routes.figures import RESPONSES, answer_image, draw_figure_of, unchanged
from rprime.routes.negotiation import JSON, PAGE_POLICY, etag_of, is_known, preferred
from rprime.routes.services import get_services, read_json_pieces
from rprime.routes.workers import answer_columns, evaluate_json_in_worker, in_worker
from rprime.schemas.published import one_of
from rprime.schemas.slice_search import SEARCH_REQUESTS, SliceSearchReport
from rprime.schemas.studies import (
    AgreementReport,
    AgreementRequest,
    DiscriminationReport,
    DiscriminationRequest,
)
from rprime.server.body import media_type, read_chunks

LARGEST = 4 * 1024 * 1024
"""Bytes of a body; no study needs more, and reading more would delay other requests."""

router = APIRouter(tags=["Studies"], default_response_class=Response)

_CSV = "y_true,y_pred,slice:device,slice:age\n" + "".join(
    f"{'cd'[i % 2]},{'ccd'[i % 3]},{('ios', 'web')[i % 4 // 2]},{20 + 7 * i % 61}\n"
    for i in range(150)
)
_MULTICLASS = ["accuracy", "kappa", "scott_pi_true_margin", "maxwell_re", "csi"]
_POSTED = {
    "r_prime": [0.3165, 0.6898, 0.8741, 0.8689, 0.9662],
    "kappa": [0.2384, 0.6551, 0.8601, 0.8543, 0.9624],
    "macro_precision": [0.2731, 0.8007, 0.886, 0.897, 0.9658],
}
_SEARCHED = {
    "index": "accuracy",
    "slices": {"device": ["ios", "web", "web"] * 50, "age": [20 + 7 * i % 61 for i in range(150)]},
    "y_true": ["cat", "dog"] * 75,
    "y_pred": ["cat", "dog", "cat"] * 50,
}


@router.post(
    "/v1/studies/slices",
    summary="In which slices is a model weak?",
    description="Searches the values of up to 20 columns and their crossings, up to three. Half of "
    "the items, drawn with a seed, propose slices (with the pruning of SliceLine: Sagadeeva, Boehm "
    "2021); the other half tests them, so that `weak` errs in at most 1 - `confidence` of all "
    "searches, and `detectable` says what would have been found. The body is JSON with `slices`, "
    "or columns `slice:<name>`. Weights and `groups` are refused.",
    responses=route_responses(
        "The slices that were proposed and tested.", SliceSearchReport, *BODY_PROBLEMS
    ),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                **json_content(one_of(SEARCH_REQUESTS), example=_SEARCHED),
                **{media: {"schema": form["schema"]} for media, form in COLUMNS.items()},
                "text/csv": TEXT | {"example": _CSV},
            },
        },
        "parameters": [REQUEST_PARAMETER],
    },
)
@requires("evaluate", cost="heavy")
async def study_slices(request: Request) -> Response:
    """Return the slices that were found; large bodies are read in a worker process."""
    media, limits = media_type(request, (JSON, *COLUMNS)), get_services(request).limits
    kind = COLUMN_KINDS.get(media)
    options = ResponseOptions(limits=limits, form=None, include=(), kind=kind, search=True)
    if kind is not None:
        answer = await answer_columns(request, options, evaluate_stream)
    else:
        if request.query_params:
            detail = "With JSON there are no parameters; `request` is for columns."
            raise refuse("/query/request", "unknown_parameter", detail)
        chunks = await read_chunks(request, limits.json_body_bytes)
        answer = await evaluate_json_in_worker(request, chunks, options, evaluate_stream)
    assert isinstance(answer, RenderedReport)  # noqa: S101 (a search is never stored)
    return Response(answer.content, media_type=JSON)


@router.post(
    "/v1/studies/discrimination",
    summary="Where can an index not tell two classifiers apart?",
    description="Discrimination lines (Labatut, Cherifi 2011). A classifier of series x is right "
    "with probability c_x in every class; one of series y with c_y in class 1, and always in the "
    "others; errors are spread evenly. A line has the pairs (c_x, c_y) to which an index gives "
    "the same value; above it the index prefers series y. With `Accept: image/svg+xml`, "
    "`image/png` or `application/pdf` the answer is a figure.",
    responses=route_responses(
        "The lines, each point exact to 1e-9.",
        json_content(DiscriminationReport) | IMAGES,
        *("not_acceptable", *BODY_PROBLEMS),
    ),
    openapi_extra=json_body(
        DiscriminationRequest,
        example={"indices": [*_MULTICLASS, {"index": "f1", "class": 1}], "k": [3], "p": [0, 1]},
    ),
)
@requires("evaluate", cost="heavy")
async def study_discrimination(request: Request) -> Response:
    """Return discrimination lines, or a figure of them."""
    media = preferred(request, (JSON, *MEDIA_TYPES.values()))
    body, limits = await read_json_pieces(request, LARGEST), get_services(request).limits
    if media == JSON:
        content = await in_worker(request, partial(discrimination_request, limits=limits), body)
        return Response(content, media_type=JSON)
    form = next(form for form, kind in MEDIA_TYPES.items() if kind == media)
    image = await draw_figure_of(request, partial(figure_of_lines, limits=limits, form=form), body)
    headers = {"Content-Security-Policy": PAGE_POLICY}
    return Response(image, headers=headers, media_type=media)


@router.get(
    "/v1/studies/discrimination/figures/{number}.{form}",
    summary="A figure of Labatut and Cherifi",
    description="`number` is 1 to 5, as in the paper; `form` is `svg`, `png` or `pdf`.",
    responses=RESPONSES,
)
@requires("evaluate", "read", cost="heavy")
async def get_printed_figure(request: Request, number: int, form: str) -> Response:
    """Return the image."""
    if number not in FIGURES or form not in MEDIA_TYPES:
        raise Problem("not_found")
    canvas = Canvas(form)
    etag = etag_of(__version__, library(), number, form)
    if is_known(request, etag):
        return unchanged(etag)
    image = await draw_figure_of(request, partial(printed_figure, number=number, form=canvas.form))
    return answer_image(image, etag, canvas)


@router.post(
    "/v1/studies/agreement",
    summary="How far do indices agree over many models?",
    description="Pearson, Spearman and Kendall correlation and the root mean squared difference "
    "of every two indices over several models (Zhang, Su, Dou 2021, section 4.2), the quartiles "
    "that box plots show, and the pairs of models on which two indices disagree about which is "
    "better.",
    responses=route_responses("The agreement.", AgreementReport, *BODY_PROBLEMS),
    openapi_extra=json_body(AgreementRequest, example={"values": _POSTED}),
)
@requires("evaluate", cost="heavy")
async def study_agreement(request: Request) -> Response:
    """Return the agreement of indices."""
    body, limits = await read_json_pieces(request, LARGEST), get_services(request).limits
    document = await in_worker(request, partial(agreement_request, limits=limits), body)
    return Response(document, media_type=JSON)
