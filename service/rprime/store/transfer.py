"""Export a store as lines of JSON, and import them, repeatably."""

import base64
import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any, get_args

import numpy as np
import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError
from sqlalchemy import Connection, Row, select

from rprime.core.cells import SparseCells
from rprime.core.gates.results import GateVerdict
from rprime.core.items import Items, table_of
from rprime.core.labels import HIDDEN, JOINERS, LONGEST_NAME
from rprime.core.published import Json
from rprime.core.slices.slices import Slices
from rprime.core.table import ConfusionTable, coordinates
from rprime.problems.problem import from_errors
from rprime.schemas.fields import SPARSE_CLASSES
from rprime.schemas.provenance import PathName, Provenance
from rprime.store import aliases, documents, evaluations, ids, packing, schema
from rprime.store.compression import digest_bytes, digest_text
from rprime.store.database import Database, insert, serialise
from rprime.store.errors import StoreNewerError, decoding
from rprime.store.evaluations import JSON_COLUMNS
from rprime.store.insertion import Packed, add_all, rows_of
from rprime.store.packing import Columns, fits, read_score_values
from rprime.store.projects import SETTINGS
from rprime.store.records import NAMES, InvalidRecordError, NewEvaluation, check_names
from rprime.store.schema import alias_changes, items, looks, projects, scores, slices

FORMAT = 3
"""Version of the format, named by the first line.

From 2 on the last line counts the others; from 3 on each evaluation names the version of its
documents, which is 1 in format 1, else 2.
"""

_NULLS = 2
MOST_IN_A_STEP = 200
_DAY_MILLISECONDS = 24 * 60 * 60 * 1000


class InvalidExportError(ValueError):
    """An invalid line of an export, with its number from 1, and why it is."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


def _plain_text(text: str) -> str:
    try:
        check_names(text)
    except InvalidRecordError as exc:
        raise PydanticCustomError("name", "{why}", {"why": str(exc).rstrip(".")}) from exc
    return text


def _class_name(text: str) -> str:
    if len(text) > LONGEST_NAME or _UNFIT_LABEL.search(text) or not _LABEL.search(text):
        why = "A class name has 1 to {most} characters, none of them a control character or hidden"
        raise PydanticCustomError("class_name", why, {"most": LONGEST_NAME})
    return _plain_text(text)


def _past(milliseconds: int) -> int:
    if not 0 <= milliseconds <= time.time_ns() // 1_000_000 + _DAY_MILLISECONDS:
        why = "A time is from 1970 to tomorrow: correct the clock of the service that exported it"
        raise PydanticCustomError("time", why)
    return milliseconds


def _identifier(text: str) -> str:
    if not ids.is_id(text):
        raise PydanticCustomError("id", "The id is not one that a store makes: export it again")
    _past(int(ids.created_at(text).timestamp() * 1000))
    return text


_UNFIT_LABEL, _LABEL = re.compile(f"[{HIDDEN}]"), re.compile(rf"[^\s{JOINERS}]")
_Text = Annotated[str, AfterValidator(_plain_text)]
_Label = Annotated[str, AfterValidator(_class_name)]
_Identifier = Annotated[str, AfterValidator(_identifier)]
_Moment = Annotated[int, AfterValidator(_past)]


class _Line(BaseModel):
    """What a line holds, with the types that JSON has; members of later versions are ignored."""

    model_config = ConfigDict(strict=True)


class _OptionsLine(_Line):
    model_config = ConfigDict(extra="allow")
    options: dict[str, Any]


class _EvaluationLine(_Line):
    """An evaluation, without its origin, which is that of a request."""

    id: _Identifier
    fingerprint: _Text | None
    verdict: str | None
    waived: bool
    tags: list[str]
    engine_version: str
    input_digest: str
    submission: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] | None
    documents: Annotated[int, Field(ge=1)] | None = None
    options: _OptionsLine
    source: str | None = None
    gate: dict[str, Any] | None = None
    comparison: dict[str, Any] | None = None
    extras: dict[str, Any] | list[Any] | None = None
    score_values: dict[str, Any] | None = None
    labels: Annotated[list[_Label], Field(min_length=1, max_length=SPARSE_CLASSES)]
    table: dict[str, Any]
    items: str | None = None
    scores: str | None = None
    slices: list[dict[str, Any]] | None = None


class _ChangeLine(_Line):
    evaluation: _Identifier | None
    changed: _Moment
    by: _Text | None


class _AliasLine(_Line):
    project: PathName
    name: PathName
    evaluation: _Identifier | None
    changes: list[_ChangeLine] = []


class _LooksLine(_Line):
    project: PathName
    fingerprint: _Text
    looks: Annotated[int, Field(ge=0, le=2**31 - 1)]


class _SettingsLine(_Line):
    model_config = ConfigDict(extra="allow")
    project: PathName


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
        with reading("", "is no JSON object with one member"):
            document = orjson.loads(line)
            kind, members = next(iter(document.items()))
        record = None
        if not self.version:
            self.version = _version(document)
        elif kind == "end":
            self._end(members)
        elif kind in _READERS:
            with reading(f"/{kind}", "cannot be read"):
                record = kind, _READERS[kind](members, self.version)
        else:
            raise InvalidRecordError(f"It has none of the members {', '.join(_READERS)} and end.")
        self.count += 1
        return record

    def _end(self, members: Json) -> None:
        with reading("/end", "has no number of `lines`"):
            lines = members["lines"]
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
            record = reader.read(line)
        except (InvalidRecordError, StoreNewerError) as exc:
            raise InvalidExportError(number, str(exc)) from exc
        if record is not None:
            step[record[0]].append(record[1])
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


@contextmanager
def reading(place: str, fault: str) -> Iterator[None]:
    """Refuse content of a line that does not fit a model, or that cannot be read."""
    try:
        yield
    except ValidationError as exc:
        violation = from_errors(exc.errors()).errors[0]
        raise InvalidRecordError(f"`{place}{violation.pointer}`: {violation.detail}") from exc
    except InvalidRecordError as exc:
        raise (
            exc if str(exc).startswith("`") else InvalidRecordError(f"`{place}`: {exc}")
        ) from exc
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, *_MORE) as exc:
        told = f"`{place}` {fault}" if place else f"This {fault}"
        raise InvalidRecordError(f"{told}; export it again.") from exc


_MORE = (AttributeError, StopIteration, struct.error)
"""What reading members of JSON that is not as expected raises, too."""


def _read_evaluation(members: Json, version: int) -> Packed:
    line = _EvaluationLine.model_validate(members)
    origin = _checked_origin(members)
    labels = tuple(line.labels)
    if len(set(labels)) != len(labels):
        raise InvalidRecordError("`/evaluation/labels`: Two classes have the same name.")
    written = min(version, documents.BARE_VERSION) if line.documents is None else line.documents
    content: dict[str, Any] = {
        name: documents.upgraded(name, orjson.dumps(members[name]), written)
        for name in ("options", *JSON_COLUMNS)
        # Up to format 2 null stood for what is missing, too.
        if members.get(name) is not None or (version > _NULLS and name in members)
    }
    gate = orjson.loads(content.get("gate", b"{}"))
    verdicts = {line.verdict, gate.get("verdict")}
    if len(verdicts) > 1 or not verdicts <= {None, *get_args(GateVerdict)}:
        raise InvalidRecordError("`/evaluation/verdict` is not that of the gate.")
    with reading("/evaluation/table", "cannot be read"):
        table = _read_table(line.table, len(labels))
    items, scores, slices = _read_beside(line, table)
    if "score_values" in content:
        with reading("/evaluation/score_values", "cannot be read"):
            read_score_values(content["score_values"])
    new = NewEvaluation(
        id=line.id,
        **{name: origin.get(name) for name in NAMES if name not in {"test_set", "verdict"}},
        project=members["project"],
        test_set=members["test_set"],
        verdict=line.verdict,
        fingerprint=line.fingerprint,
        input_digest=line.input_digest,
        tags=tuple(line.tags),
        waived=line.waived,
        engine_version=line.engine_version,
        labels=labels,
        table=table,
        slices=slices,
        options=content.pop("options"),
        **content,
    )
    submission = None if line.submission is None else bytes.fromhex(line.submission)
    return rows_of(new, items_content=items, scores_content=scores, submission=submission)


def _checked_origin(members: Json) -> Json:
    """Return the origin of an evaluation, which the model of a request accepts."""
    origin = {name: members.get(name) for name in Provenance.model_fields}
    if origin["test_set"] is not None:
        origin["test_set"] = {"id": origin["test_set"]}
    Provenance.model_validate({name: value for name, value in origin.items() if value is not None})
    if origin["project"] is None:
        raise InvalidRecordError("`/evaluation/project`: Add `project`, which is required.")
    return origin


def _read_beside(
    line: _EvaluationLine, table: ConfusionTable
) -> tuple[bytes | None, bytes | None, Slices | None]:
    """Return the packed items and scores, and the slices, after comparing them with the table."""
    items, scores = _decoded("items", line.items), _decoded("scores", line.scores)
    k = len(line.labels)
    if scores is not None:
        with reading("/evaluation/scores", "cannot be read"):
            packing.unpack_scores(scores).check(k)
    slices = None
    if line.slices:
        with reading("/evaluation/slices", "cannot be read"):
            slices = _read_slices(line.slices, table)
    if items is not None:
        with reading("/evaluation/items", "cannot be read"):
            unpacked, columns = _read_items(items, k)
            _check_items(unpacked, table)
            if slices is not None and columns:
                _check_columns(replace(slices, columns=columns), unpacked, k)
    return items, scores, slices


def _decoded(name: str, text: str | None) -> bytes | None:
    with reading(f"/evaluation/{name}", "is no base64"):
        return None if text is None else base64.b64decode(text, validate=True)


def _read_table(members: Json, k: int) -> ConfusionTable:
    omissions = [name for name in ("unclassified", "spurious") if name in members]
    vectors = {name: np.array(members[name], dtype=np.float64).reshape(k) for name in omissions}
    weighted = members["weighted"] is True
    if "counts" in members:
        counts = np.array(members["counts"], dtype=np.float64).reshape(k, k)
        table = ConfusionTable.dense(counts, **vectors, weighted=weighted)
    else:
        triples = np.array(members["cells"], dtype=np.float64).reshape(-1, 3)
        rows, columns = triples[:, 0].astype(np.int64), triples[:, 1].astype(np.int64)
        if ((rows < 0) | (rows >= k) | (columns < 0) | (columns >= k)).any():
            raise InvalidRecordError("A cell names an unknown class.")
        table = ConfusionTable.sparse(rows, columns, triples[:, 2], k, **vectors, weighted=weighted)
    for counts in (table.cells.counts, *vectors.values()):
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise InvalidRecordError("A count is negative or not finite.")
    return table


def _read_slices(entries: list[Json], whole: ConfusionTable) -> Slices:
    names = tuple(dict(entry["slice"]) for entry in entries)
    check_names(*(text for name in names for pair in name.items() for text in pair))
    slices = Slices(names, ConfusionTable.stack([_read_table(entry, whole.k) for entry in entries]))
    if not all(names) or len(slices.positions) < len(names) or not fits(slices):
        raise InvalidRecordError("A slice has no name, or that of another, or there are too many.")
    return slices


def _read_items(content: bytes, k: int) -> tuple[Items, Columns]:
    items, columns = packing.unpack_items(content)
    values = (items.predicted, *(column.codes for column in columns.values()))
    if any(part.shape != items.true.shape for part in values):
        raise InvalidRecordError("The numbers of predictions and items differ.")
    if (items.true >= k).any() or (items.predicted > k).any():
        raise InvalidRecordError("An item names an unknown class.")
    return items, columns


def _check_items(items: Items, table: ConfusionTable) -> None:
    """Refuse items that another table counts; those without a true class are not kept."""
    tables = (table_of(items, table.k), replace(table, spurious=None))
    (codes, counts), (other_codes, numbers) = map(coordinates, tables)
    if not np.array_equal(codes, other_codes) or not np.allclose(counts, numbers):
        raise InvalidRecordError("The table is not that of the items.")


def _check_columns(slices: Slices, items: Items, k: int) -> None:
    """Refuse columns of items that other slices than the given ones are of."""
    counted = slices.of_some(np.arange(len(items.true)), items, k)
    declared, tables = slices.tables, counted.tables
    same = counted.names == slices.names and np.array_equal(tables.total, declared.total)
    if not same or not np.array_equal(tables.cells.counts, declared.cells.counts):
        raise InvalidRecordError("The slices are not those of the items.")


def _read_alias(members: Json, _: int) -> Json:
    return _AliasLine.model_validate(members).model_dump()


def _read_looks(members: Json, _: int) -> Json:
    row = _LooksLine.model_validate(members).model_dump()
    return row | {"fingerprint": digest_bytes(row["fingerprint"])}


def _read_settings(members: Json, _: int) -> Json:
    project = _SettingsLine.model_validate(members).project
    chosen = {name: members.get(name, unset) is True for name, unset in SETTINGS.items()}
    return {"name": project, **chosen}


_READERS: dict[str, Callable[[Json, int], Any]] = {
    "evaluation": _read_evaluation,
    "alias": _read_alias,
    "looks": _read_looks,
    "settings": _read_settings,
}


PAGE = 200

_of = schema.evaluations.c
_NAMED = ("id", "created_at", "project", *NAMES, "waived", "engine_version")
_AS_STORED = (*_NAMED, "tags", "fingerprint", "input_digest")
_NUMPY = orjson.OPT_SERIALIZE_NUMPY


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
    stored = evaluations.stored_evaluation(row)
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


def write(connection: Connection, step: ImportStep) -> dict[str, int]:
    """Add missing records, existing ones stay; return counts, by the members of `ImportReport`."""
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
    present_count = len(identifiers) - len(fresh)
    return {"evaluations": len(fresh), "evaluations_present": present_count, **pointed}


_LOOKS = insert(looks)
_RAISED_LOOKS = _LOOKS.on_conflict_do_update(
    index_elements=["project", "fingerprint"],
    set_={"looks": _LOOKS.excluded.looks},
    where=looks.c.looks < _LOOKS.excluded.looks,
)


def _point(connection: Connection, alias: Json) -> str:
    """Point a new alias; return which member of `ImportReport` counts it, if any."""
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
