"""Answer a batch of requests, in a worker."""

import hashlib
from dataclasses import dataclass
from http import HTTPStatus

from rprime.application import EvaluationRequest, read_request
from rprime.application.evaluate import ResponseOptions
from rprime.application.stacking import evaluate_together, stack_key
from rprime.application.work import RemoteStore, is_of_store
from rprime.core.evaluate import Evaluation
from rprime.history.storing import StoredResponse, Storing
from rprime.problems.problem import Problem, refuse
from rprime.schemas.document import parse_batch
from rprime.settings import Limits
from rprime.store.insertion import EvaluationDeletedError

MOST_SLICES = 300
"""Of all requests of a batch together."""


@dataclass(frozen=True)
class Reported:
    """The report of one request of a batch, its kind of evidence, and its verdict, if any."""

    status: int
    report: bytes
    evidence: str
    verdict: str | None


Result = Reported | Exception
"""What a request of a batch has: its report, a problem, or what the store raised."""


def answer_batch(
    body: bytes, store: RemoteStore, *, limits: Limits, with_table: bool
) -> list[Result]:
    """Answer a batch in a worker; what names a project is stored first."""
    documents = parse_batch(body, limits.batch_requests, limits.json_depth)
    results: dict[int, Result] = {}
    requests: dict[int, EvaluationRequest] = {}
    for i, document in enumerate(documents):
        try:
            requests[i] = read_request(document, limits)
        except Problem as problem:
            results[i] = problem
    results |= _refused_as_slow(requests)
    options, digest = ResponseOptions(limits, None, with_table=with_table), b""
    storing: dict[int, Storing] = {}
    for i, evaluation_request in requests.items():
        if i in results or evaluation_request.store_request is None:
            continue
        digest = digest or hashlib.sha256(body).digest()
        begun = _begun(evaluation_request, store, options, batch=(digest, i))
        if isinstance(begun, Storing):
            storing[i] = begun
        else:
            results[i] = begun
    requests = {i: request for i, request in requests.items() if i not in results}
    for i, evaluation in _evaluated_together(requests).items():
        results[i] = _reported(requests[i], evaluation, options, storing.get(i))
    return [result for _, result in sorted(results.items())]


def _begun(
    evaluation_request: EvaluationRequest,
    store: RemoteStore,
    options: ResponseOptions,
    *,
    batch: tuple[bytes, int],
) -> Result | Storing:
    """Look whether a request of a batch may be stored, or was answered before."""
    try:
        key, replay = store.begin(evaluation_request.store_request, batch=batch)
    except (Problem, EvaluationDeletedError) as refused:
        return refused
    storing = Storing(store.as_store, options, key)
    if replay is None:
        return storing
    return _stored(storing.replayed(replay), evaluation_request)


def _refused_as_slow(requests: dict[int, EvaluationRequest]) -> dict[int, Problem]:
    """Refuse the requests of a batch that together, or alone, take too long for it."""
    detail = "Intervals that are drawn from scores take seconds. Send this request alone."
    slow = (i for i, evaluation_request in requests.items() if evaluation_request.resamples_scores)
    refused = dict.fromkeys(slow, refuse("/intervals", "misplaced", detail))
    sliced = {
        i: slices
        for i, evaluation_request in requests.items()
        if (slices := _slices_of(evaluation_request))
    }
    if sum(sliced.values()) > MOST_SLICES:
        detail = f"The requests of a batch have at most {MOST_SLICES} slices together."
        problem = refuse("/slices", "too_many_slices", detail + " Send this one alone.")
        refused |= dict.fromkeys(sliced, problem)
    return refused


def _slices_of(evaluation_request: EvaluationRequest) -> int:
    slices = evaluation_request.evidence.slices
    return 0 if slices is None else len(slices.names)


def _evaluated_together(requests: dict[int, EvaluationRequest]) -> dict[int, Evaluation]:
    """Evaluate requests, those that share a key as one stack."""
    groups: dict[object, list[int]] = {}
    for i, evaluation_request in requests.items():
        key = stack_key(evaluation_request)
        groups.setdefault(i if key is None else key, []).append(i)
    evaluations: dict[int, Evaluation] = {}
    for slots in groups.values():
        stack = evaluate_together([requests[i] for i in slots])
        evaluations |= zip(slots, stack, strict=True)
    return evaluations


def _reported(
    evaluation_request: EvaluationRequest,
    evaluation: Evaluation,
    options: ResponseOptions,
    storing: Storing | None,
) -> Result:
    """Report on one request of a batch; store it first if it names a project."""
    if storing is None:
        report = evaluation_request.report(evaluation, with_table=options.with_table)
        verdict = evaluation_request.verdict
        return Reported(HTTPStatus.OK, report, evaluation_request.evidence.kind, verdict)
    try:
        return _stored(storing.in_thread(evaluation_request, evaluation), evaluation_request)
    except Exception as error:
        if isinstance(error, Problem) or is_of_store(error):
            return error
        raise


def _stored(answer: StoredResponse, evaluation_request: EvaluationRequest) -> Reported:
    kind = evaluation_request.evidence.kind
    return Reported(answer.status, answer.content, kind, answer.verdict)
