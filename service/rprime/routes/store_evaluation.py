"""Store an evaluation that names a project before answering it."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rprime.application import EvaluationRequest
from rprime.application.evaluate import ResponseOptions
from rprime.application.stored_options import StoreRequest
from rprime.auth.access import access_of, check_project, check_scopes
from rprime.core.evaluate import Evaluation
from rprime.history.pending_evaluation import PendingEvaluation, needs_store, with_stored_baseline
from rprime.history.stored_report import StoredReport, stored_report
from rprime.problems.problem import Problem
from rprime.problems.root_path import rooted
from rprime.report.formats import Format
from rprime.routes.negotiation import rendered, verdict_header
from rprime.routes.services import Services, get_services, get_store
from rprime.store import Idempotency, KeyRunningError, LookMovedError, Packed, Replay, Store, Stored
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


@dataclass(frozen=True)
class StoredResponse:
    """The answer to a request whose evaluation was stored."""

    status: int
    content: bytes
    evaluation: str
    verdict: str | None
    replayed: bool = False


async def store_and_respond(
    request: Request, found: EvaluationRequest, options: ResponseOptions
) -> Response:
    """Store an evaluation, then answer the request."""
    stored = found.store_request
    assert stored is not None  # noqa: S101 (callers check it)
    check_access(request, stored)
    key = idempotency_key_of(request, stored.payload, options.form)
    storing, services = Storing(get_store(request), options, key), get_services(request)
    if stored.large:
        answer = await storing.once(partial(run_in_threadpool, storing.in_thread, found))
    else:
        with services.store.group_commit.entered():
            answer = await storing.once(partial(storing.with_others, found, services))
    headers = {"Location": rooted(f"/v1/evaluations/{answer.evaluation}")}
    headers |= verdict_header(answer.verdict)
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return rendered(answer.content, options.form, answer.status, headers)


def check_access(request: Request, stored: StoreRequest | None) -> None:
    """Refuse a key that may not use the project, or not read an evaluation by its id: 403, 404."""
    if stored is None:
        return
    check_project(request, stored.project)
    by_id = any(query and query.by == "evaluation" for query in (stored.reference, stored.anchor))
    if by_id or stored.prevalence_of is not None:
        check_scopes(request, "read")


@dataclass(frozen=True, eq=False)
class Storing:
    """Stores an evaluation and renders the answer to its request."""

    store: Store
    options: ResponseOptions
    key: IdempotencyKey | None

    async def once(self, work: Callable[[], Awaitable[StoredResponse]]) -> StoredResponse:
        """Do the work once for each idempotency key; later requests get the first answer."""
        key = self.key
        if key is None:
            return await work()

        def earlier() -> Awaitable[Replay | None]:
            return run_in_threadpool(self.store.replay, key.owner, key.key, key.payload)

        try:
            # Held before looking, so that no answer is stored in between.
            with self.store.running(key.owner, key.key):
                replay = await earlier()
                return await work() if replay is None else self._replayed(replay)
        except KeyRunningError:
            # Others may hold it for as long as they read the answer.
            replay = await earlier()
            if replay is None:
                raise
            return self._replayed(replay)

    async def with_others(
        self, evaluation_request: EvaluationRequest, services: Services
    ) -> StoredResponse:
        """Evaluate and store a small request together with others."""
        if needs_store(evaluation_request, self.store):
            evaluation_request = await run_in_threadpool(
                with_stored_baseline, evaluation_request, self.store
            )
        evaluation = await services.batcher.evaluate(evaluation_request)
        pending = PendingEvaluation.of(evaluation_request, evaluation)
        answer = None if self.key is None else self._answer(pending)
        put = services.store.group_commit.put(self.store, self._packed(pending, answer))
        if answer is None:
            # Rendered while the store writes: that takes the processor, writing waits for the disk.
            await asyncio.sleep(0)
            answer = self._answer(pending)
        try:
            with waiting():
                stored = await put
        except LookMovedError as moved:
            return await run_in_threadpool(self._put, pending.at_look(moved.look))
        if not stored.created:
            return await run_in_threadpool(self._earlier, stored, pending)
        changed()
        return answer

    def in_thread(
        self, evaluation_request: EvaluationRequest, evaluation: Evaluation | None = None
    ) -> StoredResponse:
        """Store an evaluation in a thread that may block; None: it is computed here first."""
        evaluation_request = with_stored_baseline(evaluation_request, self.store)
        evaluation = evaluation or evaluation_request.evaluate()
        return self._put(PendingEvaluation.of(evaluation_request, evaluation))

    def _put(self, pending: PendingEvaluation) -> StoredResponse:
        """Store an evaluation in a thread; judge it again while others look at its test set."""
        for _ in range(MOST_LOOKS):
            answer = self._answer(pending)
            with waiting():
                (stored,) = self.store.put_many([self._packed(pending, answer)]).result()
            if isinstance(stored, LookMovedError):
                pending = pending.at_look(stored.look)
            elif isinstance(stored, Exception):
                raise stored
            elif stored.created:
                changed()
                return answer
            else:
                return self._earlier(stored, pending)
        raise Problem("overloaded", headers={"Retry-After": "1"})

    def _packed(self, pending: PendingEvaluation, answer: StoredResponse | None) -> Packed:
        """Pack an evaluation, with the answer where there is an idempotency key."""
        key = self.key
        if key is None or answer is None:
            return self.store.pack(pending.record)
        kept = Idempotency(**vars(key), status=answer.status, body=answer.content)
        return self.store.pack(pending.record, idempotency=kept)

    def _answer(self, pending: PendingEvaluation) -> StoredResponse:
        """Render the answer before the commit, since it is stored with its idempotency key."""
        verdict = pending.evaluation_request.verdict
        return StoredResponse(HTTPStatus.CREATED, self._content(pending), pending.id, verdict)

    def _earlier(self, stored: Stored, pending: PendingEvaluation) -> StoredResponse:
        """Return the earlier answer: the replay of its key, or the stored report."""
        if stored.replay is not None:
            return self._replayed(stored.replay)
        evaluation = self.store.get(stored.id)
        found = stored_report(evaluation, self.store, self.options.limits.top_confusions)
        found = replace(found, already=pending.already(evaluation))
        return StoredResponse(HTTPStatus.OK, self._content(found), stored.id, evaluation.verdict)

    def _content(self, found: PendingEvaluation | StoredReport) -> bytes:
        form = self.options.form
        if form is None:
            return found.report(with_table=self.options.with_table)
        return form.render(found.subject)

    def _replayed(self, replay: Replay) -> StoredResponse:
        verdict = None
        if self.options.form is None:
            verdict = (orjson.loads(replay.body).get("gate") or {}).get("verdict")
        return StoredResponse(replay.status, replay.body, replay.evaluation, verdict, replayed=True)


def idempotency_key_of(
    request: Request, body: bytes, form: Format | None = None
) -> IdempotencyKey | None:
    """Return the idempotency key of a request, if any; 400 for several, or a wrong length."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    name = given[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if len(given) > 1 or not 0 < len(name) <= LONGEST_KEY:
        detail = f"A request has one Idempotency-Key of 1 to {LONGEST_KEY} characters."
        raise Problem("bad_request", detail)
    digest = hashlib.sha256()
    for part in (request.scope["query_string"], (form.name if form else "json").encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return IdempotencyKey(access_of(request).key or "", name, digest.digest())
