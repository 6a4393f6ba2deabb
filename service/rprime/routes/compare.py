"""Compare a candidate with a baseline, and simulate a gate on unchanged models."""

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Request, Response

from rprime.application.compare import compare_in_worker
from rprime.application.lint import lint_request, plan_request
from rprime.auth.access import access_of, requires
from rprime.core.gates.lint import LintReport
from rprime.core.gates.plan import PlanReport
from rprime.problems.problem import responses
from rprime.routes.descriptions import (
    BODY_PROBLEMS,
    GATES,
    MNIST_AFTER,
    MNIST_BEFORE,
    VERDICT,
    json_body,
    route_responses,
)
from rprime.routes.negotiation import JSON, verdict_header
from rprime.routes.services import get_services, read_json_pieces
from rprime.routes.workers import in_worker, in_worker_with_store
from rprime.schemas.published import one_of
from rprime.schemas.report import CompareReport
from rprime.schemas.request import CompareRequest
from rprime.schemas.simulation import LINT_REQUESTS, PLAN_REQUESTS
from rprime.server.worker_limits import CPU_SECONDS
from rprime.settings import Limits


def _priced(simulate: Callable[..., bytes], limits: Limits) -> Callable[[bytes], bytes]:
    """Have a simulation refused that takes more processor time than a worker has."""
    return partial(simulate, limits=limits, most_seconds=CPU_SECONDS)


router = APIRouter(tags=["Comparison"], default_response_class=Response)


@router.post(
    "/v1/compare",
    summary="Compare a candidate with a baseline",
    description="Each side is its own evidence or names a stored evaluation, by its id, or in a "
    "`project` by a version, an alias, a branch or as the latest; or the baseline is other "
    "predictions (`y_pred`) for the candidate's items. Paired if both sides carry the items of "
    "one test set, else unpaired. Every difference is candidate minus baseline. A stored "
    "evaluation needs a key with the scope `read`.",
    responses=route_responses("The comparison.", CompareReport, *BODY_PROBLEMS, headers=VERDICT)
    | responses("no_store", "baseline_not_found", "candidate_not_found"),
    openapi_extra=json_body(
        CompareRequest, example={"candidate": MNIST_BEFORE, "baseline": MNIST_AFTER, "gates": GATES}
    ),
)
@requires("evaluate", cost="heavy")
async def compare(request: Request) -> Response:
    """Return the comparison and, if the request has gates, the verdict."""
    body, limits = await read_json_pieces(request), get_services(request).limits
    work = partial(compare_in_worker, limits=limits, may_use=access_of(request).may_use)
    report, verdict = await in_worker_with_store(request, work, body)
    return Response(report, media_type=JSON, headers=verdict_header(verdict))


@router.post(
    "/v1/gates/lint",
    summary="How often would a gate fail an unchanged model?",
    description="Simulates the gate, with a seed, on pairs of models that both behave as the "
    "evidence says: how often it fails only by chance, and which drop it detects with 80 % power. "
    "Rules about scores are not simulated.",
    responses=route_responses("The simulated rates.", LintReport, *BODY_PROBLEMS),
    openapi_extra=json_body(one_of(LINT_REQUESTS), example={"gates": GATES, **MNIST_AFTER}),
)
@requires("evaluate", cost="heavy")
async def lint_gate(request: Request) -> Response:
    """Return how often the gate fails by chance."""
    body, limits = await read_json_pieces(request), get_services(request).limits
    report = await in_worker(request, _priced(lint_request, limits), body)
    return Response(report, media_type=JSON)


@router.post(
    "/v1/gates/plan",
    summary="How many items does a gate need?",
    description="Simulates the gate on larger and smaller test sets with the classes and errors of "
    "the evidence: how many items, in which classes, until an unchanged model passes in 90 % of "
    "runs and a drop is found in 80 %.",
    responses=route_responses("The numbers of items.", PlanReport, *BODY_PROBLEMS),
    openapi_extra=json_body(one_of(PLAN_REQUESTS), example={"gates": GATES, **MNIST_AFTER}),
)
@requires("evaluate", cost="heavy")
async def plan_gate(request: Request) -> Response:
    """Return the numbers of items."""
    body, limits = await read_json_pieces(request), get_services(request).limits
    report = await in_worker(request, _priced(plan_request, limits), body)
    return Response(report, media_type=JSON)
