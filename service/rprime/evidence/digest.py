"""Digests that identify test sets and evidence, and the ids of items as bytes and numbers."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.cells import DenseCells
from rprime.core.items import PIECE
from rprime.evidence.coding import count_codes

if TYPE_CHECKING:
    from rprime.evidence.arrow_body import Identities
    from rprime.evidence.reader import Evidence


_BEYOND_INTEGERS = 2.0**63


_BYTES_A_LENGTH = 4


def test_set_fingerprint(
    labels: Sequence[str], true: Array, identities: "Identities | None"
) -> str:
    """Identify a test set by the true labels (n,) of its items, in their order or that of ids.

    Returns
    -------
    SHA-256 in hexadecimal. It depends neither on the order of the classes nor on classes that
    no item has.
    """
    present = np.flatnonzero(count_codes(true, len(labels)))
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
    for piece in () if identities is None else identities.pieces():
        digest.update(_packed_ids(*piece))
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
    parts += [("counts", cells.counts)]
    if not isinstance(cells, DenseCells):
        parts += [("rows", cells.rows), ("columns", cells.columns)]
    if items is not None:
        parts += [("true", items.true), ("predicted", items.predicted)]
        parts += [("weights", items.weights), ("groups", items.groups)]
    else:
        parts += [("class_items", table.items)]
    for name, values in parts:
        if values is not None:
            numbers = _packed(values)
            digest.update(f"{name} {numbers.dtype.str} {numbers.size}\n".encode())
            digest.update(numbers.data)
    if table.weighted and items is None:
        digest.update(b"weighted\n")
    if evidence.identities is not None:
        digest.update(b"ids\n")
        for piece in evidence.identities.pieces():
            digest.update(_packed_ids(*piece))
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


def _packed_ids(lengths: Array, letters: Array) -> bytes:
    """Return ids, each after its length in four little-endian bytes; see `Identities.pieces`."""
    starts = np.cumsum(lengths) - lengths
    places = starts + _BYTES_A_LENGTH * np.arange(len(lengths))
    places = (places[:, None] + np.arange(_BYTES_A_LENGTH)).ravel()
    result = np.empty(letters.size + places.size, np.uint8)
    is_letter = np.ones(result.size, bool)
    is_letter[places] = False
    result[places] = lengths.astype("<u4").view(np.uint8)
    result[is_letter] = letters
    return result.tobytes()


def numbers_of(identities: "Identities") -> Array:
    """Return a number of 64 bits for each id, the same for the same id in every request.

    Two of a million ids share a number with a probability of 3e-8.
    """
    return np.concatenate([_numbers(*piece) for piece in identities.pieces()])


def _numbers(lengths: Array, letters: Array) -> Array:
    """Sum the bytes of each id, each times a pseudorandom number of its position."""
    starts = np.cumsum(lengths) - lengths
    position = np.arange(letters.size) - np.repeat(starts, lengths)
    longest = int(lengths.max(initial=0))
    factors = _mixed(np.arange(longest + 1, dtype=np.uint64))
    products = np.append(letters.astype(np.uint64) * factors[position], np.uint64(0))
    sums = np.add.reduceat(products, starts) if len(starts) else np.zeros(0, np.uint64)
    return np.where(lengths > 0, sums, np.uint64(0)) + _mixed(lengths.astype(np.uint64))


def _mixed(numbers: Array) -> Array:
    """Scatter numbers over 64 bits (splitmix64, Steele, Lea, Flood 2014)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
