"""Pack the items of an evaluation and the summary of its scores into few bytes."""

from collections.abc import Mapping

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.core.scores.summary import ScoreSummary
from rprime.core.slices.slices import SliceColumn
from rprime.store.compression import deflate, inflate

Columns = Mapping[str, SliceColumn]
"""The columns of the items that slices are of, by name."""

MOST_COLUMN_BYTES = 64 << 20
"""Codes of all columns of the items, before compression; more are not stored."""

_LENGTH_BYTES = 4
_SHORT = ("threshold", "edges")
"""Seven digits are enough to draw a score."""


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
    arrays = _unpack(blob)
    true, moved = arrays["true"], arrays["moved"]
    predicted = np.where(moved == 0, true.astype(moved.dtype), moved - (moved > 0))
    others = (arrays.get(name) for name in ("groups", "weights", "ids"))
    named = orjson.loads(arrays["columns"].tobytes()) if "columns" in arrays else []
    columns = {
        # In a type that also holds the code of an item in no slice.
        name: SliceColumn(
            tuple(values), arrays[f"column {place}"].astype(np.min_scalar_type(len(values)))
        )
        for place, (name, values) in enumerate(named)
    }
    return Items(true, predicted, *others), columns


def _column_parts(columns: Columns) -> dict[str, Array]:
    codes = {
        f"column {place}": np.minimum(one.codes, len(one.values))
        for place, one in enumerate(columns.values())
    }
    if not codes or sum(part.nbytes for part in codes.values()) > MOST_COLUMN_BYTES:
        return {}
    names = orjson.dumps([(name, one.values) for name, one in columns.items()])
    return {"columns": np.frombuffer(names, np.uint8), **codes}


def pack_scores(summary: ScoreSummary) -> bytes:
    """Pack a summary; thresholds are rounded to seven digits."""
    return _pack({name: _rounded(name, v) for name, v in vars(summary).items()})


def unpack_scores(blob: bytes) -> ScoreSummary:
    """Unpack a summary."""
    arrays = _unpack(blob)
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

    Counts are packed in the smallest type that holds them, other numbers in their own.
    """
    packed = {name: _smallest(values) for name, values in arrays.items()}
    header = orjson.dumps([[name, a.dtype.str, a.shape] for name, a in packed.items()])
    pieces = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    return deflate(b"".join([*pieces, *(values.tobytes() for values in packed.values())]))


def _unpack(blob: bytes) -> dict[str, Array]:
    """Unpack arrays, each in the type in which it was packed."""
    data = inflate(blob)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    arrays = {}
    for name, kind, shape in orjson.loads(data[_LENGTH_BYTES:start]):
        size = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, kind, size, start).reshape(shape)
        start += arrays[name].nbytes
    return arrays


def _smallest(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder("<"))
    return values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
