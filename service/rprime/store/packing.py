"""Pack tables, items, slices and the summary of scores of an evaluation into few bytes."""

import math
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.index import CODE, REASONS
from rprime.core.items import Items
from rprime.core.published import Json
from rprime.core.scores.curves import ScoreSummary
from rprime.core.scores.kept import MISSING, KeptScores, KeptValue
from rprime.core.slices.slices import SliceColumn, SliceName, Slices
from rprime.core.table import ConfusionTable
from rprime.store.compression import ChecksumError, content_key, deflate, inflate, sealed, unsealed
from rprime.store.errors import StoreNewerError

Columns = Mapping[str, SliceColumn]
"""The columns of the items that slices are of, by name."""

MOST_SLICE_BYTES = 2 << 20
"""Names and tables of the slices of one evaluation, before compression."""
MOST_COLUMN_BYTES = 64 << 20
"""Codes of all columns of the items, before compression; more are not stored."""

# The form, byte by byte, is fixed by the files that hold it:
#   0     type of the counts: position in _TYPES; +8 if the cells are coordinates; the upper four
#         bits are the version of this form, 0
#   1     flags
#   then, as a zstd frame if flagged:
#   dense:  the k * k cells in row order
#   sparse: type of the steps (1 byte), number c of cells (4 bytes), c steps between the codes
#           row * k + column in growing order, c counts
#   both: k unclassified and k spurious items, if flagged
#   then the CRC-32 of the id of the evaluation and all of this
_TYPES = tuple(np.dtype(code) for code in ("<u1", "<u2", "<u4", "<u8", "<f8"))
_LARGEST = (*(int(np.iinfo(kind).max) for kind in _TYPES[:-1]), np.inf)
_SPARSE = 8
_UNCLASSIFIED, _SPURIOUS, _WEIGHTED, _DEFLATED = 1, 2, 4, 8
_VERSION_SHIFT = 4
_HEAD = 2
_SPARSE_HEAD = struct.Struct("<BI")
# Below this size, a frame saves little disk and doubles the time to read a history.
_WORTH_DEFLATING = 512
_LENGTH_BYTES = 4
_SHORT = ("threshold", "edges")
"""Seven digits are enough to draw a score."""

PACKED_VERSION = 4
"""The version of packed items and scores that is written; 0.2.0 wrote 2, without a number."""
_BARE_VERSION = 2

_Arrays = dict[str, Array]


def _with_edges(arrays: _Arrays) -> _Arrays:
    """Add the edges of the bins to the reliability diagram, which had 15 of equal width."""
    sums, edges = arrays["reliability"], np.linspace(0.0, 1.0, 16)
    ends = np.array([edges[:-1], edges[1:]])[:, : sums.shape[-1]]
    return arrays | {"reliability": np.concatenate((ends, sums))}


_STEPS: dict[str, dict[int, Callable[[_Arrays], _Arrays]]] = {
    "items": {},
    "scores": {3: _with_edges},
}
"""The step from each version to the next one, where the arrays of items or scores changed.

A step knows the old arrays by itself, as in `rprime.store.documents`.
"""


def pack_table(table: ConfusionTable, identifier: str) -> bytes:
    """Pack the table of an evaluation; `unpack_table` returns an equal one, as dense as before."""
    counts = _counts(table)
    kind = _kind_of(counts)
    flags = _WEIGHTED if table.weighted else 0
    flags |= _UNCLASSIFIED if table.unclassified is not None else 0
    flags |= _SPURIOUS if table.spurious is not None else 0
    body = counts.astype(_TYPES[kind]).tobytes()
    if isinstance(table.cells, SparseCells):
        body = _steps(table.cells) + body
        kind |= _SPARSE
    if len(body) >= _WORTH_DEFLATING:
        small = deflate(body)
        if len(small) < len(body):
            body, flags = small, flags | _DEFLATED
    return sealed(bytes((kind, flags)) + body, identifier)


def unpack_table(blob: bytes, identifier: str, k: int) -> ConfusionTable:
    """Unpack the table of an evaluation over k classes."""
    return unpack_stack([blob], [identifier], k)[0]


def packed_form(blob: object) -> tuple[bool, bool]:
    """Return whether packed cells are coordinates, and whether packed counts are weighted."""
    if not isinstance(blob, bytes) or len(blob) < _HEAD:
        raise ChecksumError("this is no table")
    return bool(blob[0] & _SPARSE), bool(blob[1] & _WEIGHTED)


def unpack_stack(blobs: Sequence[bytes], identifiers: Sequence[str], k: int) -> ConfusionTable:
    """Unpack many tables over k classes, all of one `packed_form`, as one stack.

    `ChecksumError` if one differs: a table has changed, or belongs to another evaluation.
    """
    blobs = list(map(unsealed, blobs, identifiers))
    if any(blob[0] >> _VERSION_SHIFT for blob in blobs):
        raise StoreNewerError("A newer rprime packed a table; install it here, too.")
    sparse, weighted = packed_form(blobs[0])
    if sparse:
        return _sparse_stack(blobs, k, weighted=weighted)
    values = np.zeros((len(blobs), k * k + 2 * k))
    # Those of one group can be read as the rows of one matrix.
    groups = defaultdict(list)
    for place, blob in enumerate(blobs):
        groups[blob[0], blob[1], 0 if blob[1] & _DEFLATED else len(blob)].append(place)
    for (kind, flags, _), places in groups.items():
        rows = _matrix([blobs[i] for i in places], flags).view(_TYPES[kind])
        target = slice(None) if len(places) == len(blobs) else np.array(places)
        values[target, : k * k] = rows[:, : k * k]
        if flags & _UNCLASSIFIED:
            values[target, k * k : k * k + k] = rows[:, k * k : k * k + k]
        if flags & _SPURIOUS:
            values[target, k * k + k :] = rows[:, -k:]
    cells, unclassified, spurious = np.split(values, (k * k, k * k + k), axis=1)
    return ConfusionTable.dense(cells.reshape(-1, k, k), unclassified, spurious, weighted=weighted)


def _counts(table: ConfusionTable) -> Array:
    """Return all counts of a table, or of a stack, one after another."""
    parts = (table.cells.counts, table.unclassified, table.spurious)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


def _kind_of(counts: Array) -> int:
    """Return the position in `_TYPES` of the smallest type that holds the counts."""
    if not counts.size:
        return 0
    if (counts != np.rint(counts)).any():
        return len(_TYPES) - 1
    return bisect_left(_LARGEST, counts.max())


def _steps(cells: SparseCells) -> bytes:
    codes = cells.rows.astype(np.int64) * cells.k + cells.columns
    steps = np.diff(codes, prepend=0)
    kind = _kind_of(steps)
    return _SPARSE_HEAD.pack(kind, steps.size) + steps.astype(_TYPES[kind]).tobytes()


def _matrix(blobs: list[bytes], flags: int) -> Array:
    """Return the bodies of blobs of one length as the rows of a matrix of bytes."""
    if flags & _DEFLATED:
        blobs = [inflate(blob[_HEAD:]) for blob in blobs]
    rows = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), -1)
    return rows if flags & _DEFLATED else np.ascontiguousarray(rows[:, _HEAD:])


def _sparse_stack(blobs: Sequence[bytes], k: int, *, weighted: bool) -> ConfusionTable:
    tables = [_coordinates(blob) for blob in blobs]
    codes = np.unique(np.concatenate([table_codes for table_codes, _, _ in tables]))
    counts = np.zeros((len(blobs), codes.size))
    omissions = np.zeros((2, len(blobs), k))
    for i, (places, values, flags) in enumerate(tables):
        counts[i, np.searchsorted(codes, places)] = values[: places.size]
        rest = values[places.size :]
        if flags & _UNCLASSIFIED:
            omissions[0, i] = rest[:k]
        if flags & _SPURIOUS:
            omissions[1, i] = rest[-k:]
    cells = SparseCells(codes // k, codes % k, counts, k)
    unclassified, spurious = (part if part.any() else None for part in omissions)
    return ConfusionTable(cells, unclassified, spurious, weighted)


def _coordinates(blob: bytes) -> tuple[Array, Array, int]:
    """Return the codes of the cells, the counts with the omissions after them, and the flags."""
    flags = blob[1]
    body = inflate(blob[_HEAD:]) if flags & _DEFLATED else blob[_HEAD:]
    step_kind, size = _SPARSE_HEAD.unpack_from(body)
    steps = np.frombuffer(body, _TYPES[step_kind], size, _SPARSE_HEAD.size)
    start = _SPARSE_HEAD.size + steps.nbytes
    values = np.frombuffer(body, _TYPES[blob[0] & ~_SPARSE], offset=start)
    return np.cumsum(steps, dtype=np.int64), values, flags


def fits(slices: Slices) -> bool:
    """Whether the store keeps so many slices."""
    names = sum(len(part) for name in slices.names for pair in name.items() for part in pair)
    counts = _counts(slices.tables)
    # Each table may be packed alone, but none takes a larger type.
    return names + counts.size * _TYPES[_kind_of(counts)].itemsize <= MOST_SLICE_BYTES


def slice_key(name: SliceName) -> bytes:
    """Return the key of a slice, the same for its columns in any order."""
    return content_key(orjson.dumps(sorted(name.items())))


def slice_name(row: Any) -> SliceName:  # noqa: ANN401 - a row of the driver
    """Read the name of a slice from a row; `ChecksumError` unless its key is that of the name."""
    try:
        name: SliceName = orjson.loads(row.name)
        if slice_key(name) == row.key:
            return name
    except (ValueError, TypeError, AttributeError):
        pass
    raise ChecksumError("a slice has another name")


def slice_identifier(evaluation: str, key: bytes) -> str:
    """Return what the checksum of the table of a slice covers besides."""
    return evaluation + key.hex()


def pack_slices(slices: Slices, evaluation: str) -> list[dict[str, Any]]:
    """Return a row for each slice, to read all of them or one of many evaluations."""
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(slices.names):
        key = slice_key(name)
        content = pack_table(slices.tables[place], slice_identifier(evaluation, key))
        row = {"evaluation": evaluation, "key": key, "place": place}
        rows.append(row | {"name": orjson.dumps(name), "content": content})
    return rows


def unpack_slices(rows: Sequence[Any], k: int) -> Slices:
    """Read the rows of at least one slice, in order of their places."""
    names = tuple(map(slice_name, rows))
    identifiers = [slice_identifier(row.evaluation, row.key) for row in rows]
    return Slices(names, unpack_stack([row.content for row in rows], identifiers, k))


def pack_items(items: Items, columns: Columns | None = None) -> bytes:
    """Pack items, with the columns that their slices are of."""
    # Most predictions are right; stored as zeros they compress several times better.
    moved = np.where(items.predicted == items.true, 0, items.predicted.astype(np.int64) + 1)
    parts = {"true": items.true.astype(np.int64), "moved": moved}
    if items.groups is not None:
        parts["groups"] = items.groups
    if items.weights is not None:
        parts["weights"] = np.asarray(items.weights, dtype=np.float64)
    if items.ids is not None:
        parts["ids"] = items.ids
    return _pack(parts | _column_parts(columns or {}))


def unpack_items(blob: bytes) -> tuple[Items, Columns]:
    """Unpack items, codes in the smallest type that holds them, and their columns."""
    arrays = _unpack("items", blob)
    true, moved = arrays["true"], arrays["moved"]
    predicted = np.where(moved == 0, true.astype(moved.dtype), moved - (moved > 0))
    others = (arrays.get(name) for name in ("groups", "weights", "ids"))
    named = orjson.loads(arrays["columns"].tobytes()) if "columns" in arrays else []
    columns = {}
    for place, (name, values) in enumerate(named):
        # In a type that also holds the code of an item in no slice.
        kind = np.min_scalar_type(len(values))
        columns[name] = SliceColumn(tuple(values), arrays[f"column {place}"].astype(kind))
    return Items(true, predicted, *others), columns


def _column_parts(columns: Columns) -> dict[str, Array]:
    codes = {
        f"column {place}": np.minimum(column.codes, len(column.values))
        for place, column in enumerate(columns.values())
    }
    if not codes or sum(part.nbytes for part in codes.values()) > MOST_COLUMN_BYTES:
        return {}
    names = orjson.dumps([(name, column.values) for name, column in columns.items()])
    return {"columns": np.frombuffer(names, np.uint8), **codes}


def pack_scores(summary: ScoreSummary) -> bytes:
    """Pack a summary; thresholds are rounded to seven digits."""
    return _pack({name: _rounded(name, v) for name, v in vars(summary).items()})


def unpack_scores(blob: bytes) -> ScoreSummary:
    """Unpack a summary."""
    arrays = _unpack("scores", blob)
    whole = ("classes", "sizes")
    return ScoreSummary(
        **{n: v.astype(np.int64 if n in whole else np.float64) for n, v in arrays.items()}
    )


def _rounded(name: str, values: Array) -> Array:
    if name in _SHORT:
        return values.astype(np.float32)
    whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    return values.astype(np.int64) if whole and (values >= 0).all() else values


def _pack(arrays: Mapping[str, Array]) -> bytes:
    """Pack arrays: a zstd frame over a JSON header and the arrays one after another.

    The header is `{"version": 4, "arrays": [[name, type, shape], ...]}`, and a bare list in
    version 2. Counts are packed in the smallest type that holds them, other numbers in their own.
    """
    packed = {name: _narrowed(values) for name, values in arrays.items()}
    listed = [[name, a.dtype.str, a.shape] for name, a in packed.items()]
    header = orjson.dumps({"version": PACKED_VERSION, "arrays": listed})
    pieces = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    return deflate(b"".join([*pieces, *(values.tobytes() for values in packed.values())]))


def _unpack(kind: str, blob: bytes) -> _Arrays:
    """Unpack items or scores of any version as the arrays of today, each in its packed type."""
    data = inflate(blob)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = orjson.loads(data[_LENGTH_BYTES:start])
    if isinstance(header, list):
        header = {"version": _BARE_VERSION, "arrays": header}
    if header["version"] > PACKED_VERSION:
        raise StoreNewerError(f"A newer rprime packed the {kind}; install it here, too.")
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        size = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, dtype, size, start).reshape(shape)
        start += arrays[name].nbytes
    for version, step in _STEPS[kind].items():
        if version >= header["version"]:
            arrays = step(arrays)
    return arrays


def _narrowed(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder("<"))
    return values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))


def write_score_values(kept: KeptScores) -> bytes:
    """Write indices of scores as JSON, each with its standard error, interval and reason."""
    overall = {key: _written(kept, key) for key in sorted(kept.values)}
    return orjson.dumps({"quantile": kept.quantile, "overall": overall})


def _written(kept: KeptScores, key: str) -> Json:
    score = kept.of(key)
    document: Json = {"value": _finite(score.value)}
    if not math.isnan(score.low):
        document |= {
            "standard_error": kept.standard_error(key),
            "interval": [score.low, score.high],
        }
    if score.low_reliability:
        document["low_reliability"] = True
    return document | ({"reason": REASONS[score.code]} if score.code else {})


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def read_score_values(document: bytes) -> KeptScores:
    """Read what `write_score_values` wrote; a ValueError or the like for anything else."""
    content = orjson.loads(document)
    quantile = float(content["quantile"])
    if not 0 < quantile < math.inf:
        raise ValueError("the quantile of the intervals is not positive")
    return KeptScores(quantile, {key: _read(score) for key, score in content["overall"].items()})


def _read(score: Json) -> KeptValue:
    value = math.nan if score["value"] is None else float(score["value"])
    low, high = score.get("interval") or (math.nan, math.nan)
    code = CODE.get(score.get("reason", ""), MISSING.code)
    little = bool(score.get("low_reliability", False))
    return KeptValue(value, float(low), float(high), code, little)
