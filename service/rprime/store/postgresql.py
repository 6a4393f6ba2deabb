"""The store on PostgreSQL: many processes, coordinated by advisory locks."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Table,
    bindparam,
    create_engine,
    event,
    func,
)
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY, insert

from rprime.store.circuit_breaker import CircuitBreaker
from rprime.store.database import Database, Insert, KeyRunningError
from rprime.store.errors import StoreError, StoreMissingError, StoreOutdatedError, translated
from rprime.store.schema_version import SCHEMA_VERSION, upgrade, version_of

OLDEST_SERVER = (15,)
_CONNECTIONS = 8
_MORE_CONNECTIONS = 24
_CONNECT_SECONDS = 5
"""Seconds to connect, for each address of the server."""
_NETWORK_SECONDS = 2
"""Seconds to wait for an answer beyond the statement timeout of the server."""
_UPGRADE_SECONDS = 3600
_UPGRADING = b"rprime upgrade"
_LOCK = sql("SELECT pg_advisory_xact_lock(:number)")
_TRY_LOCK = sql("SELECT pg_try_advisory_xact_lock(:number)")
_LOCK_ALL = sql("SELECT pg_advisory_xact_lock(number) FROM unnest(:numbers) AS number").bindparams(
    bindparam("numbers", type_=ARRAY(BigInteger))
)


class PostgresqlDatabase(Database):
    """A database on a PostgreSQL server.

    Parameters
    ----------
    engine
        Connections for reading and writing.
    holders
        Connections of the transactions that hold a running key; separate, so that requests with a
        connection never wait for those without one.
    breaker
        Shared by both.
    """

    can_lose_connection = True

    def __init__(self, engine: Engine, holders: Engine, breaker: CircuitBreaker) -> None:
        super().__init__(engine)
        self._engine = engine
        self._holders = holders
        self._breaker = breaker

    @staticmethod
    def insert(table: Table) -> Insert:
        """Return an INSERT of PostgreSQL."""
        return insert(table)

    @staticmethod
    def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
        """Search case-sensitively."""
        return func.strpos(column, text) > 0

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection in a transaction."""
        self._breaker.check()
        with translated(), self._engine.begin() as connection:
            yield connection

    def serialise(self, connection: Connection, names: Iterable[bytes]) -> None:
        """Take the advisory locks of all names, in sorted order."""
        numbers = sorted({_number(b"write", name) for name in names})
        if numbers:
            connection.execute(_LOCK_ALL, {"numbers": numbers})

    def quiesce(self, connection: Connection) -> None:
        """Wait for running inserts of evaluations and block the next ones."""
        connection.execute(sql("LOCK TABLE shared, aliases IN SHARE ROW EXCLUSIVE MODE"))

    @contextmanager
    def running(self, key: bytes) -> Iterator[None]:
        """Hold a key against every process; a process that dies releases it."""
        self._breaker.check()
        with super().running(key), translated(), self._holders.connect() as connection:
            if not connection.scalar(_TRY_LOCK, {"number": _number(b"running", key)}):
                raise KeyRunningError
            yield

    def _reading(self) -> Connection:
        self._breaker.check()
        return super()._reading()

    def backup(self, path: Path) -> None:  # noqa: ARG002 - the interface of SQLite
        """Refuse: the tools of the server make backups."""
        raise StoreError("A PostgreSQL store is saved with pg_dump, or with `rprime export`.")

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        self._holders.dispose()


def open_postgresql(
    url: URL, *, read_only: bool, lock_seconds: float, statement_seconds: float
) -> PostgresqlDatabase:
    """Connect to a database and migrate its tables.

    Parameters
    ----------
    url
        The URL of an existing database.
    read_only
        Nothing is migrated.
    lock_seconds
        How long to wait for a lock of another transaction.
    statement_seconds
        How long a statement may take.
    """
    driven = url.set(drivername="postgresql+psycopg")
    breaker = CircuitBreaker(_CONNECT_SECONDS + statement_seconds + _NETWORK_SECONDS)
    engine, holders = (
        _engine(driven, breaker, lock_seconds=lock_seconds, statement_seconds=statement_seconds)
        for _ in range(2)
    )
    try:
        with translated():
            if not _is_current(engine, read_only=read_only):
                _upgrade(driven)
    except BaseException:
        engine.dispose()
        raise
    return PostgresqlDatabase(engine, holders, breaker)


def _engine(
    url: URL, breaker: CircuitBreaker, *, lock_seconds: float, statement_seconds: float
) -> Engine:
    try:
        engine = create_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_timeout=lock_seconds,
            connect_args=_parameters(lock_seconds, statement_seconds),
        )
    except ModuleNotFoundError as exc:
        raise StoreMissingError(
            "The driver of PostgreSQL is missing: pip install 'rprime[postgres]'."
        ) from exc
    from rprime.store.deadline_connection import (  # noqa: PLC0415 - needs the driver
        DeadlineConnection,
    )

    connect = partial(
        DeadlineConnection.bounded, breaker=breaker, seconds=statement_seconds + _NETWORK_SECONDS
    )
    event.listen(engine, "do_connect", lambda _, __, ___, given: connect(given))
    return engine


def _parameters(lock_seconds: float, statement_seconds: float) -> dict[str, str | int]:
    """Return the timeouts of the server and of the kernel as parameters of libpq."""
    statement = int(statement_seconds * 1000)
    return {
        "application_name": "rprime",
        "connect_timeout": _CONNECT_SECONDS,
        "tcp_user_timeout": statement,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "options": f"-c lock_timeout={max(1, int(lock_seconds * 1000))} "
        f"-c statement_timeout={statement}",
    }


def _is_current(engine: Engine, *, read_only: bool) -> bool:
    with engine.begin() as connection:
        found = connection.dialect.server_version_info or (0,)
        if found < OLDEST_SERVER:
            raise StoreOutdatedError(f"PostgreSQL {found[0]} is too old, 15 is needed.")
        current = version_of(connection) == SCHEMA_VERSION
    if read_only and not current:
        raise StoreOutdatedError("The store has older tables; `rprime serve` migrates them.")
    return current


def _upgrade(url: URL) -> None:
    """Migrate the tables, without the statement timeout of requests."""
    engine = _engine(
        url,
        CircuitBreaker(_UPGRADE_SECONDS),
        lock_seconds=_UPGRADE_SECONDS,
        statement_seconds=_UPGRADE_SECONDS,
    )
    try:
        with engine.begin() as connection:
            # If several processes start at once, one migrates and the others wait.
            connection.execute(_LOCK, {"number": _number(b"upgrade", _UPGRADING)})
            upgrade(connection)
    finally:
        engine.dispose()


def _number(purpose: bytes, name: bytes) -> int:
    """Return the number of an advisory lock; purposes do not share numbers."""
    digest = hashlib.blake2b(name, digest_size=8, person=purpose).digest()
    return int.from_bytes(digest, "little", signed=True)
