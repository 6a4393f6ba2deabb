"""Errors of a store as a whole, translated from the errors of both databases."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rprime.store.compression import ChecksumError
from rprime.store.records import InvalidRecordError

TOO_MANY_CONNECTIONS = "53300"
"""The SQLSTATE of a server that allows no further connection."""


class StoreError(Exception):
    """The store failed; the message, `text` unless there is a better one, says how to fix it.

    The cause is that of metrics, and the code the SQLSTATE, or the name of SQLite or of the system
    for the error; None if there is none. Clients see `text`, and only the log has the message,
    which may name a path, a host or a role.
    """

    cause: ClassVar[str] = "other"
    text = ""
    retry_after: ClassVar[int] = 5

    def __init__(
        self, message: str | None = None, *, text: str | None = None, code: str | None = None
    ) -> None:
        self.text = text or self.text
        super().__init__(message or self.text)
        self.code = code


class StoreUrlError(StoreError):
    """The setting names no database that can hold a store."""


class StoreMissingError(StoreError):
    """The folder, the driver or the server is missing."""


class StoreAccessError(StoreError):
    """The server refuses the role, its password or the database."""

    cause = "unavailable"
    text = "The server refuses what RPRIME_STORE names; correct it."


class StoreForeignError(StoreError):
    """The file or the tables belong to another program."""


class StoreNewerError(StoreError):
    """The store was written by a newer rprime."""

    cause = "unavailable"
    text = (
        "A newer rprime has migrated the store, and this one must not write to it. Nothing was "
        "stored: install the newer rprime here, too."
    )


class StoreOutdatedError(StoreError):
    """The database is too old, or its tables are and this opening may not migrate them."""

    cause = "unavailable"
    text = "The tables of the store are older than this rprime: start it again to migrate them."


class StoreDamagedError(StoreError):
    """The file, or something in it, is damaged."""

    cause = "damaged"
    text = (
        "The store is damaged. Keep a copy of it, then restore a backup; of a SQLite file "
        "`sqlite3 FILE .recover` saves what can be read."
    )


class StoreEmptyError(StoreError):
    """A file of 0 bytes is where a store should be."""


class StoreInUseError(StoreError):
    """Another process uses the SQLite file."""


class StoreFullError(StoreError):
    """No space left: nothing of the request was stored; reading and deleting still work."""

    cause = "full"
    text = "The disk of the store is full. Make room, or purge evaluations."


class StoreClosedError(StoreError):
    """The store was closed."""


class StoreUnavailableError(StoreError):
    """The store is unavailable for now; a retry may succeed after `retry_after` seconds."""

    cause = "unavailable"
    text = "The database cannot be reached."


class StoreReadOnlyError(StoreUnavailableError):
    """The database takes no writes: a file system that is read-only, or a standby server."""

    cause = "read_only"
    text = "The file of the store cannot be written: it is read-only."


class StoreTimeoutError(StoreUnavailableError):
    """The store did not answer in time; an immediate retry would take as long again."""


class StoreLockedError(StoreTimeoutError):
    """Another process holds a lock for too long."""

    cause = "locked"
    text = "Another program holds a lock on the file of the store."
    retry_after = 2


class StoreMovedError(StoreUnavailableError):
    """A file of the store is no longer at its path; restore it first."""

    text = (
        "A file of the store was removed or replaced under the running service. It goes on by "
        "itself once the same file, which its log names, is back. With a copy of it, start the "
        "service again."
    )


class StoreConflictError(StoreLockedError):
    """The transaction conflicted with another one and was rolled back."""

    text = "The transaction conflicted with another one."


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the database as a whole into a `StoreError`."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as exc:
        cause: BaseException | None = exc.orig if isinstance(exc, DBAPIError) else exc
        if isinstance(cause, sqlite3.Error):
            error = _of_sqlite(cause)
        else:
            # The server went away, is read-only, is starting and so on: not a fault of the request.
            # All other errors are defects in a statement.
            failed = isinstance(exc, OperationalError | InternalError | InterfaceError)
            failed = failed or getattr(exc, "connection_invalidated", False)
            error = _of_postgresql(cause, failed=failed)
        if error is not None:
            name = getattr(cause, "sqlite_errorname", None)
            error.code = name or getattr(cause, "sqlstate", None)
            raise error from exc
        if isinstance(exc, DataError):
            raise InvalidRecordError(_UNSTORABLE) from exc
        raise
    except UnicodeEncodeError as exc:
        raise InvalidRecordError(_UNSTORABLE) from exc
    except PoolTimeoutError as exc:
        raise StoreTimeoutError(text="All connections to the database are busy.") from exc


def _of_postgresql(cause: BaseException | None, *, failed: bool) -> StoreError | None:
    if isinstance(cause, TimeoutError):
        return StoreTimeoutError(text=SILENT)
    state = getattr(cause, "sqlstate", None) or ""
    kinds = ((kind, text) for states, kind, text in _OF_POSTGRESQL if state.startswith(states))
    kind, text = next(kinds, (StoreUnavailableError, None))
    if kind is StoreUnavailableError and not (failed or text):
        return None
    # The server quotes no values in these messages, and libpq never the password.
    words = getattr(getattr(cause, "diag", None), "message_primary", None) or str(cause)
    named = f" (SQLSTATE {state})" if state else ""
    return kind(f"{text or kind.text} PostgreSQL: {' '.join(words.split())}{named}", text=text)


SILENT = "The database does not answer."
POOLER = (
    "There is a connection pooler, such as PgBouncer, which the service does not work with; let "
    "RPRIME_STORE name PostgreSQL itself."
)
_UNSTORABLE = "A name has a character that no database can hold."
_OF_POSTGRESQL: tuple[tuple[tuple[str, ...], type[StoreError], str | None], ...] = (
    (("40001", "40P01"), StoreConflictError, None),
    (("55P03",), StoreLockedError, "A lock was not released in time."),
    (("57014",), StoreTimeoutError, "A statement took too long."),
    (("53100",), StoreFullError, None),
    ((TOO_MANY_CONNECTIONS,), StoreTimeoutError, "The server allows no further connection."),
    (("25006",), StoreReadOnlyError, "The server takes no writes: it is read-only."),
    (("XX001", "XX002"), StoreDamagedError, "The database is damaged; see its log."),
    (("42501", "3F000"), StoreAccessError, "The role lacks rights in PostgreSQL; grant them."),
    (("28", "3D000", "08P01"), StoreAccessError, None),
    # Prepared statements that another connection made, or lacks.
    (("26000", "42P05"), StoreAccessError, POOLER),
    (("57P",), StoreUnavailableError, "The server stops, starts, or ended the connection."),
    (("53",), StoreUnavailableError, "The server lacks memory, or something else it needs."),
    (("08",), StoreUnavailableError, StoreUnavailableError.text),
)
"""The error for each prefix of SQLSTATE, and its text if it has one of its own."""

_REFUSALS = (
    (r"password authentication failed|no password supplied", "28P01"),
    (r'role ".*" (does not exist|is not permitted)|no pg_hba\.conf entry', "28000"),
    (r'database ".*" does not exist', "3D000"),
    (r"permission denied for database", "42501"),
    (r"invalid port number|does not support SSL|unsupported startup parameter", "08P01"),
    (r"too many (clients|connections)|connection slots are reserved", TOO_MANY_CONNECTIONS),
    (r"the database system is (starting|shutting|in recovery)", "57P03"),
)


def refusal_state(text: str) -> str | None:
    """Return the SQLSTATE of a refusal, which libpq does not report, by its message in English."""
    return next((state for pattern, state in _REFUSALS if re.search(pattern, text)), None)


@contextmanager
def decoding() -> Iterator[None]:
    """Turn the error of a checksum into that of a damaged store; other errors are defects."""
    try:
        yield
    except ChecksumError as exc:
        raise StoreDamagedError(code="checksum") from exc


def _of_sqlite(cause: sqlite3.Error) -> StoreError | None:
    code = getattr(cause, "sqlite_errorcode", 0)
    # The driver itself reports text that is no UTF-8, without a code.
    if not code and "UTF-8" in str(cause):
        return StoreDamagedError()
    kind = _OF_SQLITE.get(code) or _OF_SQLITE.get(code & 0xFF)
    if kind is StoreUnavailableError:
        return kind(text="The file of the store cannot be read or written.")
    if kind is None and isinstance(cause, sqlite3.OperationalError):
        return StoreUnavailableError(text="SQLite failed for another reason.")
    return None if kind is None else kind()


_OF_SQLITE: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFullError,
    # The shared-memory file (-shm) could not grow.
    sqlite3.SQLITE_IOERR_SHMSIZE: StoreFullError,
    # A page that the file should have, and has not.
    sqlite3.SQLITE_IOERR_SHORT_READ: StoreDamagedError,
    sqlite3.SQLITE_CORRUPT: StoreDamagedError,
    sqlite3.SQLITE_NOTADB: StoreDamagedError,
    sqlite3.SQLITE_BUSY: StoreLockedError,
    sqlite3.SQLITE_LOCKED: StoreLockedError,
    sqlite3.SQLITE_READONLY: StoreReadOnlyError,
    sqlite3.SQLITE_IOERR: StoreUnavailableError,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailableError,
}
"""The error for each extended, else primary, result code."""
