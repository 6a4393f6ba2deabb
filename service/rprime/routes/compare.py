"""Compare a candidate with a baseline, and simulate a gate on unchanged models."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from rprime.application import compare_request, lint_request, plan_request
from rprime.auth.access import access_of, requires
from rprime.history.visible_history import VisibleHistory
from rprime.problems.problem import responses
from rprime.routes.evaluate import VERDICT, json_answer, json_body, schema_reference, verdict_header
from rprime.routes.examples import GATES, MNIST_AFTER, MNIST_BEFORE
from rprime.routes.negotiation import JSON
from rprime.routes.services import get_services, readable_store
from rprime.schemas import one_of
from rprime.schemas.simulation import LINT_REQUESTS, PLAN_REQUESTS
from rprime.server.body import media_type, read_body
from rprime.settings import Limits

router = APIRouter(tags=["Comparison"], default_response_class=Response)

BODY_PROBLEMS = (
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
    responses={
        **responses(*BODY_PROBLEMS),
        **responses("no_store", "baseline_not_found"),
        200: json_answer("The comparison.", "CompareReport", headers=VERDICT),
    },
    openapi_extra=json_body(
        schema_reference("CompareRequest"),
        example={"candidate": MNIST_BEFORE, "baseline": MNIST_AFTER, "gates": GATES},
    ),
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


def _gate_route(
    name: str,
    summary: str,
    description: str,
    *,
    bodies: Sequence[type[BaseModel]],
    answer: dict[str, Any],
    work: Callable[[bytes, Limits], bytes],
) -> None:
    """Add a route that simulates a gate."""

    @requires("evaluate")
    async def simulate(request: Request) -> Response:
        media_type(request, [JSON])
        limits = get_services(request).limits
        body = await read_body(request, limits.json_body_bytes)
        return Response(await run_in_threadpool(work, body, limits), media_type=JSON)

    router.post(
        f"/v1/gates/{name}",
        name=f"{name}_gate",
        summary=summary,
        description=description,
        responses={**responses(*BODY_PROBLEMS), 200: answer},
        openapi_extra=json_body(one_of(bodies), example={"gates": GATES, **MNIST_AFTER}),
    )(simulate)


_gate_route(
    "lint",
    "How often would a gate fail an unchanged model?",
    "Simulates the gate, with a seed, on pairs of models that both behave as the evidence says: "
    "how often it fails by chance alone, and which drop it detects with 80 % power. Rules about "
    "indices of scores need `y_true` and `y_score`.",
    bodies=LINT_REQUESTS,
    answer=json_answer("The simulated rates.", "LintReport"),
    work=lint_request,
)
_gate_route(
    "plan",
    "How many items does a gate need?",
    "Simulates the gate on larger and smaller test sets with the classes and errors of the "
    "evidence: how many items, in which classes, until an unchanged model passes in 90 % of runs "
    "and a drop is found in 80 %.",
    bodies=PLAN_REQUESTS,
    answer=json_answer("The numbers of items.", "PlanReport"),
    work=plan_request,
)
