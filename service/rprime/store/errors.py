"""Errors of a store as a whole, translated from the errors of both databases."""

import re
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import zstandard
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rprime.store.records import InvalidRecordError

TOO_MANY_CONNECTIONS = "53300"
"""The SQLSTATE of a server that allows no further connection."""


class StoreError(Exception):
    """The store failed; the message says how to fix it.

    Attributes
    ----------
    cause
        The cause in metrics.
    code
        SQLSTATE, or the name of SQLite for the error; None if the database named none.
    """

    cause: ClassVar[str] = "other"
    code: str | None = None


class StoreUrlError(StoreError):
    """The setting names no database that can hold a store."""


class StoreMissingError(StoreError):
    """The folder, the driver or the server is missing."""


class StoreAccessError(StoreError):
    """The server refuses the role, its password or the database."""

    cause = "unavailable"


class StoreForeignError(StoreError):
    """The file or the tables belong to another program."""


class StoreNewerError(StoreError):
    """The store was written by a newer rprime."""


class StoreOutdatedError(StoreError):
    """The database is too old, or its tables are and this opening may not migrate them."""


class StoreDamagedError(StoreError):
    """The file, or something in it, is damaged."""

    cause = "damaged"


class StoreEmptyError(StoreError):
    """A file of 0 bytes is where a store should be."""


class StoreInUseError(StoreError):
    """Another process uses the SQLite file."""


class StoreFullError(StoreError):
    """No space left: nothing of the request was stored; reading and deleting still work."""

    cause = "full"


class StoreClosedError(StoreError):
    """The store was closed."""


class StoreUnavailableError(StoreError):
    """The store is unavailable for now; a retry may succeed.

    Attributes
    ----------
    retry_after
        Seconds to wait.
    """

    cause = "unavailable"
    retry_after = 5


class StoreReadOnlyError(StoreUnavailableError):
    """The database takes no writes: a file system that is read-only, or a standby server."""

    cause = "read_only"


class StoreTimeoutError(StoreUnavailableError):
    """The store did not answer in time; an immediate retry would take as long again."""


class StoreLockedError(StoreTimeoutError):
    """Another process holds a lock for too long."""

    cause = "locked"
    retry_after = 2


class StoreMovedError(StoreUnavailableError):
    """A file of the store is no longer at its path; restore it first."""


class StoreConflictError(StoreLockedError):
    """The transaction conflicted with another one and was rolled back."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the database as a whole into a `StoreError`."""
    try:
        yield
    except DBAPIError as exc:
        # The server went away, is read-only, is starting and so on: not a fault of the request. All
        # other errors are defects in a statement.
        failed = isinstance(exc, OperationalError | InternalError | InterfaceError)
        known = store_error_of(exc.orig, failed=failed or exc.connection_invalidated)
        if known is not None:
            raise known from exc
        if isinstance(exc, DataError):
            raise InvalidRecordError("A name has a character that no database can hold.") from exc
        raise
    except sqlite3.Error as exc:
        known = store_error_of(exc)
        if known is None:
            raise
        raise known from exc
    except UnicodeEncodeError as exc:
        raise InvalidRecordError("A name has a character that no database can hold.") from exc
    except PoolTimeoutError as exc:
        raise StoreUnavailableError("All connections to the database are busy.") from exc


def store_error_of(cause: BaseException | None, *, failed: bool = False) -> StoreError | None:
    """Return the `StoreError` for an error of a driver; None if it is another kind of error.

    Parameters
    ----------
    cause
        The error.
    failed
        Whether it is known to be an error of the database as a whole.
    """
    if isinstance(cause, sqlite3.Error):
        known = _of_sqlite(cause)
        if known is not None:
            known.code = getattr(cause, "sqlite_errorname", None)
        return known
    known = _of_postgresql(cause, failed=failed)
    if known is not None:
        known.code = getattr(cause, "sqlstate", None)
    return known


def _of_postgresql(cause: BaseException | None, *, failed: bool) -> StoreError | None:
    state = getattr(cause, "sqlstate", None)
    for states, failure in _OF_POSTGRESQL:
        if state is not None and state.startswith(states):
            return failure()
    if isinstance(cause, TimeoutError):
        return StoreTimeoutError("The database does not answer.")
    refusal = refusal_of(cause)
    if state is not None and state.startswith(_ACCESS):
        return StoreAccessError(f"{refusal} (SQLSTATE {state}) Correct RPRIME_STORE.")
    return StoreUnavailableError(refusal or "The database cannot be reached.") if failed else None


def full(code: str | None = None) -> StoreFullError:
    """Return the error of a full disk, or of a used-up quota."""
    error = StoreFullError("The disk is full; make room, then send the request again.")
    error.code = code
    return error


def _unreachable() -> StoreError:
    return StoreUnavailableError("The database cannot be reached.")


_ACCESS = ("28", "3D000", "42501")
_REFUSALS = (
    (r"password authentication failed|no password supplied", "28P01"),
    (r'role ".*" (does not exist|is not permitted)|no pg_hba\.conf entry', "28000"),
    (r'database ".*" does not exist', "3D000"),
    (r"permission denied for database", "42501"),
    (r"too many (clients|connections)|connection slots are reserved", TOO_MANY_CONNECTIONS),
    (r"the database system is (starting|shutting|in recovery)", "57P03"),
)


def refusal_of(cause: BaseException | None) -> str:
    """Return why no connection was made, with the address of the server; "" if there was one.

    libpq names the host, the role and the database, and never the password.
    """
    text = " ".join(str(cause).split())
    return text if text.startswith(("connection failed:", "connection is bad:")) else ""


def refusal_state(text: str) -> str | None:
    """Return the SQLSTATE of a refused connection, which libpq does not report, by its message.

    A server with messages in another language than English gets None: then the message says it
    all the same.
    """
    return next((state for pattern, state in _REFUSALS if re.search(pattern, text)), None)


_OF_POSTGRESQL: tuple[tuple[tuple[str, ...], Callable[[], StoreError]], ...] = (
    (
        ("40001", "40P01"),
        lambda: StoreConflictError("The transaction conflicted with another one."),
    ),
    (("55P03",), lambda: StoreLockedError("A lock was not released in time.")),
    (("57014",), lambda: StoreTimeoutError("A statement took too long.")),
    (("53100",), full),
    (("25006",), lambda: StoreReadOnlyError("The server takes no writes: it is read-only.")),
    (("XX001", "XX002"), lambda: StoreDamagedError("The database is damaged; see its log.")),
    (("08", "53", "57"), _unreachable),
)
"""The error for each prefix of SQLSTATE."""

_DAMAGED = (
    "The file of the store is damaged. Keep a copy of it, then restore a backup, or save what can "
    "be read with `sqlite3 FILE .recover`."
)


def read_only(code: str | None = None) -> StoreReadOnlyError:
    """Return the error of a file that cannot be written."""
    error = StoreReadOnlyError("The file of the store cannot be written: it is read-only.")
    error.code = code
    return error


def damaged(code: str | None = None) -> StoreDamagedError:
    """Return the error of a store whose content cannot be what was written."""
    error = StoreDamagedError(_DAMAGED)
    error.code = code
    return error


_UNDECODABLE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    struct.error,
    zstandard.ZstdError,
)


@contextmanager
def decoding() -> Iterator[None]:
    """Turn the errors of reading stored bytes into the error of a damaged store."""
    try:
        yield
    except _UNDECODABLE as exc:
        raise damaged(type(exc).__name__) from exc


def _of_sqlite(cause: sqlite3.Error) -> StoreError | None:
    code = getattr(cause, "sqlite_errorcode", 0)
    # The driver itself reports text that is no UTF-8, without a code.
    if not code and "UTF-8" in str(cause):
        return damaged()
    turn = _OF_SQLITE.get(code) or _OF_SQLITE.get(code & 0xFF)
    if turn is None and isinstance(cause, sqlite3.OperationalError):
        return StoreUnavailableError("SQLite failed for another reason.")
    return None if turn is None else turn()


def _locked() -> StoreError:
    return StoreLockedError("Another program holds a lock on the file of the store.")


def _failing() -> StoreError:
    return StoreUnavailableError("The file of the store cannot be read or written.")


_OF_SQLITE: dict[int, Callable[[], StoreError]] = {
    sqlite3.SQLITE_FULL: full,
    # The shared-memory file (-shm) could not grow.
    sqlite3.SQLITE_IOERR_SHMSIZE: full,
    # A page that the file should have, and has not.
    sqlite3.SQLITE_IOERR_SHORT_READ: damaged,
    sqlite3.SQLITE_CORRUPT: damaged,
    sqlite3.SQLITE_NOTADB: damaged,
    sqlite3.SQLITE_BUSY: _locked,
    sqlite3.SQLITE_LOCKED: _locked,
    sqlite3.SQLITE_READONLY: read_only,
    sqlite3.SQLITE_IOERR: _failing,
    sqlite3.SQLITE_CANTOPEN: _failing,
}
"""The error for each extended, else primary, result code."""
