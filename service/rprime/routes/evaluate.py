"""POST /evaluate and its batch: evidence in, report out."""

from dataclasses import replace
from http import HTTPStatus

import orjson
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from rprime.application import EvaluationRequest, read_request
from rprime.application.evaluate import (
    Answer,
    RenderedReport,
    ResponseOptions,
    answered,
    evaluate_body,
)
from rprime.auth.access import requires
from rprime.core.evaluate import Evaluation
from rprime.evidence import MEDIA_TYPES
from rprime.problems.handlers import request_id_of
from rprime.problems.problem import Problem, refuse, responses
from rprime.routes import store_evaluation
from rprime.routes.batching import RequestBatcher, evaluate_together, stack_key
from rprime.routes.descriptions import (
    BODY_PROBLEMS,
    COLUMNS,
    REPORT,
    REQUEST_PARAMETER,
    TEXT,
    VERDICT,
    json_body,
    json_content,
    response_of,
)
from rprime.routes.examples import EXAMPLES, Json
from rprime.routes.negotiation import JSON, rendered, wanted_format
from rprime.routes.request_route import RequestRoute, check_repeated
from rprime.routes.services import Services, get_services, get_store
from rprime.routes.store_lifespan import problem_of
from rprime.routes.workers import LARGE, answer_columns, evaluate_json_in_worker
from rprime.schemas import one_of
from rprime.schemas.document import parse_batch
from rprime.schemas.request import EVALUATE_REQUESTS
from rprime.server.body import media_type, read_body, read_chunks
from rprime.store.insertion import EvaluationDeletedError

SMALL = 256 * 1024
"""Bytes. A larger body would delay small requests, so a thread evaluates it."""
MANY_SLICES = 300
"""Each takes up to half a millisecond of the interpreter lock, so a worker evaluates more."""

_ACCEPTED = (JSON, *MEDIA_TYPES)
_BatchAnswer = tuple[int, bytes] | Problem
"""The status and the report of one request of a batch, or its problem."""

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
    "description": "`table` adds the table itself to the report.",
    "schema": {"type": "string", "enum": ["table"]},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "For evaluations with a project: a repetition with the same key and body gets "
    "the same answer and stores nothing. Without a project there is nothing to store, and every "
    "repetition gets the same answer anyway.",
    "schema": {"type": "string", "minLength": 1, "maxLength": store_evaluation.LONGEST_KEY},
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
@requires("evaluate")
async def evaluate(request: Request) -> Response:
    """Return the report."""
    media = media_type(request, _ACCEPTED)
    columns = MEDIA_TYPES.get(media)
    services: Services = request.app.state.services
    has_query = bool(request.scope["query_string"])
    form = wanted_format(request)
    with_table = has_query and _wants_table(request, columnar=columns is not None)
    options = ResponseOptions(services.limits, form, with_table=with_table, kind=columns)
    answer = await _evaluated(request, options, services.batcher)
    if isinstance(answer, RenderedReport):
        kind, verdict = answer.evidence, answer.verdict
        headers = {"Evaluation-Verdict": verdict} if verdict else None
        response = rendered(answer.content, options.form, headers=headers)
    else:
        response = await store_evaluation.store_and_respond(request, answer, options)
        kind = answer.evidence.kind
        verdict = response.headers.get("Evaluation-Verdict")
    services.metrics.evaluations.labels(kind, verdict or "none").inc()
    return response


async def _evaluated(request: Request, options: ResponseOptions, batcher: RequestBatcher) -> Answer:
    """Evaluate here, in a thread or in a worker process, whichever delays other requests least."""
    if options.kind is not None:
        return await answer_columns(request, options)
    chunks = await read_chunks(request, options.limits.json_body_bytes)
    if sum(map(len, chunks)) > min(SMALL, options.limits.json_body_bytes // 8):
        return await _evaluated_apart(request, chunks, options)
    body = b"".join(chunks)
    evaluation_request = read_request(body, options.limits)
    asked, sliced = evaluation_request.options, evaluation_request.evidence.slices is not None
    slow = sliced or asked.curves or asked.intervals == "all"
    if slow and (
        _slices_of(evaluation_request) > MANY_SLICES or evaluation_request.resamples_scores
    ):
        return await evaluate_json_in_worker(request, [body], options)
    stored = evaluation_request.store_request
    if stored is not None:
        stored = replace(stored, payload=body, large=slow)
        return replace(evaluation_request, store_request=stored)
    if slow:
        return await run_in_threadpool(answered, evaluation_request, body, options)
    evaluation = await batcher.evaluate(evaluation_request)
    content = evaluation_request.report(evaluation, options.form, with_table=options.with_table)
    return RenderedReport(content, evaluation_request.evidence.kind, evaluation_request.verdict)


async def _evaluated_apart(
    request: Request, chunks: list[bytes], options: ResponseOptions
) -> Answer:
    """Evaluate a larger JSON body in a thread, or in a worker if it is large or may take long."""
    if sum(map(len, chunks)) > min(LARGE, options.limits.json_body_bytes // 8):
        return await evaluate_json_in_worker(request, chunks, options)
    body = b"".join(chunks)
    if b'slices"' in body or b'"all"' in body:
        return await evaluate_json_in_worker(request, [body], options)
    return await run_in_threadpool(evaluate_body, body, options)


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
        200: response_of("Every request got a report.", "BatchReport"),
        207: response_of("Some requests got a problem instead of a report.", "BatchReport"),
    },
    openapi_extra={
        "parameters": [_INCLUDE, _KEY],
        **json_body(_BATCH, example={"requests": [one["value"] for one in EXAMPLES.values()]}),
    },
)
@requires("evaluate")
async def evaluate_batch(request: Request) -> Response:
    """Return a report or a problem for each request."""
    with_table = _wants_table(request)
    media_type(request, [JSON])
    body = await read_body(request, get_services(request).limits.json_body_bytes)
    status, report = await run_in_threadpool(_answer_batch, request, body, with_table=with_table)
    return Response(report, status, media_type=JSON)


def _answer_batch(request: Request, body: bytes, *, with_table: bool) -> tuple[HTTPStatus, bytes]:
    """Answer a batch: 200, or 207 if some requests have a problem; and the results as JSON."""
    limits = get_services(request).limits
    documents = parse_batch(body, limits.batch_requests, limits.json_depth)
    key = store_evaluation.idempotency_key_of(request, body)
    requests: dict[int, EvaluationRequest] = {}
    answers: dict[int, _BatchAnswer] = {}
    for i, given in enumerate(documents):
        try:
            one = read_request(given, limits)
            store_evaluation.check_access(request, one.store_request)
            requests[i] = one
        except Problem as problem:
            answers[i] = problem
    answers |= _refused_as_slow(requests)
    # Each evaluation is stored under a key of its own, so that a repetition of a batch that was
    # interrupted stores the rest of it.
    keys = {
        i: replace(key, key=f"{key.key}\n{i}")
        for i, one in requests.items()
        if key is not None and i not in answers and one.store_request is not None
    }
    answers |= _earlier_answers(request, keys)
    requests = {i: one for i, one in requests.items() if i not in answers}
    for i, found in _evaluated_together(requests).items():
        one, its_key = requests[i], keys.get(i)
        answers[i] = _reported(request, one, found, with_table=with_table, key=its_key)
    results: list[bytes] = []
    status = HTTPStatus.OK
    for _, answer in sorted(answers.items()):
        if isinstance(answer, Problem):
            status = HTTPStatus.MULTI_STATUS
            document = orjson.dumps(answer.document(request_id_of(request)))
            results.append(b'{"status":%d,"problem":%b}' % (answer.status, document))
        else:
            results.append(b'{"status":%d,"report":%b}' % answer)
    return status, b'{"results":[%b]}' % b",".join(results)


def _refused_as_slow(requests: dict[int, EvaluationRequest]) -> dict[int, Problem]:
    """Refuse the requests of a batch that together, or alone, take too long for it."""
    detail = "Intervals that are drawn from scores take seconds. Send this request alone."
    slow = (i for i, one in requests.items() if one.resamples_scores)
    refused = dict.fromkeys(slow, refuse("/intervals", "misplaced", detail))
    sliced = {i: slices for i, one in requests.items() if (slices := _slices_of(one))}
    if sum(sliced.values()) > MANY_SLICES:
        detail = f"The requests of a batch have at most {MANY_SLICES} slices together."
        problem = refuse("/slices", "too_many_slices", detail + " Send this one alone.")
        refused |= dict.fromkeys(sliced, problem)
    return refused


def _slices_of(evaluation_request: EvaluationRequest) -> int:
    """Count the slices of a request."""
    slices = evaluation_request.evidence.slices
    return 0 if slices is None else len(slices.names)


def _earlier_answers(
    request: Request, keys: dict[int, store_evaluation.IdempotencyKey]
) -> dict[int, _BatchAnswer]:
    """Return what requests of a batch were answered before; one with another body is refused."""
    answers: dict[int, _BatchAnswer] = {}
    if not get_services(request).store.is_open:
        return answers
    for i, key in keys.items():
        try:
            replay = get_store(request).replay(key.owner, key.key, key.payload)
        except EvaluationDeletedError:
            answers[i] = Problem("evaluation_deleted")
        else:
            if replay is not None:
                answers[i] = replay.status, replay.body
    return answers


def _evaluated_together(requests: dict[int, EvaluationRequest]) -> dict[int, Evaluation]:
    """Evaluate requests, those that share a key as one stack."""
    groups: dict[object, list[int]] = {}
    for i, one in requests.items():
        key = stack_key(one)
        groups.setdefault(i if key is None else key, []).append(i)
    evaluations: dict[int, Evaluation] = {}
    for slots in groups.values():
        found = evaluate_together([requests[i] for i in slots])
        evaluations |= zip(slots, found, strict=True)
    return evaluations


def _reported(
    request: Request,
    evaluation_request: EvaluationRequest,
    evaluation: Evaluation,
    *,
    with_table: bool,
    key: store_evaluation.IdempotencyKey | None,
) -> _BatchAnswer:
    """Report on one request of a batch; store it first if it names a project."""
    services = get_services(request)
    if evaluation_request.store_request is None:
        content = evaluation_request.report(evaluation, with_table=with_table)
        status, verdict = int(HTTPStatus.OK), evaluation_request.verdict
    else:
        options = ResponseOptions(services.limits, None, with_table=with_table)
        try:
            storing = store_evaluation.Storing(get_store(request), options, key)
            stored = storing.in_thread(evaluation_request, evaluation)
        except Exception as error:
            known = error if isinstance(error, Problem) else problem_of(error)
            if known is None:
                raise
            return known
        status, content, verdict = stored.status, stored.content, stored.verdict
    services.metrics.evaluations.labels(evaluation_request.evidence.kind, verdict or "none").inc()
    return status, content


def _wants_table(request: Request, *, columnar: bool = False) -> bool:
    check_repeated(request.query_params)
    given = dict(request.query_params)
    if columnar:
        given.pop("request", None)
    if given in ({}, {"include": "table"}):
        return bool(given)
    detail = (
        "The query parameters are `include=table` and `request`, a JSON object of everything else."
        if columnar
        else "The only query parameter is `include=table`; all else is a member of the body."
    )
    raise refuse("/query", "unknown_parameter", detail)
