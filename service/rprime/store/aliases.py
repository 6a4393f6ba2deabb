"""Aliases: names of a project that point at an evaluation, changed by compare-and-set."""

import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from rprime.store.dialects import insert, serialise
from rprime.store.evaluations import EvaluationMissingError
from rprime.store.records import check_names
from rprime.store.schema import alias_changes, aliases, evaluations

MOST_CHANGES = 1000
"""Of an alias that are kept: the newest."""

_of = aliases.c
_was = alias_changes.c


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
class AliasChange:
    """A change of an alias.

    Parameters
    ----------
    evaluation
        What it points at since then, with its model and version; None if the alias was deleted.
    by
        Who changed it, as `put` and `delete` were told.
    """

    evaluation: str | None
    model: str | None
    version: str | None
    changed_at: datetime
    by: str | None


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


def changes(
    connection: Connection, project: str, name: str, limit: int | None
) -> tuple[AliasChange, ...]:
    """Read what an alias pointed at, newest first, as `Store.alias_changes`."""
    target = evaluations.c
    query = (
        select(_was.evaluation, target.model, target.version, _was.changed, _was.by)
        .outerjoin_from(alias_changes, evaluations, target.id == _was.evaluation)
        .where(_was.project == project, _was.name == name)
        .order_by(_was.number.desc())
        .limit(limit)
    )
    return tuple(
        AliasChange(*row[:3], moment_of(row.changed), row.by) for row in connection.execute(query)
    )


def put(
    connection: Connection,
    name: tuple[str, str],
    *,
    evaluation: str,
    expected: Expected,
    by: str | None = None,
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
    moved = _record(connection, name, evaluation, by)
    return AliasPut(_point(connection, name, evaluation, moved), created=current is None)


def delete(
    connection: Connection, name: tuple[str, str], *, expected: Expected, by: str | None = None
) -> None:
    """Delete an alias, as `Store.delete_alias`."""
    current = _locked(connection, name)
    if current is None and expected.etags is None:
        raise AliasMissingError
    expected.check(current)
    connection.execute(aliases.delete().where(_of.project == name[0], _of.name == name[1]))
    _record(connection, name, None, by)


def restore(
    connection: Connection, name: tuple[str, str], given: Sequence[Mapping[str, Any]]
) -> None:
    """Add the changes of an alias from an export, oldest first, unless the store has some.

    Those to an evaluation that the project lacks are left out.
    """
    _locked(connection, name)
    this = {"project": name[0], "name": name[1]}
    if not given or changes(connection, *name, 1):
        return
    there = evaluations.c.id.in_([one["evaluation"] for one in given])
    named = select(evaluations.c.id).where(there, evaluations.c.project == name[0])
    present = named.with_for_update(key_share=True, read=True)
    known = {None, *connection.scalars(present)}
    kept = [one for one in given if one["evaluation"] in known][-MOST_CHANGES:]
    rows = [{**this, "number": number, **one} for number, one in enumerate(kept, start=1)]
    if rows:
        connection.execute(alias_changes.insert(), rows)


def _locked(connection: Connection, name: tuple[str, str]) -> Alias | None:
    serialise(connection, ["\n".join(("alias", *name)).encode()])
    return _find(connection, *name)


def _find(connection: Connection, project: str, name: str) -> Alias | None:
    query = select(aliases).where(_of.project == project, _of.name == name)
    row = connection.execute(query).first()
    return None if row is None else _alias(row)


def _record(
    connection: Connection, name: tuple[str, str], evaluation: str | None, by: str | None
) -> int:
    """Keep a change of an alias, if it is one; return when it began to point there.

    The time is in milliseconds and never runs backwards.
    """
    this = (_was.project == name[0], _was.name == name[1])
    newest = select(alias_changes).where(*this).order_by(_was.number.desc()).limit(1)
    last = connection.execute(newest).first()
    if last is not None and last.evaluation == evaluation:
        return int(last.changed)
    number, before = (0, 0) if last is None else (last.number, last.changed)
    changed = max(before, time.time_ns() // 1_000_000)
    what = {"evaluation": evaluation, "changed": changed, "by": by}
    row = {"project": name[0], "name": name[1], "number": number + 1, **what}
    connection.execute(alias_changes.insert(), row)
    connection.execute(
        alias_changes.delete().where(*this, _was.number <= number + 1 - MOST_CHANGES)
    )
    return changed


def _point(connection: Connection, name: tuple[str, str], evaluation: str, moved: int) -> Alias:
    fresh = {"etag": secrets.token_hex(8), "updated": moved, "evaluation": evaluation}
    put = insert(aliases).values(project=name[0], name=name[1], **fresh)
    connection.execute(put.on_conflict_do_update(index_elements=["project", "name"], set_=fresh))
    return get(connection, *name)


def _alias(row: Row[Any]) -> Alias:
    return Alias(
        project=row.project,
        name=row.name,
        evaluation=row.evaluation,
        etag=row.etag,
        updated_at=moment_of(row.updated),
    )


def moment_of(milliseconds: int) -> datetime:
    """Return a stored time, in UTC.

    Raises
    ------
    ArithmeticError or ValueError
        If there is no such time.
    """
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
