"""Store an evaluation before it is answered, in the service or in a worker."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Self

import orjson

from rprime.application import EvaluationRequest
from rprime.application.evaluate import RenderedReport, ResponseOptions, evaluate_stream
from rprime.application.work import RemoteStore
from rprime.core.evaluate import Evaluation
from rprime.evidence.reader import Kind as EvidenceKind
from rprime.history.pending_evaluation import PendingEvaluation, with_stored_baseline
from rprime.history.stored_report import StoredReport, stored_report
from rprime.problems.problem import Problem
from rprime.report.formats import Format
from rprime.server.worker_channel import Channel
from rprime.store import Idempotency, LookMovedError, Packed, Replay, Store, Stored
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
            return source.report(with_table=self.options.with_table)
        return form.render(source.subject)
