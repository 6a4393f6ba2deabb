"""SQLite: one process, one writer, and a file that is looked at before it is trusted."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path

import structlog
from sqlalchemy import URL, ColumnElement, Connection, Engine, Table, create_engine, event, func
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import QueuePool

from rprime.store.database import Database, Insert, Row
from rprime.store.errors import (
    StoreDamagedError,
    StoreError,
    StoreForeignError,
    StoreInUseError,
    StoreMissingError,
    StoreOutdatedError,
    StoreUrlError,
    translated,
)
from rprime.store.schema_version import SCHEMA_VERSION, newer, upgrade

APPLICATION_ID = 0x52505249
"""RPRI, in the header of every file of ours."""

OLDEST_LIBRARY = (3, 37, 0)
SOUND_LIBRARY = (3, 51, 3)
"""Before it a WAL can be reset under a second writer; a store has one."""

MOST_CHECKED_BYTES = 256 * 1024 * 1024
"""Up to here a file is checked as a whole at opening, in well under a second."""

_MAGIC = b"SQLite format 3\x00"
# Of 22 columns, with far fewer than the 32 766 parameters that a statement may have.
_MOST_ROWS = 512
_READERS = 8
_MORE_READERS = 32
_MEND = "give this user the right to it, or let RPRIME_STORE name another file."
_POSTGRES_HINT = (
    "A SQLite store belongs to one process; several workers or hosts share a PostgreSQL one: "
    "RPRIME_STORE=postgresql+psycopg://..."
)


class SqliteDatabase(Database):
    """One file in WAL mode: one connection writes, the others read.

    Parameters
    ----------
    path
        The file.
    writer
        Of one connection; None for a store that is only read.
    readers
        Of connections that cannot write.
    lock
        Holds the file for this process; None for a store that is only read.
    """

    def __init__(
        self, path: Path, writer: Engine | None, readers: Engine, lock: sqlite3.Connection | None
    ) -> None:
        super().__init__(readers)
        self.path = path
        self._writer = writer
        self._lock = lock

    @staticmethod
    def insert(table: Table) -> Insert:
        """Start an insertion as SQLite says it."""
        return insert(table)

    @staticmethod
    def add(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """Insert all rows in as few steps as SQLite takes parameters for.

        With a step for each, the thread that writes would wait for the interpreter as often.
        """
        columns = tuple(rows[0])
        for start in range(0, len(rows), _MOST_ROWS):
            part = rows[start : start + _MOST_ROWS]
            values = chain.from_iterable(map(itemgetter(*columns), part))
            connection.exec_driver_sql(_insertion(table.name, columns, len(part)), tuple(values))

    @staticmethod
    def contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
        """Look for a text; LIKE would take capital letters for small ones."""
        return func.instr(column, text) > 0

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give the one connection that writes, in a transaction."""
        if self._writer is None:
            raise StoreError("The store was opened for reading only.")
        with translated(), self._writer.begin() as connection:
            yield connection

    def serialise(self, connection: Connection, names: Iterable[bytes]) -> None:
        """Do nothing: one thread writes."""

    def quiesce(self, connection: Connection) -> None:
        """Do nothing: one thread writes."""

    def backup(self, path: Path) -> None:
        """Copy by SQLite's own means, while others read and write."""
        if path.exists():
            raise StoreError(f"{path} exists already.")
        part = path.with_name(path.name + ".part")
        part.unlink(missing_ok=True)
        with translated(), self.readers.connect() as connection:
            source = connection.connection.dbapi_connection
            with closing(sqlite3.connect(part)) as target:
                source.backup(target)  # type: ignore[union-attr] # of sqlite3
        part.replace(path)

    def close(self) -> None:
        """Move everything into the main file and give the file free."""
        self.readers.dispose()
        if self._writer is not None:
            # On a full disk it stays in the WAL, where it is as safe.
            with suppress(sqlite3.OperationalError), closing(self._writer.raw_connection()) as raw:
                raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.dispose()
        if self._lock is not None:
            self._lock.close()


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    one = f"({', '.join('?' * len(columns))})"
    values = ", ".join([one] * rows)
    return f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608 (names of our schema)


def open_sqlite(url: URL, *, read_only: bool, lock_seconds: float) -> SqliteDatabase:
    """Open a file, or make it.

    Parameters
    ----------
    url
        With the path of the file.
    read_only
        Beside the process that serves it: nothing is made, locked or migrated.
    lock_seconds
        How long to wait for a lock that another program has on the file.
    """
    path = _path(url)
    check_library()
    lock = None if read_only else _hold(path)
    try:
        with translated():
            _check_file(path, read_only=read_only, lock_seconds=lock_seconds)
            writer = None if read_only else _writer(path, lock_seconds)
    except BaseException:
        if lock is not None:
            lock.close()
        raise
    return SqliteDatabase(path, writer, _readers(path, lock_seconds), lock)


def _path(url: URL) -> Path:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise StoreUrlError("A SQLite store is a file: sqlite:///rprime.db or sqlite:////var/r.db")
    path = Path(url.database).absolute()
    if not path.parent.is_dir():
        raise StoreMissingError(f"There is no folder {path.parent}; make it, then start again.")
    return path


def check_library() -> None:
    """Refuse a SQLite that is too old, and log one that has a known defect."""
    found = sqlite3.sqlite_version_info
    if found < OLDEST_LIBRARY:
        raise StoreOutdatedError(
            f"SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed; "
            "use a newer Python or a PostgreSQL store."
        )
    if found < SOUND_LIBRARY:
        structlog.get_logger().info(
            "sqlite_before_3_51_3",
            version=sqlite3.sqlite_version,
            detail="Its WAL can be reset by concurrent writers; the store has one writer only.",
        )


def _hold(path: Path) -> sqlite3.Connection:
    """Hold the file for this process, until it ends, however it ends."""
    beside = path.with_name(path.name + ".lock")
    lock = None
    try:
        # SQLite's lock on a file beside it: the same on every system, and gone with the process.
        lock = sqlite3.connect(beside, isolation_level=None, timeout=0, check_same_thread=False)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as exc:
        if lock is None or exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise StoreMissingError(f"The folder of {path} cannot be written to; {_MEND}") from exc
        lock.close()
        raise StoreInUseError(f"Another process uses {path}. {_POSTGRES_HINT}") from exc
    return lock


def _check_file(path: Path, *, read_only: bool, lock_seconds: float) -> None:
    """Refuse a file that is foreign, newer or damaged, before anything is changed in it."""
    if not path.exists() or not path.stat().st_size:
        if read_only:
            raise StoreMissingError(f"There is no store at {path}.")
        return
    if not os.access(path, os.R_OK if read_only else os.R_OK | os.W_OK):
        wanted = "read" if read_only else "read and written"
        raise StoreMissingError(f"{path} cannot be {wanted}; {_MEND}")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise StoreForeignError(
                f"{path} is no SQLite file, or its start is damaged; "
                "let RPRIME_STORE name another file, or restore a backup."
            )
    with closing(_connect(path, lock_seconds, read_only=read_only)) as connection:
        _check_owner(connection, path)
        _check_version(connection, read_only=read_only)
        _check_pages(connection, path)


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    owner = _pragma(connection, "application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise StoreForeignError(
            f"{path} belongs to another program; let RPRIME_STORE name another file."
        )


def _check_version(connection: sqlite3.Connection, *, read_only: bool) -> None:
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise newer(version)
    if read_only and version < SCHEMA_VERSION:
        raise StoreOutdatedError("The store has older tables; `rprime serve` brings them up.")


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > MOST_CHECKED_BYTES:
        return
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreDamagedError(
            f"{path} is damaged. Keep a copy of it, then restore a backup, or save what can be "
            "read with `sqlite3 FILE .recover`."
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _connect(path: Path, lock_seconds: float, *, read_only: bool = False) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=lock_seconds,
        # Python is not to begin transactions of its own; and a connection goes from thread to
        # thread with the pool, which never gives it to two at a time.
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _writer(path: Path, lock_seconds: float) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = _connect(path, lock_seconds)
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StoreError(f"The file system of {path} cannot hold a store; use a local disk.")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # 16 MiB: a checkpoint writes a page once however often it changed.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        return connection

    engine = _engine(connect, "BEGIN IMMEDIATE", pool_size=1, max_overflow=0)
    try:
        _prepare(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _prepare(engine: Engine) -> None:
    with engine.begin() as connection:
        upgrade(connection)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _readers(path: Path, lock_seconds: float) -> Engine:
    def connect() -> sqlite3.Connection:
        return _connect(path, lock_seconds, read_only=True)

    return _engine(connect, "BEGIN", pool_size=_READERS, max_overflow=_MORE_READERS)


def _engine(
    connect: Callable[[], sqlite3.Connection], begin: str, *, pool_size: int, max_overflow: int
) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=max_overflow,
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
