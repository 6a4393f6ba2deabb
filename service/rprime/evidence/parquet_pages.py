"""Pages of a Parquet file, measured before pyarrow takes memory for them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from rprime.core.naming import LONGEST_NAME
from rprime.evidence.columns import LABELS
from rprime.evidence.faults import TooLargeError, UnreadableBodyError, refuse
from rprime.evidence.names import RULE

MOST_FOOTER = 4 << 20
"""Bytes of the metadata of a file: some ten thousand row groups."""
MOST_PAGES = 100_000
_WINDOWS = (512, 1 << 16, 1 << 20)
"""Bytes that are tried for a header: statistics of long strings make it longer."""
_LONGEST_LABEL = 4 * LONGEST_NAME + 8
"""Bytes of the longest name in UTF-8, with its length and its levels."""
_SLACK = 1 << 16
_TAIL = 8
_DEEPEST = 8
_LEAST_VALUE = 4
"""Bytes of a value of a dictionary: integers have them, strings their length."""
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_DETAILS = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_2: (8, 4)}
"""Which field has the details of a page, and which of these has the encoding."""
_ENCODINGS = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 5: "DELTA_BINARY_PACKED"}
_ENCODINGS |= {8: "RLE_DICTIONARY", 9: "BYTE_STREAM_SPLIT"}
"""Those that give a value no more memory than a page has for it, or a fixed one."""


def check_footer(file: IO[bytes]) -> None:
    """Refuse a file whose metadata are too large, before they are read.

    Raises
    ------
    UnreadableBodyError
        If they are.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL, 0))
    tail = file.read(_TAIL)
    if int.from_bytes(tail[:4], "little") > MOST_FOOTER:
        raise UnreadableBodyError("The Parquet file has too many row groups or columns.")
    file.seek(0)


def largest_page(file: IO[bytes], metadata: Any, most: int) -> int:
    """Measure all pages by their own headers, since those are what pyarrow goes by.

    Parameters
    ----------
    file
        Seekable.
    metadata
        Of the file, as pyarrow reads them; nothing in them need be true.
    most
        Bytes that all pages may have, inflated.

    Returns
    -------
    Bytes of the largest page, inflated.

    Raises
    ------
    UnreadableBodyError
        If there are too many, or one cannot be read in bounded memory.
    TooLargeError
        If they have more bytes.
    """
    largest = total = 0
    for count, page in enumerate(_pages(file, metadata)):
        if count >= MOST_PAGES:
            raise UnreadableBodyError(f"The Parquet file has more than {MOST_PAGES} pages.")
        page.check()
        # Equal values in a row have no bytes of their own; a code of each is kept all the same.
        total += max(page.inflated, page.values)
        largest = max(largest, page.inflated)
        if total > most:
            raise TooLargeError(most)
    return largest


def _pages(file: IO[bytes], metadata: Any) -> Iterator["_Page"]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            for page in _chunk(file, column):
                page.check_names(column.path_in_schema)
                yield page


def _chunk(file: IO[bytes], column: Any) -> Iterator["_Page"]:
    place = start = column.data_page_offset
    first = column.dictionary_page_offset
    if first is not None and 0 < first < start:
        place = start = first
    end, left = start + column.total_compressed_size, column.num_values
    while left > 0 and place < end:
        page = _Page.at(file, place)
        yield page
        place += page.header + page.sent
        left -= page.values if page.kind != _DICTIONARY else 0


@dataclass(frozen=True)
class _Page:
    """What the header of a page says (PageHeader of parquet.thrift), and how long that is."""

    kind: int
    inflated: int
    sent: int
    values: int
    encoding: int
    header: int

    @classmethod
    def at(cls, file: IO[bytes], place: int) -> "_Page":
        for window in _WINDOWS:
            file.seek(max(place, 0))
            reader = _Compact(file.read(window))
            try:
                fields = reader.fields()
            except IndexError:
                continue
            kind = fields.get(1, _DATA)
            member, encoding = _DETAILS.get(kind, (0, 0))
            details = reader.inner.get(member, {})
            sizes = (fields.get(2, 0), fields.get(3, 0), details.get(1, 0))
            return cls(kind, *sizes, details.get(encoding, 0), reader.place)
        raise UnreadableBodyError("A page of the Parquet file has no header.")

    def check(self) -> None:
        """Refuse what no bounded memory is enough for."""
        if min(self.inflated, self.sent, self.values) < 0 or (
            self.kind == _DICTIONARY and self.values * _LEAST_VALUE > self.inflated
        ):
            raise UnreadableBodyError("A page of the Parquet file is damaged.")
        if self.encoding not in _ENCODINGS:
            known = ", ".join(_ENCODINGS.values())
            raise UnreadableBodyError(f"Encodings of Parquet that are read are: {known}.")

    def check_names(self, column: str) -> None:
        """Refuse labels that are too long for names of classes, before they are in memory."""
        if column in LABELS and self.inflated > _SLACK + self.values * _LONGEST_LABEL:
            raise refuse(f"/{column}", "class_name", RULE)


class _Compact:
    """A struct in Thrift's compact protocol; an IndexError where the bytes end before it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0
        self.inner: dict[int, dict[int, int]] = {}

    def fields(self, depth: int = 0) -> dict[int, int]:
        """Read the integers of a struct by their numbers, and those of the structs in it."""
        if depth > _DEEPEST:
            raise UnreadableBodyError("A page of the Parquet file is damaged.")
        found: dict[int, int] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            if kind in _INTEGERS:
                found[number] = self._zigzag()
            elif kind == _STRUCT:
                fields = self.fields(depth + 1)
                if not depth:
                    self.inner[number] = fields
            else:
                self._skip(kind)
        return found

    def _skip(self, kind: int) -> None:
        if kind == _TEXT:
            length = self._varint()
            self.place += length
        elif kind in _FIXED:
            self.place += _FIXED[kind]
        else:
            raise UnreadableBodyError("A page of the Parquet file is damaged.")

    def _byte(self) -> int:
        byte = self._content[self.place]
        self.place += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 (the high bit says that more follows)
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


_INTEGERS, _TEXT, _STRUCT = {4, 5, 6}, 8, 12
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of true, false, a byte and a double."""
