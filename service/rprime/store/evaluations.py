"""Read evaluations: one, a page, or conditions for all that match filters."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, func, select, text

from rprime.core.items import Items
from rprime.store import ids, packed_items, packed_table
from rprime.store.compression import digest_bytes, digest_text, expand
from rprime.store.database import Database
from rprime.store.errors import damaged, decoding
from rprime.store.records import (
    EvaluationPage,
    EvaluationSummary,
    Filters,
    StoredEvaluation,
    tags_of,
)
from rprime.store.schema import aliases, evaluations, items, shared

_of = evaluations.c
_labels, _options = shared.alias("labels_of"), shared.alias("options_of")

_SUMMARY = (
    _of.id,
    _of.project,
    _of.model,
    _of.version,
    _of.branch,
    _of.commit,
    _of.tags,
    _of.test_set,
    _of.fingerprint,
    _of.verdict,
    _of.waived,
    _of.keeps_items,
)


class EvaluationMissingError(Exception):
    """There is no such evaluation."""


class EvaluationAliasedError(Exception):
    """An alias points at the evaluation, so it cannot be deleted.

    Parameters
    ----------
    names
        The aliases.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("aliases point at it: " + ", ".join(names))
        self.names = tuple(names)


class InvalidCursorError(ValueError):
    """A cursor that is not from a page."""


def whole() -> Select[Any]:
    """Select evaluations with everything except their items."""
    return (
        select(
            *(column for column in evaluations.c if column.name not in {"labels", "options"}),
            _labels.c.content.label("labels"),
            _options.c.content.label("options"),
        )
        # Outer joins, so that a row whose content is lost is not mistaken for one that never was.
        .outerjoin_from(evaluations, _labels, _labels.c.key == _of.labels)
        .outerjoin(_options, _options.c.key == _of.options)
    )


def get(connection: Connection, identifier: str) -> StoredEvaluation:
    """Read an evaluation.

    Raises
    ------
    EvaluationMissingError
        If no evaluation has this id.
    StoreDamagedError
        If it cannot be read.
    """
    row = connection.execute(whole().where(_of.id == identifier)).first()
    if row is None:
        if _is_hidden(connection, identifier):
            raise damaged()
        raise EvaluationMissingError
    return evaluation_of(row)


def _is_hidden(connection: Connection, identifier: str) -> bool:
    """Whether another index of a SQLite file has an id that the primary key does not find."""
    return connection.dialect.name == "sqlite" and bool(
        connection.scalar(_ELSEWHERE, {"identifier": identifier})
    )


# Projects are skipped through: the index begins with them.
_ELSEWHERE = text("""
    WITH RECURSIVE found(project) AS (
        SELECT min(project) FROM evaluations
        UNION ALL
        SELECT (SELECT min(project) FROM evaluations WHERE project > found.project)
        FROM found WHERE found.project IS NOT NULL
    )
    SELECT EXISTS (
        SELECT 1 FROM found, evaluations AS e INDEXED BY evaluations_filters
        WHERE e.project = found.project AND e.id = :identifier
    )
""")


@decoding()
def evaluation_of(row: Row[Any]) -> StoredEvaluation:
    """Turn a row of `whole` into an evaluation."""
    labels = labels_of(row.labels)
    return StoredEvaluation(
        **_common(row),
        labels=labels,
        table=packed_table.unpack(row.cells, len(labels)),
        input_digest=digest_text(row.input_digest),
        engine_version=row.engine_version,
        options=_present(row.options),
        source=expand(row.source),
        gate=expand(row.gate),
        comparison=expand(row.comparison),
        extras=expand(row.extras),
    )


def _present(content: bytes | None) -> bytes:
    found = expand(content)
    if found is None:
        raise damaged()
    return found


@decoding()
def labels_of(content: bytes | None) -> tuple[str, ...]:
    """Read stored class names.

    Raises
    ------
    StoreDamagedError
        If there are none.
    """
    return tuple(orjson.loads(expand(content) or b""))


def kept_items(connection: Connection, identifier: str) -> Items | None:
    """Read the items of an evaluation; None if none were stored."""
    content = connection.scalar(select(items.c.content).where(items.c.evaluation == identifier))
    with decoding():
        return None if content is None else packed_items.unpack(content)


def page(
    database: Database,
    connection: Connection,
    project: str,
    filters: Filters,
    *,
    limit: int,
    cursor: str | None,
) -> EvaluationPage:
    """Read the summaries that follow a cursor, newest first.

    Raises
    ------
    InvalidCursorError
        If the cursor is not from a page.
    """
    query = select(*_SUMMARY).where(*conditions(database, project, filters))
    if cursor is not None:
        query = query.where(_of.id < _read_cursor(cursor))
    rows = connection.execute(query.order_by(_of.id.desc()).limit(limit + 1)).all()
    found = tuple(EvaluationSummary(**_common(row)) for row in rows[:limit])
    return EvaluationPage(found, _cursor(found[-1].id) if len(rows) > limit else None)


def conditions(database: Database, project: str, filters: Filters) -> list[ColumnElement[bool]]:
    """Return SQL conditions for the evaluations of a project that match filters."""
    fits = [_of.project == project]
    for name in ("model", "version", "branch", "commit", "test_set", "verdict"):
        wanted = getattr(filters, name)
        if wanted is not None:
            fits.append(_of[name] == wanted)
    if filters.fingerprint is not None:
        fits.append(_of.fingerprint == digest_bytes(filters.fingerprint))
    if filters.since is not None:
        # The time is the start of the id, so this narrows the index that lists are read from.
        fits.append(_of.id >= ids.first_id(filters.since))
    if filters.tag is not None:
        fits.append(database.contains(_of.tags, f"\n{filters.tag}\n"))
    if filters.ids is not None:
        fits.append(_of.id.in_(filters.ids))
    return fits


def count(database: Database, connection: Connection, project: str, filters: Filters) -> int:
    """Count the matching evaluations of a project."""
    fits = conditions(database, project, filters)
    return connection.scalar(select(func.count()).select_from(evaluations).where(*fits)) or 0


def delete(connection: Connection, identifier: str) -> None:
    """Delete an evaluation and its items; the looks at its test set stay counted.

    Raises
    ------
    EvaluationMissingError
        If no evaluation has this id.
    EvaluationAliasedError
        If an alias points at it.
    """
    # Lock the row first: a transaction that points an alias at it waits, then finds it gone.
    found = connection.scalar(select(_of.id).where(_of.id == identifier).with_for_update())
    if found is None:
        raise EvaluationMissingError
    pointing = select(aliases.c.name).where(aliases.c.evaluation == identifier)
    names = connection.scalars(pointing.order_by(aliases.c.name)).all()
    if names:
        raise EvaluationAliasedError(names)
    connection.execute(evaluations.delete().where(_of.id == identifier))


@decoding()
def _common(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row of any query with these columns
    fingerprint = row.fingerprint
    return {
        "id": row.id,
        "project": row.project,
        "model": row.model,
        "version": row.version,
        "branch": row.branch,
        "commit": row.commit,
        "tags": tags_of(row.tags),
        "test_set": row.test_set,
        "fingerprint": None if fingerprint is None else digest_text(fingerprint),
        "verdict": row.verdict,
        "waived": row.waived,
        "keeps_items": row.keeps_items,
    }


def _cursor(identifier: str) -> str:
    return base64.urlsafe_b64encode(f"1{identifier}".encode()).decode()


def _read_cursor(cursor: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (binascii.Error, UnicodeError) as exc:
        raise InvalidCursorError from exc
    if text[:1] != "1" or not ids.is_id(text[1:]):
        raise InvalidCursorError
    return text[1:]
