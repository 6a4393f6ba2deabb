"""The file of a SQLite store: locked by one process, and checked to be still at its path."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock

import structlog

from rprime.store import errors

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
