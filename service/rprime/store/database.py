"""The interface of a database to the store, and what SQLite and PostgreSQL share."""

import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from sqlalchemy import Connection, Engine

from rprime.store import errors
from rprime.store.errors import translated
from rprime.store.schema import evaluations, replays
from rprime.store.use import waiting

T = TypeVar("T")

OK = "ok"
STATES = (OK, "full", "read_only", "locked", "unavailable", "damaged")
"""By gravity. In all but `ok` none is stored; from `full` to `locked` stored ones are read."""
_TRIAL_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class DatabaseOptions:
    """How many connections a process may have, how long it waits, and how much a project stores.

    Parameters
    ----------
    connections
        Most connections to PostgreSQL, at least 2.
    connect_seconds
        How long to connect to PostgreSQL, for each address of the server.
    lock_seconds
        How long to wait for a lock of another program or transaction, or for a free connection.
    statement_seconds
        How long PostgreSQL may take to answer a statement.
    project_bytes
        Most bytes of the evaluations of a project; None for any number. Imports may exceed it.
    """

    connections: int = 10
    connect_seconds: float = 5.0
    lock_seconds: float = 5.0
    statement_seconds: float = 10.0
    project_bytes: int | None = None


def trial() -> tuple[Callable[[Connection], object], ...]:
    """Return two transactions: one stores as much as an evaluation may need, one deletes it.

    The first also waits for whoever has locked the table of evaluations.
    """
    key = os.urandom(16)
    row = {"key": key, "payload": b"", "status": 0, "body": os.urandom(_TRIAL_BYTES)}
    row |= {"evaluation": "", "project": "", "expires": 0}
    none = evaluations.delete().where(evaluations.c.id == "")
    return (
        lambda connection: (connection.execute(none), connection.execute(replays.insert(), row)),
        lambda connection: connection.execute(replays.delete().where(replays.c.key == key)),
    )


class StoreHealth:
    """The state of a database as its calls found it, with the number of failures by cause.

    The state is why the last read or the last write failed, the graver of both, or "ok". Damage
    stays until the store is opened again. The last write is in seconds since 1970;
    `observe_commit` takes the seconds of each commit.
    """

    observe_commit: Callable[[float], object] = staticmethod(lambda _: None)

    def __init__(self) -> None:
        self._reading = self._writing = OK
        self.failures: Counter[str] = Counter()
        self.last_write: float | None = None

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return max(self._reading, self._writing, key=STATES.index)

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Record whether a read failed."""
        try:
            yield
        except errors.StoreError as exc:
            self.failures[exc.cause] += 1
            self._reading = _changed(self._reading, exc.cause)
            raise
        self._reading = _changed(self._reading, OK)

    def wrote(self, seconds: float) -> None:
        """Record a commit, and how long it took."""
        self.observe_commit(seconds)
        self.last_write = time.time()
        self._reading, self._writing = _changed(self._reading, OK), _changed(self._writing, OK)

    def failed_to_write(self, exc: errors.StoreError) -> None:
        """Record why nothing could be written."""
        self.failures[exc.cause] += 1
        self._writing = _changed(self._writing, exc.cause)


def _changed(state: str, cause: str) -> str:
    return cause if cause in STATES and state != errors.StoreDamagedError.cause else state


class Database(ABC):
    """A database with the tables of a store; each thread has its own reader while it reads."""

    can_lose_connection: ClassVar[bool] = False

    def __init__(self, readers: Engine, lock_seconds: float) -> None:
        self.readers = readers
        self.lock_seconds = lock_seconds
        self.health = StoreHealth()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction; retry once if the server had closed the connection."""
        with waiting(), self.health.observed():
            try:
                return self._read(work)
            except errors.StoreUnavailableError as exc:
                has_waited = isinstance(exc, errors.StoreTimeoutError)
                has_waited = has_waited and not isinstance(exc, errors.StoreConflictError)
                if has_waited or not self.can_lose_connection:
                    raise
                return self._read(work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with translated(), self._reading() as connection:
            return work(connection)

    def _reading(self) -> Connection:
        return self.readers.connect()

    @contextmanager
    def streaming(self) -> Iterator[Connection]:
        """Yield a connection that streams rows one by one."""
        with self.health.observed(), translated(), self._reading() as connection:
            yield connection.execution_options(stream_results=True, yield_per=1000)

    @abstractmethod
    def writing(self, waited: float = 0.0) -> AbstractContextManager[Connection]:
        """Return a connection in a transaction that commits at the end.

        What is to be written has waited so many seconds already.
        """

    def make_room(self) -> bool:
        """Make room after a write that failed since the disk is full; whether to write again."""
        return False

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy of the database to a new file."""

    def close(self) -> None:
        """Close every connection."""
        self.readers.dispose()
