"""What requests and workers ask the store of the service."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rprime.application import EvaluationRequest
from rprime.application.evaluate import ResponseOptions
from rprime.application.stored_sides import StoreRequest
from rprime.application.work import Raised
from rprime.auth.access import access_of, check_project, check_scopes
from rprime.history.pending_evaluation import PendingEvaluation, needs_store, with_stored_baseline
from rprime.history.storing import IdempotencyKey, StoredResponse, Storing, idempotency_key
from rprime.problems.problem import Problem, rooted
from rprime.report.formats import Format
from rprime.routes.negotiation import rendered, verdict_header
from rprime.routes.services import Services, get_services, get_store, visible_history
from rprime.routes.store_lifespan import problem_of
from rprime.server.pools import Threads
from rprime.store import KeyRunningError, LookMovedError, Outcome, Packed, Replay, Stack, Stored
from rprime.store.database import Row
from rprime.store.schema import metadata
from rprime.store.use import changed, waiting

_READS = frozenset(
    {
        *("aliases", "baseline", "branches", "count", "get", "is_empty", "items", "models"),
        *("next_look", "page", "projects", "replay", "scores", "setting", "slice_names"),
        *("sliced_items", "slices", "tables"),
    }
)
"""The methods of the store that a worker may call: none of them changes anything."""


class StoreCalls:
    """Answers the calls of one worker for one request."""

    def __init__(self, request: Request) -> None:
        self.failure: Exception | None = None
        """What the store raised last."""
        self._request = request
        self._held = ExitStack()
        self._sent = 0
        """Bytes that were read for the last call, which the worker has when it calls again."""
        self._own: dict[str, Callable[..., Awaitable[object]]] = {
            "open": self._open,
            "put_many": self._put_many,
            "begin": self._begin,
            "has_begun": self._has_begun,
        }

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the idempotency keys of the request until its end."""
        with self._held:
            yield

    async def answer(self, content: bytes) -> bytes:
        """Answer a pickled call: its method and arguments."""
        name, args, kwargs = pickle.loads(content)  # noqa: S301 (from our own process)
        self._count(-self._sent)
        try:
            result: object = await self._called(name, args, kwargs)
        except Exception as error:  # noqa: BLE001 (the worker gets it, and raises it again)
            self.failure = error
            result = Raised(_sendable(error))
        content = pickle.dumps(result, protocol=5)
        self._count(len(content))
        return content

    def _count(self, size: int) -> None:
        """Count what is in memory for the worker; 503 where other requests leave no room for it."""
        get_services(self._request).admission.hold(self._request.scope, size)
        self._sent = max(0, self._sent + size)

    async def _called(self, name: str, args: Any, kwargs: Any) -> object:  # noqa: ANN401 (of any method)
        if name in self._own:
            return await self._own[name](*args, **kwargs)
        if name not in _READS:
            raise TypeError(f"A worker may not call {name}.")
        method = getattr(get_store(self._request), name)

        def read() -> object:
            result = method(*args, **kwargs)
            return list(self._counted(result)) if isinstance(result, Iterator) else result

        return await get_services(self._request).store_threads.run(read)

    def _counted(self, tables: Iterator[Stack]) -> Iterator[Stack]:
        for stack in tables:
            # They are pickled, too, before the worker has them.
            self._count(2 * stack.table.cells.counts.nbytes)
            yield stack

    async def _open(self) -> None:
        """Check that the caller may read what is stored, and that there is a store."""
        check_scopes(self._request, "read")
        get_store(self._request)

    async def _has_begun(self, project: str) -> bool:
        return get_store(self._request).has_begun(project)

    async def _put_many(
        self, bare: list[Packed], kept: list[dict[str, Sequence[Row]]]
    ) -> list[Outcome | Problem | None]:
        """Store evaluations, whose rows beside their own come by the names of the tables."""
        batch = [
            replace(packed, kept={metadata.tables[name]: rows for name, rows in by_name.items()})
            for packed, by_name in zip(bare, kept, strict=True)
        ]
        with waiting():
            stored = await asyncio.wrap_future(get_store(self._request).put_many(batch))
        if any(isinstance(outcome, Stored) and outcome.created for outcome in stored):
            changed()
        self.failure = next((outcome for outcome in stored if isinstance(outcome, Exception)), None)
        return [
            _sendable(outcome) if isinstance(outcome, Exception) else outcome for outcome in stored
        ]

    async def _begin(
        self,
        stored: StoreRequest,
        form: Format | None = None,
        batch: tuple[bytes, int] | None = None,
    ) -> tuple[IdempotencyKey | None, Replay | None]:
        """Check the access of an evaluation that is to be stored, and look for an earlier answer.

        The idempotency key is held until the request ends; but not that of an evaluation in a
        batch, which has the digest of the batch, and its number in it.
        """
        check_access(self._request, stored)
        await refuse_misspelt(self._request, stored)
        store = get_store(self._request)
        body = stored.payload if batch is None else batch[0]
        key = idempotency_key_of(self._request, body, form)
        if key is None:
            return None, None
        if batch is not None:
            # Each evaluation of a batch has a key of its own, so that a repetition of a batch that
            # was interrupted stores the rest of it.
            key = key.of_batch(batch[1])
        run = get_services(self._request).store_threads.run
        running: KeyRunningError | None = None
        try:
            # Held before looking, so that no answer is stored in between.
            if batch is None:
                self._held.enter_context(store.running(key.owner, key.key))
        except KeyRunningError as error:
            running = error
        replay = await run(store.replay, key.owner, key.key, key.payload)
        if replay is None and running is not None:
            raise running
        return key, replay


def check_access(request: Request, stored: StoreRequest | None) -> None:
    """Refuse a key that may not use a project, or not read an evaluation elsewhere: 403, 404."""
    if stored is None:
        return
    check_project(request, stored.project)
    queries = [query for query in (stored.reference, stored.anchor) if query is not None]
    for query in queries:
        if query.project is not None:
            check_project(request, query.project)
    elsewhere = any(query.by == "evaluation" or query.project is not None for query in queries)
    if elsewhere or stored.prevalence_of is not None:
        check_scopes(request, "read")


async def refuse_misspelt(request: Request, stored: StoreRequest) -> None:
    """Answer 404 where a baseline is sought in a new project that resembles another one."""
    store, history = get_store(request), visible_history(request)
    sought = {"/baseline": stored.reference, "/gates/anchor": stored.anchor}
    for place, query in sought.items():
        if query is None or query.by == "evaluation":
            continue
        project = query.project or stored.project
        if not store.has_begun(project):
            where = "" if query.project is None else place
            run = get_services(request).store_threads.run
            await run(history.refuse_misspelt, project, where)


def idempotency_key_of(
    request: Request, body: bytes, form: Format | None = None
) -> IdempotencyKey | None:
    """Return the idempotency key of a request, if any; 400 for several, or a wrong length."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1:
        raise Problem("bad_request", "A request has one Idempotency-Key.")
    query = request.scope["query_string"]
    return idempotency_key(keys[0], access_of(request).key or "", (query, body), form)


def _sendable(error: Exception) -> Exception | None:
    """Return an exception as it can be pickled and read again, else its problem."""
    try:
        pickle.loads(pickle.dumps(error, protocol=5))  # noqa: S301 (made here)
    except Exception:  # noqa: BLE001 (whatever its constructor does)
        return problem_of(error)
    return error


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
