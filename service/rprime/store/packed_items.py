"""Pack the items of an evaluation into few bytes, for later paired comparison."""

from collections.abc import Mapping

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.core.slices.slices import SliceColumn
from rprime.store import packed_arrays

Columns = Mapping[str, SliceColumn]
"""The columns of the items that slices are of, by name."""

MOST_COLUMN_BYTES = 64 << 20
"""Codes of all columns of the items, before compression; more are not stored."""


def pack(items: Items, columns: Columns | None = None) -> bytes:
    """Pack items, with the columns that their slices are of."""
    return packed_arrays.pack(dict(_parts(items)) | _column_parts(columns or {}))


def unpack(blob: bytes) -> tuple[Items, Columns]:
    """Unpack items, codes in the smallest type that holds them, and their columns."""
    arrays = packed_arrays.unpack(blob)
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


def _parts(items: Items) -> list[tuple[str, Array]]:
    true = items.true.astype(np.int64)
    # Most predictions are right; stored as zeros they compress several times better.
    moved = np.where(items.predicted == items.true, 0, items.predicted.astype(np.int64) + 1)
    parts = [("true", true), ("moved", moved)]
    if items.groups is not None:
        parts.append(("groups", items.groups))
    if items.weights is not None:
        parts.append(("weights", np.asarray(items.weights, dtype=np.float64)))
    if items.ids is not None:
        parts.append(("ids", items.ids))
    return parts
