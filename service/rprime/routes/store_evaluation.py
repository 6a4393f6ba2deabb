"""Keeping: an evaluation with a project goes into the store before it is answered."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rprime.application import EvaluationRequest
from rprime.application.evaluate import report_subject
from rprime.auth.access import access_of, check_project
from rprime.core.evaluate import Evaluation
from rprime.history.pending_evaluation import (
    SCORES_NOT_KEPT,
    PendingEvaluation,
    at_look,
    needs_store,
    with_stored_baseline,
)
from rprime.history.stored_report import stored_report
from rprime.problems.problem import Problem
from rprime.report.formats import Format
from rprime.routes.group_commit import GroupCommit
from rprime.routes.negotiation import rendered
from rprime.routes.services import get_services, get_store
from rprime.settings import Limits
from rprime.store import (
    Idempotency,
    LookMovedError,
    Replay,
    Store,
    Stored,
    new_id,
)

LONGEST_KEY = 255
MOST_LOOKS = 50
"""How often a gate is judged again because others looked at its test set meanwhile."""

Evaluate = Callable[[EvaluationRequest], Coroutine[Any, Any, Evaluation]]


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreOptions:
    """How a request to keep an evaluation wants to be answered.

    Parameters
    ----------
    store
        Where to.
    form
        Of the answer; None: JSON.
    with_table
        Whether the report has the table itself.
    large
        Whether it takes so long that it goes to a thread.
    limits
        What a request may cost.
    group_commit
        Gathers what is not large.
    key
        The idempotency key, as far as there is one.
    """

    store: Store
    form: Format | None
    with_table: bool
    large: bool
    limits: Limits
    group_commit: GroupCommit = field(default_factory=GroupCommit)
    key: "IdempotencyKey | None" = None


@dataclass(frozen=True)
class IdempotencyKey:
    """An idempotency key: whose, which, and the digest of what came with it."""

    owner: str
    name: str
    payload: bytes


async def store_and_respond(
    request: Request,
    evaluation_request: EvaluationRequest,
    body: bytes,
    *,
    form: Format | None,
    with_table: bool,
    large: bool,
) -> Response:
    """Answer a request that is to be kept, after it was.

    Raises
    ------
    Problem
        404 if the project is not the caller's, 409 and 422 as the contract says.
    """
    assert evaluation_request.store_request is not None  # noqa: S101 (nothing else comes here)
    check_project(request, evaluation_request.store_request.project)
    options = StoreOptions(
        store=get_store(request),
        form=form,
        with_table=with_table,
        limits=get_services(request).limits,
        large=large,
        group_commit=get_services(request).store.group_commit,
        key=_key(request, body, form),
    )
    batcher = get_services(request).batcher
    evaluate: Evaluate = _in_thread if large else batcher.evaluate
    with nullcontext() if large else options.group_commit.entered():
        if options.key is None:
            return _response(await store_evaluation(evaluation_request, options, evaluate), options)
        return await _once(evaluation_request, options, options.key, evaluate)


@dataclass(frozen=True)
class StoredResponse:
    """What a request that was kept is answered with."""

    status: int
    content: bytes
    evaluation: str
    verdict: str | None
    replayed: bool = False


async def store_evaluation(
    evaluation_request: EvaluationRequest, options: StoreOptions, evaluate: Evaluate
) -> StoredResponse:
    """Store an evaluation and give its report, or that of the same one stored earlier."""
    if needs_store(evaluation_request):
        evaluation_request = await run_in_threadpool(
            with_stored_baseline, evaluation_request, options.store
        )
    pending = pending_evaluation(evaluation_request, await evaluate(evaluation_request))
    for _ in range(MOST_LOOKS):
        try:
            answer, stored = await _put(pending, options)
        except LookMovedError as moved:
            pending = replace(
                pending, evaluation_request=at_look(pending.evaluation_request, moved.look)
            )
            continue
        if stored.replay is not None:
            return _replayed(stored.replay, options)
        return answer if stored.created else await run_in_threadpool(_existing, stored.id, options)
    raise Problem("overloaded", headers={"Retry-After": "1"})


async def _put(pending: PendingEvaluation, options: StoreOptions) -> tuple[StoredResponse, Stored]:
    if options.large:
        answer, future = await run_in_threadpool(_submit, pending, options)
        return answer, await asyncio.wrap_future(future)
    if options.key is not None:
        answer = _answer(pending, options)
        packed = options.store.pack(pending.record, idempotency=_idempotency(answer, options.key))
        return answer, await options.group_commit.put(options.store, packed)
    put = options.group_commit.put(options.store, options.store.pack(pending.record))
    # Rendered while it is on its way to the disk: the one takes the processor, the other waits.
    await asyncio.sleep(0)
    return _answer(pending, options), await put


def store_in_thread(
    evaluation_request: EvaluationRequest, evaluation: Evaluation, options: StoreOptions
) -> StoredResponse:
    """Do as `store_evaluation`, in a thread that may block, for an evaluation that exists."""
    pending = pending_evaluation(
        with_stored_baseline(evaluation_request, options.store), evaluation
    )
    for _ in range(MOST_LOOKS):
        answer, future = _submit(pending, options)
        try:
            stored = future.result()
        except LookMovedError as moved:
            pending = replace(
                pending, evaluation_request=at_look(pending.evaluation_request, moved.look)
            )
            continue
        return answer if stored.created else _existing(stored.id, options)
    raise Problem("overloaded", headers={"Retry-After": "1"})


def pending_evaluation(
    evaluation_request: EvaluationRequest, evaluation: Evaluation
) -> PendingEvaluation:
    """Give an evaluation a name of its own."""
    assert evaluation_request.store_request is not None  # noqa: S101 (only what is to be kept comes here)
    if evaluation_request.evidence.scores is not None:
        evaluation = replace(evaluation, warnings=(*evaluation.warnings, SCORES_NOT_KEPT))
    return PendingEvaluation(
        evaluation_request=evaluation_request,
        store_request=evaluation_request.store_request,
        evaluation=evaluation,
        id=new_id(),
    )


def _submit(
    pending: PendingEvaluation, options: StoreOptions
) -> tuple[StoredResponse, Future[Stored]]:
    answer = _answer(pending, options)
    return answer, options.store.put(pending.record, idempotency=_idempotency(answer, options.key))


def _answer(pending: PendingEvaluation, options: StoreOptions) -> StoredResponse:
    """Render the answer: it is stored with its key, so it is there before it is true."""
    if options.form is None:
        content = pending.report(with_table=options.with_table)
    else:
        content = options.form.render(
            report_subject(pending.evaluation_request, pending.evaluation, pending.id)
        )
    return StoredResponse(
        HTTPStatus.CREATED, content, pending.id, pending.evaluation_request.verdict
    )


def _idempotency(answer: StoredResponse, key: IdempotencyKey | None) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(
        owner=key.owner,
        key=key.name,
        payload=key.payload,
        status=answer.status,
        body=answer.content,
    )


def _existing(identifier: str, options: StoreOptions) -> StoredResponse:
    """Render the report on the same evaluation, which is there already."""
    stored = options.store.get(identifier)
    found = stored_report(stored, options.store, options.limits.top_confusions)
    if options.form is None:
        content = found.report(with_table=options.with_table)
    else:
        content = options.form.render(found.subject)
    return StoredResponse(HTTPStatus.OK, content, identifier, stored.verdict)


def _replayed(replay: Replay, options: StoreOptions) -> StoredResponse:
    verdict = None
    if options.form is None:
        verdict = (orjson.loads(replay.body).get("gate") or {}).get("verdict")
    return StoredResponse(replay.status, replay.body, replay.evaluation, verdict, replayed=True)


async def _once(
    evaluation_request: EvaluationRequest,
    options: StoreOptions,
    key: IdempotencyKey,
    evaluate: Evaluate,
) -> Response:
    """Answer a request with a key: the first one is kept, the others get its answer."""
    running = options.store.running(key.owner, key.name)
    replay = await run_in_threadpool(_begin, running, options.store, key)
    try:
        if replay is not None:
            return _response(_replayed(replay, options), options)
        return _response(await store_evaluation(evaluation_request, options, evaluate), options)
    finally:
        await run_in_threadpool(running.__exit__, None, None, None)


def _begin(
    running: AbstractContextManager[None], store: Store, key: IdempotencyKey
) -> Replay | None:
    """Hold a key, then look whether it was answered before; else it could be in between."""
    running.__enter__()
    try:
        return store.replay(key.owner, key.name, key.payload)
    except BaseException:
        running.__exit__(None, None, None)
        raise


def _key(request: Request, body: bytes, form: Format | None) -> IdempotencyKey | None:
    given = request.headers.get("idempotency-key")
    if given is None:
        return None
    name = given.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if not 0 < len(name) <= LONGEST_KEY:
        raise Problem(
            "bad_request", f"The header Idempotency-Key has 1 to {LONGEST_KEY} characters."
        )
    digest = hashlib.sha256()
    for part in (request.scope["query_string"], (form.name if form else "json").encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return IdempotencyKey(access_of(request).key or "", name, digest.digest())


def _response(answer: StoredResponse, options: StoreOptions) -> Response:
    headers = {"Location": f"/v1/evaluations/{answer.evaluation}"}
    if answer.verdict is not None:
        headers["Evaluation-Verdict"] = answer.verdict
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return rendered(answer.content, options.form, answer.status, headers)


async def _in_thread(evaluation_request: EvaluationRequest) -> Evaluation:
    return await run_in_threadpool(evaluation_request.evaluate)
