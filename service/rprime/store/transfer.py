"""Export a store as lines of JSON, and import them, repeatably."""

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Connection, Row, select

from rprime.core.cells import SparseCells
from rprime.core.table import ConfusionTable
from rprime.store import aliases, documents, evaluations, ids, schema
from rprime.store.compression import digest_text
from rprime.store.database import Database
from rprime.store.dialects import insert, serialise
from rprime.store.errors import decoding
from rprime.store.evaluations import JSON_COLUMNS
from rprime.store.import_lines import FORMAT, ImportStep
from rprime.store.insertion import add_all
from rprime.store.projects import SETTINGS
from rprime.store.records import NAMES
from rprime.store.schema import alias_changes, items, looks, projects, scores, slices

PAGE = 200

_of = schema.evaluations.c
_NAMED = ("id", "created_at", "project", *NAMES, "waived", "engine_version")
_AS_STORED = (*_NAMED, "tags", "fingerprint", "input_digest")
_NUMPY = orjson.OPT_SERIALIZE_NUMPY
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import added, and what existed already."""

    evaluations: int = 0
    evaluations_present: int = 0
    aliases: int = 0
    aliases_present: int = 0
    aliases_dangling: int = 0
    """Skipped aliases, whose evaluation is missing."""

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(**{name: n + getattr(other, name) for name, n in vars(self).items()})


def export(database: Database, project: str | None) -> Iterator[bytes]:
    """Write a store, or one project of it, as lines of JSON with their ends.

    It is read page by page, so a slow reader blocks nothing. Evaluations stored meanwhile are left
    out; those deleted meanwhile may be. The last line says how many there are.
    """
    count = 0
    for count, line in enumerate(_lines(database, project), start=1):  # noqa: B007 (the last one)
        yield line
    yield _line({"end": {"lines": count}})


def _lines(database: Database, project: str | None) -> Iterator[bytes]:
    now = ids.new_id()
    after, named = database.read(lambda connection: _beside(connection, project))
    yield _line({"rprime_export": FORMAT, "created_at": ids.created_at(now), "project": project})
    exported: set[str | None] = {None}
    pointed = {alias["evaluation"] for alias in named}
    last = ""
    while rows := database.read(lambda c: _page(c, project, after=last, before=now)):  # noqa: B023 - called at once
        for row in rows:
            if row.id in pointed:
                exported.add(row.id)
            yield _line({"evaluation": _evaluation(database, row)})
        last = rows[-1].id
    for alias in named:
        if alias["evaluation"] in exported:
            yield _line({"alias": alias})
    yield from after


@decoding()
def _beside(connection: Connection, project: str | None) -> tuple[list[bytes], list[Json]]:
    """Read settings and looks as lines, and the aliases with their changes."""
    counted, set_for = select(looks), select(projects)
    if project is not None:
        counted = counted.where(looks.c.project == project)
        set_for = set_for.where(projects.c.name == project)
    lines = [
        _line({"looks": {"project": row.project, "fingerprint": key, "looks": row.looks}})
        for row in connection.execute(counted)
        for key in [digest_text(row.fingerprint)]
    ]
    lines += [
        _line({"settings": {"project": row.name, **{s: getattr(row, s) for s in SETTINGS}}})
        for row in connection.execute(set_for)
    ]
    return lines, list(_aliases(connection, project))


def _aliases(connection: Connection, project: str | None) -> Iterator[Json]:
    """Describe every alias; those that were deleted point at nothing."""
    named = {(a.project, a.name): a.evaluation for a in aliases.read_all(connection, project)}
    changes = select(alias_changes).order_by(*alias_changes.primary_key)
    if project is not None:
        changes = changes.where(alias_changes.c.project == project)
    rows = connection.execute(changes)
    for (owner, name), group in groupby(rows, lambda row: (row.project, row.name)):
        kept = [
            {"evaluation": row.evaluation, "changed": row.changed, "by": row.by} for row in group
        ]
        target = named.get((owner, name))
        yield {"project": owner, "name": name, "evaluation": target, "changes": kept}


def _page(
    connection: Connection, project: str | None, *, after: str, before: str
) -> list[Row[Any]]:
    query = evaluations.whole().where(_of.id > after, _of.id < before).order_by(_of.id).limit(PAGE)
    sliced = select(slices.c.evaluation).where(slices.c.evaluation == _of.id).exists()
    query = query.add_columns(scores.c.content.label("drawn"), sliced.label("sliced"))
    query = query.outerjoin(scores, scores.c.evaluation == _of.id)
    if project is not None:
        query = query.where(_of.project == project)
    return list(connection.execute(query))


@decoding()
def _evaluation(database: Database, row: Row[Any]) -> Json:
    stored = evaluations.evaluation_of(row)
    content = select(items.c.content).where(items.c.evaluation == row.id)
    kept = database.read(lambda c: c.scalar(content)) if row.keeps_items else None
    beside = ((name, getattr(stored, name)) for name in JSON_COLUMNS)
    document = {
        **{name: getattr(stored, name) for name in _AS_STORED},
        "submission": _optional(bytes.hex, row.submission),
        "documents": documents.VERSION,
        "options": orjson.Fragment(stored.options),
        # Left out where there is none: a comparison that had no baseline is null itself.
        **{name: orjson.Fragment(member) for name, member in beside if member is not None},
        "labels": stored.labels,
        "table": _table(stored.table),
        "items": _optional(_base64, kept),
        "scores": _optional(_base64, row.drawn),
    }
    if row.sliced and (sliced := database.read(lambda c: evaluations.kept_slices(c, stored))):
        document["slices"] = [
            {"slice": name, **_table(sliced.tables[i])} for i, name in enumerate(sliced.names)
        ]
    return document


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _table(table: ConfusionTable) -> Json:
    cells = table.cells
    document: Json = {"weighted": table.weighted}
    if isinstance(cells, SparseCells):
        rows, columns, counts = cells.coordinates()
        document["cells"] = list(zip(rows.tolist(), columns.tolist(), _whole(counts), strict=True))
    else:
        document["counts"] = _whole(cells.counts)
    for name in ("unclassified", "spurious"):
        vector = getattr(table, name)
        if vector is not None:
            document[name] = _whole(vector)
    return document


def _whole(values: Any) -> Any:  # noqa: ANN401 - arrays of any shape
    """Write counts as integers if all of them are whole."""
    integers = values.astype(np.int64)
    return np.ascontiguousarray(integers if (integers == values).all() else values)


def _optional(turn: Any, value: Any) -> Any:  # noqa: ANN401 - any value
    return None if value is None else turn(value)


def _line(document: Json) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE | _NUMPY)


def write(connection: Connection, step: ImportStep) -> Imported:
    """Add missing records; existing ones stay unchanged, except for a larger look count."""
    # Two imports of one evaluation must not both count it.
    serialise(connection, [b"import"])
    identifiers = [packed.id for packed in step["evaluation"]]
    present = set(connection.scalars(select(_of.id).where(_of.id.in_(identifiers))))
    fresh = {packed.id: packed for packed in step["evaluation"] if packed.id not in present}
    add_all(connection, [fresh[identifier] for identifier in sorted(fresh)])
    if step["settings"]:
        connection.execute(insert(projects).on_conflict_do_nothing(), step["settings"])
    if step["looks"]:
        connection.execute(_RAISED_LOOKS, step["looks"])
    pointed = Counter(filter(None, (_point(connection, alias) for alias in step["alias"])))
    return Imported(
        evaluations=len(fresh), evaluations_present=len(identifiers) - len(fresh), **pointed
    )


_LOOKS = insert(looks)
_RAISED_LOOKS = _LOOKS.on_conflict_do_update(
    index_elements=["project", "fingerprint"],
    set_={"looks": _LOOKS.excluded.looks},
    where=looks.c.looks < _LOOKS.excluded.looks,
)


def _point(connection: Connection, alias: Json) -> str:
    """Point a new alias; return which member of `Imported` counts it, if any."""
    project, name, absent = alias["project"], alias["name"], aliases.Expected(absent=True)
    aliases.restore(connection, project, name, alias["changes"])
    if alias["evaluation"] is None:
        return ""
    try:
        aliases.put(connection, project, name, evaluation=alias["evaluation"], expected=absent)
    except aliases.AliasChangedError:
        return "aliases_present"
    except evaluations.EvaluationMissingError:
        return "aliases_dangling"
    return "aliases"
