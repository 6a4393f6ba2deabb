"""The store of the service, opened at the start and closed at the end."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rprime.problems.handlers import request_id_of, respond
from rprime.problems.problem import Problem, refuse
from rprime.settings import Settings
from rprime.store import (
    Outcome,
    Packed,
    Stored,
    aliases,
    errors,
    evaluations,
    insertion,
    projects,
    records,
    transfer,
)
from rprime.store.database import DatabaseOptions, StoreHealth
from rprime.store.ids import created_at
from rprime.store.store import KeyRunningError, Store, open_store
from rprime.store.use import waiting
from rprime.store.writer import resolve

Waiting = tuple[Packed, "asyncio.Future[Stored]"]
Known = tuple["asyncio.Future[Stored]", Outcome]

LONGEST_WAIT = 0.004
"""Seconds that an answer waits for the others of its group: about one commit."""


class GroupCommit:
    """Passes the evaluations of one turn of the loop to the store, and its answers back together.

    The store commits evaluations that arrive together as one group, and the engine evaluates them
    as one stack: sixteen tables in a stack cost a quarter of sixteen single tables. Without this
    class the first of a group would be committed and answered before the rest, and after a while
    every request would arrive, be evaluated and be committed alone. A lone client never waits.
    """

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._known: list[Known] = []
        self._entered = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a request that will store an evaluation."""
        self._entered += 1
        try:
            yield
        finally:
            self._entered -= 1
            self._answer_if_complete()

    def put(self, store: Store, packed: Packed) -> "asyncio.Future[Stored]":
        """Store an evaluation in the next turn of the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stored] = loop.create_future()
        self._waiting.append((packed, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush, store, loop)
        return future

    def _flush(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        futures = [future for _, future in waiting]
        try:
            outcomes = store.put_many([packed for packed, _ in waiting])
        except Exception as error:  # noqa: BLE001 (every request of the group gets the error)
            for future in futures:
                resolve(future, error)
            return
        outcomes.add_done_callback(
            lambda task: loop.call_soon_threadsafe(
                self._arrive, list(zip(futures, task.result(), strict=True))
            )
        )

    def _arrive(self, outcomes: list[Known]) -> None:
        self._known += outcomes
        self._answer_if_complete()
        if self._known and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LONGEST_WAIT, self._answer)

    def _answer_if_complete(self) -> None:
        if self._known and len(self._known) >= self._entered:
            self._answer()

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        outcomes, self._known = self._known, []
        for future, outcome in outcomes:
            resolve(future, outcome)


NONE = "none"
"""The setting of a service without a store."""
RETRY_SECONDS = 5
CHECK_SECONDS = 1.5
"""Seconds that `/readyz` waits for the store."""
_CLOCK_SKEW = timedelta(minutes=1)

log = structlog.get_logger(__name__)


def database_options(settings: Settings) -> DatabaseOptions:
    """Return the options of the store in the settings."""
    return DatabaseOptions(
        connections=settings.store_connections,
        connect_seconds=settings.store_connect_seconds,
        lock_seconds=settings.store_lock_seconds,
        statement_seconds=settings.store_seconds,
        project_bytes=settings.project_max_bytes,
    )


class StoreHandle:
    """The store of the service, if its URL is not "none"; takes the seconds of each commit."""

    def __init__(
        self, url: str, options: DatabaseOptions, observe_commit: Callable[[float], object]
    ) -> None:
        self.url = url
        self._observe_commit = observe_commit
        self._options = options
        self.group_commit = GroupCommit()
        self._store: Store | None = None
        self._failure: errors.StoreError = errors.StoreUnavailableError(
            text="The store is not open."
        )
        self._opening: asyncio.Task[None] | None = None
        # Own threads: requests that wait for the store may occupy all others.
        self._checks = CapacityLimiter(1)
        self._check: asyncio.Task[str] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the service is configured with a store."""
        return self.url != NONE

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._store is not None

    @property
    def health(self) -> StoreHealth | None:
        """What the calls to the store tell about it, if it is open."""
        return None if self._store is None else self._store.database.health

    @property
    def store(self) -> Store:
        """The store; 409 if the service has none, 503 while it cannot be reached."""
        if self._store is not None:
            return self._store
        if self.url == NONE:
            raise Problem("no_store")
        raise _unavailable(self._failure)

    def use(self, store: Store) -> None:
        """Answer from a store that somebody else opens and closes."""
        self._store = store

    def revoke_session(self, session: str, expires: int) -> None:
        """Record that the session of a browser has ended."""
        with _as_problem():
            self.store.revoke_session(session, expires)

    def is_session_revoked(self, session: str, expires: int) -> bool:
        """Whether the session of a browser has ended."""
        with _as_problem():
            return self.store.is_session_revoked(session, expires)

    async def open(self) -> None:
        """Open the store; retry in the background if it is only unavailable for now."""
        if self.url == NONE:
            return
        try:
            await self._open()
        except (errors.StoreUnavailableError, errors.StoreFullError) as exc:
            self._report(exc)
            self._opening = asyncio.create_task(self._keep_opening())

    def _report(self, exc: errors.StoreError) -> None:
        self._failure = exc
        log.warning("store_unavailable", detail=str(exc), error=exc.code)

    async def _open(self) -> None:
        store = await run_in_threadpool(open_store, self.url, options=self._options)
        store.database.health.observe_commit = self._observe_commit
        self._store = store
        with suppress(errors.StoreError, ValueError, OverflowError):
            newest = await run_in_threadpool(store.newest)
            if newest is not None and created_at(newest) > datetime.now(UTC) + _CLOCK_SKEW:
                log.warning("clock_behind", evaluation=newest, created_at=created_at(newest))

    async def _keep_opening(self) -> None:
        while self._store is None:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                await self._open()
            except errors.StoreError as exc:
                self._report(exc)
        log.info("store_opened")

    async def close(self) -> None:
        """Write the waiting changes, then close the store."""
        if self._opening is not None:
            self._opening.cancel()
            with suppress(asyncio.CancelledError):
                await self._opening
        if self._store is not None:
            with waiting():
                await run_in_threadpool(self._store.close)
            self._store = None

    async def check(self) -> str:
        """Return the state of the store: `none` if the service has none, else as `Store.check`."""
        if self.url == NONE:
            return NONE
        store = self.store
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(to_thread.run_sync(store.check, limiter=self._checks))
            # Retrieve its error, so that asyncio does not log it if no request waits any more.
            self._check.add_done_callback(lambda task: task.cancelled() or task.exception())
        # One check at a time: if a disk hangs for ever, so do the threads that read from it.
        done, _ = await asyncio.wait({self._check}, timeout=CHECK_SECONDS)
        if not done:
            is_locked = store.database.health.state == errors.StoreLockedError.cause
            kind = errors.StoreLockedError if is_locked else errors.StoreTimeoutError
            raise kind(text="The store does not answer.")
        try:
            return self._check.result()
        except errors.StoreDamagedError as exc:
            raise _unavailable(exc) from None


def _unavailable(exc: errors.StoreError) -> Problem:
    """Return the problem with the state and the text; the message may name a path or a host."""
    detail = f"State of the store: `{exc.cause}`. {exc.text}" if exc.text else None
    return Problem("store_unavailable", detail, headers={"Retry-After": str(exc.retry_after)})


@contextmanager
def _as_problem() -> Iterator[None]:
    try:
        yield
    except errors.StoreError as exc:
        raise (problem_of(exc) or exc) from exc


_KINDS: dict[type[Exception], str | Callable[[Any], Problem]] = {
    errors.StoreError: _unavailable,
    errors.StoreFullError: "store_full",
    errors.StoreDamagedError: "store_damaged",
    evaluations.EvaluationMissingError: "not_found",
    aliases.AliasMissingError: "not_found",
    projects.ProjectMissingError: "not_found",
    insertion.EvaluationDeletedError: "evaluation_deleted",
    evaluations.EvaluationAliasedError: "evaluation_aliased",
    aliases.AliasChangedError: lambda exc: Problem(
        "precondition_failed", headers={"ETag": f'"{exc.current.etag}"'} if exc.current else {}
    ),
    insertion.KeyReusedError: "idempotency_key_reused",
    KeyRunningError: lambda _: Problem("idempotency_key_running", headers={"Retry-After": "1"}),
    insertion.ProjectQuotaError: lambda exc: Problem("project_quota_exceeded", str(exc)),
    evaluations.InvalidCursorError: lambda _: refuse(
        "/query/cursor", "invalid_cursor", "The value is not a `next_cursor` of this list."
    ),
    records.InvalidRecordError: lambda exc: refuse("", "invalid_name", str(exc)),
    transfer.InvalidExportError: lambda exc: refuse(
        "",
        "invalid_export",
        f"Line {exc.line}: {exc.why} The lines before it may have been imported.",
    ),
}
"""The kind of problem, or what makes the problem, of each exception of the store."""


def problem_of(exc: Exception) -> Problem | None:
    """Return the problem for an exception of the store; None for any other exception."""
    problem = next((_KINDS[kind] for kind in type(exc).__mro__ if kind in _KINDS), None)
    if problem is None:
        return None
    return Problem(problem) if isinstance(problem, str) else problem(exc)


async def _on_store_exception(request: Request, exc: Any) -> Response:  # noqa: ANN401 (of `_KINDS`)
    # The store itself has already logged that its file was moved.
    if isinstance(exc, errors.StoreError) and not isinstance(exc, errors.StoreMovedError):
        log.warning("store_failed", detail=str(exc), error=exc.code)
    return respond(problem_of(exc) or Problem("internal_error"), request_id_of(request))


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = (
    dict.fromkeys(_KINDS, _on_store_exception)
)
"""The handlers that turn exceptions of the store into problems."""
