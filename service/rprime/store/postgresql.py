"""PostgreSQL: many processes, kept apart by advisory locks."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    func,
)
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY, insert

from rprime.store.database import Database, Insert, KeyRunningError
from rprime.store.errors import StoreError, StoreMissingError, StoreOutdatedError, translated
from rprime.store.schema_version import SCHEMA_VERSION, upgrade, version_of

OLDEST_SERVER = (15,)
_CONNECTIONS = 8
_MORE_CONNECTIONS = 24
_UPGRADING = b"rprime upgrade"
_LOCK = sql("SELECT pg_advisory_xact_lock(:number)")
_TRY_LOCK = sql("SELECT pg_try_advisory_xact_lock(:number)")
_LOCK_ALL = sql("SELECT pg_advisory_xact_lock(number) FROM unnest(:numbers) AS number").bindparams(
    bindparam("numbers", type_=ARRAY(BigInteger))
)


class PostgresqlDatabase(Database):
    """A database on a server.

    Parameters
    ----------
    engine
        For reading and writing.
    holders
        For the transactions that hold a running key; apart from the others, so that requests
        that wait for a connection are not waited for by those that have one.
    """

    can_lose_connection = True

    def __init__(self, engine: Engine, holders: Engine) -> None:
        super().__init__(engine)
        self._engine = engine
        self._holders = holders

    @staticmethod
    def insert(table: Table) -> Insert:
        """Start an insertion as PostgreSQL says it."""
        return insert(table)

    @staticmethod
    def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
        """Look for a text."""
        return func.strpos(column, text) > 0

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction."""
        with translated(), self._engine.begin() as connection:
            yield connection

    def serialise(self, connection: Connection, names: Iterable[bytes]) -> None:
        """Take the advisory locks of all names, always in the same order."""
        numbers = sorted({_number(b"write", name) for name in names})
        if numbers:
            connection.execute(_LOCK_ALL, {"numbers": numbers})

    def quiesce(self, connection: Connection) -> None:
        """Wait for the evaluations that are being stored and keep off the next ones."""
        connection.execute(sql("LOCK TABLE shared, aliases IN SHARE ROW EXCLUSIVE MODE"))

    @contextmanager
    def running(self, key: bytes) -> Iterator[None]:
        """Hold a key against every process; a process that dies gives it free."""
        with super().running(key), translated(), self._holders.connect() as connection:
            if not connection.scalar(_TRY_LOCK, {"number": _number(b"running", key)}):
                raise KeyRunningError
            yield

    def backup(self, path: Path) -> None:  # noqa: ARG002 - as SQLite does
        """Leave it to the means of the server."""
        raise StoreError("A PostgreSQL store is saved with pg_dump, or with `rprime export`.")

    def close(self) -> None:
        """Give every connection back."""
        self._engine.dispose()
        self._holders.dispose()


def open_postgresql(url: URL, *, read_only: bool, lock_seconds: float) -> PostgresqlDatabase:
    """Connect to a database and bring its tables up.

    Parameters
    ----------
    url
        Of the database, which exists.
    read_only
        Nothing is migrated.
    lock_seconds
        How long to wait for a lock that another transaction has.
    """
    driven = url.set(drivername="postgresql+psycopg")
    engine, holders = (_engine(driven, lock_seconds) for _ in range(2))
    try:
        with translated():
            _prepare(engine, read_only=read_only)
    except BaseException:
        engine.dispose()
        raise
    return PostgresqlDatabase(engine, holders)


def _engine(url: URL, lock_seconds: float) -> Engine:
    try:
        return create_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_timeout=lock_seconds,
            connect_args={
                "application_name": "rprime",
                "connect_timeout": 10,
                "options": f"-c lock_timeout={max(1, int(lock_seconds * 1000))}",
            },
        )
    except ModuleNotFoundError as exc:
        raise StoreMissingError(
            "The driver of PostgreSQL is missing: pip install 'rprime[postgres]'."
        ) from exc


def _prepare(engine: Engine, *, read_only: bool) -> None:
    with engine.begin() as connection:
        found = connection.dialect.server_version_info or (0,)
        if found < OLDEST_SERVER:
            raise StoreOutdatedError(f"PostgreSQL {found[0]} is too old, 15 is needed.")
        if read_only:
            if version_of(connection) < SCHEMA_VERSION:
                raise StoreOutdatedError(
                    "The store has older tables; `rprime serve` brings them up."
                )
            return
        # Several processes start at once: one upgrades, the others wait and find it done.
        connection.execute(sql("SET LOCAL lock_timeout = 0"))
        connection.execute(_LOCK, {"number": _number(b"upgrade", _UPGRADING)})
        upgrade(connection)


def _number(purpose: bytes, name: bytes) -> int:
    """Give the number of an advisory lock; those of a purpose do not meet those of another."""
    digest = hashlib.blake2b(name, digest_size=8, person=purpose).digest()
    return int.from_bytes(digest, "little", signed=True)
