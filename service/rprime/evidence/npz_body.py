"""Read NPZ archives of numpy arrays piece by piece, never unpickling."""

import os
import sys
import zipfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from struct import Struct
from tokenize import TokenError
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from rprime.core.arrays import Array
from rprime.core.items import PIECE
from rprime.core.quantities import plural
from rprime.evidence.columns import COUNT, MATRIX, Columns, Hold, columns_too_large
from rprime.evidence.label_columns import BOOLEANS, Names, Piece
from rprime.evidence.scores import is_score
from rprime.problems.problem import refuse
from rprime.schemas.document import unreadable

if TYPE_CHECKING:
    from rprime.evidence.arrow_body import Identities

_SUFFIX = ".npy"
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_END = Struct("<4s4H2LH")
_END_MARK = b"PK\5\6"
_LARGE_MARK, _LARGE_SIZE = b"PK\6\7", 20
"""Size of the locator before the end of an archive of more than 4 GiB or 65 535 members."""
_NOT_PLAIN = "The body is not an archive of plain arrays."
_UNNAMED = (
    "The arrays have no names: `numpy.savez(file, y_true=..., y_pred=...)` gives them. The command "
    "also reads `numpy.savez(file, confusion_matrix=...)`."
)
_LONGEST_TAIL = _END.size + (1 << 16)
MOST_DIRECTORY = 1 << 20
_LONGEST = 512
"""Bytes of a string; a class name has at most 128 characters."""
# Encrypted members raise a RuntimeError, unknown flags a NotImplementedError.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeError)
# The header is a Python literal: these are the errors of its tokenizer, parser and evaluation.
_NO_HEADER = (ValueError, SyntaxError, TokenError, TypeError, MemoryError, RecursionError)


def read_npz(file: IO[bytes], columns: Columns, most: int) -> None:
    """Read an archive of arrays of equal size: one-dimensional, but for scores of all classes."""
    _check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            _read(archive, columns, most)
    except _BROKEN:
        raise unreadable(_NOT_PLAIN) from None


def _check_directory(file: IO[bytes]) -> None:
    """Refuse an archive of too many members before building an object for each."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _LONGEST_TAIL, 0))
    tail = file.read()
    end = len(tail) - _END.size
    if not tail.startswith(_END_MARK, max(end, 0)):
        end = tail.rfind(_END_MARK)
    if end < 0 or len(tail) < end + _END.size:
        return  # not an archive
    large = tail.startswith(_LARGE_MARK, max(end - _LARGE_SIZE, 0))
    if large or _END.unpack_from(tail, end)[5] > MOST_DIRECTORY:
        raise unreadable("The archive has more members than there are columns.")


def _read(archive: zipfile.ZipFile, columns: Columns, most: int) -> None:
    entries = archive.infolist()
    if not any(member.filename.endswith(_SUFFIX) for member in entries):
        detail = "The archive has no arrays of numpy. Unpack a ZIP file; save a spreadsheet as CSV."
        raise unreadable(detail)
    if entries[0].filename == "arr_0.npy":
        raise unreadable(_UNNAMED)
    places = columns.begin([member.filename.removesuffix(_SUFFIX) for member in entries])
    members = {name: entries[place] for name, place in places.items()}
    # No more is read than the directory says, so zip bombs have no effect.
    if sum(member.file_size for member in members.values()) > most:
        raise columns_too_large(most)
    # A directory can also point before the beginning of the file.
    readable = all(member.compress_type in _METHODS for member in members.values())
    if not readable or any(member.header_offset < 0 for member in members.values()):
        raise unreadable("The body is not an archive as numpy writes it.")
    with ExitStack() as opened:
        arrays = {
            name: _Member.of(opened.enter_context(archive.open(members[name])), name)
            for name in members
        }
        size = arrays.get("y_true", next(iter(arrays.values()))).size
        for name, array in arrays.items():
            if array.size != size:
                length = plural(array.size, "item")
                detail = f"It has {length} and `y_true` {size:,}; each item needs both."
                raise refuse(f"/{name}", "wrong_length", detail)
        scores = arrays.pop(MATRIX, None)
        if scores is not None:
            scores.fill(columns.matrix(scores.size, scores.width))
        if (ids := arrays.pop("item_id", None)) is not None:
            columns.ids = _read_ids(ids, columns.hold)
        for start in range(0, size, PIECE):
            rows = min(PIECE, size - start)
            columns.add({name: array.piece(rows) for name, array in arrays.items()})


@dataclass(frozen=True)
class _Member:
    """An array in the archive, its header read."""

    stream: IO[bytes]
    kind: "np.dtype[np.generic]"
    size: int
    width: int = 1
    by_columns: bool = False

    @classmethod
    def of(cls, stream: IO[bytes], name: str) -> "_Member":
        try:
            # Other versions are for headers of more than 64 KiB.
            if npy.read_magic(stream) != (1, 0):
                raise ValueError  # as numpy does without a header
            shape, by_columns, kind = npy.read_array_header_1_0(stream)
            if min(shape, default=0) < 0:
                raise ValueError
        except _NO_HEADER:
            raise unreadable(_NOT_PLAIN) from None
        pointer = f"/{MATRIX if is_score(name) else name}"
        numeric = name in {"sample_weight", COUNT, MATRIX} or is_score(name)
        is_label = kind.kind == "b" or (kind.kind == "U" and 0 < kind.itemsize <= _LONGEST)
        if kind.kind not in "iuf" and (numeric or not is_label):
            what = "numbers" if numeric else "integers, strings or booleans"
            detail = f"The array must hold {what}; pickles are never read."
            raise refuse(pointer, "column_type", detail)
        what = "one dimension"
        if name == MATRIX:
            if len(shape) == len(("items", "classes")) and shape[1]:
                return cls(stream, kind, shape[0], shape[1], by_columns=by_columns)
            what = "a row for each item, a column for each class"
        if len(shape) != 1:
            detail = f"The array must have {what}; it has shape {shape}."
            raise refuse(pointer, "wrong_shape", detail)
        return cls(stream, kind, shape[0])

    def piece(self, rows: int) -> Piece:
        """Read the next items."""
        values = self.read(rows)
        if self.kind.kind == "b":
            return Piece(values.view(np.uint8), names=BOOLEANS)
        if self.kind.kind != "U":
            return Piece(values.astype(self.kind.newbyteorder("="), copy=False))
        return _strings(values)

    def fill(self, scores: Array) -> None:
        """Read all items into an array piece by piece, in row or column order as stored."""
        for part in scores.T if self.by_columns else (scores.reshape(-1),):
            for start in range(0, part.size, PIECE):
                room = part[start : start + PIECE]
                room[:] = self.read(room.size)

    def read(self, size: int) -> Array:
        """Read the next elements."""
        length = size * self.kind.itemsize
        content = self.stream.read(length)
        if len(content) < length:
            raise EOFError
        return np.frombuffer(content, self.kind)


def _strings(values: Array) -> Piece:
    """Code strings without making a Python object of each."""
    import pyarrow as pa  # noqa: PLC0415 (it takes time to import)

    kind = pa.binary(values.itemsize)
    column = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
    coded = column.dictionary_encode()
    labels = np.frombuffer(coded.dictionary.buffers()[1], values.dtype, len(coded.dictionary))
    _check_characters(labels)
    positions = np.frombuffer(coded.indices.buffers()[1], np.int32, len(values))
    return Piece(positions, names=Names(labels.tolist()))


def _check_characters(texts: Array) -> None:
    """Refuse numbers that are no characters, of which Python makes no string."""
    numbers = texts.view(np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder))
    if numbers.max() > sys.maxunicode:
        raise unreadable("The archive has strings that are not Unicode.")


def _read_ids(member: _Member, hold: Hold) -> "Identities":
    """Read the ids of the items; they are kept by Arrow in fewer bytes than by numpy."""
    import pyarrow as pa  # noqa: PLC0415 (it takes time to import)

    from rprime.evidence.arrow_body import Identities  # noqa: PLC0415 (it imports pyarrow)

    if member.kind.kind == "f":
        raise refuse("/item_id", "column_type", "An id is an integer or a string.")
    ids = Identities(hold)
    for start in range(0, member.size, PIECE):
        values = member.read(min(PIECE, member.size - start))
        if values.dtype.kind == "U":
            _check_characters(values)
        texts = [str(value).encode() for value in values.tolist()]
        ends = np.cumsum([0, *map(len, texts)])
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        ids.add(pa.Array.from_buffers(pa.large_string(), len(texts), buffers))
    return ids
