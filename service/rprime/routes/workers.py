"""Have worker processes do what is heavy: read large bodies, compare, simulate, draw."""

import asyncio
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from tempfile import gettempdir
from typing import Any, TypeVar, cast

import structlog
from starlette.requests import ClientDisconnect, Request

from rprime.application.evaluate import NO_ROOM, Failure, ResponseOptions
from rprime.application.work import Raised, Work
from rprime.problems.problem import Problem
from rprime.routes.services import get_services
from rprime.routes.store_calls import StoreCalls
from rprime.server.body import announced_encoding, received_chunks, spooled
from rprime.server.metrics import Metrics
from rprime.server.pools import overloaded
from rprime.server.request_record import KEY, network_of_client
from rprime.server.worker_channel import Channel
from rprime.server.worker_limits import CPU_SECONDS
from rprime.server.worker_pool import Callbacks, WorkerEndedError, WorkerPool, cancelled, reason_of
from rprime.settings import Limits

STALLED_SECONDS = 30.0
"""A client that sends nothing for so long counts as gone."""
COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "rprime.application.worker")
"""Starts a worker; -P: it imports nothing from the working directory."""
ENVIRONMENT = {
    # Pools that retain freed memory would count against the memory limit.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # glibc: map growing arrays, so that they need not be copied.
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(32 << 20),
}

PAGE_SECONDS = 30
"""How long the parts of a page may wait for a worker: a person waits, and a page has several."""

log = structlog.get_logger(__name__)
T = TypeVar("T")


def worker_pool(limits: Limits, metrics: Metrics, *, stored: bool) -> WorkerPool:
    """Make the pool for what is heavy, of a service with a store or without."""
    return WorkerPool(
        [*COMMAND, *["rprime.history.storing"] * stored],
        most=limits.large_requests,
        waiting=limits.large_waiting,
        seconds=limits.worker_seconds,
        wait_seconds=limits.wait_seconds,
        environment=ENVIRONMENT,
        ended=partial(_count_ended, metrics, body=None),
    )


def _count_ended(metrics: Metrics, reason: str, *, body: str | None) -> None:
    """Count and log a worker that ended; `body` is the kind that it read."""
    metrics.ended.labels("large_requests", reason).inc()
    log.warning("worker_ended", kind="large_requests", reason=reason, body=body)


async def in_worker(
    request: Request,
    work: Callable[[bytes], T],
    body: list[bytes],
    *,
    wait_seconds: float | None = None,
) -> T:
    """Do work on a complete JSON body, whose pieces are freed as the worker reads them."""
    job = Work(work, get_services(request).limits)
    pieces = _handed_over(body)
    answer = _answer(request, job, pieces, kind="json", wait_seconds=wait_seconds)
    return cast("T", await answer)


async def in_worker_with_store(
    request: Request,
    work: Callable[..., T],
    body: Iterable[bytes] = (),
    *,
    imports: tuple[str, ...] = (),
    wait_seconds: float | None = None,
) -> T:
    """Do work on a complete body and the store, which the worker reads through this process."""
    job = Work(work, get_services(request).limits, stored=True, imports=imports)
    pieces = _handed_over([*body])
    answer = _answer(request, job, pieces, kind="json", wait_seconds=wait_seconds)
    return cast("T", await answer)


async def evaluate_json_in_worker(
    request: Request, body: list[bytes], options: ResponseOptions, evaluate: Callable[..., T]
) -> T:
    """Answer a large JSON body, whose pieces are freed as the worker reads them."""
    job = partial(evaluate, options=options)
    return cast("T", await _answer(request, job, _handed_over(body), kind="json"))


async def answer_columns(
    request: Request, options: ResponseOptions, evaluate: Callable[..., T]
) -> T:
    """Answer a request whose body is columns: received whole before it takes a worker."""
    limit = options.limits.other_body_bytes
    members = request.query_params.get("request", "").encode()
    options = replace(options, encoding=announced_encoding(request, limit), request=members)
    async with spooled(request, _received(request, limit)) as body:
        get_services(request).admission.admit(request.scope)
        job = partial(evaluate, options=options)
        return cast("T", await _answer(request, job, body, kind=options.kind or "json"))


async def _answer(
    request: Request,
    job: Callable[[Channel], object],
    body: AsyncIterator[bytes],
    *,
    kind: str,
    wait_seconds: float | None = None,
) -> object:
    services, calls = get_services(request), StoreCalls(request)
    keep = partial(services.admission.hold, request.scope)
    callbacks = Callbacks(keep=keep, call=calls.answer)
    message = pickle.dumps(job, protocol=5)
    with calls.held():
        owner = owner_of(request)
        work = services.workers.ask(
            message, body, callbacks, owner=owner, wait_seconds=wait_seconds
        )
        try:
            content = await _unless_gone(request, work)
        except WorkerEndedError as ended:
            _count_ended(services.metrics, reason_of(ended.status), body=kind)
            if ended.status in _ENDS:
                raise Problem(*_ENDS[ended.status]) from None
            how = "did not go on" if ended.status is None else "has ended"
            raise overloaded(f"The worker process of the request {how}.") from None
    answer: object = pickle.loads(content)  # noqa: S301 (from our own process)
    if isinstance(answer, Raised):
        assert calls.failure is not None  # noqa: S101 (it was sent)
        raise calls.failure
    if isinstance(answer, Failure):
        log.error("worker_failed", **answer.where, exception=answer.trace)
        raise Problem("internal_error")
    if isinstance(answer, Problem):
        if answer.detail == NO_ROOM:
            services.admission.rejected["temporary_folder"] += 1
            log.warning("temporary_folder_full", folder=gettempdir())
        raise answer
    return answer


def owner_of(request: Request) -> str | None:
    """Return who asks: the key, or without one the network of the client."""
    key: str | None = request.scope["state"].get(KEY)
    return network_of_client() if key is None else key


async def _unless_gone(request: Request, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Wait for an answer; stop if the client disconnects."""

    async def gone() -> None:
        # A request without a body still has the message that there is none.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        await cancelled(leaving)
        await cancelled(working)


_CRASHED = (
    "The body ended the process that read it, so it is damaged or needs too much memory. Write it "
    "again, with fewer rows in each record batch or row group. The service is unaffected."
)
_OUT_OF_TIME = (
    f"The request took more than {CPU_SECONDS} s of processor time. Send fewer items or scores, "
    "or a confusion matrix or `cells` instead; ask for fewer classes, rules, `indices` or "
    "`replicates`."
)
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)
_ENDS: dict[int | None, tuple[str, str]] = {-n: ("unreadable_body", _CRASHED) for n in _CRASHES}
_ENDS[-signal.SIGXCPU] = ("body_too_large", _OUT_OF_TIME)
"""The problem of a request, by the status of the worker that it has ended."""


async def _handed_over(pieces: list[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces, each dropped from memory once it is handed over."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


async def _received(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the pieces of a body as they arrive, with a limit of bytes and of each pause."""
    pieces = received_chunks(request, limit)
    while True:
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ClientDisconnect from None
        yield piece
