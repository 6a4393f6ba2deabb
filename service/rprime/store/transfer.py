"""Export a store as lines of JSON, and import them, repeatably."""

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, get_args

import numpy as np
import orjson
from sqlalchemy import Connection, Row, select

from rprime.core.cells import SparseCells
from rprime.core.gates.results import GateVerdict
from rprime.core.items import Items, table_of
from rprime.core.slices.slices import Slices
from rprime.core.table import ConfusionTable, coordinates
from rprime.store import aliases, evaluations, ids, packing, schema
from rprime.store.compression import digest_bytes, digest_text
from rprime.store.database import Database
from rprime.store.dialects import insert, serialise
from rprime.store.errors import UNDECODABLE, decoding
from rprime.store.evaluations import JSON_COLUMNS
from rprime.store.insertion import Packed, add_all, rows_of
from rprime.store.packing import Columns, fits
from rprime.store.projects import SETTINGS
from rprime.store.records import NAMES, InvalidRecordError, NewEvaluation, check_names
from rprime.store.schema import alias_changes, items, looks, projects, scores, slices

FORMAT = 2
"""Version of the format, named by the first line; from 2 on the last line counts the others."""

PAGE = 200
MOST_IN_A_STEP = 200

_of = schema.evaluations.c
_NAMED = ("id", "created_at", "project", *NAMES, "waived", "engine_version")
_AS_STORED = (*_NAMED, "tags", "fingerprint", "input_digest")
_NUMPY = orjson.OPT_SERIALIZE_NUMPY
Json = dict[str, Any]


class InvalidExportError(ValueError):
    """An invalid line of an export, with its number from 1, and why it is."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


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
    document = {
        **{name: getattr(stored, name) for name in _AS_STORED},
        "submission": _optional(bytes.hex, row.submission),
        "options": orjson.Fragment(stored.options),
        **{one: _optional(orjson.Fragment, getattr(stored, one)) for one in JSON_COLUMNS},
        "labels": stored.labels,
        "table": _table(stored.table),
        "items": _optional(_base64, kept),
        "scores": _optional(_base64, row.drawn),
    }
    if row.sliced and (found := database.read(lambda c: evaluations.kept_slices(c, stored))):
        document["slices"] = [
            {"slice": name, **_table(found.tables[i])} for i, name in enumerate(found.names)
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


ImportStep = dict[str, list[Any]]
"""Validated records of an import by their kind, which are written in one transaction."""


@dataclass
class _Reader:
    """Reads line by line: the header, the records, and the end that counts them."""

    version: int = 0
    count: int = 0
    ended: bool = False

    def read(self, line: bytes) -> tuple[str, Any] | None:
        """Return the kind of a record and what it holds; None for the header and the end."""
        if self.ended:
            raise InvalidRecordError("It comes after the end of the export.")
        document = orjson.loads(line)
        kind, given = next(iter(document.items()))
        found = None
        if not self.version:
            self.version = _version(document)
        elif kind == "end":
            self._end(given["lines"])
        else:
            found = kind, _READERS[kind](given)
        self.count += 1
        return found

    def _end(self, lines: int) -> None:
        if lines != self.count:
            raise InvalidRecordError(
                f"{lines} lines should come before it, there are {self.count}."
            )
        self.ended = True


def steps(lines: Iterable[bytes]) -> Iterator[ImportStep]:
    """Read the lines of an export, a bounded number at a time, up to an invalid one."""
    step: ImportStep = {kind: [] for kind in _READERS}
    reader, number = _Reader(), 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = reader.read(line)
        except InvalidRecordError as exc:
            raise InvalidExportError(number, str(exc)) from exc
        except (*UNDECODABLE, StopIteration) as exc:
            raise InvalidExportError(number, "This is not a line of an export.") from exc
        if found is not None:
            step[found[0]].append(found[1])
        if sum(map(len, step.values())) >= MOST_IN_A_STEP:
            yield step
            step = {kind: [] for kind in _READERS}
    if not reader.version:
        raise InvalidExportError(1, "The export is empty.")
    yield step
    if reader.version > 1 and not reader.ended:
        raise InvalidExportError(number, "The export ends without its last line: it was cut.")


def _version(document: Json) -> int:
    version = document.get("rprime_export")
    if not isinstance(version, int) or version < 1:
        raise InvalidRecordError("The first line does not say that this is an export of rprime.")
    if version > FORMAT:
        raise InvalidRecordError(f"The export has format {version}, this rprime knows {FORMAT}.")
    return version


def _read_evaluation(given: Json) -> Packed:
    labels = given["labels"]
    if not isinstance(labels, list) or len(set(labels)) != len(labels) or not labels:
        raise InvalidRecordError("`labels` is not a list of distinct class names.")
    if not isinstance(given["options"]["options"], dict):
        raise InvalidRecordError("`options` has no options.")
    check_names(*labels)
    verdicts = {given["verdict"], (given["gate"] or {}).get("verdict")}
    if len(verdicts) > 1 or not verdicts <= {None, *get_args(GateVerdict)}:
        raise InvalidRecordError("`verdict` is not that of the gate.")
    table = _read_table(given["table"], len(labels))
    decoded = partial(base64.b64decode, validate=True)
    kept = {name: _optional(decoded, given.get(name)) for name in ("items", "scores")}
    if kept["scores"] is not None:
        packing.unpack_scores(kept["scores"]).check(len(labels))
    sliced = _read_slices(given["slices"], table) if given.get("slices") else None
    if kept["items"] is not None:
        found, columns = _read_items(kept["items"], len(labels))
        _check_items(found, table)
        if sliced is not None and columns:
            _check_columns(replace(sliced, columns=columns), found, len(labels))
    new = NewEvaluation(
        id=given["id"],
        **{name: given[name] for name in ("project", *NAMES, "fingerprint", "input_digest")},
        tags=tuple(given["tags"]),
        waived=given["waived"] is True,
        engine_version=str(given["engine_version"]),
        labels=tuple(labels),
        table=table,
        options=orjson.dumps(given["options"]),
        **{name: _optional(orjson.dumps, given[name]) for name in JSON_COLUMNS},
        slices=sliced,
    )
    return rows_of(
        new,
        items_content=kept["items"],
        scores_content=kept["scores"],
        submission=_optional(bytes.fromhex, given["submission"]),
    )


def _read_table(given: Json, k: int) -> ConfusionTable:
    omissions = [name for name in ("unclassified", "spurious") if name in given]
    vectors = {name: np.array(given[name], dtype=np.float64).reshape(k) for name in omissions}
    weighted = given["weighted"] is True
    if "counts" in given:
        counts = np.array(given["counts"], dtype=np.float64).reshape(k, k)
        table = ConfusionTable.dense(counts, **vectors, weighted=weighted)
    else:
        triples = np.array(given["cells"], dtype=np.float64).reshape(-1, 3)
        rows, columns = triples[:, 0].astype(np.int64), triples[:, 1].astype(np.int64)
        if ((rows < 0) | (rows >= k) | (columns < 0) | (columns >= k)).any():
            raise InvalidRecordError("A cell names an unknown class.")
        table = ConfusionTable.sparse(rows, columns, triples[:, 2], k, **vectors, weighted=weighted)
    for counts in (table.cells.counts, *vectors.values()):
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise InvalidRecordError("A count is negative or not finite.")
    return table


def _read_slices(given: list[Json], whole: ConfusionTable) -> Slices:
    names = tuple(dict(one["slice"]) for one in given)
    check_names(*(text for name in names for pair in name.items() for text in pair))
    found = Slices(names, ConfusionTable.stack([_read_table(one, whole.k) for one in given]))
    if not all(names) or len(found.positions) < len(names) or not fits(found):
        raise InvalidRecordError("A slice has no name, or that of another, or there are too many.")
    return found


def _read_items(content: bytes, k: int) -> tuple[Items, Columns]:
    found, columns = packing.unpack_items(content)
    values = (found.predicted, *(column.codes for column in columns.values()))
    if any(part.shape != found.true.shape for part in values):
        raise InvalidRecordError("The numbers of predictions and items differ.")
    if (found.true >= k).any() or (found.predicted > k).any():
        raise InvalidRecordError("An item names an unknown class.")
    return found, columns


def _check_items(found: Items, table: ConfusionTable) -> None:
    """Refuse items that another table counts; those without a true class are not kept."""
    tables = (table_of(found, table.k), replace(table, spurious=None))
    (codes, counts), (known, numbers) = map(coordinates, tables)
    if not np.array_equal(codes, known) or not np.allclose(counts, numbers):
        raise InvalidRecordError("The table is not that of the items.")


def _check_columns(given: Slices, found: Items, k: int) -> None:
    """Refuse columns of items that other slices than the given ones are of."""
    counted = given.of_some(np.arange(len(found.true)), found, k)
    known, tables = given.tables, counted.tables
    same = counted.names == given.names and np.array_equal(tables.total, known.total)
    if not same or not np.array_equal(tables.cells.counts, known.cells.counts):
        raise InvalidRecordError("The slices are not those of the items.")


def _read_alias(given: Json) -> Json:
    changes = [
        {"evaluation": one["evaluation"], "changed": int(one["changed"]), "by": one["by"]}
        for one in given.get("changes", ())
    ]
    check_names(given["project"], given["name"], *filter(None, (one["by"] for one in changes)))
    for one in changes:
        aliases.moment_of(one["changed"])
    for one in (given, *changes):
        if one["evaluation"] is not None and not ids.is_id(one["evaluation"]):
            raise InvalidRecordError("The id is not one that a store makes.")
    return {**given, "changes": changes}


def _read_looks(given: Json) -> Json:
    check_names(given["project"])
    row = {"project": given["project"], "fingerprint": digest_bytes(given["fingerprint"])}
    return {**row, "looks": int(given["looks"])}


def _read_settings(given: Json) -> Json:
    check_names(given["project"])
    chosen = {name: given.get(name, unset) is True for name, unset in SETTINGS.items()}
    return {"name": given["project"], **chosen}


_READERS: dict[str, Callable[[Json], Any]] = {
    "evaluation": _read_evaluation,
    "alias": _read_alias,
    "looks": _read_looks,
    "settings": _read_settings,
}


def write(connection: Connection, step: ImportStep) -> Imported:
    """Add missing records; existing ones stay unchanged, except for a larger look count."""
    # Two imports of one evaluation must not both count it.
    serialise(connection, [b"import"])
    given = [packed.id for packed in step["evaluation"]]
    present = set(connection.scalars(select(_of.id).where(_of.id.in_(given))))
    fresh = {packed.id: packed for packed in step["evaluation"] if packed.id not in present}
    add_all(connection, [fresh[identifier] for identifier in sorted(fresh)])
    if step["settings"]:
        connection.execute(insert(projects).on_conflict_do_nothing(), step["settings"])
    if step["looks"]:
        connection.execute(_RAISED_LOOKS, step["looks"])
    pointed = Counter(filter(None, (_point(connection, alias) for alias in step["alias"])))
    return Imported(evaluations=len(fresh), evaluations_present=len(given) - len(fresh), **pointed)


_LOOKS = insert(looks)
_RAISED_LOOKS = _LOOKS.on_conflict_do_update(
    index_elements=["project", "fingerprint"],
    set_={"looks": _LOOKS.excluded.looks},
    where=looks.c.looks < _LOOKS.excluded.looks,
)


def _point(connection: Connection, given: Json) -> str:
    """Point a new alias; return which member of `Imported` counts it, if any."""
    project, name, absent = given["project"], given["name"], aliases.Expected(absent=True)
    aliases.restore(connection, project, name, given["changes"])
    if given["evaluation"] is None:
        return ""
    try:
        aliases.put(connection, project, name, evaluation=given["evaluation"], expected=absent)
    except aliases.AliasChangedError:
        return "aliases_present"
    except evaluations.EvaluationMissingError:
        return "aliases_dangling"
    return "aliases"
