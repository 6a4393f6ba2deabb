"""Open the store that a URL names."""

import time
from collections.abc import Callable

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from rprime.store.database import Database, DatabaseOptions
from rprime.store.errors import StoreUrlError
from rprime.store.postgresql import open_postgresql
from rprime.store.sqlite import open_sqlite
from rprime.store.store import Store
from rprime.store.writer import Writer

DEFAULTS = DatabaseOptions()
_DRIVERS = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
_FORMS = "It may be sqlite:///rprime.db, postgresql+psycopg://USER@HOST/DATABASE, or none."


def milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def open_store(
    url: str,
    *,
    read_only: bool = False,
    options: DatabaseOptions = DEFAULTS,
    clock: Callable[[], int] = milliseconds,
) -> Store:
    """Open a store; create or migrate its tables.

    Parameters
    ----------
    url
        `sqlite:///rprime.db`, `sqlite:////var/lib/rprime.db`, `postgresql+psycopg://...`.
    read_only
        Open a SQLite file beside the serving process, for an export or a backup.
    options
        Connections, timeouts and the quota of a project.
    clock
        The time in milliseconds, for the expiry of idempotency keys.

    Raises
    ------
    StoreError
        One of its subclasses; the message says how to fix it.
    """
    parsed = _parse(url)
    database: Database
    if parsed.get_backend_name() == "sqlite":
        database = open_sqlite(parsed, read_only=read_only, lock_seconds=options.lock_seconds)
    else:
        database = open_postgresql(parsed, read_only=read_only, options=options)
    writer = None if read_only else Writer(database, clock, options.project_bytes)
    return Store(database, writer, clock)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise StoreUrlError(f"RPRIME_STORE is no SQLAlchemy URL. {_FORMS}") from exc
    if parsed.drivername not in _DRIVERS:
        raise StoreUrlError(f"A store cannot be {parsed.drivername}. {_FORMS}")
    return parsed
