"""The metadata of a Parquet file: read here, and written anew for pyarrow.

pyarrow ends the whole process at metadata that contradict themselves, so none that were sent get
to it: only those that say where the pages of plain columns are, in a file of nothing else.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rprime.evidence.errors import UnreadableBodyError
from rprime.evidence.thrift import (
    I32,
    I64,
    LIST,
    STRUCT,
    TEXT,
    BrokenError,
    Fields,
    Reader,
    Shape,
    Whole,
    packed,
)

MOST_BYTES = 1 << 20
"""Of the metadata: those of some thousand row groups."""
_MOST_FIELDS = 1 << 18
MOST_COLUMNS = 5000
"""More than are known; pyarrow takes 3 KiB for each."""
_MARK = b"PAR1"
_TAIL = 8
_TEXTS = 6
"""BYTE_ARRAY, the only type of strings."""

# The structs of parquet.thrift, as far as they are of use.
_SCHEMA, _ROWS, _GROUPS = (2, LIST), (3, I64), (4, LIST)
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN = (1, I32), (2, I32), (3, I32), (4, TEXT), (5, I32)
_CONVERTED, _SCALE, _PRECISION, _LOGICAL = (6, I32), (7, I32), (8, I32), (10, STRUCT)
_ELEMENT: Shape = {
    **dict.fromkeys((_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN)),
    **dict.fromkeys((_CONVERTED, _SCALE, _PRECISION)),
    _LOGICAL: Whole(),
}
_CHUNKS, _CHUNK = (1, LIST), (3, STRUCT)
_CODEC, _VALUES, _SENT = (4, I32), (5, I64), (7, I64)
_DATA, _DICTIONARY = (9, I64), (11, I64)
_META: Shape = dict.fromkeys((_TYPE, _CODEC, _VALUES, _SENT, _DATA, _DICTIONARY))
_FILE: Shape = {
    _SCHEMA: _ELEMENT,
    _ROWS: None,
    _GROUPS: {_CHUNKS: {_CHUNK: _META}, _ROWS: None},
}
_REQUIRED, _OPTIONAL = 0, 1
_TOO_MANY = "The Parquet file has too many row groups or columns."


@dataclass(frozen=True)
class Chunk:
    """The pages of a column in a row group.

    Parameters
    ----------
    column
        Its name.
    start, end
        Where they stand.
    values
        How many they have together.
    """

    column: str
    start: int
    end: int
    values: int


@dataclass(frozen=True)
class Footer:
    """What is to be known of a file before its pages are read.

    Parameters
    ----------
    chunks
        In the order of the file.
    texts
        The columns that may have strings.
    content
        A file of the same metadata, without pages.
    """

    chunks: list[Chunk]
    texts: list[str]
    content: bytes

    @classmethod
    def of(cls, file: IO[bytes]) -> "Footer":
        """Read the metadata of a file.

        Raises
        ------
        UnreadableBodyError
            If there are none, more than are read, or such that contradict themselves.
        """
        try:
            return _footer(Reader(_content(file), _MOST_FIELDS).struct(_FILE))
        except UnreadableBodyError:
            raise
        except (ValueError, IndexError, KeyError):
            raise UnreadableBodyError("The metadata of the Parquet file are damaged.") from None


def _content(file: IO[bytes]) -> bytes:
    end = file.seek(0, os.SEEK_END) - _TAIL
    file.seek(max(end, 0))
    tail = file.read(_TAIL)
    size = int.from_bytes(tail[:4], "little")
    if end < len(_MARK) + size or not tail.endswith(_MARK):
        raise UnreadableBodyError("The body is no valid Parquet file.")
    if size > MOST_BYTES:
        raise UnreadableBodyError(_TOO_MANY)
    file.seek(end - size)
    return file.read(size)


def _footer(found: Fields) -> Footer:
    root, *columns = found[_SCHEMA]
    if len(columns) > MOST_COLUMNS:
        raise UnreadableBodyError(_TOO_MANY)
    if root[_CHILDREN] != len(columns) or any(map(_is_nested, columns)):
        detail = "Only plain columns of a Parquet file are read, no lists or structs."
        raise UnreadableBodyError(detail)
    groups = found[_GROUPS]
    if found[_ROWS] != sum(group[_ROWS] for group in groups):
        raise BrokenError
    rewritten = {
        (1, I32): 2,
        _SCHEMA: [{_NAME: b"schema", _CHILDREN: len(columns)}, *columns],
        _ROWS: found[_ROWS],
        _GROUPS: [_group(group, columns) for group in groups],
    }
    metadata = packed(rewritten)
    content = _MARK + metadata + len(metadata).to_bytes(4, "little") + _MARK
    texts = [column[_NAME].decode() for column in columns if column[_TYPE] == _TEXTS]
    return Footer(list(_chunks(groups, columns)), texts, content)


def _is_nested(column: Fields) -> bool:
    return bool(column.pop(_CHILDREN, 0)) or column[_REPETITION] not in {_REQUIRED, _OPTIONAL}


def _group(group: Fields, columns: list[Fields]) -> Fields:
    pairs = zip(group[_CHUNKS], columns, strict=True)
    chunks = [_chunk(chunk[_CHUNK], column, group[_ROWS]) for chunk, column in pairs]
    return {_CHUNKS: chunks, (2, I64): 0, _ROWS: group[_ROWS]}


def _chunk(meta: Fields, column: Fields, rows: int) -> Fields:
    if meta[_TYPE] != column[_TYPE] or meta[_VALUES] != rows or min(rows, meta[_SENT]) < 0:
        raise BrokenError
    written: Fields = {
        _TYPE: meta[_TYPE],
        (2, LIST): [],
        (3, LIST): [column[_NAME]],
        _CODEC: meta[_CODEC],
        _VALUES: rows,
        (6, I64): 0,
        _SENT: meta[_SENT],
        _DATA: meta[_DATA],
    }
    if _DICTIONARY in meta:
        written[_DICTIONARY] = meta[_DICTIONARY]
    return {(2, I64): 0, _CHUNK: written}


def _chunks(groups: list[Fields], columns: list[Fields]) -> Iterator[Chunk]:
    names = [column[_NAME].decode() for column in columns]
    for group in groups:
        for name, chunk in zip(names, group[_CHUNKS], strict=True):
            meta = chunk[_CHUNK]
            start, first = meta[_DATA], meta.get(_DICTIONARY, 0)
            start = first if 0 < first < start else start
            yield Chunk(name, start, start + meta[_SENT], meta[_VALUES])
