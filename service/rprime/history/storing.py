"""Store an evaluation, or a batch of them, before it is answered, in the service or in a worker."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Self

import orjson

from rprime.application import EvaluationRequest, read_request
from rprime.application.evaluate import (
    RenderedReport,
    ResponseOptions,
    evaluate_stream,
    evaluate_together,
    stack_key,
)
from rprime.application.work import RemoteStore, is_of_store
from rprime.core.evaluate import Evaluation
from rprime.evidence.reader import Kind as EvidenceKind
from rprime.history.pending_evaluation import PendingEvaluation, with_stored_baseline
from rprime.history.stored_report import StoredReport, stored_report
from rprime.problems.problem import Problem, refuse
from rprime.report.formats import Format
from rprime.schemas.document import parse_batch
from rprime.server.worker_channel import Channel
from rprime.settings import Limits
from rprime.store import Idempotency, LookMovedError, Packed, Replay, Store, Stored
from rprime.store.insertion import EvaluationDeletedError
from rprime.store.use import changed, waiting

LONGEST_KEY = 255
MOST_LOOKS = 50
"""How often a gate is judged again because of simultaneous looks at its test set."""


@dataclass(frozen=True)
class IdempotencyKey:
    """An idempotency key: its caller, the key itself, and the digest of the request."""

    owner: str
    key: str
    payload: bytes

    def of_batch(self, number: int) -> Self:
        """Return the key of an evaluation in a batch."""
        return replace(self, key=f"{self.key}\n{number}")


def idempotency_key(
    header: str, owner: str, parts: Sequence[bytes], form: Format | None = None
) -> IdempotencyKey:
    """Return the key in a header, of a request with this query and body; 400 if it is too long."""
    name = header.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if not 0 < len(name) <= LONGEST_KEY:
        detail = f"A request has one Idempotency-Key of 1 to {LONGEST_KEY} characters."
        raise Problem("bad_request", detail)
    query, body = parts
    digest = hashlib.sha256()
    for part in (query, (form.name if form else "json").encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return IdempotencyKey(owner, name, digest.digest())


@dataclass(frozen=True)
class StoredResponse:
    """The answer to a request whose evaluation was stored, and its kind of evidence."""

    status: int
    content: bytes
    evaluation: str
    verdict: str | None
    replayed: bool = False
    evidence: EvidenceKind | None = None


def evaluate_and_store(
    channel: Channel, options: ResponseOptions
) -> RenderedReport | StoredResponse:
    """Answer a large request in a worker; store it first if it names a project."""
    answer = evaluate_stream(channel, options)
    if isinstance(answer, RenderedReport):
        return answer
    return store_evaluated(answer, RemoteStore(channel), options)


def store_evaluated(
    evaluation_request: EvaluationRequest, store: RemoteStore, options: ResponseOptions
) -> StoredResponse:
    """Compute and store an evaluation in a worker, once for each idempotency key.

    403 or 404 without access to its project.
    """
    key, replay = store.begin(evaluation_request.store_request, options.form)
    storing = Storing(store.as_store, options, key)
    answer = storing.in_thread(evaluation_request) if replay is None else storing.replayed(replay)
    return replace(answer, evidence=evaluation_request.evidence.kind)


@dataclass(frozen=True, eq=False)
class Storing:
    """Stores an evaluation and renders the answer to its request. It blocks."""

    store: Store
    options: ResponseOptions
    key: IdempotencyKey | None

    def in_thread(
        self, evaluation_request: EvaluationRequest, evaluation: Evaluation | None = None
    ) -> StoredResponse:
        """Store an evaluation; None: it is computed first."""
        evaluation_request = with_stored_baseline(evaluation_request, self.store)
        evaluation = evaluation or evaluation_request.evaluate()
        return self.put(PendingEvaluation.of(evaluation_request, evaluation))

    def put(self, pending: PendingEvaluation) -> StoredResponse:
        """Store an evaluation; judge it again while others look at its test set."""
        for _ in range(MOST_LOOKS):
            answer = self.answer(pending)
            with waiting():
                (stored,) = self.store.put_many([self.packed(pending, answer)]).result()
            if isinstance(stored, LookMovedError):
                pending = pending.at_look(stored.look)
            elif isinstance(stored, Exception):
                raise stored
            elif stored.created:
                changed()
                return answer
            else:
                return self.earlier(stored, pending)
        raise Problem("overloaded", headers={"Retry-After": "1"})

    def packed(self, pending: PendingEvaluation, answer: StoredResponse | None) -> Packed:
        """Pack an evaluation, with the answer where there is an idempotency key."""
        key = self.key
        if key is None or answer is None:
            return self.store.pack(pending.record)
        kept = Idempotency(**vars(key), status=answer.status, body=answer.content)
        return self.store.pack(pending.record, idempotency=kept)

    def answer(self, pending: PendingEvaluation) -> StoredResponse:
        """Render the answer before the commit, since it is stored with its idempotency key."""
        verdict = pending.evaluation_request.verdict
        return StoredResponse(HTTPStatus.CREATED, self._content(pending), pending.id, verdict)

    def earlier(self, stored: Stored, pending: PendingEvaluation) -> StoredResponse:
        """Return the earlier answer: the replay of its key, or the stored report."""
        if stored.replay is not None:
            return self.replayed(stored.replay)
        evaluation = self.store.get(stored.id)
        report = stored_report(evaluation, self.store, self.options.limits.top_confusions)
        report = replace(report, already=pending.already(evaluation), listed=pending.listed)
        if self.options.form is not None:
            report = report.with_baseline_name(self.store)
        return StoredResponse(HTTPStatus.OK, self._content(report), stored.id, evaluation.verdict)

    def replayed(self, replay: Replay) -> StoredResponse:
        """Return the first answer to a request with this key."""
        verdict = None
        if self.options.form is None:
            verdict = (orjson.loads(replay.body).get("gate") or {}).get("verdict")
        return StoredResponse(replay.status, replay.body, replay.evaluation, verdict, replayed=True)

    def _content(self, source: PendingEvaluation | StoredReport) -> bytes:
        form = self.options.form
        if form is None:
            return source.report(include=self.options.include)
        return form.render(source.subject)


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
    body: bytes, store: RemoteStore, *, limits: Limits, include: Collection[str]
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
    options, digest = ResponseOptions(limits, None, include=include), b""
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
    detail = "Intervals that are drawn from scores take seconds. Send this request by itself."
    slow = (i for i, evaluation_request in requests.items() if evaluation_request.resamples_scores)
    refused = dict.fromkeys(slow, refuse("/intervals", "misplaced", detail))
    sliced = {
        i: slices
        for i, evaluation_request in requests.items()
        if (slices := _slices_of(evaluation_request))
    }
    if sum(sliced.values()) > MOST_SLICES:
        detail = f"The requests of a batch have at most {MOST_SLICES} slices together."
        problem = refuse("/slices", "too_many_slices", detail + " Send this one by itself.")
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
        report = evaluation_request.report(evaluation, include=options.include)
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
