"""The store on PostgreSQL: many processes, coordinated by advisory locks."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from math import ceil, inf
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg.abc import RV, PQGen
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError

from rprime.store import errors
from rprime.store.database import Database, DatabaseOptions, serialise
from rprime.store.errors import TOO_MANY_CONNECTIONS, StoreUrlError, refusal_state, translated
from rprime.store.schema import is_current, upgrade

OLDEST_SERVER = (15,)
_NETWORK_SECONDS = 2
"""Seconds to wait for an answer beyond the statement timeout of the server."""
_UPGRADE = DatabaseOptions(lock_seconds=3600, statement_seconds=3600)
_PAUSE_SECONDS = 0.1
_RETRY_SECONDS = 1.0


class CircuitBreaker:
    """Remembers that the server did not answer in time.

    While the breaker is open, it refuses calls; after a second one call may try again, and the
    others are refused until that call is answered or has taken so many seconds.
    """

    def __init__(self, trial_seconds: float) -> None:
        self._trial_seconds = trial_seconds
        self._retry_at = 0.0
        self._lock = Lock()

    def check(self) -> None:
        """Let a call pass, or refuse it if the server is silent and this is not the trial."""
        if not self._retry_at:
            return
        with self._lock:
            now = time.monotonic()
            if now < self._retry_at:
                raise errors.StoreTimeoutError(text=errors.SILENT)
            self._retry_at = now + self._trial_seconds

    def trip(self) -> None:
        """Record that the server did not answer in time."""
        with self._lock:
            self._retry_at = time.monotonic() + _RETRY_SECONDS

    def reset(self) -> None:
        """Record that the server answers."""
        self._retry_at = 0.0


class PostgresqlDatabase(Database):
    """A database on a PostgreSQL server, whose connections read and write."""

    can_lose_connection = True

    def __init__(self, engine: Engine, breaker: CircuitBreaker, options: DatabaseOptions) -> None:
        super().__init__(engine, options.lock_seconds)
        self._breaker = breaker
        waits = (options.connect_seconds, options.lock_seconds, options.statement_seconds)
        self._write_seconds = sum(waits)

    @contextmanager
    def writing(self, waited: float = 0.0) -> Iterator[Connection]:
        """Yield a connection in a transaction that ends in time, however many statements it has."""
        deadline = time.monotonic() + self._write_seconds - waited
        if waited > self._write_seconds:
            raise errors.StoreTimeoutError(text="The database took too long.")
        with translated(), self._reading(waited) as connection:
            driver: Any = connection.connection.driver_connection
            driver.deadline = deadline
            try:
                with connection.begin():
                    yield connection
            finally:
                driver.deadline = inf

    def _reading(self, waited: float = 0.0) -> Connection:
        """Connect; if the server allows no further connection, wait for one that is returned."""
        end = time.monotonic() + self.lock_seconds - waited
        while True:
            self._breaker.check()
            try:
                return super()._reading()
            except OperationalError as exc:
                state = getattr(exc.orig, "sqlstate", None)
                if state != TOO_MANY_CONNECTIONS or time.monotonic() > end:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def backup(self, path: Path) -> None:  # noqa: ARG002 - the interface of SQLite
        """Refuse: the tools of the server make backups."""
        raise errors.StoreError(
            "A PostgreSQL store is saved with pg_dump, or with `rprime export`."
        )


def open_postgresql(url: URL, *, read_only: bool, options: DatabaseOptions) -> PostgresqlDatabase:
    """Connect to an existing database; migrate its tables, unless it is opened for reading."""
    driven = url.set(drivername="postgresql+psycopg")
    breaker = CircuitBreaker(options.connect_seconds + options.statement_seconds + _NETWORK_SECONDS)
    engine = _engine(driven, breaker, options)
    with ExitStack() as opened, translated():
        opened.callback(engine.dispose)
        with engine.begin() as connection:
            version = connection.dialect.server_version_info or (0,)
            if version < OLDEST_SERVER:
                raise errors.StoreOutdatedError(
                    f"PostgreSQL {version[0]} is too old, 15 is needed."
                )
            current = is_current(connection, read_only=read_only)
        if not current:
            _upgrade(driven)
        opened.pop_all()
    return PostgresqlDatabase(engine, breaker, options)


def _engine(url: URL, breaker: CircuitBreaker, options: DatabaseOptions) -> Engine:
    try:
        engine = create_engine(
            url,
            pool_size=options.connections,
            max_overflow=0,
            pool_timeout=options.lock_seconds,
            connect_args=_parameters(options),
        )
    except ModuleNotFoundError as exc:
        raise errors.StoreMissingError(
            "The driver of PostgreSQL is missing: pip install 'rprime[postgres]'."
        ) from exc

    seconds = options.statement_seconds + _NETWORK_SECONDS
    connect = partial(DeadlineConnection.bounded, breaker=breaker, seconds=seconds)
    event.listen(engine, "do_connect", lambda _, __, ___, parameters: connect(parameters))
    return engine


def _parameters(options: DatabaseOptions) -> dict[str, str | int]:
    """Return the timeouts of the server and of the kernel as parameters of libpq."""
    statement = int(options.statement_seconds * 1000)
    return {
        "application_name": "rprime",
        # libpq has whole seconds, and at least two.
        "connect_timeout": max(2, ceil(options.connect_seconds)),
        "tcp_user_timeout": statement,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "options": f"-c lock_timeout={max(1, int(options.lock_seconds * 1000))} "
        f"-c statement_timeout={statement}",
    }


def _upgrade(url: URL) -> None:
    """Migrate the tables, without the statement timeout of requests."""
    engine = _engine(url, CircuitBreaker(_UPGRADE.statement_seconds), _UPGRADE)
    try:
        with engine.begin() as connection:
            # If several processes start at once, one migrates and the others wait.
            serialise(connection, [b"rprime upgrade"], purpose=b"upgrade")
            upgrade(connection)
    finally:
        engine.dispose()


_INTERVAL_SECONDS = 0.1
_ROLLBACK_SECONDS = 2.0
"""Seconds for a rollback, which is instant; a closed connection is rolled back by the server."""


class AnswerTimeoutError(psycopg.OperationalError, TimeoutError):
    """The server did not answer in time. It may have run the statement all the same."""


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for too long, or at its deadline.

    The server ends a slow statement, and the kernel a connection whose packets are not
    acknowledged; neither helps if a proxy acknowledges packets and holds them back.
    """

    breaker: CircuitBreaker
    seconds: float
    deadline = inf

    @classmethod
    def bounded(
        cls, parameters: Mapping[str, Any], *, breaker: CircuitBreaker, seconds: float
    ) -> Self:
        """Connect; an answer, also to a statement, has to come within so many seconds."""
        try:
            connection = cls.connect(**parameters)
        except psycopg.errors.ConnectionTimeout as exc:
            breaker.trip()
            raise AnswerTimeoutError from exc
        except psycopg.ProgrammingError as exc:
            raise StoreUrlError(f"RPRIME_STORE: {exc}") from exc
        except psycopg.OperationalError as exc:
            # Refused at once, so another attempt costs no time.
            breaker.reset()
            exc.sqlstate = exc.sqlstate or refusal_state(str(exc))
            raise
        connection.breaker, connection.seconds = breaker, seconds
        return connection

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,  # noqa: ARG002 - the timeout of the connection applies
    ) -> RV:
        """Wait for the answer of the server; close the connection on timeout."""
        now = monotonic()
        end = min(now + self.seconds, self.deadline)
        try:
            answer = super().wait(gen, interval, max(0.0, end - now))
        except psycopg.Error as exc:
            if exc.sqlstate is not None or monotonic() < end:
                self.breaker.reset()
                raise
            self.pgconn.finish()
            self.breaker.trip()
            raise AnswerTimeoutError from exc
        self.breaker.reset()
        return answer

    def rollback(self) -> None:
        """Roll back, without waiting long for a server that is silent."""
        seconds, deadline = self.seconds, self.deadline
        self.seconds, self.deadline = min(seconds, _ROLLBACK_SECONDS), inf
        try:
            super().rollback()
        finally:
            self.seconds, self.deadline = seconds, deadline
