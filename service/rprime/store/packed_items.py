"""Pack the items of an evaluation into few bytes, for later paired comparison."""

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.store.compression import deflate, inflate

_LENGTH_BYTES = 4


def pack(items: Items) -> bytes:
    """Pack items: a zstd frame over a JSON header and the arrays one after another."""
    arrays = [(name, _packed(values)) for name, values in _parts(items)]
    header = orjson.dumps([[name, values.dtype.str, values.size] for name, values in arrays])
    pieces = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    return deflate(b"".join([*pieces, *(values.tobytes() for _, values in arrays)]))


def unpack(blob: bytes) -> Items:
    """Unpack items, codes in the smallest type that holds them."""
    data = inflate(blob)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    arrays = {}
    for name, kind, size in orjson.loads(data[_LENGTH_BYTES:start]):
        arrays[name] = np.frombuffer(data, kind, size, start)
        start += arrays[name].nbytes
    true, moved = arrays["true"], arrays["moved"]
    predicted = np.where(moved == 0, true.astype(moved.dtype), moved - (moved > 0))
    others = (arrays.get(name) for name in ("groups", "weights", "ids"))
    return Items(true, predicted, *others)


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


def _packed(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype("<f8")
    return values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
