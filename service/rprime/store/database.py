"""What the rest of a store asks of a database, and what SQLite and PostgreSQL have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Table
from sqlalchemy.dialects import postgresql, sqlite

from rprime.store.errors import (
    StoreConflictError,
    StoreTimeoutError,
    StoreUnavailableError,
    translated,
)

T = TypeVar("T")
Insert = sqlite.Insert | postgresql.Insert
"""Both have the same methods for conflicts."""
Row = Mapping[Any, Any]
"""By the names of the columns."""


class KeyRunningError(Exception):
    """A request with this idempotency key is being answered right now."""


class Database(ABC):
    """A database with the tables of a store.

    Parameters
    ----------
    readers
        Connections for reading: a thread has one of its own for as long as it reads.
    """

    can_lose_connection: ClassVar[bool] = False

    def __init__(self, readers: Engine) -> None:
        self.readers = readers
        self._running = RunningKeys()

    @staticmethod
    @abstractmethod
    def insert(table: Table) -> Insert:
        """Start an insertion that can say what it does about rows that are there."""

    @staticmethod
    def add(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows, at least one, all with the same columns."""
        connection.execute(table.insert(), rows)

    @staticmethod
    @abstractmethod
    def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
        """Whether a column has a text in it, capital letters apart from small ones."""

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction; once more where the server had closed the connection."""
        try:
            return self._read(work)
        except StoreUnavailableError as exc:
            waited = isinstance(exc, StoreTimeoutError) and not isinstance(exc, StoreConflictError)
            if waited or not self.can_lose_connection:
                raise
            return self._read(work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with translated(), self._reading() as connection:
            return work(connection)

    def _reading(self) -> Connection:
        return self.readers.connect()

    @contextmanager
    def streaming(self) -> Iterator[Connection]:
        """Give a connection to read rows from one by one, however many there are."""
        with translated(), self._reading() as connection:
            yield connection.execution_options(stream_results=True, yield_per=1000)

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """Give a connection in a transaction for writing, which is committed at the end."""

    @abstractmethod
    def serialise(self, connection: Connection, names: Iterable[bytes]) -> None:
        """Let no other transaction that gives one of these names run beside this one."""

    @abstractmethod
    def quiesce(self, connection: Connection) -> None:
        """Let no evaluation be stored before this transaction ends."""

    def running(self, key: bytes) -> AbstractContextManager[None]:
        """Hold a key while a request is answered.

        Raises
        ------
        KeyRunningError
            If it is held.
        """
        return self._running.hold(key)

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy of the database to a file that is not there yet."""

    @abstractmethod
    def close(self) -> None:
        """Give every connection back."""


class RunningKeys:
    """The keys that are held in this process."""

    def __init__(self) -> None:
        self._held: set[bytes] = set()
        self._lock = Lock()

    @contextmanager
    def hold(self, key: bytes) -> Iterator[None]:
        """Hold a key, which nobody else may."""
        with self._lock:
            if key in self._held:
                raise KeyRunningError
            self._held.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(key)
