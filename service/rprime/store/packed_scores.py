"""Pack the summary of the scores of an evaluation into few bytes, to draw it later."""

import numpy as np

from rprime.core.arrays import Array
from rprime.core.scores.summary import ScoreSummary
from rprime.store import packed_arrays

_SHORT = ("threshold", "edges")
"""Seven digits are enough to draw a score."""


def pack(summary: ScoreSummary) -> bytes:
    """Pack a summary; thresholds are rounded to seven digits."""
    return packed_arrays.pack({name: _smallest(name, v) for name, v in vars(summary).items()})


def unpack(blob: bytes) -> ScoreSummary:
    """Unpack a summary."""
    arrays = packed_arrays.unpack(blob)
    whole = ("classes", "sizes")
    return ScoreSummary(
        **{n: v.astype(np.int64 if n in whole else np.float64) for n, v in arrays.items()}
    )


def _smallest(name: str, values: Array) -> Array:
    if name in _SHORT:
        return values.astype(np.float32)
    whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    return values.astype(np.int64) if whole and (values >= 0).all() else values
