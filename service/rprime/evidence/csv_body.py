"""CSV and its relatives, parsed by pyarrow block by block."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

from rprime.evidence.arrow_body import gather
from rprime.evidence.columns import COUNT, LABELS, LONGEST_LINE, Columns
from rprime.evidence.label_columns import Positions, Vocabulary
from rprime.evidence.numbers import raise_places
from rprime.evidence.pasted import read_printed
from rprime.evidence.scores import is_score
from rprime.schemas.document import unreadable

_DELIMITERS = ",\t;|"
"""The first of them that stands in the header separates the columns."""
_BOM = b"\xef\xbb\xbf"
_DECLARED = re.compile(rb'"?sep=([\t!#-/:-@[-`{-~])"?(\r\n|\n|\r)', re.IGNORECASE)
"""The first line by which Excel knows the delimiter."""
_LONGEST_BEGINNING = 4096
_LARGEST_TABLE, _MOST_ROWS = 1 << 23, 1 << 11
"""Bytes and lines of a matrix."""
_BYTES_A_CHARACTER = 24
"""What the cells of a matrix take while it is read, most of them with few digits."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How UTF-16 begins."""
_DECIMAL_COMMA = re.compile(r"\s*-?\d*,\d+\s*")
_NOT_UTF8 = (
    "Line {} of the CSV is not UTF-8: it may be Latin-1 or Windows-1252. "
    "Save the file as UTF-8, as by `iconv -f cp1252 -t utf-8`."
)


def read_csv(stream: IO[bytes], columns: Columns, _most: int) -> None:
    """Read CSV in UTF-8 with a header line; an empty field is missing.

    Commas separate the columns; where the header has none, tabs, semicolons or bars do. A first
    line such as `sep=;` declares the delimiter and is left out.

    Read blocks of lines: pyarrow's own stream reader may deadlock in its thread pool if it stops
    before the end, as after the first bad value.
    """
    head = _head(stream)
    if columns.may_be_table(head.names):
        head, text = _whole(head)
        if text is not None:
            columns.hold(_BYTES_A_CHARACTER * len(text))
            if columns.take_table(read_printed(text)):
                return
    places = columns.begin(head.names)
    # Inferred types may change: scores may begin with 0 and 1.
    types = dict.fromkeys(places, pa.string())
    for name in places:
        if name == "sample_weight" or is_score(name) or name in columns.cut or name == COUNT:
            types[name] = pa.float64()
        elif name in LABELS and isinstance(columns.codes, Positions):
            types[name] = pa.int64()
    layout = _Layout(head.delimiter, len(head.names), places, types)
    positions = {name: place for place, name in enumerate(places)}
    gather(columns, positions, pa.schema(types), layout.batches(head.rest, head.line))
    titles = {name: head.names[place] for name, place in places.items()}
    _refuse_repeated_header(columns, titles, head.line)


def _refuse_repeated_header(columns: Columns, titles: Mapping[str, str], line: int) -> None:
    """Refuse a header line among the items, as files that were joined have it."""
    pair = ("y_true", "y_pred")
    if not isinstance(columns.codes, Vocabulary) or not columns.labels.keys() >= set(pair):
        return
    codes = [columns.codes.code_of(titles[name]) for name in pair]
    if columns.codes.without in codes:
        return
    true, predicted = (columns.labels[name].values for name in pair)
    first = np.flatnonzero((true == codes[0]) & (predicted == codes[1]))[:1, None]
    detail = "This item repeats the header of the CSV, as joined files do: leave out line {}."
    for place in first:
        raise_places(first, "/y_true", "repeated_header", detail.format(line + place[0] + 1))


def line_number(stream: IO[bytes], item: int) -> int:
    """Return the line, from 1, of a CSV on which an item, from 0, begins; else the last line."""
    head = _head(stream)
    texts = (StringIO(block.decode("utf-8", "replace"), newline="") for block in head.rest)
    reader = csv.reader(chain.from_iterable(texts), delimiter=head.delimiter)
    begins = 0
    for fields in reader:
        if fields and item == 0:
            break
        item -= bool(fields)
        begins = reader.line_num
    return head.line + begins


class _Head(NamedTuple):
    """How a CSV begins.

    The rest begins with the end of the header line, which counts as a line of its own.
    """

    delimiter: str
    names: list[str]
    line: int
    rest: Iterator[bytes]
    text: bytes
    """The header line."""


def _whole(head: _Head) -> tuple[_Head, str | None]:
    """Return the text of a short CSV, from its header on; None of a long one, or of no UTF-8."""
    blocks, size, lines = [head.text], 0, 0
    for block in head.rest:
        blocks.append(block)
        size, lines = size + len(block), lines + _line_ends(block)
        if size > _LARGEST_TABLE or lines > _MOST_ROWS:
            return head._replace(rest=chain(blocks[1:], head.rest)), None
    try:
        text = b"".join(blocks).decode()
    except UnicodeDecodeError:
        text = None
    return head._replace(rest=iter(blocks[1:])), text


def _head(stream: IO[bytes]) -> _Head:
    blocks = whole_lines(stream)
    first = next(blocks, b"").removeprefix(_BOM)
    if first.startswith(_WIDE):
        raise unreadable("The CSV is UTF-16. Save it as UTF-8, as by `iconv -f utf-16 -t utf-8`.")
    if b"\0" in first[:_LONGEST_BEGINNING]:
        raise unreadable("The body is not text, so it is no CSV.")
    declared = _DECLARED.match(first)
    delimiter = declared[1].decode() if declared else ""
    lines = first[declared.end() if declared else 0 :].lstrip(b"\r\n")
    if not lines:
        raise unreadable("The CSV is empty; its first line names the columns.")
    line = 1 + _line_ends(first[: len(first) - len(lines)])
    end = min(lines.find(mark) % (len(lines) + 1) for mark in (b"\n", b"\r"))
    delimiter, names = _header(lines[:end], line, delimiter or _DELIMITERS)
    return _Head(delimiter, names, line, chain([lines[end:]], blocks), lines[:end])


@dataclass(frozen=True)
class _Layout:
    """How the lines of a CSV are parsed: positions and types of the columns to read, by name."""

    delimiter: str
    width: int
    columns: dict[str, int]
    types: dict[str, Any]

    def batches(self, blocks: Iterable[bytes], line: int) -> Iterator[Any]:
        """Parse blocks of whole lines, the first of them from this line on."""
        for block in blocks:
            if block.lstrip(b"\r\n"):
                yield from self._parsed(block, line).to_batches()
            line += _line_ends(block)

    def _parsed(self, block: bytes, line: int) -> Any:
        names = [str(place) for place in range(self.width)]
        for name, place in self.columns.items():
            names[place] = name
        whole = len(block) + 1
        reading = ReadOptions(use_threads=False, block_size=whole, column_names=names)
        parsing = ParseOptions(delimiter=self.delimiter)
        converting = ConvertOptions(
            check_utf8=not block.isascii(),
            column_types=self.types,
            include_columns=list(self.columns),
            null_values=[""],
            strings_can_be_null=True,
        )
        try:
            return pyarrow.csv.read_csv(pa.BufferReader(block), reading, parsing, converting)
        except (pa.ArrowInvalid, pa.ArrowKeyError):
            fault = self._fault(block, line)
            raise unreadable(fault or "The body is not a valid CSV in UTF-8.") from None

    def _fault(self, block: bytes, line: int) -> str | None:
        """Say on which line pyarrow stopped, and why; never repeat the line."""
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            return _NOT_UTF8.format(line + _line_ends(block[: error.start]))
        numbers = [place for name, place in self.columns.items() if self.types[name] != pa.string()]
        reader = csv.reader(StringIO(text, newline=""), delimiter=self.delimiter, strict=True)
        last = 0
        try:
            for fields in reader:
                here = f"Line {line + reader.line_num - 1} of the CSV"
                if fields and len(fields) != self.width:
                    number = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
                    return f"{here} has {number}, the header {self.width}."
                wrong = [place for place in numbers if fields and not _is_number(fields[place])]
                if wrong:
                    is_comma = _DECIMAL_COMMA.fullmatch(fields[wrong[0]])
                    hint = " Write a point in place of the decimal comma." if is_comma else ""
                    return f"{here} has no number in column {wrong[0] + 1}.{hint}"
                last = reader.line_num
        except csv.Error:
            return f"Line {line + last} of the CSV is not valid: see its quotation marks."
        return None


def _header(head: bytes, line: int, delimiters: str) -> tuple[str, list[str]]:
    """Return the first of the delimiters that is there, and the names of the columns."""
    try:
        text = head.decode()
        delimiter = next((sign for sign in delimiters if sign in text), delimiters[0])
        names = next(csv.reader([text], delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise unreadable(_NOT_UTF8.format(line)) from None
    except csv.Error:
        raise unreadable("The header of the CSV is not valid.") from None
    return delimiter, [name.strip() for name in names]


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) is not None
    except ValueError:
        return False


def _line_ends(lines: bytes) -> int:
    signs = np.frombuffer(lines, np.uint8)  # faster than `bytes.count`
    return int(np.count_nonzero(signs == ord("\n")) or np.count_nonzero(signs == ord("\r")))


def whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Split a stream after line ends; the last line may lack one."""
    rest = b""
    while block := _block(stream):
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if end:
            yield b"".join((rest, memoryview(block)[:end]))
            rest = b""
        rest += block[end:]
        if len(rest) >= LONGEST_LINE:
            raise unreadable(f"A line of the body is longer than {LONGEST_LINE} bytes.")
    if rest:
        yield rest


def _block(stream: IO[bytes]) -> bytes:
    """Read a full block, shorter only at the end; one read of a stream may return less."""
    pieces: list[bytes] = []
    left = LONGEST_LINE
    while left and (piece := stream.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
