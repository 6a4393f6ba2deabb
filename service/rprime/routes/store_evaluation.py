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
from rprime.application.evaluate import ResponseOptions, UnstoredEvaluation
from rprime.application.stored_options import StoreRequest
from rprime.auth.access import access_of, check_project, check_scopes
from rprime.core.evaluate import Evaluation
from rprime.history.pending_evaluation import (
    PendingEvaluation,
    needs_store,
    storing_warnings,
    with_stored_baseline,
)
from rprime.history.stored_report import stored_report
from rprime.problems.problem import Problem
from rprime.problems.root_path import rooted
from rprime.report.formats import Format
from rprime.routes.group_commit import GroupCommit
from rprime.routes.negotiation import rendered
from rprime.routes.services import Services, get_services, get_store
from rprime.store import (
    Idempotency,
    KeyRunningError,
    LookMovedError,
    Replay,
    Store,
    Stored,
    ids,
    new_id,
)
from rprime.store.use import changed, waiting

LONGEST_KEY = 255
MOST_LOOKS = 50
"""How often a gate is judged again because of simultaneous looks at its test set."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreOptions(ResponseOptions):
    """How to answer a request whose evaluation is stored.

    Parameters
    ----------
    store
        The store.
    key
        The idempotency key, if the request has one.
    """

    store: Store
    key: "IdempotencyKey | None" = None


@dataclass(frozen=True)
class IdempotencyKey:
    """An idempotency key: its caller, the key itself, and the digest of the request."""

    owner: str
    name: str
    payload: bytes


async def store_and_respond(
    request: Request, unstored: UnstoredEvaluation, asked: ResponseOptions
) -> Response:
    """Store an evaluation, then answer the request.

    Raises
    ------
    Problem
        404 if the key may not use the project, 409 and 422 as the contract says.
    """
    evaluation_request = unstored.evaluation_request
    assert evaluation_request.store_request is not None  # noqa: S101 (callers check it)
    check_access(request, evaluation_request.store_request)
    options = StoreOptions(
        store=get_store(request),
        form=asked.form,
        with_table=asked.with_table,
        limits=asked.limits,
        key=idempotency_key_of(request, unstored.payload, asked.form),
    )
    services = get_services(request)
    if unstored.large:
        in_thread = partial(run_in_threadpool, store_in_thread, evaluation_request, None, options)
        return _response(await _once(options, in_thread), options)
    with services.store.group_commit.entered():
        here = partial(store_evaluation, evaluation_request, options, services)
        return _response(await _once(options, here), options)


def check_access(request: Request, store_request: StoreRequest) -> None:
    """Refuse a request whose key may not use the project, or not read an evaluation by its id.

    Raises
    ------
    Problem
        403 or 404.
    """
    check_project(request, store_request.project)
    references = (store_request.reference, store_request.anchor)
    by_id = any(query is not None and query.by == "evaluation" for query in references)
    if by_id or store_request.prevalence_of is not None:
        check_scopes(request, "read")


@dataclass(frozen=True)
class StoredResponse:
    """The answer to a request whose evaluation was stored."""

    status: int
    content: bytes
    evaluation: str
    verdict: str | None
    replayed: bool = False


async def store_evaluation(
    evaluation_request: EvaluationRequest, options: StoreOptions, services: Services
) -> StoredResponse:
    """Store a small evaluation together with others; return its report, or the earlier one."""
    if needs_store(evaluation_request, options.store):
        evaluation_request = await run_in_threadpool(
            with_stored_baseline, evaluation_request, options.store
        )
    evaluation = await services.batcher.evaluate(evaluation_request)
    pending = pending_evaluation(evaluation_request, evaluation)
    for _ in range(MOST_LOOKS):
        try:
            answer, stored = await _put(pending, options, services.store.group_commit)
        except LookMovedError as moved:
            pending = pending.at_look(moved.look)
            continue
        if stored.created:
            changed()
            return answer
        return await run_in_threadpool(_earlier, stored, options)
    raise Problem("overloaded", headers={"Retry-After": "1"})


async def _put(
    pending: PendingEvaluation, options: StoreOptions, group_commit: GroupCommit
) -> tuple[StoredResponse, Stored]:
    if options.key is not None:
        answer = _answer(pending, options)
        packed = options.store.pack(pending.record, idempotency=_idempotency(answer, options.key))
        with waiting():
            return answer, await group_commit.put(options.store, packed)
    put = group_commit.put(options.store, options.store.pack(pending.record))
    # Rendered while the store writes: rendering uses the processor, writing waits for the disk.
    await asyncio.sleep(0)
    answer = _answer(pending, options)
    with waiting():
        return answer, await put


def store_in_thread(
    evaluation_request: EvaluationRequest, evaluation: Evaluation | None, options: StoreOptions
) -> StoredResponse:
    """Store an evaluation in a thread that may block; `evaluation` None is computed here first."""
    evaluation_request = with_stored_baseline(evaluation_request, options.store)
    pending = pending_evaluation(evaluation_request, evaluation or evaluation_request.evaluate())
    for _ in range(MOST_LOOKS):
        answer = _answer(pending, options)
        idempotency = _idempotency(answer, options.key)
        packed = options.store.pack(pending.record, idempotency=idempotency)
        with waiting():
            (stored,) = options.store.put_many([packed]).result()
        if isinstance(stored, LookMovedError):
            pending = pending.at_look(stored.look)
            continue
        if isinstance(stored, Exception):
            raise stored
        if stored.created:
            changed()
            return answer
        return _earlier(stored, options)
    raise Problem("overloaded", headers={"Retry-After": "1"})


def pending_evaluation(
    evaluation_request: EvaluationRequest, evaluation: Evaluation
) -> PendingEvaluation:
    """Make the evaluation to be stored, with a new id."""
    store_request = evaluation_request.store_request
    assert store_request is not None  # noqa: S101 (callers check it)
    evidence = evaluation_request.evidence
    added = storing_warnings(
        store_request.project,
        scored=evidence.scores is not None,
        sliced=evidence.slices is not None and not store_request.keeps_slices,
        first=store_request.is_first,
    )
    return PendingEvaluation(
        evaluation_request=evaluation_request,
        store_request=store_request,
        evaluation=replace(evaluation, warnings=evaluation.warnings + added),
        id=store_request.id or new_id(),
    )


def _answer(pending: PendingEvaluation, options: StoreOptions) -> StoredResponse:
    """Render the answer before the commit, since it is stored with its idempotency key."""
    if options.form is None:
        content = pending.report(with_table=options.with_table)
    else:
        subject = replace(
            pending.evaluation_request.subject(pending.evaluation),
            id=pending.id,
            created_at=ids.created_at(pending.id),
        )
        content = options.form.render(subject)
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


def _earlier(stored: Stored, options: StoreOptions) -> StoredResponse:
    """Return the earlier answer: the replay of its key, or the stored report."""
    if stored.replay is not None:
        return _replayed(stored.replay, options)
    evaluation = options.store.get(stored.id)
    found = stored_report(evaluation, options.store, options.limits.top_confusions)
    if options.form is None:
        content = found.report(with_table=options.with_table)
    else:
        content = options.form.render(found.subject)
    return StoredResponse(HTTPStatus.OK, content, stored.id, evaluation.verdict)


def _replayed(replay: Replay, options: StoreOptions) -> StoredResponse:
    verdict = None
    if options.form is None:
        verdict = (orjson.loads(replay.body).get("gate") or {}).get("verdict")
    return StoredResponse(replay.status, replay.body, replay.evaluation, verdict, replayed=True)


async def _once(
    options: StoreOptions, work: Callable[[], Awaitable[StoredResponse]]
) -> StoredResponse:
    """Do the work once for each idempotency key; later requests get the first answer."""
    key = options.key
    if key is None:
        return await work()

    def earlier() -> Awaitable[Replay | None]:
        return run_in_threadpool(options.store.replay, key.owner, key.name, key.payload)

    try:
        # Held before looking, so that no answer is stored in between.
        with options.store.running(key.owner, key.name):
            replay = await earlier()
            return _replayed(replay, options) if replay is not None else await work()
    except KeyRunningError:
        # Others may hold it for as long as they read the answer.
        replay = await earlier()
        if replay is None:
            raise
        return _replayed(replay, options)


def idempotency_key_of(
    request: Request, body: bytes, form: Format | None = None
) -> IdempotencyKey | None:
    """Return the idempotency key of a request, if it has one.

    Raises
    ------
    Problem
        400 for several keys, or a key of a wrong length.
    """
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    name = given[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if len(given) > 1 or not 0 < len(name) <= LONGEST_KEY:
        raise Problem(
            "bad_request", f"A request has one Idempotency-Key of 1 to {LONGEST_KEY} characters."
        )
    digest = hashlib.sha256()
    for part in (request.scope["query_string"], (form.name if form else "json").encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return IdempotencyKey(access_of(request).key or "", name, digest.digest())


def _response(answer: StoredResponse, options: StoreOptions) -> Response:
    headers = {"Location": rooted(f"/v1/evaluations/{answer.evaluation}")}
    if answer.verdict is not None:
        headers["Evaluation-Verdict"] = answer.verdict
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return rendered(answer.content, options.form, answer.status, headers)
