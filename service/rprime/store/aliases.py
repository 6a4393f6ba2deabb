"""Aliases: names of a project that point at an evaluation, changed by compare-and-set."""

import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from rprime.store.dialects import insert, serialise
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
        The current alias; None if there is none.
    """

    def __init__(self, current: "Alias | None") -> None:
        super().__init__("the alias is not as expected")
        self.current = current


@dataclass(frozen=True, kw_only=True)
class Alias:
    """The current state of an alias.

    Parameters
    ----------
    etag
        Differs after every change, even if the alias was deleted in between.
    """

    project: str
    name: str
    evaluation: str
    etag: str
    updated_at: datetime


@dataclass(frozen=True)
class Expected:
    """The state of an alias that a change expects.

    Parameters
    ----------
    etags
        One of these, as in If-Match; "*" means any existing alias, None no condition.
    absent
        The alias must not exist, as in If-None-Match: *.
    """

    etags: Collection[str] | Literal["*"] | None = None
    absent: bool = False

    def check(self, current: Alias | None) -> None:
        """Compare with the current alias.

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
    """An alias after a put, and whether it is new."""

    alias: Alias
    created: bool


def read_all(connection: Connection, project: str | None = None) -> tuple[Alias, ...]:
    """Read the aliases of a project, or of all, by name."""
    query = select(aliases).order_by(_of.project, _of.name)
    if project is not None:
        query = query.where(_of.project == project)
    return tuple(_alias(row) for row in connection.execute(query))


def get(connection: Connection, project: str, name: str) -> Alias:
    """Read an alias, as `Store.alias`."""
    found = _find(connection, project, name)
    if found is None:
        raise AliasMissingError
    return found


def put(
    connection: Connection, name: tuple[str, str], *, evaluation: str, expected: Expected
) -> AliasPut:
    """Point an alias at an evaluation of its project, as `Store.put_alias`."""
    check_names(*name)
    current = _locked(connection, name)
    expected.check(current)
    there = select(evaluations.c.id).where(
        evaluations.c.id == evaluation, evaluations.c.project == name[0]
    )
    # Locked until the end of the transaction, so that nothing deletes it meanwhile.
    if connection.scalar(there.with_for_update(key_share=True, read=True)) is None:
        raise EvaluationMissingError
    return AliasPut(_point(connection, name, evaluation), created=current is None)


def delete(connection: Connection, name: tuple[str, str], *, expected: Expected) -> None:
    """Delete an alias, as `Store.delete_alias`."""
    current = _locked(connection, name)
    if current is None and expected.etags is None:
        raise AliasMissingError
    expected.check(current)
    connection.execute(aliases.delete().where(_of.project == name[0], _of.name == name[1]))


def _locked(connection: Connection, name: tuple[str, str]) -> Alias | None:
    serialise(connection, ["\n".join(("alias", *name)).encode()])
    return _find(connection, *name)


def _find(connection: Connection, project: str, name: str) -> Alias | None:
    query = select(aliases).where(_of.project == project, _of.name == name)
    row = connection.execute(query).first()
    return None if row is None else _alias(row)


def _point(connection: Connection, name: tuple[str, str], evaluation: str) -> Alias:
    fresh = {"etag": secrets.token_hex(8), "updated": time.time_ns() // 1_000_000}
    fresh |= {"evaluation": evaluation}
    put = insert(aliases).values(project=name[0], name=name[1], **fresh)
    connection.execute(put.on_conflict_do_update(index_elements=["project", "name"], set_=fresh))
    return get(connection, *name)


def _alias(row: Row[Any]) -> Alias:
    return Alias(
        project=row.project,
        name=row.name,
        evaluation=row.evaluation,
        etag=row.etag,
        updated_at=datetime.fromtimestamp(row.updated / 1000, UTC),
    )
