"""Pack the items of an evaluation into few bytes, for later paired comparison."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.items import Items
from rprime.store import packed_arrays


def pack(items: Items) -> bytes:
    """Pack items."""
    return packed_arrays.pack(dict(_parts(items)))


def unpack(blob: bytes) -> Items:
    """Unpack items, codes in the smallest type that holds them."""
    arrays = packed_arrays.unpack(blob)
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
