"""How many bytes the evaluations of each project have, kept up to date by every transaction."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from rprime.store.database import insert
from rprime.store.schema import project_sizes

_CHANGES = "project_size_changes"


@contextmanager
def counting(connection: Connection) -> Iterator[None]:
    """Write what `change` was told, at the end of the transaction of a connection.

    Last and sorted, so that a transaction locks the row of a project only while it commits, and
    two never wait for each other.
    """
    changes = connection.info[_CHANGES] = Counter[str]()
    yield
    rows = [{"project": name, "bytes": n} for name, n in sorted(changes.items()) if n]
    if rows:
        connection.execute(_ADDITION, rows)


def change(connection: Connection, changes: Iterable[tuple[str, int]]) -> None:
    """Count the bytes that a piece of work added, or deleted if negative, as its last step."""
    for project, size in changes:
        connection.info[_CHANGES][project] += size


def clear(connection: Connection, project: str) -> None:
    """Count nothing for a project without evaluations, as the last step of a piece of work."""
    connection.execute(project_sizes.delete().where(project_sizes.c.project == project))
    connection.info[_CHANGES].pop(project, None)


_PUT = insert(project_sizes)
_ADDITION = _PUT.on_conflict_do_update(
    index_elements=["project"], set_={"bytes": project_sizes.c.bytes + _PUT.excluded.bytes}
)
