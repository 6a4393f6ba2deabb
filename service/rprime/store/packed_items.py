"""Pack the items of an evaluation into few bytes, for later paired comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.store.compression import deflate, inflate

_LENGTH_BYTES = 4


@dataclass(frozen=True, eq=False)
class KeptItems:
    """Items and, if given, their identifiers in the same order."""

    items: Items
    ids: Sequence[str] | None = None


def pack(kept: KeptItems) -> bytes:
    """Pack items: a zstd frame over a JSON header and the arrays one after another."""
    arrays = [(name, _packed(values)) for name, values in _parts(kept)]
    header = orjson.dumps([[name, values.dtype.str, values.size] for name, values in arrays])
    pieces = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    return deflate(b"".join([*pieces, *(values.tobytes() for _, values in arrays)]))


def unpack(blob: bytes) -> KeptItems:
    """Unpack items, codes in the smallest type that holds them."""
    data = inflate(blob)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    arrays = {}
    for name, kind, size in orjson.loads(data[_LENGTH_BYTES:start]):
        arrays[name] = np.frombuffer(data, kind, size, start)
        start += arrays[name].nbytes
    true, moved = arrays["true"], arrays["moved"]
    predicted = np.where(moved == 0, true.astype(moved.dtype), moved - (moved > 0))
    items = Items(true, predicted, arrays.get("groups"), arrays.get("weights"))
    if "lengths" not in arrays:
        return KeptItems(items)
    return KeptItems(items, _texts(arrays["lengths"], arrays["letters"].tobytes()))


def _parts(kept: KeptItems) -> list[tuple[str, Array]]:
    items = kept.items
    true = items.true.astype(np.int64)
    # Most predictions are right; stored as zeros they compress several times better.
    moved = np.where(items.predicted == items.true, 0, items.predicted.astype(np.int64) + 1)
    parts = [("true", true), ("moved", moved)]
    if items.groups is not None:
        parts.append(("groups", items.groups))
    if items.weights is not None:
        parts.append(("weights", np.asarray(items.weights, dtype=np.float64)))
    if kept.ids is not None:
        encoded = [text.encode() for text in kept.ids]
        parts.append(("lengths", np.fromiter(map(len, encoded), np.int64, len(encoded))))
        parts.append(("letters", np.frombuffer(b"".join(encoded), np.uint8)))
    return parts


def _packed(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype("<f8")
    return values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))


def _texts(lengths: Array, letters: bytes) -> tuple[str, ...]:
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return tuple(letters[a:b].decode() for a, b in pairwise([0, *ends]))
