"""Store an evaluation that names a project before answering it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from rprime.application import EvaluationRequest
from rprime.application.evaluate import ResponseOptions
from rprime.history.pending_evaluation import PendingEvaluation, needs_store, with_stored_baseline
from rprime.history.storing import StoredResponse, Storing
from rprime.problems.root_path import rooted
from rprime.routes.negotiation import rendered, verdict_header
from rprime.routes.services import Services, get_services, get_store
from rprime.routes.store_calls import check_access, idempotency_key_of, refuse_misspelt
from rprime.server.pools import Threads
from rprime.store import KeyRunningError, LookMovedError, Replay
from rprime.store.use import changed, waiting


async def store_and_respond(
    request: Request, evaluation_request: EvaluationRequest, options: ResponseOptions
) -> Response:
    """Store a small evaluation, then answer the request."""
    stored = evaluation_request.store_request
    assert stored is not None  # noqa: S101 (callers check it)
    check_access(request, stored)
    await refuse_misspelt(request, stored)
    key = idempotency_key_of(request, stored.payload, options.form)
    storing, services = Storing(get_store(request), options, key), get_services(request)
    with services.store.group_commit.entered():
        work = partial(_with_others, storing, evaluation_request, services)
        answer = await _once(storing, services.store_threads, work)
    return respond_stored(answer, options)


def respond_stored(answer: StoredResponse, options: ResponseOptions) -> Response:
    """Answer a request whose evaluation is stored."""
    headers = {"Location": rooted(f"/v1/evaluations/{answer.evaluation}")}
    headers |= verdict_header(answer.verdict)
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return rendered(answer.content, options.form, answer.status, headers)


async def _once(
    storing: Storing, threads: Threads, work: Callable[[], Awaitable[StoredResponse]]
) -> StoredResponse:
    """Do the work once for each idempotency key; later requests get the first answer."""
    key, store = storing.key, storing.store
    if key is None:
        return await work()

    def earlier() -> Awaitable[Replay | None]:
        return threads.run(store.replay, key.owner, key.key, key.payload)

    try:
        # Held before looking, so that no answer is stored in between.
        with store.running(key.owner, key.key):
            replay = await earlier()
            return await work() if replay is None else storing.replayed(replay)
    except KeyRunningError:
        # Others may hold it for as long as they read the answer.
        replay = await earlier()
        if replay is None:
            raise
        return storing.replayed(replay)


async def _with_others(
    storing: Storing, evaluation_request: EvaluationRequest, services: Services
) -> StoredResponse:
    """Evaluate and store a small request together with others."""
    store, run = storing.store, services.store_threads.run
    if needs_store(evaluation_request, store):
        evaluation_request = await run(with_stored_baseline, evaluation_request, store)
    evaluation = await services.batcher.evaluate(evaluation_request)
    pending = PendingEvaluation.of(evaluation_request, evaluation)
    answer = None if storing.key is None else storing.answer(pending)
    put = services.store.group_commit.put(store, storing.packed(pending, answer))
    if answer is None:
        # Rendered while the store writes: that takes the processor, writing waits for the disk.
        await asyncio.sleep(0)
        answer = storing.answer(pending)
    try:
        with waiting():
            stored = await put
    except LookMovedError as moved:
        return await run(storing.put, pending.at_look(moved.look))
    if not stored.created:
        return await run(storing.earlier, stored, pending)
    changed()
    return answer
