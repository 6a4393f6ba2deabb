"""Evaluation: evidence in, report out."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from rprime.core.evaluate import Evaluation
from rprime.evidence import MEDIA_TYPES, Document
from rprime.inquiry import Inquiry, inquire, parsed_batch, understand
from rprime.inquiry.answering import Question, Report, Unkept, report_on
from rprime.problems import Problem, Violation, responses
from rprime.routes.access import admit, needs
from rprime.routes.body import joined, media_type, read_body, read_pieces
from rprime.routes.columnar import CONTENT, PARAMETER
from rprime.routes.gathering import stack_key, together
from rprime.routes.history import problem_of, store_of
from rprime.routes.keeping import LONGEST_KEY, Keeping, keep, kept_in_thread
from rprime.routes.large import LARGE, answer_columns, answer_json
from rprime.routes.negotiation import JSON, RENDERINGS, rendered, wanted_format
from rprime.routes.problems import request_id_of
from rprime.routes.samples import SAMPLES
from rprime.schemas import evaluate_body

if TYPE_CHECKING:
    from rprime.metrics import Metrics
    from rprime.settings import Limits

SMALL = 256 * 1024
"""Bytes. A larger body would keep small requests waiting, so it goes to a thread."""

_ACCEPTED = (JSON, *MEDIA_TYPES)

router = APIRouter(tags=["Evaluation"])

_PROBLEMS = responses(
    "unreadable_body",
    "bad_request",
    "not_found",
    "not_acceptable",
    "no_store",
    "idempotency_key_running",
    "body_too_large",
    "unsupported_media_type",
    "unsupported_encoding",
    "invalid_request",
    "idempotency_key_reused",
    "internal_error",
    "overloaded",
    "store_unavailable",
    "store_full",
)
_DESCRIPTION = """\
Exactly one kind of evidence, and any options. Every index that exists for it comes back: overall,
for each class and averaged, with intervals and warnings.

With a `project` the evaluation is kept in its history, and the report is answered with 201 once it
is on the disk; without one nothing is stored. A `baseline` may name an evaluation of the history.
The same request once more is answered with 200 and the evaluation that is there already; with an
`Idempotency-Key`, with the very same answer for 24 hours.

An index that does not exist is null with a `reason`. Class names are brought into Unicode form NFC
and stripped of surrounding white space.
"""


def content(schema: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON)
    """Describe a JSON body in the OpenAPI document."""
    return {JSON: {"schema": schema, **more}}


def refer(model: str) -> dict[str, str]:
    """Refer to a schema of the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{model}"}


VERDICT = {
    "Evaluation-Verdict": {
        "description": "What the gate found; only of a request with `gates`.",
        "schema": {"type": "string", "enum": ["pass", "fail", "inconclusive", "no_rules"]},
    }
}
"""The header that `verdict_header` gives, for the OpenAPI document."""
_INCLUDE = {
    "name": "include",
    "in": "query",
    "description": "`table` adds the table itself to the report.",
    "schema": {"type": "string", "enum": ["table"]},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Of a request with a project: a repetition with the same key gets the same "
    "answer, and nothing is stored twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}
_EVALUATE: dict[str, Any] = {
    "summary": "Evaluate a classifier",
    "description": _DESCRIPTION,
    "response_class": Response,
    "responses": {
        **_PROBLEMS,
        200: {
            "description": "The report. With a project: the evaluation was there already.",
            "headers": VERDICT,
            "content": {**content(refer("Report")), **RENDERINGS},
        },
        201: {
            "description": "The report on an evaluation that is now kept at Location.",
            "headers": {"Location": {"schema": {"type": "string"}}, **VERDICT},
            "content": {**content(refer("Report")), **RENDERINGS},
        },
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {**content(evaluate_body(), examples=SAMPLES), **CONTENT},
        },
        "parameters": [_INCLUDE, PARAMETER, _KEY],
    },
}


@router.post("/evaluate", **_EVALUATE)
@router.post("/v1/evaluate", **_EVALUATE)
@needs("evaluate")
async def evaluate(request: Request) -> Response:
    """Answer with a report."""
    media = media_type(request, _ACCEPTED)
    columns = MEDIA_TYPES.get(media)
    with_table = _wants_table(request, columnar=columns is not None)
    form = wanted_format(request)
    limits: Limits = request.app.state.limits
    if columns is not None:
        question = Question(limits, form, with_table, columns)
        return await _answered(request, await answer_columns(request, question), question)
    pieces = await read_pieces(request, limits.json_body_bytes)
    if sum(map(len, pieces)) > LARGE:
        question = Question(limits, form, with_table)
        return await _answered(request, await answer_json(request, pieces, question), question)
    body = joined(pieces)
    if large := len(body) > SMALL:
        inquiry = await run_in_threadpool(inquire, body, limits, keeping=True)
    else:
        inquiry = inquire(body, limits, keeping=True)
    kind = inquiry.evidence.kind
    if inquiry.origin is not None:
        response = await keep(request, inquiry, body, form=form, with_table=with_table, large=large)
        return _counted(request, kind, response)
    if large:
        report = await run_in_threadpool(
            lambda: report_on(inquiry, inquiry.evaluate(), form, with_table=with_table)
        )
    else:
        evaluation = await request.app.state.gathering.evaluate(inquiry)
        report = report_on(inquiry, evaluation, form, with_table=with_table)
    return _counted(request, kind, rendered(report, form, headers=verdict_header(inquiry.verdict)))


async def _answered(request: Request, answer: Report | Unkept, question: Question) -> Response:
    """Send the answer to a large request, after it was kept where it is to be."""
    if isinstance(answer, Report):
        response = rendered(answer.content, question.form, headers=verdict_header(answer.verdict))
        return _counted(request, answer.evidence, response)
    response = await keep(
        request,
        answer.inquiry,
        answer.payload,
        form=question.form,
        with_table=question.with_table,
        large=True,
    )
    return _counted(request, answer.inquiry.evidence.kind, response)


def _counted(request: Request, evidence: str, response: Response) -> Response:
    metrics: Metrics = request.app.state.metrics
    metrics.evaluated(evidence, response.headers.get("Evaluation-Verdict"))
    return response


def verdict_header(verdict: str | None) -> dict[str, str] | None:
    """Give the header that says the verdict of a gate."""
    return None if verdict is None else {"Evaluation-Verdict": verdict}


@router.post(
    "/v1/evaluate/batch",
    summary="Evaluate many classifiers at once",
    description="Up to 100 requests as `POST /evaluate` takes them, each answered on its own. "
    "Tables of equal size with equal options are computed as one stack.",
    response_class=Response,
    responses={
        **_PROBLEMS,
        200: {
            "description": "All requests were answered with a report.",
            "content": content(refer("BatchReport")),
        },
        207: {
            "description": "Some requests have a problem in place of a report.",
            "content": content(refer("BatchReport")),
        },
    },
    openapi_extra={
        "parameters": [_INCLUDE],
        "requestBody": {
            "required": True,
            "content": content(
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["requests"],
                    "properties": {
                        "requests": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 100,
                            "items": evaluate_body(),
                        }
                    },
                },
                example={"requests": [sample["value"] for sample in SAMPLES.values()]},
            ),
        },
    },
)
@needs("evaluate")
async def evaluate_batch(request: Request) -> Response:
    """Answer with a report or a problem for each request."""
    with_table = _wants_table(request)
    media_type(request, [JSON])
    limits: Limits = request.app.state.limits
    body = await read_body(request, limits.json_body_bytes)
    status, report = await run_in_threadpool(_answer_batch, request, body, with_table=with_table)
    return Response(report, status, media_type=JSON)


def _answer_batch(request: Request, body: bytes, *, with_table: bool) -> tuple[HTTPStatus, bytes]:
    """Answer a batch: 200, or 207 where some requests have a problem; and the results, JSON."""
    documents = parsed_batch(body, request.app.state.limits)
    understood = dict(enumerate(_understood(request, document) for document in documents))
    inquiries = {i: found for i, found in understood.items() if isinstance(found, Inquiry)}
    answers: dict[int, tuple[int, bytes] | Problem] = {
        i: found for i, found in understood.items() if isinstance(found, Problem)
    }
    for i, evaluation in _evaluated(inquiries).items():
        answers[i] = _reported(request, inquiries[i], evaluation, with_table=with_table)
    failed = any(isinstance(answer, Problem) for answer in answers.values())
    request_id = request_id_of(request)
    results = (_result(answers[i], request_id) for i in range(len(documents)))
    status = HTTPStatus.MULTI_STATUS if failed else HTTPStatus.OK
    return status, b'{"results":[%b]}' % b",".join(results)


def _result(answer: tuple[int, bytes] | Problem, request_id: str | None) -> bytes:
    if isinstance(answer, Problem):
        problem = orjson.dumps(answer.document(request_id))
        return b'{"status":%d,"problem":%b}' % (answer.status, problem)
    return b'{"status":%d,"report":%b}' % answer


def _understood(request: Request, document: Document) -> Inquiry | Problem:
    try:
        inquiry = understand(document, request.app.state.limits)
        if inquiry.origin is not None:
            admit(request, inquiry.origin.project)
    except Problem as problem:
        return problem
    return inquiry


def _reported(
    request: Request, inquiry: Inquiry, evaluation: Evaluation, *, with_table: bool
) -> tuple[int, bytes] | Problem:
    """Report on one request of a batch, after it was kept where it is to be."""
    metrics: Metrics = request.app.state.metrics
    kind = inquiry.evidence.kind
    if inquiry.origin is None:
        metrics.evaluated(kind, inquiry.verdict)
        return HTTPStatus.OK, inquiry.report(evaluation, with_table=with_table)
    try:
        way = Keeping(
            store=store_of(request),
            form=None,
            with_table=with_table,
            large=True,
            limits=request.app.state.limits,
        )
        answer = kept_in_thread(inquiry, evaluation, way)
    except Problem as problem:
        return problem
    except Exception as error:
        known = problem_of(error)
        if known is None:
            raise
        return known
    metrics.evaluated(kind, answer.verdict)
    return answer.status, answer.content


def _evaluated(inquiries: dict[int, Inquiry]) -> dict[int, Evaluation]:
    """Evaluate inquiries, those that can be stacked as one stack."""
    groups: dict[object, list[int]] = {}
    for i, inquiry in inquiries.items():
        key = stack_key(inquiry)
        groups.setdefault(i if key is None else key, []).append(i)
    return {
        i: evaluation
        for places in groups.values()
        for i, evaluation in zip(places, together([inquiries[i] for i in places]), strict=True)
    }


def _wants_table(request: Request, *, columnar: bool = False) -> bool:
    if not request.scope["query_string"]:
        return False
    given = dict(request.query_params)
    if columnar:
        given.pop("request", None)
    if given in ({}, {"include": "table"}):
        return bool(given)
    more_of = " With columns there may be `request`, too." if columnar else ""
    detail = f"The only parameter is `include`, its only value `table`.{more_of}"
    raise Problem("invalid_request", errors=[Violation("/query", "unknown_parameter", detail)])
