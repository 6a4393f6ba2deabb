"""Add checksums and sizes to what 0.1.0 stored; its documents stay as they are, as version 1."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import orjson
import sqlalchemy as sa
import zstandard
from alembic import op

from rprime.store.migrations import DamagedRowError, schema_2

revision = "2"
down_revision = "1"

_COPIED = (schema_2.items, schema_2.aliases, schema_2.looks, schema_2.projects)
_TABLES = (schema_2.shared, schema_2.evaluations, schema_2.replays, *_COPIED)
_ADDED = {"bytes", "checksum", "keeps_slices"}
_CHECKED = (
    *("id", "project", "model", "version", "branch", "commit", "test_set", "verdict", "tags"),
    *("fingerprint", "waived", "keeps_items"),
    *("engine_version", "input_digest", "labels", "options", "bytes"),
)
_DOCUMENTS = ("gate", "comparison", "extras", "source")
_ROWS = 500
_FRAME = b"\x28\xb5\x2f\xfd"
_WORTHWHILE = 64
Row = Mapping[Any, Any]


def upgrade() -> None:
    """Copy every row; `DamagedRowError` if one cannot be read, and all stays as it was."""
    connection = op.get_bind()
    for one in reversed(_TABLES):
        # Not renamed: indexes and constraints would keep the names that the new ones have.
        op.execute(f"CREATE TABLE v1_{one.name} AS SELECT * FROM {one.name}")  # noqa: S608 (ours)
    for one in reversed(schema_2.metadata.sorted_tables):
        one.drop(connection, checkfirst=True)
    schema_2.metadata.create_all(connection)
    shared = _rows(connection, _old(schema_2.shared))
    contents = {row["key"]: _content(row["content"]) for row in shared}
    distinct = {row["key"]: row for row in contents.values()}
    _fill(connection, schema_2.shared, distinct.values())
    sizes: Counter[str] = Counter()
    _fill(connection, schema_2.evaluations, _evaluations(connection, contents, sizes))
    counted = ({"project": p, "bytes": n} for p, n in sizes.items())
    _fill(connection, schema_2.project_sizes, counted)
    answers = _rows(connection, _old(schema_2.replays))
    bodies = ({**row, "body": _squeezed(_plain(row["body"]))} for row in answers)
    _fill(connection, schema_2.replays, bodies)
    for one in _COPIED:
        _fill(connection, one, map(dict, _rows(connection, _old(one))))
    # 0.1.0 did not keep the changes before the last one.
    old, first = _old(schema_2.aliases).c, sa.literal(1).label("number")
    last = sa.select(old.project, old.name, old.evaluation, old.updated.label("changed"), first)
    _fill(connection, schema_2.alias_changes, map(dict, _rows(connection, last)))
    for one in _TABLES:
        op.drop_table(f"v1_{one.name}")


def _old(new: sa.Table) -> sa.TableClause:
    """Return an old table, with the types of the new one."""
    columns = (sa.column(c.name, c.type) for c in new.c if c.name not in _ADDED)
    return sa.table(f"v1_{new.name}", *columns)


def _rows(connection: sa.Connection, selected: sa.TableClause | sa.Select[Any]) -> Iterator[Row]:
    query = sa.select(selected) if isinstance(selected, sa.TableClause) else selected
    options = {"yield_per": _ROWS}
    with connection.execute(query, execution_options=options) as result:
        yield from result.mappings()


def _fill(connection: sa.Connection, target: sa.Table, rows: Iterable[Row]) -> None:
    left = iter(rows)
    while part := list(islice(left, _ROWS)):
        connection.execute(target.insert(), part)


def _evaluations(
    connection: sa.Connection, contents: dict[bytes, Row], sizes: Counter[str]
) -> Iterator[Row]:
    old, kept = _old(schema_2.evaluations), _old(schema_2.items)
    joined = old.outerjoin(kept, kept.c.evaluation == old.c.id)
    query = sa.select(old, kept.c.content.label("kept")).select_from(joined)
    for found in _rows(connection, query):
        row = dict(found)
        items = row.pop("kept")
        labels, options = contents[row["labels"]], contents[row["options"]]
        row |= {
            "labels": labels["key"],
            "options": options["key"],
            "cells": _sealed(row["cells"], row["id"]),
            **{name: _document(name, row[name]) for name in _DOCUMENTS},
        }
        parts = [*row.values(), labels["content"], options["content"], items]
        row["bytes"] = sum(len(part) for part in parts if isinstance(part, str | bytes))
        covered = tuple(row[name] for name in _CHECKED)
        row["checksum"] = zlib.crc32(orjson.dumps(covered, default=bytes.hex))
        sizes[row["project"]] += row["bytes"]
        yield row


def _plain(stored: bytes) -> bytes:
    if not stored.startswith(_FRAME):
        return stored
    try:
        return zstandard.ZstdDecompressor().decompress(stored)
    except zstandard.ZstdError as exc:
        raise DamagedRowError(str(exc)) from exc


def _document(name: str, stored: bytes | None) -> bytes | None:
    if stored is None:
        return None
    text = _plain(stored)
    _parsed(text)
    return _squeezed(text if name == "source" else b'{"version":1,"%s":%s}' % (name.encode(), text))


def _content(stored: bytes) -> Row:
    """Return the row of class names, which are a list, or of options."""
    text = _plain(stored)
    if isinstance(_parsed(text), dict):
        text = b'{"version":1,"options":%s}' % text
    key = hashlib.blake2b(text, digest_size=16).digest()
    return {"key": key, "content": _squeezed(text)}


def _parsed(text: bytes) -> object:
    """Parse JSON of 0.1.0, which had no checksums."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise DamagedRowError(str(exc)) from exc


def _squeezed(text: bytes) -> bytes:
    plain = b"\x00" + _sealed(text)
    if len(text) < _WORTHWHILE:
        return plain
    frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(text)
    return min(frame, plain, key=len)


def _sealed(data: bytes, identifier: str = "") -> bytes:
    return data + zlib.crc32(data, zlib.crc32(identifier.encode())).to_bytes(4, "little")
