"""Pages of a Parquet file, measured before pyarrow takes memory for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from rprime.core.naming import LONGEST_NAME
from rprime.evidence.columns import LABELS
from rprime.evidence.errors import TooLargeError, UnreadableBodyError, refuse
from rprime.evidence.names import RULE
from rprime.evidence.parquet_footer import Chunk
from rprime.evidence.thrift import I32, STRUCT, BrokenError, Fields, Reader, Shape

MOST_PAGES = 100_000
_WINDOWS = (512, 1 << 16, 1 << 20)
"""Bytes that are tried for a header: statistics of long strings make it longer."""
_LONGEST_LABEL = 4 * LONGEST_NAME + 8
"""Bytes of the longest name in UTF-8, with its length and its levels."""
_SLACK = 1 << 16
_MOST_FIELDS = 50
"""Of a header; it has no more than 25."""
_LEAST_VALUE = 2
"""Bytes of a value of a dictionary: floats of half precision have them, others more."""
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_DETAILS = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_2: (8, 4)}
"""Which field has the details of a page, and which of these has the encoding."""
_HEADER: Shape = {(1, I32): None, (2, I32): None, (3, I32): None} | {
    (member, STRUCT): {(1, I32): None, (encoding, I32): None}
    for member, encoding in _DETAILS.values()
}
_ENCODINGS = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 5: "DELTA_BINARY_PACKED"}
_ENCODINGS |= {8: "RLE_DICTIONARY", 9: "BYTE_STREAM_SPLIT"}
"""Those that give a value no more memory than a page has for it, or a fixed one."""
_DAMAGED = "A page of the Parquet file is damaged."


def largest_page(file: IO[bytes], chunks: Sequence[Chunk], most: int) -> int:
    """Measure all pages by their own headers, since those are what pyarrow goes by.

    Parameters
    ----------
    file
        Seekable.
    chunks
        Where the pages are.
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
    # Equal values in a row have no bytes of their own; a code of each is kept all the same.
    if sum(chunk.values for chunk in chunks) > most:
        raise TooLargeError(most)
    largest = total = 0
    for count, page in enumerate(_pages(file, chunks)):
        if count >= MOST_PAGES:
            raise UnreadableBodyError(f"The Parquet file has more than {MOST_PAGES} pages.")
        page.check()
        total += max(page.inflated, page.values)
        largest = max(largest, page.inflated)
        if total > most:
            raise TooLargeError(most)
    return largest


def _pages(file: IO[bytes], chunks: Sequence[Chunk]) -> Iterator["_Page"]:
    for chunk in chunks:
        for page in _chunk(file, chunk):
            page.check_names(chunk.column)
            yield page


def _chunk(file: IO[bytes], chunk: Chunk) -> Iterator["_Page"]:
    place, left = chunk.start, chunk.values
    while left > 0:
        page = _Page.at(file, place)
        yield page
        place += page.header + page.sent
        left -= page.values if page.kind != _DICTIONARY else 0
        # Before it reads a page, pyarrow takes memory for what its header says was sent.
        if left < 0 or place > chunk.end:
            raise UnreadableBodyError(_DAMAGED)


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
            reader = Reader(file.read(window), _MOST_FIELDS)
            try:
                fields = reader.struct(_HEADER)
                return cls._of(fields, reader.place)
            except IndexError:
                continue
            except (BrokenError, KeyError):
                raise UnreadableBodyError(_DAMAGED) from None
        raise UnreadableBodyError("A page of the Parquet file has no header.")

    @classmethod
    def _of(cls, fields: Fields, size: int) -> "_Page":
        kind = fields[1, I32]
        values = code = 0
        if kind in _DETAILS:
            member, encoding = _DETAILS[kind]
            details = fields[member, STRUCT]
            values, code = details[1, I32], details[encoding, I32]
        return cls(kind, fields[2, I32], fields[3, I32], values, code, size)

    def check(self) -> None:
        """Refuse what no bounded memory is enough for."""
        if min(self.inflated, self.sent, self.values) < 0 or (
            self.kind == _DICTIONARY and self.values * _LEAST_VALUE > self.inflated
        ):
            raise UnreadableBodyError(_DAMAGED)
        if self.encoding not in _ENCODINGS:
            known = ", ".join(_ENCODINGS.values())
            raise UnreadableBodyError(f"Encodings of Parquet that are read are: {known}.")

    def check_names(self, column: str) -> None:
        """Refuse labels that are too long for names of classes, before they are in memory."""
        if column in LABELS and self.inflated > _SLACK + self.values * _LONGEST_LABEL:
            raise refuse(f"/{column}", "class_name", RULE)
