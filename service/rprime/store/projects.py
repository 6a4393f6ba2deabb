"""Projects: lists, settings, deletion and retention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, func, select

from rprime.schemas.history import ProjectEntry, PurgeReport
from rprime.store import ids, project_sizes, schema
from rprime.store.database import insert, quiesce
from rprime.store.evaluations import SUMMARY, check
from rprime.store.records import ModelSummary, check_names

MOST_IN_A_STEP = 500
"""Evaluations deleted in one transaction; bounds the wait of other writers."""

SETTINGS = {"badge_public": False, "keeps_slices": True}
"""The settings of a project, and what they are unless they are set."""

_of = schema.evaluations.c
_settings = schema.projects.c


class ProjectMissingError(Exception):
    """There is no such project."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Which evaluations to keep besides the aliased ones: those that match any of these.

    `keep_last` counts the newest of each model; those without a model count as one.
    """

    keep_last: int = 0
    newer_than_days: float | None = None


def read_all(connection: Connection) -> tuple[ProjectEntry, ...]:
    """List every project that has an evaluation or a setting, by name, with their counts."""
    grouped = select(_of.project, func.count(), func.max(_of.id)).group_by(_of.project)
    counts = {row[0]: (row[1], row[2]) for row in connection.execute(grouped)}
    stored = {row.project: row.bytes for row in connection.execute(select(schema.project_sizes))}
    chosen = {row.name: row for row in connection.execute(select(schema.projects))}
    projects = []
    for name in sorted(counts.keys() | chosen.keys()):
        number, newest = counts.get(name, (0, None))
        settings = {s: getattr(chosen.get(name), s, unset) for s, unset in SETTINGS.items()}
        size = stored.get(name, 0)
        projects.append(
            ProjectEntry(name=name, evaluations=number, newest=newest, bytes=size, **settings)
        )
    return tuple(projects)


def models(connection: Connection, name: str) -> tuple[ModelSummary, ...]:
    """List the models of a project with their counts, the most recently evaluated first."""
    newest = func.max(_of.id).label("newest")
    grouped = select(_of.model, func.count(), newest).where(_of.project == name)
    rows = connection.execute(grouped.group_by(_of.model).order_by(newest.desc())).all()
    return tuple(ModelSummary(name=row[0], evaluations=row[1], newest=row[2]) for row in rows)


def branches(connection: Connection, name: str) -> tuple[str, ...]:
    """List the branches of a project, sorted by name."""
    query = select(_of.branch).distinct().where(_of.project == name, _of.branch.is_not(None))
    return tuple(connection.scalars(query.order_by(_of.branch)))


def has_evaluation(connection: Connection, name: str) -> bool:
    """Whether a project has an evaluation."""
    return connection.scalar(select(_of.id).where(_of.project == name).limit(1)) is not None


def setting(connection: Connection, name: str, column: str) -> bool:
    """Return a setting of a project, one of `SETTINGS`."""
    value = connection.scalar(select(_settings[column]).where(_settings.name == name))
    return SETTINGS[column] if value is None else value


def put_settings(connection: Connection, name: str, /, **settings: bool) -> None:
    """Change settings of a project; those that are not given stay as they are."""
    check_names(name)
    row = {"name": name, **settings}
    put = insert(schema.projects).values(row)
    connection.execute(put.on_conflict_do_update(index_elements=["name"], set_=row))


def delete(connection: Connection, name: str) -> int:
    """Delete everything of a project; return how many evaluations it had."""
    quiesce(connection)
    is_set = select(_settings.name).where(_settings.name == name)
    if not has_evaluation(connection, name) and connection.scalar(is_set) is None:
        raise ProjectMissingError
    return clear(connection, name)


def clear(connection: Connection, name: str) -> int:
    """Delete what a project has, if anything; return how many evaluations."""
    quiesce(connection)
    for table in (schema.aliases, schema.alias_changes, schema.looks, schema.replays):
        connection.execute(table.delete().where(table.c.project == name))
    connection.execute(schema.projects.delete().where(_settings.name == name))
    deleted = connection.execute(schema.evaluations.delete().where(_of.project == name)).rowcount
    drop_unused(connection)
    project_sizes.clear(connection, name)
    return deleted


def unwanted(
    connection: Connection, name: str, keep: Retention, *, dry_run: bool
) -> tuple[list[str], PurgeReport]:
    """Find what a purge deletes: the ids, oldest first, and the counts."""
    counted = select(func.count()).select_from(schema.evaluations)
    outdated = [_of.project == name, *_outdated(name, keep)]
    pointed = select(schema.aliases.c.evaluation)
    doomed = select(_of.id).where(*outdated, _of.id.not_in(pointed)).order_by(_of.id)
    identifiers = list(connection.scalars(doomed))
    total = connection.scalar(counted.where(_of.project == name)) or 0
    aliased = connection.scalar(counted.where(*outdated, _of.id.in_(pointed))) or 0
    kept = total - len(identifiers)
    return identifiers, PurgeReport(
        deleted=len(identifiers), kept=kept, aliased=aliased, dry_run=dry_run
    )


def delete_unaliased(connection: Connection, identifiers: Sequence[str]) -> int:
    """Delete evaluations that no alias points at by now; return how many."""
    chosen = select(*SUMMARY).where(_of.id.in_(identifiers)).order_by(_of.id).with_for_update()
    rows = connection.execute(chosen).all()
    for row in rows:
        check(row)
    by_id, pointed = {row.id: row for row in rows}, select(schema.aliases.c.evaluation)
    doomed = schema.evaluations.delete().where(_of.id.in_(by_id), _of.id.not_in(pointed))
    deleted = connection.scalars(doomed.returning(_of.id)).all()
    freed = (by_id[identifier] for identifier in deleted)
    project_sizes.change(connection, ((row.project, -row.bytes) for row in freed))
    return len(deleted)


def drop_unused(connection: Connection) -> None:
    """Delete class names and options that no evaluation uses."""
    quiesce(connection)
    used = select(_of.labels).union(select(_of.options))
    connection.execute(schema.shared.delete().where(schema.shared.c.key.not_in(used)))


def _outdated(name: str, keep: Retention) -> Iterator[ColumnElement[bool]]:
    """Yield SQL conditions for the evaluations that neither number nor age keeps."""
    if keep.keep_last > 0:
        place = func.row_number().over(partition_by=_of.model, order_by=_of.id.desc())
        numbered = select(_of.id, place.label("place")).where(_of.project == name).subquery()
        older = select(numbered.c.id).where(numbered.c.place > keep.keep_last)
        yield _of.id.in_(older)
    if keep.newer_than_days is not None:
        since = datetime.now(UTC) - timedelta(days=keep.newer_than_days)
        yield _of.id < ids.first_id(since)
