"""Digests that identify test sets and evidence."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.evidence.coding import PIECE, counted
from rprime.evidence.columns import Identities
from rprime.evidence.item_ids import packed

if TYPE_CHECKING:
    from rprime.evidence.reader import Evidence


def test_set_fingerprint(labels: Sequence[str], true: Array, identities: Identities | None) -> str:
    """Identify a test set by the true labels of its items in their order.

    Parameters
    ----------
    labels
        Names of all classes.
    true
        Shape (n,), codes into the labels.
    identities
        The ids of the items, if they have some; the items are then in the order of their ids.

    Returns
    -------
    SHA-256 in hexadecimal. It depends neither on the order of the classes nor on classes that
    no item has.
    """
    present = np.flatnonzero(counted(true, len(labels)))
    # Python sorts by code point, which is the order of the UTF-8 bytes.
    order = sorted(present.tolist(), key=labels.__getitem__)
    codes = np.zeros(len(labels), dtype="<u4")
    codes[order] = np.arange(len(order))
    same = (codes == np.arange(len(labels))).all()
    digest = hashlib.sha256(b"rprime-fp1\n")
    digest.update(orjson.dumps([labels[i] for i in order]) + b"\n")
    room = np.empty(min(true.size, PIECE), "<u4")
    for start in range(0, true.size, PIECE):
        part = true[start : start + PIECE]
        room[: part.size] = part if same else np.take(codes, part)
        digest.update(room[: part.size].data)
    if identities is not None:
        for lengths, letters in identities.pieces():
            digest.update(packed(lengths, letters))
    return digest.hexdigest()


def evidence_digest(evidence: "Evidence") -> str:
    """Identify evidence by its content: the same for the same content in any encoding.

    Returns
    -------
    "sha256:" and the hexadecimal digest of the class names, the table, the items, the slices
    and the scores.
    """
    digest = hashlib.sha256(b"rprime-input1\n")
    digest.update(orjson.dumps(evidence.labels) + b"\n")
    table, items, scores = evidence.table, evidence.items, evidence.scores
    cells = table.cells
    parts = [("unclassified", table.unclassified), ("spurious", table.spurious)]
    parts.append(("counts", cells.counts))
    if not isinstance(cells, DenseCells):
        parts += [("rows", cells.rows), ("columns", cells.columns)]
    if items is not None:
        parts += [("true", items.true), ("predicted", items.predicted)]
        parts += [("weights", items.weights), ("groups", items.groups)]
    for name, values in parts:
        if values is not None:
            numbers = _packed(values)
            digest.update(f"{name} {numbers.dtype.str} {numbers.size}\n".encode())
            digest.update(numbers.data)
    if table.weighted and items is None:
        digest.update(b"weighted\n")
    if evidence.identities is not None:
        digest.update(b"ids\n")
        for lengths, letters in evidence.identities.pieces():
            digest.update(packed(lengths, letters))
    if evidence.slices is not None:
        tables = evidence.slices.tables
        digest.update(b"slices " + orjson.dumps(list(map(dict, evidence.slices.names))) + b"\n")
        digest.update(_packed(tables.cells.counts).data)
        digest.update(_packed(tables.support).data)
    if scores is not None:
        digest.update(f"scores {scores.shape[1]}\n".encode())
        digest.update(np.ascontiguousarray(scores, dtype="<f8").data)
    return f"sha256:{digest.hexdigest()}"


def _packed(values: Array) -> Array:
    """Convert non-negative numbers to the smallest little-endian type that holds them exactly."""
    largest = values.max(initial=0)
    if largest < _BEYOND_INTEGERS:
        kind = np.min_scalar_type(int(largest)).newbyteorder("<")
        packed = np.ascontiguousarray(values, dtype=kind)
        if values.dtype.kind == "u" or (packed == values).all():
            return packed
    return np.ascontiguousarray(values, dtype="<f8")


_BEYOND_INTEGERS = 2.0**63
