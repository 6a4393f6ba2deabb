"""The writing thread of a process, which commits waiting changes as one group."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from rprime.store import errors
from rprime.store.database import Database
from rprime.store.errors import translated
from rprime.store.insertion import EvaluationExistsError, Outcome, Packed, put_all
from rprime.store.project_sizes import counting
from rprime.store.schema import check_version

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

MOST_IN_A_GROUP = 256
"""Changes after which no further batch joins a group."""
ATTEMPTS = 5
"""How often a group is tried if transactions of other processes roll it back."""

_GATHERING_SECONDS = 0.0005
_PAUSE_SECONDS = 0.01


Tell = Callable[[Any], None]
"""Receives the outcome of a change: its result or its exception."""


@dataclass(frozen=True, eq=False)
class _Change:
    """An evaluation to store, which its id makes safe to repeat, or any other writing function."""

    work: Packed | Callable[[Connection], Any]
    tell: Tell
    since: float


class _Outcomes:
    """Collects the outcomes of a batch of evaluations in order, then resolves its future."""

    def __init__(self, number: int) -> None:
        self.future: Future[list[Outcome]] = _promise()
        self._number = number
        self._known: list[Outcome] = []

    def tell(self, outcome: Outcome) -> None:
        self._known.append(outcome)
        if len(self._known) == self._number:
            self.future.set_result(self._known)


class Writer:
    """Commits waiting changes together; each future resolves only after its commit.

    While one group is written to the disk the next one gathers, so that sixteen clients share a
    commit and a lone one never waits. A change that fails affects only its own future; if a whole
    group fails, its members are tried one by one. The quota is that of `put_all`, and the clock
    returns the milliseconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], int], quota: int | None) -> None:
        self._database = database
        self._quota = quota
        self._clock = clock
        self._queue: SimpleQueue[list[_Change] | None] = SimpleQueue()
        self._closing = Lock()
        self._closed = False
        # A daemon, so that a program that does not close its store can still end. Acknowledged
        # changes are on the disk already.
        self._thread = Thread(target=self._run, name="rprime-store-writer", daemon=True)
        self._thread.start()

    def put(self, batch: Sequence[Packed]) -> "Future[list[Outcome]]":
        """Store at least one evaluation; return the outcome of each, in order."""
        outcomes, now = _Outcomes(len(batch)), time.monotonic()
        self._enqueue([_Change(packed, outcomes.tell, now) for packed in batch])
        return outcomes.future

    def do(self, work: Callable[[Connection], T], *, waits: bool = True) -> "Future[T]":
        """Run a function in a transaction; its own errors roll back only its own changes.

        It may be told not to wait for a lock of another program.
        """
        future: Future[T] = _promise()
        since = time.monotonic() - (0 if waits else self._database.lock_seconds)
        self._enqueue([_Change(work, partial(resolve, future), since)])
        return future

    def close(self) -> None:
        """Write the waiting changes, then end; refuse further work."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many batches wait to be written."""
        return self._queue.qsize()

    def _enqueue(self, batch: list[_Change]) -> None:
        with self._closing:
            if self._closed:
                raise errors.StoreClosedError("The store is closed.")
            self._queue.put(batch)

    def _run(self) -> None:
        waiting: list[list[_Change] | None] = []
        while None not in waiting:
            waiting = self._next_group(in_company=len(waiting) > 1)
            group = [change for batch in waiting if batch for change in batch]
            if group:
                self._settle(group)

    def _next_group(self, *, in_company: bool) -> list[list[_Change] | None]:
        """Wait for work, then take everything that waits; None marks the end."""
        waiting = [self._queue.get()]
        if in_company:
            # Clients of the last group return at once: without this pause the first of them would
            # get its own commit, and the clients would split into two halves.
            time.sleep(_GATHERING_SECONDS)
        with suppress(Empty):
            while sum(len(batch or ()) for batch in waiting) < MOST_IN_A_GROUP:
                waiting.append(self._queue.get_nowait())
        return waiting

    def _settle(self, group: Sequence[_Change]) -> None:
        """Commit a group and resolve the futures of its members."""
        health, since = self._database.health, time.monotonic()
        try:
            outcomes = self._persist(group)
        except (errors.StoreTimeoutError, errors.StoreMovedError) as exc:
            # Single tries would wait as long again, or might commit twice.
            health.failed_to_write(exc)
            outcomes = [exc] * len(group)
        except Exception as exc:  # noqa: BLE001 - every error belongs to the futures
            if len(group) > 1:
                for change in group:
                    self._settle([change])
                return
            if isinstance(exc, errors.StoreError):
                health.failed_to_write(exc)
            outcomes = [exc]
        else:
            health.wrote(time.monotonic() - since)
        for change, outcome in zip(group, outcomes, strict=True):
            exists = isinstance(outcome, IntegrityError)
            change.tell(EvaluationExistsError() if exists else outcome)

    def _persist(self, group: Sequence[_Change]) -> list[Any]:
        repeated = has_room = False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._commit(group, repeated=repeated)
            except errors.StoreFullError:
                if has_room or not self._database.make_room():
                    raise
                has_room = True
            except errors.StoreConflictError:
                if attempt == ATTEMPTS:
                    raise
            except errors.StoreTimeoutError:
                # The waiting requests have waited long enough.
                raise
            except errors.StoreUnavailableError:
                # The commit may have succeeded before the connection was lost. Evaluations are
                # recognised by their ids; other work must not run twice.
                repeated = self._database.can_lose_connection
                lone = all(isinstance(change.work, Packed) for change in group)
                if not (repeated and lone) or attempt == ATTEMPTS:
                    raise
            time.sleep(_PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _commit(self, group: Sequence[_Change], *, repeated: bool) -> list[Any]:
        puts = [change.work for change in group if isinstance(change.work, Packed)]
        waited = time.monotonic() - min(change.since for change in group)
        with self._database.writing(waited) as connection, counting(connection):
            check_version(connection)
            now, quota = self._clock(), self._quota
            stored = iter(put_all(connection, puts, now=now, quota=quota, repeated=repeated))
            return [
                next(stored)
                if isinstance(change.work, Packed)
                else _attempt(connection, change.work)
                for change in group
            ]


def _attempt(connection: Connection, work: Callable[[Connection], Any]) -> object:
    """Run a function in its own savepoint; return its result or its exception."""
    savepoint = connection.begin_nested()
    try:
        with translated():
            result = work(connection)
    except Exception as exc:
        if not savepoint.is_active or isinstance(
            exc, errors.StoreUnavailableError | errors.StoreFullError
        ):
            raise
        savepoint.rollback()
        return exc
    savepoint.commit()
    return result


def _promise() -> "Future[Any]":
    """Return a future that cannot be cancelled: a waiting change is always written."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def resolve(future: "Future[Any] | asyncio.Future[Any]", outcome: object) -> None:
    """Set the result or the exception of a future that somebody may still wait for."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
