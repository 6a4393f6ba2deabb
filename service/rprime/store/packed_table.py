"""Pack a confusion table into few bytes, and unpack many of them as one stack."""

import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rprime.core.arrays import Array
from rprime.core.cells import SparseCells
from rprime.core.table import ConfusionTable
from rprime.store.compression import deflate, inflate, sealed, unsealed

# The form, byte by byte, is fixed by the files that hold it:
#   0     type of the counts: position in _TYPES; +8 if the cells are coordinates
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
_HEAD = 2
_SPARSE_HEAD = struct.Struct("<BI")
# Below this size, a frame saves little disk and doubles the time to read a history.
_WORTH_DEFLATING = 512


def pack(table: ConfusionTable, identifier: str) -> bytes:
    """Pack the table of an evaluation; `unpack` returns an equal one, dense or sparse as before."""
    vectors = [v for v in (table.unclassified, table.spurious) if v is not None]
    counts = np.concatenate([np.ravel(table.cells.counts), *vectors])
    kind = _smallest(counts)
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


def most_bytes(stack: ConfusionTable) -> int:
    """Return how many bytes the counts of a dense stack take at most, each table packed alone."""
    vectors = [v for v in (stack.unclassified, stack.spurious) if v is not None]
    counts = np.concatenate([np.ravel(part) for part in (stack.cells.counts, *vectors)])
    return counts.size * _TYPES[_smallest(counts)].itemsize


def unpack(blob: bytes, identifier: str, k: int) -> ConfusionTable:
    """Unpack the table of an evaluation over k classes."""
    return unpack_stack([blob], [identifier], k)[0]


def is_sparse(blob: bytes) -> bool:
    """Whether packed cells are coordinates."""
    return bool(blob[0] & _SPARSE)


def is_weighted(blob: bytes) -> bool:
    """Whether packed counts are weighted."""
    return bool(blob[1] & _WEIGHTED)


def unpack_stack(blobs: Sequence[bytes], identifiers: Sequence[str], k: int) -> ConfusionTable:
    """Unpack many tables over k classes as one stack.

    Parameters
    ----------
    blobs
        Results of `pack`; all dense or all sparse, all weighted or none.

    Raises
    ------
    ValueError
        If a checksum differs: a table has changed, or belongs to another evaluation.
    """
    blobs = list(map(unsealed, blobs, identifiers))
    weighted = is_weighted(blobs[0])
    if is_sparse(blobs[0]):
        return _sparse_stack(blobs, k, weighted=weighted)
    values = np.zeros((len(blobs), k * k + 2 * k))
    for (kind, flags, _), places in _alike(blobs).items():
        rows = _matrix([blobs[i] for i in places], flags).view(_TYPES[kind])
        target = slice(None) if len(places) == len(blobs) else np.array(places)
        values[target, : k * k] = rows[:, : k * k]
        if flags & _UNCLASSIFIED:
            values[target, k * k : k * k + k] = rows[:, k * k : k * k + k]
        if flags & _SPURIOUS:
            values[target, k * k + k :] = rows[:, -k:]
    cells, unclassified, spurious = np.split(values, (k * k, k * k + k), axis=1)
    return ConfusionTable.dense(cells.reshape(-1, k, k), unclassified, spurious, weighted=weighted)


def _smallest(counts: Array) -> int:
    if not counts.size:
        return 0
    if (counts != np.rint(counts)).any():
        return len(_TYPES) - 1
    return bisect_left(_LARGEST, counts.max())


def _steps(cells: SparseCells) -> bytes:
    codes = cells.rows.astype(np.int64) * cells.k + cells.columns
    steps = np.diff(codes, prepend=0)
    kind = _smallest(steps)
    return _SPARSE_HEAD.pack(kind, steps.size) + steps.astype(_TYPES[kind]).tobytes()


def _alike(blobs: Sequence[bytes]) -> dict[tuple[int, int, int], list[int]]:
    """Group blobs that can be read as the rows of one matrix."""
    groups = defaultdict(list)
    for place, blob in enumerate(blobs):
        flags = blob[1]
        groups[blob[0], flags, 0 if flags & _DEFLATED else len(blob)].append(place)
    return groups


def _matrix(blobs: list[bytes], flags: int) -> Array:
    """Return the bodies of blobs of one length as the rows of a matrix of bytes."""
    if flags & _DEFLATED:
        blobs = [inflate(blob[_HEAD:]) for blob in blobs]
    rows = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), -1)
    return rows if flags & _DEFLATED else np.ascontiguousarray(rows[:, _HEAD:])


def _sparse_stack(blobs: Sequence[bytes], k: int, *, weighted: bool) -> ConfusionTable:
    tables = [_coordinates(blob) for blob in blobs]
    codes = np.unique(np.concatenate([found for found, _, _ in tables]))
    counts = np.zeros((len(blobs), codes.size))
    omissions = np.zeros((2, len(blobs), k))
    for i, (found, values, flags) in enumerate(tables):
        counts[i, np.searchsorted(codes, found)] = values[: found.size]
        rest = values[found.size :]
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
