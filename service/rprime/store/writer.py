"""The one thread of a process that writes: what waits is committed as one group."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from rprime.store.database import Database
from rprime.store.errors import (
    StoreClosedError,
    StoreConflictError,
    StoreMovedError,
    StoreTimeoutError,
    StoreUnavailableError,
    translated,
)
from rprime.store.insertion import EvaluationExistsError, Outcome, Packed, put_all

T = TypeVar("T")

MOST_IN_A_GROUP = 256
"""Changes after which no further batch joins a group."""
ATTEMPTS = 5
"""How often a group is tried where transactions of other processes undo it."""

_GATHERING_SECONDS = 0.0005
_PAUSE_SECONDS = 0.01


Tell = Callable[[Any], None]
"""Takes what became of a change: what it gave, or the exception that it failed with."""


@dataclass(frozen=True, eq=False)
class _Put:
    """An evaluation to store. Safe to repeat: its id tells whether it is stored."""

    packed: Packed
    tell: Tell


@dataclass(frozen=True, eq=False)
class _Task:
    """Anything else that writes."""

    work: Callable[[Connection], Any]
    tell: Tell


_Change = _Put | _Task


class _Outcomes:
    """What became of evaluations that were put together, in their order; told once."""

    def __init__(self, number: int) -> None:
        self.future: Future[list[Outcome]] = _promise()
        self._number = number
        self._known: list[Outcome] = []

    def tell(self, outcome: Outcome) -> None:
        self._known.append(outcome)
        if len(self._known) == self._number:
            self.future.set_result(self._known)


class Writer:
    """Commits what waits together; each future is resolved after its commit only.

    While one group is on its way to the disk the next one gathers, so that sixteen clients share
    a commit and one alone waits for nobody. What fails by itself fails alone: it is told in the
    outcome of its own future, and where a whole group fails its members are tried one by one.

    Parameters
    ----------
    database
        Where to write.
    clock
        Tells the milliseconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock
        self._queue: SimpleQueue[list[_Change] | None] = SimpleQueue()
        self._closing = Lock()
        self._closed = False
        # A daemon: a program that forgets to close its store can still end. What was
        # acknowledged is on the disk already.
        self._thread = Thread(target=self._run, name="rprime-store-writer", daemon=True)
        self._thread.start()

    def put(self, batch: Sequence[Packed]) -> "Future[list[Outcome]]":
        """Store evaluations, at least one; what became of each, in their order."""
        outcomes = _Outcomes(len(batch))
        self._enqueue([_Put(packed, outcomes.tell) for packed in batch])
        return outcomes.future

    def do(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Run something in a transaction; its own errors undo only what it did."""
        future: Future[T] = _promise()
        self._enqueue([_Task(work, partial(_resolve, future))])
        return future

    def close(self) -> None:
        """Write what waits, then end; further work is refused."""
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
                raise StoreClosedError("The store is closed.")
            self._queue.put(batch)

    def _run(self) -> None:
        waiting: list[list[_Change] | None] = []
        while None not in waiting:
            waiting = self._next_group(in_company=len(waiting) > 1)
            group = [change for batch in waiting if batch for change in batch]
            if group:
                self._settle(group)

    def _next_group(self, *, in_company: bool) -> list[list[_Change] | None]:
        """Wait for work, then take all that waits; None says that there will be no more."""
        waiting = [self._queue.get()]
        if in_company:
            # Those whose group has just ended come back at once: without this pause the first
            # of them would have a commit of its own and the clients would fall into two halves.
            time.sleep(_GATHERING_SECONDS)
        with suppress(Empty):
            while sum(len(batch or ()) for batch in waiting) < MOST_IN_A_GROUP:
                waiting.append(self._queue.get_nowait())
        return waiting

    def _settle(self, group: Sequence[_Change]) -> None:
        """Commit a group and tell everyone in it what became of theirs."""
        try:
            outcomes = self._persist(group)
        except (StoreTimeoutError, StoreMovedError) as exc:
            # Each by itself would wait as long again, or might be committed twice.
            outcomes = [exc] * len(group)
        except Exception as exc:  # noqa: BLE001 - whatever it is belongs to the futures
            if len(group) > 1:
                for change in group:
                    self._settle([change])
                return
            outcomes = [exc]
        for change, outcome in zip(group, outcomes, strict=True):
            change.tell(_named(outcome))

    def _persist(self, group: Sequence[_Change]) -> list[Any]:
        repeated = False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._commit(group, repeated=repeated)
            except StoreConflictError:
                if attempt == ATTEMPTS:
                    raise
            except StoreTimeoutError:
                # Those who wait have waited long enough.
                raise
            except StoreUnavailableError:
                # It may have been committed before the connection was lost. Evaluations are
                # known by their ids; anything else must not happen twice.
                repeated = self._database.can_lose_connection
                lone = all(isinstance(change, _Put) for change in group)
                if not (repeated and lone) or attempt == ATTEMPTS:
                    raise
            time.sleep(_PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _commit(self, group: Sequence[_Change], *, repeated: bool) -> list[Any]:
        puts = [change.packed for change in group if isinstance(change, _Put)]
        with self._database.writing() as connection:
            now = self._clock()
            stored = iter(put_all(self._database, connection, puts, now=now, repeated=repeated))
            return [
                next(stored) if isinstance(change, _Put) else _attempt(connection, change.work)
                for change in group
            ]


def _attempt(connection: Connection, work: Callable[[Connection], Any]) -> object:
    """Run something within its own savepoint; give what it returned or what it raised."""
    savepoint = connection.begin_nested()
    try:
        with translated():
            result = work(connection)
    except Exception as exc:
        if not savepoint.is_active or isinstance(exc, StoreUnavailableError):
            raise
        savepoint.rollback()
        return exc
    savepoint.commit()
    return result


def _promise() -> "Future[Any]":
    """Give a future that cannot be cancelled: what waits is written, whoever still asks."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def _named(outcome: object) -> object:
    return EvaluationExistsError() if isinstance(outcome, IntegrityError) else outcome


def _resolve(future: "Future[Any]", outcome: object) -> None:
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
