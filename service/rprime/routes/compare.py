"""Compare a candidate with a baseline, and simulate a gate on unchanged models."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from rprime.application import compare_request, lint_request, plan_request
from rprime.auth.access import access_of, requires
from rprime.history.visible_history import VisibleHistory
from rprime.problems.problem import responses
from rprime.routes.evaluate import VERDICT, json_content, schema_reference, verdict_header
from rprime.routes.examples import GATES, MNIST_AFTER, MNIST_BEFORE
from rprime.routes.negotiation import JSON
from rprime.routes.services import get_services, readable_store
from rprime.server.body import media_type, read_body

router = APIRouter(tags=["Comparison"])

_PROBLEMS = responses(
    "unreadable_body",
    "body_too_large",
    "unsupported_media_type",
    "unsupported_encoding",
    "invalid_request",
    "internal_error",
    "overloaded",
)


@router.post(
    "/v1/compare",
    summary="Compare a candidate with a baseline",
    description="Each side is its own evidence or a stored evaluation, or the baseline is other "
    "predictions (`y_pred`) for the candidate's items. Paired if both sides carry the items of "
    "one test set, else unpaired. Every difference is candidate minus baseline. A stored "
    "evaluation needs a key with the scope `read`.",
    response_class=Response,
    responses={
        **_PROBLEMS,
        **responses("no_store", "baseline_not_found"),
        200: {
            "description": "The comparison.",
            "headers": VERDICT,
            "content": json_content(schema_reference("CompareReport")),
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": json_content(
                schema_reference("CompareRequest"),
                example={"candidate": MNIST_BEFORE, "baseline": MNIST_AFTER, "gates": GATES},
            ),
        }
    },
)
@requires("evaluate")
async def compare(request: Request) -> Response:
    """Return the comparison and, if the request has gates, the verdict."""
    media_type(request, [JSON])
    limits = get_services(request).limits
    body = await read_body(request, limits.json_body_bytes)
    visible_history = VisibleHistory(lambda: readable_store(request), access_of(request).may_use)
    report, verdict = await run_in_threadpool(compare_request, body, limits, visible_history)
    return Response(report, media_type=JSON, headers=verdict_header(verdict))


@router.post(
    "/v1/gates/lint",
    summary="How often would a gate fail an unchanged model?",
    description="Simulates the gate, with a seed, on pairs of models that both behave as the table "
    "says: how often it fails by chance alone, and which drop it detects with 80 % power.",
    response_class=Response,
    responses={
        **_PROBLEMS,
        200: {
            "description": "The simulated rates.",
            "content": json_content(schema_reference("LintReport")),
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": json_content(
                schema_reference("LintRequest"),
                example={"gates": GATES, **MNIST_AFTER},
            ),
        }
    },
)
@requires("evaluate")
async def lint_gate(request: Request) -> Response:
    """Return how the gate would judge an unchanged model."""
    media_type(request, [JSON])
    limits = get_services(request).limits
    body = await read_body(request, limits.json_body_bytes)
    return Response(await run_in_threadpool(lint_request, body, limits), media_type=JSON)


@router.post(
    "/v1/gates/plan",
    summary="How many items does a gate need?",
    description="Simulates the gate on larger and smaller test sets with the classes and errors of "
    "the table: how many items, in which classes, until an unchanged model passes in 90 % of runs "
    "and a drop is found in 80 %.",
    response_class=Response,
    responses={
        **_PROBLEMS,
        200: {
            "description": "The numbers of items.",
            "content": json_content(schema_reference("PlanReport")),
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": json_content(
                schema_reference("PlanRequest"),
                example={"gates": GATES, **MNIST_AFTER},
            ),
        }
    },
)
@requires("evaluate")
async def plan_gate(request: Request) -> Response:
    """Return how many items the gate needs."""
    media_type(request, [JSON])
    limits = get_services(request).limits
    body = await read_body(request, limits.json_body_bytes)
    return Response(await run_in_threadpool(plan_request, body, limits), media_type=JSON)
