"""Delete many evaluations in steps, in smaller ones if the disk is full."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from rprime.store import projects
from rprime.store.database import Database
from rprime.store.errors import StoreFullError
from rprime.store.projects import Purged, Retention

Write = Callable[[Callable[[Connection], Any]], Any]


class Deletion:
    """Deletes the evaluations of a project.

    A transaction that deletes needs room for each page that it changes. On a full disk that is
    the room that the store has reserved, so a step that does not fit is halved.

    Parameters
    ----------
    database
        The database.
    write
        Runs a function in a transaction and waits for its result.
    """

    def __init__(self, database: Database, write: Write) -> None:
        self._database = database
        self._write = write

    def purge(self, project: str, keep: Retention, *, dry_run: bool = False) -> Purged:
        """Delete the evaluations that no criterion keeps, as `Store.purge`."""
        doomed, counts = self._database.read(lambda c: projects.unwanted(c, project, keep))
        if dry_run or not doomed:
            return counts
        size = projects.MOST_IN_A_STEP
        steps = (doomed[start : start + size] for start in range(0, len(doomed), size))
        deleted = sum(map(self._delete_unaliased, steps))
        # On a full disk they may stay until the next purge.
        with suppress(StoreFullError):
            self._write(projects.drop_unused)
        return Purged(
            deleted=deleted, kept=counts.kept + counts.deleted - deleted, aliased=counts.aliased
        )

    def delete_project(self, name: str) -> int:
        """Delete a project, as `Store.delete_project`."""
        try:
            return int(self._write(lambda c: projects.delete(c, name)))
        except StoreFullError:
            self._write(lambda c: projects.delete_aliases(c, name))
            purged = self.purge(name, Retention())
            rest = self._write(lambda c: projects.clear(c, name))
            return purged.deleted + int(rest)

    def _delete_unaliased(self, step: Sequence[str]) -> int:
        try:
            return int(self._write(lambda c: projects.delete_unaliased(c, step)))
        except StoreFullError:
            middle = len(step) // 2
            if not middle:
                raise
            halves = step[:middle], step[middle:]
            return sum(map(self._delete_unaliased, halves))
