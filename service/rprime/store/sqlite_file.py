"""The file of a SQLite store: locked by one process, and checked to be still at its path."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock

from rprime.store.errors import (
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreMissingError,
    StoreMovedError,
)

REMEDY = "give this user access to it, or let RPRIME_STORE name another file."
_POSTGRES_HINT = (
    "A SQLite store belongs to one process; several workers or hosts share a PostgreSQL one: "
    "RPRIME_STORE=postgresql+psycopg://..."
)
# On Linux flock and the fcntl locks of SQLite do not see each other. On macOS and BSD they exclude
# each other even within one process, so a file beside the store is locked there.
_LOCKS_STORE = sys.platform == "linux"

_Identity = tuple[int, int]


class HeldFile:
    """The file of a store, locked until this process ends, however it ends.

    The lock belongs to the inode, so a symbolic link, a hard link or another mount does not evade
    it.

    Parameters
    ----------
    path
        The file that the setting names; created empty if missing.

    Raises
    ------
    StoreInUseError
        If another process holds it.
    StoreMissingError
        If this user may not read and write it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._wal = wal_path(path)
        self._descriptor = _locked(path)
        self._store: _Identity | None = None
        self._log: _Identity | None = None

    def remember(self) -> None:
        """Remember the file and its WAL, which SQLite has just opened.

        Raises
        ------
        StoreMovedError
            If one of them is no longer at its path.
        """
        opened = _identity_of(os.fstat(self._descriptor))
        self._store = opened if _LOCKS_STORE else _identity_at(self.path)
        self._log = _identity_at(self._wal)
        moved = self.moved()
        if moved:
            raise StoreMovedError(moved)

    def moved(self) -> str | None:
        """Return which file is no longer at its path and how to restore it, or None."""
        if self._store is None or _identity_at(self.path) != self._store:
            return (
                f"{self.path} was removed or replaced under the running service. Stop the service, "
                f"restore the file, start the service again.{self._copy_hint()}"
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
        with _holding:
            _held.discard(_identity_of(os.fstat(self._descriptor)))
            os.close(self._descriptor)

    def _copy_hint(self) -> str:
        if not _LOCKS_STORE:
            return ""
        return (
            " Until it stops, what it had stored can be copied from "
            f"/proc/{os.getpid()}/fd/{self._descriptor}."
        )


def wal_path(path: Path) -> Path:
    """Return the path of the WAL, which SQLite puts beside the target of a symbolic link."""
    real = path.resolve()
    return real.with_name(real.name + "-wal")


_held: set[_Identity] = set()
"""The files locked by this process, which must not open, and so close, them a second time."""
_holding = Lock()


def _identity_of(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


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
                raise StoreError(
                    f"The file system of {path} has no locks; use a local disk."
                ) from exc
            raise _in_use(path, holder) from exc
        _held.add(_identity_of(os.fstat(descriptor)))
    return descriptor


def _open(path: Path, target: Path) -> int:
    if not os.access(target.parent, os.W_OK):
        raise StoreMissingError(f"The folder of {path} cannot be written to; {REMEDY}")
    try:
        return os.open(target, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StoreFullError("The disk is full; make room, then start again.") from exc
        raise StoreMissingError(f"{path} cannot be read and written; {REMEDY}") from exc


def _in_use(path: Path, holder: int | None) -> StoreInUseError:
    named = "" if holder is None else f", with the id {holder},"
    return StoreInUseError(f"Another process{named} uses {path}. {_POSTGRES_HINT}")


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
