"""What goes wrong with a store as a whole, told from the errors of both databases."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rprime.store.records import InvalidRecordError


class StoreError(Exception):
    """A store cannot do what it was asked; the message says what mends it."""


class StoreUrlError(StoreError):
    """The setting names no database that can hold a store."""


class StoreMissingError(StoreError):
    """The folder, the driver or the server is not there."""


class StoreForeignError(StoreError):
    """What is there is no store of rprime."""


class StoreNewerError(StoreError):
    """The store was written by a newer rprime."""


class StoreOutdatedError(StoreError):
    """The database itself is too old, or its tables are and this opening may not change them."""


class StoreDamagedError(StoreError):
    """The file is damaged."""


class StoreInUseError(StoreError):
    """Another process has the SQLite file."""


class StoreFullError(StoreError):
    """There is no space left; nothing of the request was stored, and reading goes on."""


class StoreClosedError(StoreError):
    """The store was closed."""


class StoreUnavailableError(StoreError):
    """It may work when it is tried again.

    Attributes
    ----------
    retry_after
        Seconds to wait.
    """

    retry_after = 5


class StoreTimeoutError(StoreUnavailableError):
    """The store did not answer in time; to try again at once would take as long again."""


class StoreLockedError(StoreTimeoutError):
    """Someone else holds a lock for too long."""

    retry_after = 2


class StoreMovedError(StoreUnavailableError):
    """A file of the store is no longer at its path; it has to be restored first."""


class StoreConflictError(StoreLockedError):
    """Transactions got in each other's way and this one was undone."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the errors of a database that are not about one statement into a `StoreError`."""
    try:
        yield
    except DBAPIError as exc:
        # A server that went away, that is read-only, that is starting, and the like: whatever it
        # is, it is no fault of the request. What is left is a defect in a statement.
        failed = isinstance(exc, OperationalError | InternalError | InterfaceError)
        known = told(exc.orig, failed=failed or exc.connection_invalidated)
        if known is not None:
            raise known from exc
        if isinstance(exc, DataError):
            raise InvalidRecordError("A name has a character that no database can hold.") from exc
        raise
    except sqlite3.Error as exc:
        known = told(exc)
        if known is None:
            raise
        raise known from exc
    except UnicodeEncodeError as exc:
        raise InvalidRecordError("A name has a character that no database can hold.") from exc
    except PoolTimeoutError as exc:
        raise StoreUnavailableError("All connections to the database are busy.") from exc


def told(cause: BaseException | None, *, failed: bool = False) -> StoreError | None:
    """Find the kind of failure that an error of a driver means; None where it is none of these.

    Parameters
    ----------
    cause
        The error.
    failed
        Whether it is an error of the database as a whole, of whichever kind.
    """
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(getattr(cause, "sqlite_errorcode", 0))
    state = getattr(cause, "sqlstate", None)
    for states, failure in _OF_POSTGRESQL:
        if state is not None and state.startswith(states):
            return failure()
    if isinstance(cause, TimeoutError):
        return StoreTimeoutError("The database does not answer.")
    return _unreachable() if failed else None


def _full() -> StoreError:
    return StoreFullError("The disk is full; make room, then send it again.")


def _unreachable() -> StoreError:
    return StoreUnavailableError("The database cannot be reached.")


_OF_POSTGRESQL: tuple[tuple[tuple[str, ...], Callable[[], StoreError]], ...] = (
    (("40001", "40P01"), lambda: StoreConflictError("Transactions got in each other's way.")),
    (("55P03",), lambda: StoreLockedError("A lock was not given up in time.")),
    (("57014",), lambda: StoreTimeoutError("A statement took too long.")),
    (("53100",), _full),
    (("08", "53", "57"), _unreachable),
)
"""What starts the SQLSTATE of an error, and what it means here."""

_DAMAGED = (
    "The file of the store is damaged. Keep a copy of it, then restore a backup, or save what can "
    "be read with `sqlite3 FILE .recover`."
)


def _of_sqlite(code: int) -> StoreError | None:
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        # The file shared between connections could not grow.
        return _full()
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full()
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLockedError("Another program holds a lock on the file of the store.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamagedError(_DAMAGED)
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY:
            return StoreUnavailableError("The file of the store cannot be read or written.")
    return None
