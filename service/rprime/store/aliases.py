"""Aliases: names of a project that point at an evaluation, changed by compare-and-set."""

import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, select

from rprime.schemas.history import AliasChange
from rprime.store.database import insert, serialise
from rprime.store.evaluations import EvaluationMissingError
from rprime.store.records import check_names
from rprime.store.schema import alias_changes, aliases, evaluations

MOST_CHANGES = 1000
"""Of an alias that are kept: the newest."""

_of = aliases.c
_was = alias_changes.c
_target = evaluations.c


class AliasMissingError(Exception):
    """There is no such alias."""


class AliasChangedError(Exception):
    """The alias is not as the caller expects it; it is `current` (None: there is none)."""

    def __init__(self, current: "Alias | None") -> None:
        super().__init__("the alias is not as expected")
        self.current = current


@dataclass(frozen=True)
class Alias:
    """The current state of an alias; after every change, even after a deletion, `etag` differs."""

    project: str
    name: str
    evaluation: str
    etag: str
    updated_at: datetime


@dataclass(frozen=True)
class Expected:
    """The state of an alias that a change expects.

    One of the etags as in If-Match ("*": any existing alias, None: no condition); or its absence,
    as in If-None-Match: *.
    """

    etags: Collection[str] | Literal["*"] | None = None
    absent: bool = False

    def check(self, current: Alias | None) -> None:
        """Raise `AliasChangedError` if the current alias differs."""
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
    """List the aliases of a project, or of all, by name."""
    query = select(aliases).order_by(_of.project, _of.name)
    if project is not None:
        query = query.where(_of.project == project)
    return tuple(_alias(row) for row in connection.execute(query))


def get(connection: Connection, project: str, name: str) -> Alias:
    """Read an alias; `AliasMissingError` without it."""
    alias = _find(connection, project, name)
    if alias is None:
        raise AliasMissingError
    return alias


def changes(
    connection: Connection, project: str, name: str, *, limit: int | None = None
) -> tuple[AliasChange, ...]:
    """List what an alias pointed at, newest first; empty if there never was such an alias.

    The newest 1,000 changes are kept, without those to evaluations that were deleted.
    """
    query = (
        select(_was.evaluation, _target.model, _target.version, _was.changed, _was.by)
        .outerjoin_from(alias_changes, evaluations, _target.id == _was.evaluation)
        .where(_was.project == project, _was.name == name)
        .order_by(_was.number.desc())
        .limit(limit)
    )
    rows = connection.execute(query)
    names = "evaluation", "model", "version", "by"
    return tuple(
        AliasChange(
            **{name: getattr(row, name) for name in names}, changed_at=moment_of(row.changed)
        )
        for row in rows
    )


def put(
    connection: Connection,
    project: str,
    name: str,
    *,
    evaluation: str,
    expected: Expected,
    by: str | None = None,
) -> AliasPut:
    """Point an alias at an evaluation of its project, if it is as expected; `by` is who does so."""
    check_names(project, name)
    current = _locked(connection, project, name)
    expected.check(current)
    there = select(_target.id).where(_target.id == evaluation, _target.project == project)
    # Locked until the end of the transaction, so that nothing deletes it meanwhile.
    if connection.scalar(there.with_for_update(key_share=True, read=True)) is None:
        raise EvaluationMissingError
    moved = _record(connection, project, name, evaluation=evaluation, by=by)
    fresh = {"etag": secrets.token_hex(8), "updated": moved, "evaluation": evaluation}
    point = insert(aliases).values(project=project, name=name, **fresh)
    connection.execute(point.on_conflict_do_update(index_elements=["project", "name"], set_=fresh))
    return AliasPut(get(connection, project, name), created=current is None)


def delete(
    connection: Connection, project: str, name: str, *, expected: Expected, by: str | None = None
) -> None:
    """Delete an alias, if it is as expected; its changes stay known."""
    current = _locked(connection, project, name)
    if current is None and expected.etags is None:
        raise AliasMissingError
    expected.check(current)
    connection.execute(aliases.delete().where(_of.project == project, _of.name == name))
    _record(connection, project, name, evaluation=None, by=by)


def restore(
    connection: Connection, project: str, name: str, entries: Sequence[Mapping[str, Any]]
) -> None:
    """Add the changes of an alias from an export, oldest first, unless the store has some.

    Those to an evaluation that the project lacks are left out.
    """
    _locked(connection, project, name)
    if not entries or changes(connection, project, name, limit=1):
        return
    there = _target.id.in_([entry["evaluation"] for entry in entries])
    named = select(_target.id).where(there, _target.project == project)
    present = named.with_for_update(key_share=True, read=True)
    identifiers = {None, *connection.scalars(present)}
    kept = [entry for entry in entries if entry["evaluation"] in identifiers][-MOST_CHANGES:]
    of_alias = {"project": project, "name": name}
    if rows := [{**of_alias, "number": n, **entry} for n, entry in enumerate(kept, start=1)]:
        connection.execute(alias_changes.insert(), rows)


def _locked(connection: Connection, project: str, name: str) -> Alias | None:
    serialise(connection, [f"alias\n{project}\n{name}".encode()])
    return _find(connection, project, name)


def _find(connection: Connection, project: str, name: str) -> Alias | None:
    query = select(aliases).where(_of.project == project, _of.name == name)
    row = connection.execute(query).first()
    return None if row is None else _alias(row)


def _record(
    connection: Connection, project: str, name: str, *, evaluation: str | None, by: str | None
) -> int:
    """Keep a change of an alias, if it is one; return when it began to point there.

    The time is in milliseconds and never runs backwards.
    """
    this = (_was.project == project, _was.name == name)
    newest = select(alias_changes).where(*this).order_by(_was.number.desc()).limit(1)
    last = connection.execute(newest).first()
    if last is not None and last.evaluation == evaluation:
        return int(last.changed)
    number, before = (0, 0) if last is None else (last.number, last.changed)
    changed = max(before, time.time_ns() // 1_000_000)
    fresh = {"evaluation": evaluation, "changed": changed, "by": by, "number": number + 1}
    connection.execute(alias_changes.insert().values(project=project, name=name, **fresh))
    outdated = _was.number <= number + 1 - MOST_CHANGES
    connection.execute(alias_changes.delete().where(*this, outdated))
    return changed


def _alias(row: Row[Any]) -> Alias:
    return Alias(row.project, row.name, row.evaluation, row.etag, moment_of(row.updated))


def moment_of(milliseconds: int) -> datetime:
    """Return a stored time, in UTC; `ArithmeticError` or `ValueError` if there is no such time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
