"""Aliases: names of a project that point at an evaluation and change by comparing first."""

import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from rprime.store.database import Database
from rprime.store.evaluations import EvaluationMissingError
from rprime.store.records import check_names
from rprime.store.schema import aliases, evaluations

_of = aliases.c


class AliasMissingError(Exception):
    """There is no such alias."""


class AliasChangedError(Exception):
    """The alias is not as the caller expects it.

    Parameters
    ----------
    current
        What it is; None where there is none.
    """

    def __init__(self, current: "Alias | None") -> None:
        super().__init__("the alias is not as it was expected")
        self.current = current


@dataclass(frozen=True, kw_only=True)
class Alias:
    """An alias as it stands.

    Parameters
    ----------
    etag
        Another one after every change, even where the alias was deleted in between.
    """

    project: str
    name: str
    evaluation: str
    etag: str
    updated_at: datetime


@dataclass(frozen=True)
class Expected:
    """What an alias has to be before it is changed.

    Parameters
    ----------
    etags
        One of these, as of If-Match; "*": any, but there; None: not asked.
    absent
        Not there, as of If-None-Match: *.
    """

    etags: Collection[str] | Literal["*"] | None = None
    absent: bool = False

    def check(self, current: Alias | None) -> None:
        """Compare with what is there.

        Raises
        ------
        AliasChangedError
            If it differs.
        """
        if self.absent and current is not None:
            raise AliasChangedError(current)
        if self.etags is None:
            return
        if current is None or (self.etags != "*" and current.etag not in self.etags):
            raise AliasChangedError(current)


@dataclass(frozen=True)
class AliasPut:
    """An alias after it was put, and whether it is new."""

    alias: Alias
    created: bool


def read_all(connection: Connection, project: str | None = None) -> tuple[Alias, ...]:
    """Read the aliases of a project, or of all, by name."""
    query = select(aliases).order_by(_of.project, _of.name)
    if project is not None:
        query = query.where(_of.project == project)
    return tuple(_alias(row) for row in connection.execute(query))


def get(connection: Connection, project: str, name: str) -> Alias:
    """Read an alias.

    Raises
    ------
    AliasMissingError
        If there is none of this name.
    """
    found = _find(connection, project, name)
    if found is None:
        raise AliasMissingError
    return found


def put(
    database: Database,
    connection: Connection,
    name: tuple[str, str],
    *,
    evaluation: str,
    expected: Expected,
) -> AliasPut:
    """Point an alias at an evaluation of its project.

    Parameters
    ----------
    name
        The project and the name in it.
    expected
        What it has to be now.

    Raises
    ------
    AliasChangedError
        If it is something else.
    EvaluationMissingError
        If the project has no such evaluation.
    """
    check_names(*name)
    current = _locked(database, connection, name)
    expected.check(current)
    there = select(evaluations.c.id).where(
        evaluations.c.id == evaluation, evaluations.c.project == name[0]
    )
    # Held until the end of the transaction, so that it cannot be deleted meanwhile.
    if connection.scalar(there.with_for_update(key_share=True, read=True)) is None:
        raise EvaluationMissingError
    return AliasPut(_point(database, connection, name, evaluation), created=current is None)


def delete(
    database: Database, connection: Connection, name: tuple[str, str], *, expected: Expected
) -> None:
    """Delete an alias.

    Raises
    ------
    AliasMissingError
        If there is none of this name.
    AliasChangedError
        If it is something else than expected.
    """
    current = _locked(database, connection, name)
    if current is None and expected.etags is None:
        raise AliasMissingError
    expected.check(current)
    connection.execute(aliases.delete().where(_of.project == name[0], _of.name == name[1]))


def _locked(database: Database, connection: Connection, name: tuple[str, str]) -> Alias | None:
    database.serialise(connection, ["\n".join(("alias", *name)).encode()])
    return _find(connection, *name)


def _find(connection: Connection, project: str, name: str) -> Alias | None:
    query = select(aliases).where(_of.project == project, _of.name == name)
    row = connection.execute(query).first()
    return None if row is None else _alias(row)


def _point(
    database: Database, connection: Connection, name: tuple[str, str], evaluation: str
) -> Alias:
    fresh = {
        "evaluation": evaluation,
        "etag": secrets.token_hex(8),
        "updated": time.time_ns() // 1_000_000,
    }
    statement = database.insert(aliases).values(project=name[0], name=name[1], **fresh)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["project", "name"], set_=fresh)
    )
    return Alias(
        project=name[0],
        name=name[1],
        evaluation=evaluation,
        etag=fresh["etag"],  # type: ignore[arg-type] # a str
        updated_at=_moment(fresh["updated"]),  # type: ignore[arg-type] # an int
    )


def _alias(row: Row[Any]) -> Alias:
    return Alias(
        project=row.project,
        name=row.name,
        evaluation=row.evaluation,
        etag=row.etag,
        updated_at=_moment(row.updated),
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
