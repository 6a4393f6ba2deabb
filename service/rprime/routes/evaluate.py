"""POST /evaluate and its batch: evidence in, report out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

import orjson
from fastapi import APIRouter, Request, Response

from rprime.application import EvaluationRequest, read_request
from rprime.application.evaluate import RenderedReport, ResponseOptions, evaluate_stream
from rprime.application.work import TIMES_JSON
from rprime.auth.access import requires
from rprime.core.published import Json
from rprime.evidence import MEDIA_TYPES
from rprime.history.storing import LONGEST_KEY, StoredResponse, answer_batch, evaluate_and_store
from rprime.problems.handlers import request_id_of
from rprime.problems.problem import Problem, refuse, responses
from rprime.routes import store_calls
from rprime.routes.descriptions import (
    BODY_PROBLEMS,
    COLUMNS,
    EXAMPLES,
    REPORT,
    REQUEST_PARAMETER,
    TEXT,
    VERDICT,
    json_body,
    json_content,
    response_of,
)
from rprime.routes.negotiation import JSON, rendered, wanted_format
from rprime.routes.request_route import RequestRoute, check_repeated, refuse_unknown
from rprime.routes.services import Services, get_services
from rprime.routes.store_calls import idempotency_key_of
from rprime.routes.store_lifespan import problem_of
from rprime.routes.workers import answer_columns, evaluate_json_in_worker, in_worker_with_store
from rprime.schemas.published import one_of
from rprime.schemas.report import BatchReport
from rprime.schemas.request import EVALUATE_REQUESTS
from rprime.server.body import media_type, read_chunks

SMALL = 256 * 1024
"""Bytes. A larger body would delay small requests, so a worker reads it."""
TINY = 16 * 1024
"""Bytes. What is decoded from a larger body counts as memory."""

Evaluate = Callable[..., RenderedReport | StoredResponse | EvaluationRequest]
_ACCEPTED = (JSON, *MEDIA_TYPES)

router = APIRouter(tags=["Evaluation"], route_class=RequestRoute, default_response_class=Response)

_PROBLEMS = responses(
    *BODY_PROBLEMS,
    *("bad_request", "not_found", "baseline_not_found", "not_acceptable", "no_store"),
    *("idempotency_key_running", "evaluation_deleted", "idempotency_key_reused"),
    *("store_unavailable", "store_full", "project_quota_exceeded"),
)
_DESCRIPTION = """\
Send exactly one kind of evidence, and any options. The report has every index that the evidence
allows: overall, for each class and averaged, with intervals and warnings.

With a `project` the evaluation is stored, and the answer is 201 once it is on the disk; without a
project nothing is stored. A `baseline` may name a stored evaluation. A repeated request gets 200
and the evaluation already stored, whatever its `Idempotency-Key`; with the same key it gets exactly
the first answer for 24 hours.

An index that does not exist is null with a `reason`. Class names are brought into Unicode form NFC
and stripped of surrounding white space.
"""


_INCLUDE = {
    "name": "include",
    "in": "query",
    "description": "`table` adds the table itself to the report. `cells` adds to its comparison "
    "the cells of the table that changed most, and what each confusion contributes to the change "
    "of an index.",
    "schema": {"type": "string", "enum": ["table", "cells", "table,cells"]},
    "example": "table",
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "For evaluations with a project: a repetition with the same key and body gets "
    "the same answer and stores nothing. Without a project there is nothing to store, and every "
    "repetition gets the same answer anyway.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}
_EVALUATE: Json = {
    "summary": "Evaluate a classifier",
    "description": _DESCRIPTION,
    "responses": {
        **_PROBLEMS,
        200: {
            "description": "The report. With a project: the evaluation had been stored before.",
            "headers": VERDICT,
            "content": REPORT,
        },
        201: {
            "description": "The report on an evaluation that is now stored at Location.",
            "headers": {"Location": TEXT, **VERDICT},
            "content": REPORT,
        },
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {**json_content(one_of(EVALUATE_REQUESTS), examples=EXAMPLES), **COLUMNS},
        },
        "parameters": [_INCLUDE, REQUEST_PARAMETER, _KEY],
    },
}


@router.post("/evaluate", **_EVALUATE)
@router.post("/v1/evaluate", name="evaluate_v1", **_EVALUATE)
@requires("evaluate", cost="heavy")
async def evaluate(request: Request) -> Response:
    """Return the report."""
    media = media_type(request, _ACCEPTED)
    columns = MEDIA_TYPES.get(media)
    services: Services = request.app.state.services
    if "idempotency-key" in request.headers:  # a wrong one is refused, needed or not
        idempotency_key_of(request, b"")
    has_query = bool(request.scope["query_string"])
    form = wanted_format(request)
    include = _included(request, columnar=columns is not None) if has_query else frozenset[str]()
    options = ResponseOptions(services.limits, form, include=include, kind=columns)
    answer = await _evaluated(request, options, services)
    if isinstance(answer, RenderedReport):
        kind, verdict = answer.evidence, answer.verdict
        headers = {"Evaluation-Verdict": verdict} if verdict else None
        response = rendered(answer.content, options.form, headers=headers)
    elif isinstance(answer, StoredResponse):
        assert answer.evidence is not None  # noqa: S101 (the worker read it)
        kind, verdict = answer.evidence, answer.verdict
        response = store_calls.respond_stored(answer, options)
    else:
        response = await store_calls.store_and_respond(request, answer, options)
        kind = answer.evidence.kind
        verdict = response.headers.get("Evaluation-Verdict")
    services.metrics.evaluations.labels(kind, verdict or "none").inc()
    return response


async def _evaluated(
    request: Request, options: ResponseOptions, services: Services
) -> RenderedReport | StoredResponse | EvaluationRequest:
    """Evaluate here or in a worker process; leave small evaluations to be stored with others."""
    # Without a store a worker needs no database.
    work: Evaluate = evaluate_and_store if services.store.is_kept else evaluate_stream
    if options.kind is not None:
        return await answer_columns(request, options, work)
    chunks = await read_chunks(request, options.limits.json_body_bytes)
    size = sum(map(len, chunks))
    if size > min(SMALL, options.limits.json_body_bytes // 8):
        return await evaluate_json_in_worker(request, chunks, options, work)
    if size > TINY:
        services.admission.hold(request.scope, TIMES_JSON * size)
    body = b"".join(chunks)
    evaluation_request = read_request(body, options.limits)
    request_options, sliced = (
        evaluation_request.options,
        evaluation_request.evidence.slices is not None,
    )
    if sliced or request_options.curves or request_options.intervals == "all":
        return await evaluate_json_in_worker(request, [body], options, work)
    stored = evaluation_request.store_request
    if stored is not None:
        return replace(evaluation_request, store_request=replace(stored, payload=body))
    evaluation = await services.batcher.evaluate(evaluation_request)
    content = evaluation_request.report(evaluation, options.form, include=options.include)
    return RenderedReport(content, evaluation_request.evidence.kind, evaluation_request.verdict)


_REQUESTS: Json = {"type": "array", "description": "Each is what `POST /v1/evaluate` takes."}
_REQUESTS |= {"minItems": 1, "maxItems": 100, "items": one_of(EVALUATE_REQUESTS)}
_BATCH: Json = {"type": "object", "additionalProperties": False}
_BATCH |= {"required": ["requests"], "properties": {"requests": _REQUESTS}}


@router.post(
    "/v1/evaluate/batch",
    summary="Evaluate many classifiers at once",
    description="Up to 100 requests of `POST /evaluate`, each answered on its own. Tables of "
    "equal size with equal options are computed as one stack.",
    responses={
        **_PROBLEMS,
        200: response_of("Every request got a report.", BatchReport),
        207: response_of("Some requests got a problem instead of a report.", BatchReport),
    },
    openapi_extra={
        "parameters": [_INCLUDE, _KEY],
        **json_body(
            _BATCH, example={"requests": [example["value"] for example in EXAMPLES.values()]}
        ),
    },
)
@requires("evaluate", cost="heavy")
async def evaluate_batch(request: Request) -> Response:
    """Return a report or a problem for each request."""
    include = _included(request)
    media_type(request, [JSON])
    services = get_services(request)
    idempotency_key_of(request, b"")
    body = await read_chunks(request, services.limits.json_body_bytes)
    work = partial(answer_batch, limits=services.limits, include=include)
    answers = await in_worker_with_store(request, work, body)
    status, results = HTTPStatus.OK, list[bytes]()
    for answer in answers:
        if isinstance(answer, Exception):
            status = HTTPStatus.MULTI_STATUS
            problem = answer if isinstance(answer, Problem) else problem_of(answer)
            if problem is None:
                raise answer
            document = orjson.dumps(problem.document(request_id_of(request)))
            results.append(b'{"status":%d,"problem":%b}' % (problem.status, document))
        else:
            services.metrics.evaluations.labels(answer.evidence, answer.verdict or "none").inc()
            results.append(b'{"status":%d,"report":%b}' % (answer.status, answer.report))
    return Response(b'{"results":[%b]}' % b",".join(results), status, media_type=JSON)


def _included(request: Request, *, columnar: bool = False) -> frozenset[str]:
    """Return what the answer has on request."""
    check_repeated(request.query_params)
    detail = f"`include` is `table`, `cells` or `table,cells`{_ELSEWHERE[columnar]}"
    refuse_unknown(
        request.query_params, ("include", "request") if columnar else ("include",), detail
    )
    include = request.query_params.get("include")
    names = frozenset() if include is None else frozenset(include.split(","))
    if not names <= {"table", "cells"}:
        raise refuse("/query/include", "unknown_parameter", detail)
    return names


_ELSEWHERE = (
    ", the only query parameter; all else is a member of the body.",
    "; the other query parameter is `request`, a JSON object of everything else.",
)
