"""Pack named arrays into few bytes."""

from collections.abc import Mapping

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.store.compression import deflate, inflate

_LENGTH_BYTES = 4


def pack(arrays: Mapping[str, Array]) -> bytes:
    """Pack arrays: a zstd frame over a JSON header and the arrays one after another.

    Counts are packed in the smallest type that holds them, other numbers in their own.
    """
    packed = {name: _packed(values) for name, values in arrays.items()}
    header = orjson.dumps([[name, a.dtype.str, a.shape] for name, a in packed.items()])
    pieces = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    return deflate(b"".join([*pieces, *(values.tobytes() for values in packed.values())]))


def unpack(blob: bytes) -> dict[str, Array]:
    """Unpack arrays, each in the type in which it was packed."""
    data = inflate(blob)
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    arrays = {}
    for name, kind, shape in orjson.loads(data[_LENGTH_BYTES:start]):
        size = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, kind, size, start).reshape(shape)
        start += arrays[name].nbytes
    return arrays


def _packed(values: Array) -> Array:
    if values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder("<"))
    return values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
