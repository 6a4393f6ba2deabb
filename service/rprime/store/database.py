"""The interface of a database to the store, and what SQLite and PostgreSQL share."""

import hashlib
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sqlalchemy import BigInteger, Connection, Engine, Table, bindparam, text
from sqlalchemy.dialects import postgresql

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

    The first also waits for the program that has locked the table of evaluations.
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


insert = postgresql.insert
"""Makes an INSERT with ON CONFLICT, which SQLAlchemy renders for SQLite, too."""
Row = Mapping[Any, Any]
"""Values by column name."""

# Of 23 columns, with far fewer than the 32 766 parameters that a statement may have.
_MOST_ROWS = 512
_LOCKS = text("SELECT pg_advisory_xact_lock(number) FROM unnest(:numbers) AS number").bindparams(
    bindparam("numbers", type_=postgresql.ARRAY(BigInteger))
)


def add(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, at least one, all with the same columns.

    SQLite gets as few statements as its limit of parameters allows: with a statement per row, the
    writing thread would wait for the interpreter lock each time.
    """
    if not _is_sqlite(connection):
        connection.execute(table.insert(), rows)
        return
    columns = tuple(rows[0])
    for start in range(0, len(rows), _MOST_ROWS):
        part = rows[start : start + _MOST_ROWS]
        values = chain.from_iterable(map(itemgetter(*columns), part))
        connection.exec_driver_sql(_insertion(table.name, columns, len(part)), tuple(values))


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    values = ", ".join([row] * rows)
    return f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608 (names of our schema)


def serialise(connection: Connection, names: Iterable[bytes], *, purpose: bytes = b"write") -> None:
    """Exclude other transactions with one of these names until this one ends.

    PostgreSQL takes advisory locks, in sorted order; purposes do not share them. SQLite has one
    writing thread.
    """
    digests = (hashlib.blake2b(name, digest_size=8, person=purpose).digest() for name in names)
    numbers = sorted({int.from_bytes(digest, "little", signed=True) for digest in digests})
    if numbers and not _is_sqlite(connection):
        connection.execute(_LOCKS, {"numbers": numbers})


def quiesce(connection: Connection) -> None:
    """Wait for running inserts of evaluations, and block the next ones until the transaction ends.

    SQLite has one writing thread.
    """
    if not _is_sqlite(connection):
        connection.execute(text("LOCK TABLE shared, aliases IN SHARE ROW EXCLUSIVE MODE"))


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
