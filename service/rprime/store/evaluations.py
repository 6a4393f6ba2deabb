"""Read evaluations: one, a page, or conditions for all that match filters."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    text,
)

from rprime.core.items import Items
from rprime.core.scores.curves import ScoreSummary
from rprime.core.slices.slices import Slice, SliceName, Slices
from rprime.store import ids, packing, project_sizes
from rprime.store.compression import digest_bytes, digest_text, expand
from rprime.store.database import Database
from rprime.store.documents import read_document
from rprime.store.errors import StoreDamagedError, decoding
from rprime.store.packing import (
    Columns,
    packed_form,
    slice_identifier,
    slice_key,
    slice_name,
    unpack_slices,
    unpack_stack,
)
from rprime.store.records import ALL, NAMES, EvaluationSummary, Filters, Stack, StoredEvaluation
from rprime.store.schema import aliases, evaluations, items, scores, shared, slices

_of = evaluations.c
_labels, _options = shared.alias("labels_of"), shared.alias("options_of")

JSON_COLUMNS = ("source", "gate", "comparison", "extras", "score_values")
MOST_IN_A_PAGE = 200
_RECENT = 1000
"""Evaluations that are searched for names of slices, from the newest."""
_FIRST = (
    *("id", "project", "model", "version", "branch", "commit", "test_set", "verdict", "tags"),
    *("fingerprint", "waived", "keeps_items"),
    *("engine_version", "input_digest", "labels", "options", "bytes"),
)
"""The columns of version 2 whose values begin what a checksum covers; this never changes."""
_SHOWN = ("id", "project", *NAMES, "tags", "fingerprint", "waived", "keeps_items")
_LATER = tuple(name for name in _SHOWN if name not in _FIRST)
_CHECKED = (*_FIRST, *_LATER)
SUMMARY = tuple(_of[name] for name in (*_CHECKED, "checksum"))
"""The first columns of a query whose rows are checked."""
_shown_values = itemgetter(*map(_CHECKED.index, _SHOWN))
_REST = tuple(column for column in _of if column not in set(SUMMARY))


class EvaluationMissingError(Exception):
    """There is no such evaluation."""


class EvaluationAliasedError(Exception):
    """Aliases of these names point at the evaluation, so it cannot be deleted."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("aliases point at it: " + ", ".join(names))
        self.names = tuple(names)


class InvalidCursorError(ValueError):
    """A cursor that is not from a page."""


@dataclass(frozen=True)
class EvaluationPage:
    """Summaries, newest first, and the cursor of the next page; None on the last page."""

    items: tuple[EvaluationSummary, ...]
    next_cursor: str | None


def whole() -> Select[Any]:
    """Select evaluations with everything except their items."""
    names, options = _labels.c.content, _options.c.content
    return (
        select(*SUMMARY, *_REST, names.label("labels_content"), options.label("options_content"))
        # Outer joins, so that a row whose content is lost is not mistaken for one that never was.
        .outerjoin_from(evaluations, _labels, _labels.c.key == _of.labels)
        .outerjoin(_options, _options.c.key == _of.options)
    )


def get(connection: Connection, identifier: str) -> StoredEvaluation:
    """Read an evaluation, without its items; `EvaluationMissingError` if none has this id."""
    row = connection.execute(whole().where(_of.id == identifier)).first()
    if row is None:
        # Damage can hide a row of a SQLite file from its index, but not from a trend.
        if connection.dialect.name == "sqlite" and connection.scalar(
            text("SELECT 1 FROM evaluations NOT INDEXED WHERE id = :identifier"),
            {"identifier": identifier},
        ):
            raise StoreDamagedError
        raise EvaluationMissingError
    return stored_evaluation(row)


@decoding()
def stored_evaluation(row: Row[Any]) -> StoredEvaluation:
    """Turn a row of `whole` into an evaluation."""
    labels = stored_labels(row.labels_content)
    documents: dict[str, Any] = {name: document(name, getattr(row, name)) for name in JSON_COLUMNS}
    return StoredEvaluation(
        **_shown(row),
        labels=labels,
        table=packing.unpack_table(row.cells, row.id, len(labels)),
        input_digest=digest_text(row.input_digest),
        engine_version=row.engine_version,
        options=options_of(row.options_content),
        **documents,
    )


def document(name: str, stored: bytes | None) -> bytes | None:
    """Read a stored document in the form of today; None if there is none."""
    content = expand(stored)
    return None if content is None else read_document(name, content)


@decoding()
def options_of(content: bytes | None) -> bytes:
    """Read stored options; without any the store is damaged."""
    options = document("options", content)
    if options is None:
        raise StoreDamagedError
    return options


@decoding()
def stored_labels(content: bytes | None) -> tuple[str, ...]:
    """Read stored class names; without any the store is damaged."""
    names = expand(content)
    if names is None:
        raise StoreDamagedError
    return tuple(orjson.loads(names))


def sliced_items(connection: Connection, identifier: str) -> tuple[Items, Columns] | None:
    """Read the items of an evaluation with the columns that slices are of, if any were sent."""
    content = connection.scalar(select(items.c.content).where(items.c.evaluation == identifier))
    with decoding():
        return None if content is None else packing.unpack_items(content)


def kept_scores(connection: Connection, identifier: str) -> ScoreSummary | None:
    """Read what is drawn of the scores of an evaluation; None if nothing was stored."""
    content = connection.scalar(select(scores.c.content).where(scores.c.evaluation == identifier))
    with decoding():
        return None if content is None else packing.unpack_scores(content)


def kept_slices(
    connection: Connection, stored: StoredEvaluation, slice_: Slice = ()
) -> Slices | None:
    """Read the slices of an evaluation, or one of them; None if it has none."""
    query = select(slices).where(slices.c.evaluation == stored.id).order_by(slices.c.place)
    if slice_:
        query = query.where(slices.c.key == slice_key(dict(slice_)))
    rows = connection.execute(query).all()
    with decoding():
        return unpack_slices(rows, len(stored.labels)) if rows else None


def slice_names(
    connection: Connection, project: str, filters: Filters = ALL
) -> tuple[SliceName, ...]:
    """Read the names of the slices of the newest matching evaluation that has some.

    Only the newest 1000 evaluations are searched, whatever slice the filters name.
    """
    fits = filter_conditions(project, replace(filters, slice=()))
    recent = select(_of.id).where(*fits).order_by(_of.id.desc()).limit(_RECENT).subquery()
    owner = slices.c.evaluation
    newest = select(func.max(owner)).where(owner.in_(select(recent.c.id)))
    query = select(slices.c.name, slices.c.key).where(owner == newest.scalar_subquery())
    with decoding():
        return tuple(map(slice_name, connection.execute(query.order_by(slices.c.place))))


def page(
    connection: Connection,
    project: str,
    filters: Filters = ALL,
    *,
    limit: int = 50,
    cursor: str | None = None,
) -> EvaluationPage:
    """List up to 200 evaluations, newest first, from the `next_cursor` of the previous page."""
    limit = max(1, min(limit, MOST_IN_A_PAGE))
    query = select(*SUMMARY).where(*filter_conditions(project, filters))
    if cursor is not None:
        if not ids.is_id(cursor):
            raise InvalidCursorError
        query = query.where(_of.id < cursor)
    rows = connection.execute(query.order_by(_of.id.desc()).limit(limit + 1)).all()
    summaries = tuple(EvaluationSummary(**_shown(row)) for row in rows[:limit])
    return EvaluationPage(summaries, summaries[-1].id if len(rows) > limit else None)


def filter_conditions(project: str, filters: Filters) -> Iterator[ColumnElement[bool]]:
    """Yield SQL conditions for the evaluations of a project that match filters."""
    pairs = ((name, getattr(filters, name)) for name in NAMES)
    yield _of.project == project
    yield from (_named(name, value) for name, value in pairs if value is not None)
    if filters.fingerprint is not None:
        yield _of.fingerprint == digest_bytes(filters.fingerprint)
    if filters.since is not None:
        # The time is the start of the id, so this narrows the index that lists are read from.
        yield _of.id >= ids.first_id(filters.since)
    if filters.tag is not None:
        # Not by LIKE, which ignores case on SQLite.
        yield func.replace(_of.tags, f"\n{filters.tag}\n", "") != _of.tags
    if filters.slice:
        query = select(slices.c.evaluation).where(is_slice_of(filters.slice))
        yield query.correlate(evaluations).exists()
    if filters.ids is not None:
        yield _of.id.in_(filters.ids)


def _named(name: str, value: str) -> ColumnElement[bool]:
    """Return the condition on a name; a commit may be short, a test set its fingerprint."""
    condition: ColumnElement[bool] = _of[name] == value
    if name == "commit" and _SHORT_COMMIT.fullmatch(value):
        # Not by LIKE, which ignores case on SQLite.
        return and_(_of.commit >= value, _of.commit < f"{value}g")
    if name == "test_set" and _FINGERPRINT.fullmatch(value):
        return or_(condition, _of.fingerprint == digest_bytes(value))
    return condition


_SHORT_COMMIT, _FINGERPRINT = re.compile("[0-9a-f]{7,39}"), re.compile("[0-9a-f]{64}")


def is_slice_of(slice_: Slice) -> ColumnElement[bool]:
    """Return the SQL condition for the row of a slice of an evaluation."""
    return and_(slices.c.evaluation == _of.id, slices.c.key == slice_key(dict(slice_)))


def count_evaluations(connection: Connection, project: str, filters: Filters = ALL) -> int:
    """Count the matching evaluations of a project."""
    fits = filter_conditions(project, filters)
    return connection.scalar(select(func.count()).select_from(evaluations).where(*fits)) or 0


def delete(connection: Connection, identifier: str) -> None:
    """Delete an evaluation and its items; the looks at its test set stay counted."""
    # Lock the row first: a transaction that points an alias at it waits, then finds it gone.
    result = connection.execute(select(*SUMMARY).where(_of.id == identifier).with_for_update())
    row = result.first()
    if row is None:
        raise EvaluationMissingError
    check(row)
    pointing = select(aliases.c.name).where(aliases.c.evaluation == identifier)
    names = connection.scalars(pointing.order_by(aliases.c.name)).all()
    if names:
        raise EvaluationAliasedError(names)
    connection.execute(evaluations.delete().where(_of.id == identifier))
    project_sizes.change(connection, [(row.project, -row.bytes)])


def checked_row(row: dict[str, Any], *beside: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a row its size, with that of rows of other tables, and its checksum."""
    kept = [other[name] for other in beside for name in ("name", "content") if name in other]
    values = (*row.values(), *kept)
    row |= {"bytes": sum(len(value) for value in values if isinstance(value, str | bytes))}
    return row | {"checksum": _checksum(tuple(row[name] for name in _CHECKED))}


def check(row: Row[Any]) -> None:
    """Check that a row that begins with `SUMMARY` is whole, and that of its id.

    An index of SQLite finds rows by their numbers. One flipped bit there would show the content
    of one row beside the names of another.
    """
    if _checksum(row[: len(_CHECKED)]) != row.checksum:
        raise StoreDamagedError(code="checksum")


def _checksum(values: Sequence[Any]) -> int:
    """Return the checksum of the values of `_CHECKED`.

    Of later columns it covers the names and the values that are not null, so that a column more
    changes the checksum of no row that exists.
    """
    first, later = tuple(values[: len(_FIRST)]), zip(_LATER, values[len(_FIRST) :], strict=True)
    covered = (*first, *(pair for pair in later if pair[1] is not None))
    return zlib.crc32(orjson.dumps(covered, default=bytes.hex))


def _shown(row: Row[Any]) -> dict[str, Any]:
    """Return the members of `EvaluationSummary`."""
    check(row)
    shown = dict(zip(_SHOWN, _shown_values(row), strict=True))
    shown["tags"] = tuple(row.tags[1:-1].split("\n")) if row.tags else ()
    shown["fingerprint"] = None if row.fingerprint is None else digest_text(row.fingerprint)
    return shown


MOST_CELLS = 1 << 23
"""Numbers in one stack, 64 MiB; a longer history needs several stacks."""

_COLUMNS = ("id", "model", "version", "test_set", "verdict", "labels", "cells", "extras", "options")
_LABELS, _CELLS, _EXTRAS, _OPTIONS, _SCORE_VALUES = 5, 6, 7, 8, 9
_Kind = tuple[bytes, bool, bool]
_CONTENT = select(shared.c.content).where(shared.c.key == bindparam("key"))


@dataclass
class _Gathered:
    """Collects rows for a stack; `key` is that of the slice that they are of.

    Asked is the content of the options by their key.
    """

    labels: tuple[str, ...]
    sparse: bool
    key: bytes
    asked: Mapping[bytes, bytes]
    rows: list[Any] = field(default_factory=list)

    def add(self, rows: Iterable[Any]) -> Iterator[Stack]:
        """Add rows; yield the stacks that are then large enough."""
        self.rows += rows
        while len(self.rows) >= (most := self._most()):
            rest = self.rows[most:]
            del self.rows[most:]
            yield self.stack()
            self.rows = rest

    def _most(self) -> int:
        """Return how many rows fill a stack."""
        if self.sparse:
            # At most one cell per two inflated bytes, typically far fewer.
            sizes = accumulate(len(row[_CELLS]) for row in self.rows)
            large = (n for n, size in enumerate(sizes, start=1) if size * n >= MOST_CELLS)
            return next(large, len(self.rows) + 1)
        k = len(self.labels)
        return max(1, -(-MOST_CELLS // (k * (k + 2))))

    @decoding()
    def stack(self) -> Stack:
        """Return all of the rows as one stack."""
        columns = tuple(zip(*self.rows, strict=True))
        ids, extras = columns[0], tuple(document("extras", content) for content in columns[_EXTRAS])
        sealed_by = [slice_identifier(i, self.key) for i in ids] if self.key else ids
        table = unpack_stack(columns[_CELLS], sealed_by, len(self.labels))
        options = tuple(map(self.asked.__getitem__, columns[_OPTIONS]))
        kept = tuple(
            document("score_values", stored) for part in columns[_SCORE_VALUES:] for stored in part
        )
        shown = (*columns[:_LABELS], extras, options, kept)
        return Stack(self.labels, table, *shown)


def stacks(
    database: Database, project: str, filters: Filters, *, newest: int | None, scored: bool
) -> Iterator[Stack]:
    """Read the tables of matching evaluations, grouped by their classes, as `Store.tables`."""
    gathered: dict[_Kind, _Gathered] = {}
    options: dict[bytes, bytes] = {}
    with database.streaming() as connection:
        fits = list(filter_conditions(project, filters))
        if newest is not None:
            # Found by an index alone, so that rows stay in order.
            newest_first = select(_of.id).where(*fits).order_by(_of.id.desc())
            oldest = connection.scalar(newest_first.offset(newest - 1).limit(1))
            fits.append(_of.id >= (oldest or ""))
        sliced = slice_key(dict(filters.slice)) if filters.slice else b""
        cells = slices.c.content if sliced else _of.cells
        columns = (*_COLUMNS, "score_values") if scored and not sliced else _COLUMNS
        query = select(*(cells if name == "cells" else _of[name] for name in columns))
        if sliced:
            query = query.join(slices, is_slice_of(filters.slice))
        rows = connection.execute(query.where(*fits).order_by(_of.id))
        for part in rows.partitions():
            for key in {row[_OPTIONS] for row in part} - options.keys():
                options[key] = options_of(connection.scalar(_CONTENT, {"key": key}))
            # Consecutive rows often belong to one stack.
            for kind, run in groupby(part, _kind):
                if kind not in gathered:
                    names = stored_labels(connection.scalar(_CONTENT, {"key": kind[0]}))
                    gathered[kind] = _Gathered(names, kind[1], sliced, options)
                yield from gathered[kind].add(run)
    for group in gathered.values():
        if group.rows:
            yield group.stack()


@decoding()
def _kind(row: Any) -> _Kind:  # noqa: ANN401 - a row of the driver
    return row[_LABELS], *packed_form(row[_CELLS])
