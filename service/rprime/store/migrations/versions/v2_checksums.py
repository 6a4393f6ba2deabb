"""Add checksums and sizes, and rewrite what 0.1.0 stored in today's forms.

The tables are those of `rprime.store.schema` as long as this is the last migration. The next one
writes them out here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
import sqlalchemy as sa
from alembic import op

from rprime.core.gates.results import Result, gate_sentence
from rprime.store import schema
from rprime.store.compression import content_key, inflate, sealed, squeeze
from rprime.store.dialects import Row
from rprime.store.errors import decoding
from rprime.store.evaluations import checked_row

revision = "2"
down_revision = "1"

_COPIED = (schema.items, schema.aliases, schema.looks, schema.projects)
_TABLES = (schema.shared, schema.evaluations, schema.replays, *_COPIED)
_ADDED = {"bytes", "checksum", "keeps_slices"}
_ROWS = 500
_FRAME = b"\x28\xb5\x2f\xfd"
JUDGED_VERDICTS = ("pass", "fail", "inconclusive", "waived")
_POLICIES = {"pass": "all_must_pass", "not_fail": "proven_only"}
Json = dict[str, Any]


@decoding()
def upgrade() -> None:
    """Copy every row; `StoreDamagedError` if one cannot be read, and all stays as it was."""
    connection = op.get_bind()
    for one in reversed(_TABLES):
        # Not renamed: indexes and constraints would keep the names that the new ones have.
        op.execute(f"CREATE TABLE v1_{one.name} AS SELECT * FROM {one.name}")  # noqa: S608 (ours)
    for one in reversed(schema.metadata.sorted_tables):
        one.drop(connection, checkfirst=True)
    schema.metadata.create_all(connection)
    shared = _rows(connection, _old(schema.shared))
    contents = {row["key"]: _content(row["content"]) for row in shared}
    _fill(connection, schema.shared, {row["key"]: row for row in contents.values()}.values())
    sizes: Counter[str] = Counter()
    _fill(connection, schema.evaluations, _evaluations(connection, contents, sizes))
    _fill(connection, schema.project_sizes, ({"project": p, "bytes": n} for p, n in sizes.items()))
    answers = _rows(connection, _old(schema.replays))
    _fill(connection, schema.replays, ({**row, "body": _squeezed(row["body"])} for row in answers))
    for one in _COPIED:
        _fill(connection, one, map(dict, _rows(connection, _old(one))))
    # 0.1.0 did not keep the changes before the last one.
    old, first = _old(schema.aliases).c, sa.literal(1).label("number")
    last = sa.select(old.project, old.name, old.evaluation, old.updated.label("changed"), first)
    _fill(connection, schema.alias_changes, map(dict, _rows(connection, last)))
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
    old, kept = _old(schema.evaluations), _old(schema.items)
    joined = old.outerjoin(kept, kept.c.evaluation == old.c.id)
    query = sa.select(old, kept.c.content.label("kept")).select_from(joined)
    for found in _rows(connection, query):
        row = dict(found)
        kept_items = {"content": row.pop("kept")}
        labels, options = contents[row["labels"]], contents[row["options"]]
        row |= {
            "labels": labels["key"],
            "options": options["key"],
            "cells": sealed(row["cells"], row["id"]),
            "gate": _converted(row["gate"], _gate),
            "comparison": _converted(row["comparison"], _comparison),
            **{name: _squeezed(row[name]) for name in ("source", "extras")},
        }
        row = checked_row(row, labels, options, kept_items)
        sizes[row["project"]] += row["bytes"]
        yield row


def _plain(stored: bytes) -> bytes:
    return inflate(stored) if stored.startswith(_FRAME) else stored


def _squeezed(stored: bytes | None) -> bytes | None:
    return None if stored is None else squeeze(_plain(stored))


def _converted(stored: bytes | None, convert: Callable[[Json], Json]) -> bytes | None:
    if stored is None or (document := orjson.loads(_plain(stored))) is None:
        return _squeezed(stored)
    return squeeze(orjson.dumps(convert(document)))


def _content(stored: bytes) -> Row:
    """Convert class names, which stay, or options with a gate."""
    text = _plain(stored)
    document = orjson.loads(text)
    if isinstance(document, dict) and "gates" in document:
        _asked(document["gates"])
        text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return {"key": content_key(text), "content": squeeze(text)}


def _asked(gates: Json) -> None:
    if gates.get("looks") == "spend":
        # The first look had the level 6 alpha / pi^2; no smaller budget has one as low.
        gates["looks"] = {"budget": 2}
    for rule in gates["rules"]:
        if rule.get("policy") is not None:
            rule["policy"] = _POLICIES[rule["policy"]]


def _gate(gate: Json) -> Json:
    results = [_result(one, gate["alpha"]) for one in gate["results"]]
    deciding = [r for r in results if gate["verdict"] != "fail" or r["effect"] == "fail"]
    judged = any(one["verdict"] in JUDGED_VERDICTS for one in deciding)
    members = [{"class_" if k == "class" else k: v for k, v in one.items()} for one in results]
    message = gate_sentence(
        gate["verdict"], [Result(**one) for one in members], judged=judged, differences={}
    )
    return gate | {"results": results, "judged": judged, "message": message, "budget": None}


def _result(result: Json, alpha: float) -> Json:
    low, high = result.pop("interval") or (None, None)
    against = "baseline" if result["kind"] in {"max_drop", "max_gain"} else None
    level = None if low is None and high is None else 1 - alpha
    added: Json = {"slice": None, "confusion": None, "suspect": False, "against": against}
    return result | added | {"lower_limit": low, "upper_limit": high, "level": level}


def _comparison(comparison: Json) -> Json:
    comparison["classes"]["without_items"] = []
    return comparison | {"items": None}
