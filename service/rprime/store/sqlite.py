"""SQLite: one process, one writer, and a file that is looked at before it is trusted."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import TypeVar

import structlog
from sqlalchemy import URL, ColumnElement, Connection, Engine, Table, create_engine, event, func
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from rprime.store.database import Database, Insert, Row
from rprime.store.errors import (
    StoreDamagedError,
    StoreError,
    StoreForeignError,
    StoreMissingError,
    StoreMovedError,
    StoreOutdatedError,
    StoreUrlError,
    translated,
)
from rprime.store.schema_version import SCHEMA_VERSION, newer, upgrade
from rprime.store.sqlite_file import REMEDY, HeldFile

T = TypeVar("T")

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

log = structlog.get_logger(__name__)


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
    file
        Held for this process; None for a store that is only read.
    """

    def __init__(
        self, path: Path, writer: Engine | None, readers: Engine, file: HeldFile | None
    ) -> None:
        super().__init__(readers)
        self.path = path
        self._writer = writer
        self._file = file
        self._moved: str | None = None
        self._moving = Lock()

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
        self._verify()
        with translated(), self._writer.begin() as connection:
            yield connection
        # What was committed meanwhile may be in a file that is gone: it is not acknowledged.
        self._verify()

    def _read(self, work: Callable[[Connection], T]) -> T:
        self._verify()
        return super()._read(work)

    @contextmanager
    def streaming(self) -> Iterator[Connection]:
        """Give a connection to read rows from one by one, however many there are."""
        self._verify()
        with super().streaming() as connection:
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
        writer, self._writer = self._writer, None
        if writer is not None:
            self._checkpoint(writer)
            writer.dispose()
        # The last, as it closes a descriptor of the file; and once, as its number may be reused.
        file, self._file = self._file, None
        if file is not None:
            file.release()

    def _verify(self) -> None:
        """Refuse work on files that are no longer at their paths.

        It goes on by itself once the very same files are back, not when copies of them are.
        """
        moved = None if self._file is None else self._file.moved()
        if moved != self._moved:
            with self._moving:
                changed = moved != self._moved
                self._moved = moved
            if changed:
                self._report(moved)
        if moved:
            raise StoreMovedError(moved)

    def _report(self, moved: str | None) -> None:
        if moved is None:
            log.info("store_returned")
            return
        log.error("store_moved", detail=moved)
        if self._writer is not None:
            # Of a WAL that was removed nothing is lost then, whatever ends the process; and the
            # WAL of a file that was replaced must not be taken for that of its successor.
            self._checkpoint(self._writer)

    @staticmethod
    def _checkpoint(writer: Engine) -> None:
        """Move everything from the WAL into the main file, if that is possible."""
        # On a full disk it stays in the WAL, where it is as safe.
        failures = (sqlite3.OperationalError, PoolTimeoutError)
        with suppress(*failures), closing(writer.raw_connection()) as raw:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


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
    file = None if read_only else HeldFile(path)
    writer = None
    try:
        with translated():
            _check_file(path, read_only=read_only, lock_seconds=lock_seconds)
            if file is not None:
                writer = _writer(path, lock_seconds)
                file.remember()
    except BaseException:
        if writer is not None:
            writer.dispose()
        if file is not None:
            file.release()
        raise
    return SqliteDatabase(path, writer, _readers(path, lock_seconds), file)


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
        log.info(
            "sqlite_before_3_51_3",
            version=sqlite3.sqlite_version,
            detail="Its WAL can be reset by concurrent writers; the store has one writer only.",
        )


def _check_file(path: Path, *, read_only: bool, lock_seconds: float) -> None:
    """Refuse a file that is foreign, newer or damaged, before anything is changed in it."""
    if not path.exists() or not path.stat().st_size:
        if read_only:
            raise StoreMissingError(f"There is no store at {path}.")
        return
    if not os.access(path, os.R_OK):
        raise StoreMissingError(f"{path} cannot be read; {REMEDY}")
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
