"""The store on SQLite: one process, one writer, and a file that is checked before use."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock

import structlog
from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import QueuePool

from rprime.store import errors
from rprime.store.database import Database
from rprime.store.errors import translated
from rprime.store.schema import is_current, upgrade

log = structlog.get_logger(__name__)

REMEDY = "give this user access to it, or let RPRIME_STORE name another file."
_POSTGRES_HINT = (
    "A SQLite store belongs to one process; several workers or hosts share a PostgreSQL one: "
    "RPRIME_STORE=postgresql://..."
)
# On Linux flock and the fcntl locks of SQLite do not see each other. On macOS and BSD they exclude
# each other even within one process, so a file beside the store is locked there.
_LOCKS_STORE = sys.platform == "linux"

RESERVED_WAL_BYTES = 448 * 1024
"""Allocated to the WAL: what a full disk cannot take, so that evaluations can be deleted."""
RESERVE_BYTES = RESERVED_WAL_BYTES + 32 * 1024
"""The size of the file that keeps this room, and that of the index of the WAL, between two runs."""
_CHUNK_BYTES = 256 * 1024
_TRIAL_BYTES = 1024 * 1024
_READ_ONLY = {errno.EROFS, errno.EPERM}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_Identity = tuple[int, int]


class HeldFile:
    """The file of a store, locked until this process ends, however it ends.

    The lock belongs to the inode, so a symbolic link, a hard link or another mount does not evade
    it. A missing file is created; an empty one is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # SQLite puts the WAL beside the target of a symbolic link.
        real = path.resolve()
        self._wal = real.with_name(real.name + "-wal")
        self._reserve = real.with_name(real.name + "-reserve")
        self._is_new = not path.exists()
        self._is_reserved = self._reserve.exists()
        if self._is_new and self._wal.exists():
            raise errors.StoreEmptyError(
                f"{path} is gone, and its WAL is not. Restore the file or a backup; or remove "
                f"{self._wal}, to begin an empty store."
            )
        self._descriptor = _locked(path)
        self._store: _Identity | None = None
        self._log: _Identity | None = None
        if not self._is_new and not path.stat().st_size:
            self.release()
            raise errors.StoreEmptyError(
                f"{path} is empty. Restore a backup; or remove it, to begin an empty store."
            )
        # From here on the room is needed for the WAL and its index.
        self._reserve.unlink(missing_ok=True)

    def remember(self) -> None:
        """Remember the file and its WAL, which SQLite has just opened and which must be there."""
        opened = _identity_of(os.fstat(self._descriptor))
        self._store = opened if _LOCKS_STORE else _identity_at(self.path)
        self._log = _identity_at(self._wal)
        moved = self.moved()
        if moved:
            raise errors.StoreMovedError(moved)
        if not _allocated(self._wal, RESERVED_WAL_BYTES):
            log.warning("store_reserve_missing", detail="The disk of the store is full.")

    def allocate(self, size: int) -> None:
        """Allocate room for the main file, before a commit makes it grow."""
        if not _LOCKS_STORE or os.fstat(self._descriptor).st_size >= size:
            return
        code = ""
        for rounded in (-(-size // _CHUNK_BYTES) * _CHUNK_BYTES, size):
            try:
                os.posix_fallocate(self._descriptor, 0, rounded)
            except OSError as exc:
                if exc.errno not in _FULL:
                    return
                code = errno.errorcode[exc.errno]
            else:
                return
        raise errors.StoreFullError(code=code)

    def cause_of(self, exc: errors.StoreUnavailableError) -> errors.StoreError | None:
        """Return what failed if SQLite names only an error of the disk; None if it stays unknown.

        SQLite tells neither a used-up quota nor a limit of the file size from a broken disk.
        """
        if type(exc) is not errors.StoreUnavailableError:
            return None
        trial = self._wal.with_name(f"{self.path.name}-trial")
        try:
            # Not by statvfs, which does not show what Linux does after an error of the disk.
            os.close(os.open(self._wal, os.O_WRONLY))
            with trial.open("wb") as file:
                # Where the longer file ends, because a file may have no further bytes there.
                file.seek(max(path.stat().st_size for path in (self.path, self._wal)))
                file.write(bytes(_TRIAL_BYTES))
        except OSError as error:
            if error.errno in _READ_ONLY:
                return errors.StoreReadOnlyError(code=exc.code)
            if error.errno in _FULL:
                return errors.StoreFullError(code=exc.code)
        finally:
            with suppress(OSError):
                trial.unlink(missing_ok=True)
        return None

    def moved(self) -> str | None:
        """Return which file is no longer at its path and how to restore it, or None."""
        if self._store is None or _identity_at(self.path) != self._store:
            copied = f"/proc/{os.getpid()}/fd/{self._descriptor}"
            first = (
                f"First copy {copied}, which has what was stored, and which ends with the service. "
                if _LOCKS_STORE
                else ""
            )
            return (
                f"{self.path} was removed or replaced under the running service. {first}Then stop "
                "the service, put the copy or a backup at this path, and start the service again."
            )
        if self._log is None or _identity_at(self._wal) != self._log:
            return (
                f"{self._wal} was removed or replaced under the running service. Stop the service "
                "and start it again; nothing else needs to be restored."
            )
        return None

    def release(self) -> None:
        """Unlock the file, after the last connection to it is closed.

        Closing any descriptor of a file drops the locks that SQLite has on it in this process.
        """
        if self._is_new and self.path.exists() and not self.path.stat().st_size:
            self.path.unlink(missing_ok=True)
        elif (self._store or self._is_reserved) and _identity_at(self.path):
            _allocated(self._reserve, RESERVE_BYTES)
        with _holding:
            _held.discard(_identity_of(os.fstat(self._descriptor)))
            os.close(self._descriptor)


def _allocated(path: Path, size: int) -> bool:
    """Allocate room to a file; return whether the disk has it."""
    if not hasattr(os, "posix_fallocate"):
        return True
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)
    except OSError as exc:
        return exc.errno not in _FULL
    return True


_held: set[_Identity] = set()
"""The files locked by this process, which must not open, and so close, them a second time."""
_holding = Lock()


def _identity_of(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _identity_at(path: Path) -> _Identity | None:
    try:
        return _identity_of(path.stat())
    except OSError:
        return None


def _locked(path: Path) -> int:
    import fcntl  # noqa: PLC0415 - missing on Windows, which can still read a store

    real = path.resolve()
    target = real if _LOCKS_STORE else real.with_name(real.name + ".lock")
    with _holding:
        if _identity_at(target) in _held:
            raise _in_use(path, os.getpid())
        descriptor = _open(path, target)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            holder = _holder(os.fstat(descriptor))
            os.close(descriptor)
            if not isinstance(exc, BlockingIOError):
                raise errors.StoreError(
                    f"The file system of {path} has no locks; use a local disk."
                ) from exc
            raise _in_use(path, holder) from exc
        _held.add(_identity_of(os.fstat(descriptor)))
    return descriptor


def _open(path: Path, target: Path) -> int:
    if not os.access(target.parent, os.W_OK):
        raise errors.StoreMissingError(f"The folder of {path} cannot be written to; {REMEDY}")
    try:
        return os.open(target, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as exc:
        if exc.errno in _FULL:
            raise errors.StoreFullError(code=errno.errorcode[exc.errno]) from exc
        raise errors.StoreMissingError(f"{path} cannot be read and written; {REMEDY}") from exc


def _in_use(path: Path, holder: int | None) -> errors.StoreInUseError:
    named = "" if holder is None else f", with the id {holder},"
    return errors.StoreInUseError(f"Another process{named} uses {path}. {_POSTGRES_HINT}")


def _holder(file: os.stat_result) -> int | None:
    """Return the id of the process that has locked a file, if Linux shows it."""
    device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
    place = f"{device}:{file.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            _, kind, _, _, process, locked, *_ = line.split()
            if (kind, locked) == ("FLOCK", place) and process.isdecimal():
                return int(process)
    return None


APPLICATION_ID = 0x52505249
""""RPRI", the application id in the header of the file."""

OLDEST_LIBRARY = (3, 37, 0)
SOUND_LIBRARY = (3, 51, 3)
"""In older versions a second writer can reset the WAL; a store has only one writer."""

MOST_CHECKED_BYTES = 256 * 1024 * 1024
"""Up to this size opening checks the whole file, in well under a second."""

_MAGIC = b"SQLite format 3\x00"
_PAGE_BYTES = 4096
_SHORTEST_WAIT = 0.1
_READERS = 8
_MORE_READERS = 32


class SqliteDatabase(Database):
    """A SQLite file in WAL mode: one connection writes, the others read.

    A read-only store has no writer, and locks no file.
    """

    def __init__(
        self, writer: Engine | None, readers: Engine, *, file: HeldFile | None, lock_seconds: float
    ) -> None:
        super().__init__(readers, lock_seconds)
        self._waits = lock_seconds
        self._writer = writer
        self._file = file
        self._moved: str | None = None
        self._moving = Lock()

    @contextmanager
    def writing(self, waited: float = 0.0) -> Iterator[Connection]:
        """Yield the writing connection in a transaction."""
        if self._writer is None or self._file is None:
            raise errors.StoreError("The store was opened for reading only.")
        self._verify()
        try:
            with translated(), self._writer.connect() as connection:
                self._wait_for_locks(connection, self.lock_seconds - waited)
                with connection.begin():
                    yield connection
                    # Then the WAL can always be moved into the file, and used again.
                    pages = _pragma(_raw(connection), "page_count")
                    self._file.allocate(pages * _PAGE_BYTES)
        except errors.StoreUnavailableError as exc:
            cause = self._file.cause_of(exc)
            if cause is None:
                raise
            raise cause from exc
        # The commit may be in a file that is gone, so it is not acknowledged.
        self._verify()

    def _wait_for_locks(self, connection: Connection, seconds: float) -> None:
        """Set how long to wait for locks; what has waited for one does not wait again."""
        seconds = max(_SHORTEST_WAIT, seconds)
        if seconds != self._waits and abs(seconds - self._waits) > _SHORTEST_WAIT:
            # Not by SQLAlchemy, which would begin a transaction and wait.
            _raw(connection).execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._waits = seconds

    def make_room(self) -> bool:
        """Move the WAL into the main file, so that its space is used again."""
        return self._writer is not None and _checkpoint(self._writer, "RESTART")

    def _reading(self) -> Connection:
        self._verify()
        return super()._reading()

    def backup(self, path: Path) -> None:
        """Copy with the backup API of SQLite, while others read and write."""
        if path.exists():
            raise errors.StoreError(f"{path} exists already.")
        if not path.parent.is_dir():
            raise errors.StoreError(f"There is no folder {path.parent}; make it first.")
        part = path.with_name(path.name + ".part")
        part.unlink(missing_ok=True)
        with translated(), self.readers.connect() as connection:
            source = connection.connection.dbapi_connection
            with closing(sqlite3.connect(part)) as target:
                source.backup(target)  # type: ignore[union-attr] # of sqlite3
        part.replace(path)

    def close(self) -> None:
        """Move the WAL into the main file and release the file."""
        super().close()
        writer, self._writer = self._writer, None
        if writer is not None:
            _checkpoint(writer, "TRUNCATE")
            writer.dispose()
        # Last, since it closes a descriptor of the file; and once, since its number may be reused.
        file, self._file = self._file, None
        if file is not None:
            file.release()

    def _verify(self) -> None:
        """Refuse to work on files that are no longer at their paths.

        Work resumes once the same files are back; copies do not count.
        """
        moved = None if self._file is None else self._file.moved()
        if moved != self._moved:
            with self._moving:
                changed = moved != self._moved
                self._moved = moved
            if changed:
                self._report(moved)
        if moved:
            raise errors.StoreMovedError(moved)

    def _report(self, moved: str | None) -> None:
        if moved is None:
            log.info("store_returned")
            return
        log.error("store_moved", detail=moved)
        if self._writer is not None:
            # Then a removed WAL loses nothing, however the process ends, and the WAL of a replaced
            # file is not mistaken for that of its successor.
            _checkpoint(self._writer, "TRUNCATE")


def _checkpoint(writer: Engine, mode: str) -> bool:
    """Move everything from the WAL into the main file; return whether that was possible."""
    # On a full disk it stays in the WAL, which is equally safe.
    with (
        suppress(errors.StoreError),
        translated(),
        _decodable(),
        closing(writer.raw_connection()) as raw,
    ):
        return not raw.cursor().execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
    return False


def open_sqlite(url: URL, *, read_only: bool, lock_seconds: float) -> SqliteDatabase:
    """Open a file, or create it; wait so many seconds for a lock of another program.

    Read-only beside the serving process: then nothing is created, locked or migrated.
    """
    path = _path(url)
    check_library()
    with ExitStack() as opened, translated():
        file = writer = None
        if not read_only:
            file = HeldFile(path)
            opened.callback(file.release)
        _check_file(path, read_only=read_only, lock_seconds=lock_seconds)
        if file is not None:
            writer = _engine(partial(_connect_writer, path, lock_seconds), "BEGIN IMMEDIATE", 1, 0)
            opened.callback(writer.dispose)
            _prepare(writer)
            file.remember()
        connect = partial(_connect, path, lock_seconds, read_only=True)
        readers = _engine(connect, "BEGIN", _READERS, _MORE_READERS)
        if read_only:
            with readers.connect() as connection:
                is_current(connection, read_only=True)
        opened.pop_all()
    return SqliteDatabase(writer, readers, file=file, lock_seconds=lock_seconds)


def _path(url: URL) -> Path:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise errors.StoreUrlError(
            "A SQLite store is a file: sqlite:///rprime.db or sqlite:////var/r.db"
        )
    path = Path(url.database).absolute()
    if not path.parent.is_dir():
        raise errors.StoreMissingError(
            f"There is no folder {path.parent}; make it, then start again."
        )
    return path


def check_library() -> None:
    """Refuse a SQLite that is too old, and log one that has a known defect."""
    version = sqlite3.sqlite_version_info
    if version < OLDEST_LIBRARY:
        raise errors.StoreOutdatedError(
            f"SQLite {sqlite3.sqlite_version} is too old, 3.37 is needed; "
            "use a newer Python or a PostgreSQL store."
        )
    if version < SOUND_LIBRARY:
        log.info(
            "sqlite_before_3_51_3",
            version=sqlite3.sqlite_version,
            detail="Its WAL can be reset by concurrent writers; the store has one writer only.",
        )


def _check_file(path: Path, *, read_only: bool, lock_seconds: float) -> None:
    """Refuse a file that is foreign, newer or damaged, before anything is changed in it."""
    if not path.exists() or not path.stat().st_size:
        if read_only:
            raise errors.StoreMissingError(f"There is no store at {path}.")
        return
    if not os.access(path, os.R_OK):
        raise errors.StoreMissingError(f"{path} cannot be read; {REMEDY}")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise errors.StoreForeignError(
                f"{path} is not a SQLite file, or its start is damaged; "
                "let RPRIME_STORE name another file, or restore a backup."
            )
    with _decodable(), closing(_connect(path, lock_seconds, read_only=read_only)) as connection:
        owner = _pragma(connection, "application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if owner != APPLICATION_ID and (owner or tables):
            raise errors.StoreForeignError(
                f"{path} belongs to another program; let RPRIME_STORE name another file."
            )
        is_small = path.stat().st_size <= MOST_CHECKED_BYTES
        if is_small and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise errors.StoreDamagedError(f"{path}: {errors.StoreDamagedError.text}")


@contextmanager
def _decodable() -> Iterator[None]:
    """Turn a message of SQLite on a damaged schema that the driver cannot decode into its error."""
    try:
        yield
    except UnicodeDecodeError as exc:
        raise errors.StoreDamagedError(code="UnicodeDecodeError") from exc


def _on_error(context: ExceptionContext) -> None:
    """Do the same where SQLAlchemy called the driver."""
    with _decodable():
        if isinstance(context.original_exception, UnicodeDecodeError):
            raise context.original_exception


def _raw(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)  # noqa: S101 (ours)
    return raw


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _connect(path: Path, lock_seconds: float, *, read_only: bool = False) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=lock_seconds,
        # Python must not begin transactions itself. The pool moves a connection between threads,
        # but never shares it between two at a time.
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _connect_writer(path: Path, lock_seconds: float) -> sqlite3.Connection:
    connection = _connect(path, lock_seconds)
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise errors.StoreError(f"The file system of {path} cannot hold a store; use a local disk.")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # 16 MiB: a checkpoint writes each changed page only once.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def _prepare(writer: Engine) -> None:
    """Make or migrate the tables."""
    with writer.begin() as connection:
        upgrade(connection)
        # Written once: a start on a full disk must not need to write.
        if _pragma(_raw(connection), "application_id") != APPLICATION_ID:
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def _engine(connect: Callable[[], sqlite3.Connection], begin: str, size: int, more: int) -> Engine:
    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=size, max_overflow=more
    )
    event.listen(engine, "handle_error", _on_error)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
