"""The statements that SQLite and PostgreSQL need in different forms."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import BigInteger, Connection, Table, bindparam, text
from sqlalchemy.dialects import postgresql

insert = postgresql.insert
"""Makes an INSERT with ON CONFLICT, which SQLAlchemy renders for SQLite, too."""
Row = Mapping[Any, Any]
"""Values by column name."""

# Of 23 columns, with far fewer than the 32 766 parameters that a statement may have.
_MOST_ROWS = 512
_LOCKS = text("SELECT pg_advisory_xact_lock(number) FROM unnest(:numbers) AS number").bindparams(
    bindparam("numbers", type_=postgresql.ARRAY(BigInteger))
)


def add(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, at least one, all with the same columns.

    SQLite gets as few statements as its limit of parameters allows: with a statement per row, the
    writing thread would wait for the interpreter lock each time.
    """
    if not _is_sqlite(connection):
        connection.execute(table.insert(), rows)
        return
    columns = tuple(rows[0])
    for start in range(0, len(rows), _MOST_ROWS):
        part = rows[start : start + _MOST_ROWS]
        values = chain.from_iterable(map(itemgetter(*columns), part))
        connection.exec_driver_sql(_insertion(table.name, columns, len(part)), tuple(values))


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    row = f"({', '.join('?' * len(columns))})"
    values = ", ".join([row] * rows)
    return f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608 (names of our schema)


def serialise(connection: Connection, names: Iterable[bytes], *, purpose: bytes = b"write") -> None:
    """Exclude other transactions with one of these names until this one ends.

    PostgreSQL takes advisory locks, in sorted order; purposes do not share them. SQLite has one
    writing thread.
    """
    digests = (hashlib.blake2b(name, digest_size=8, person=purpose).digest() for name in names)
    numbers = sorted({int.from_bytes(digest, "little", signed=True) for digest in digests})
    if numbers and not _is_sqlite(connection):
        connection.execute(_LOCKS, {"numbers": numbers})


def quiesce(connection: Connection) -> None:
    """Wait for running inserts of evaluations, and block the next ones until the transaction ends.

    SQLite has one writing thread.
    """
    if not _is_sqlite(connection):
        connection.execute(text("LOCK TABLE shared, aliases IN SHARE ROW EXCLUSIVE MODE"))


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
