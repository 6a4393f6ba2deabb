"""The registry of the column formats of bodies and files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from io import RawIOBase
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from rprime.evidence.columns import BaselineColumns, Columns, Hold, in_baseline
from rprime.evidence.npz_body import read_npz
from rprime.problems.problem import Problem, Violation, invalid
from rprime.schemas.document import Document, packed, parse, unreadable
from rprime.settings import Limits

Kind = Literal["csv", "jsonl", "arrow", "parquet", "npz"]
_PIECE = 1 << 20
_MAGIC_BYTES = 8
_FOREIGN = {
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF",
    b"\x89HDF": "an HDF5 file",
    b"SQLite": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "a file of an old office program",
    b"RDX": "a file of R",
    b"\x80\x03": "a pickle, which is never read",
    b"\x80\x04": "a pickle, which is never read",
    b"\x80\x05": "a pickle, which is never read",
    b"\x93NUMPY": "a single array; `numpy.savez` gives each array its name",
}
"""What no reader takes, by its first bytes."""
_SAVE = "Save the predictions, or the confusion matrix, as CSV."
_FILES = {b"ARROW1\0\0": "an Arrow IPC file (Feather V2)", b"FEA1\0\0\0\0": "a Feather V1 file"}
"""What is sent in place of an Arrow IPC stream, by its first bytes, which begin no other format."""


@dataclass(frozen=True, kw_only=True)
class BodyFormat:
    """A format of columns."""

    title: str
    media_type: str
    suffixes: tuple[str, ...]
    read: Callable[[IO[bytes], Columns, int], None]
    """Reads a body into columns; its last parameter limits the bytes."""
    is_spooled: bool = False
    """Whether reading begins at the end of the body, which then needs a file."""
    has_types: bool = True
    """Whether integers differ from strings."""
    has_matrix: bool = False
    """Whether one array can hold all scores."""
    begins: tuple[bytes, ...] = ()
    """The first bytes that identify the format; CSV and JSON lines have none."""


def _read_by_arrow(kind: Kind, body: IO[bytes], columns: Columns, most: int) -> None:
    """Read a format by pyarrow; its errors become those of the body."""
    import pyarrow as pa  # noqa: PLC0415 (it takes time to import)

    from rprime.evidence import arrow_body, csv_body, jsonl_body  # noqa: PLC0415 (they import it)

    reading: dict[str, tuple[Callable[[IO[bytes], Columns, int], None], str]] = {
        "csv": (csv_body.read_csv, "CSV in UTF-8"),
        "jsonl": (jsonl_body.read_jsonl, "body of JSON lines"),
        "arrow": (arrow_body.read_stream, "Arrow IPC stream"),
        "parquet": (arrow_body.read_parquet, "Parquet file"),
    }
    read, what = reading[kind]
    try:
        read(body, columns, most)
    except MemoryError:  # pyarrow's own error is one, too, but is no fault of the format
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:  # Unicode: names of columns
        # Errors of Arrow have no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise unreadable(f"The body is not a valid {what}.") from None


FORMATS: Mapping[Kind, BodyFormat] = {
    "csv": BodyFormat(
        title="CSV",
        media_type="text/csv",
        suffixes=(".csv", ".tsv"),
        read=partial(_read_by_arrow, "csv"),
        has_types=False,
    ),
    "jsonl": BodyFormat(
        title="JSON lines",
        media_type="application/x-ndjson",
        suffixes=(".jsonl", ".ndjson"),
        read=partial(_read_by_arrow, "jsonl"),
    ),
    "arrow": BodyFormat(
        title="Arrow",
        media_type="application/vnd.apache.arrow.stream",
        suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
        read=partial(_read_by_arrow, "arrow"),
        begins=(b"\xff\xff\xff\xff", b"ARROW1"),
    ),
    "parquet": BodyFormat(
        title="Parquet",
        media_type="application/vnd.apache.parquet",
        suffixes=(".parquet", ".pq"),
        read=partial(_read_by_arrow, "parquet"),
        is_spooled=True,
        begins=(b"PAR1",),
    ),
    "npz": BodyFormat(
        title="NPZ",
        media_type="application/x-npz",
        suffixes=(".npz",),
        read=read_npz,
        is_spooled=True,
        has_matrix=True,
        begins=(b"PK\x03\x04",),
    ),
}
MEDIA_TYPES: Mapping[str, Kind] = {form.media_type: kind for kind, form in FORMATS.items()}
SUFFIXES: Mapping[str, Kind] = {
    suffix: kind for kind, form in FORMATS.items() for suffix in form.suffixes
}


def read_columns(
    kind: Kind,
    body: IO[bytes],
    request: bytes,
    limits: Limits,
    hold: Hold | None = None,
    *,
    baseline: tuple[Kind, IO[bytes]] | None = None,
    measured: bool = False,
) -> Document:
    """Read the columns of a body while it arrives; see `Columns`.

    The body need not be seekable: formats that seek are copied into a temporary file first. The
    request has the other members, a JSON object; b"" for none. The baseline is a second body: other
    predictions for the same items, or evidence of its own.

    Raises
    ------
    Problem
        400 if the body does not have that format, 413 if it is too large, 422 if the columns cannot
        be evaluated.
    """
    # Predictions alone share the labels of the first body.
    kinds = {kind} if baseline is None else {kind, baseline[0]}
    untyped, matrix = not all(FORMATS[name].has_types for name in kinds), FORMATS[kind].has_matrix
    document, most = _members(request, limits), limits.sparse_classes
    columns = Columns(document, most, hold, untyped=untyped, matrix=matrix, measured=measured)
    _read(kind, body, columns, limits)
    if baseline is None:
        return columns.document()
    form = FORMATS[baseline[0]]
    other = BaselineColumns(columns, untyped=not form.has_types, matrix=form.has_matrix)
    with in_baseline():
        _read(*baseline, other, limits)
    return other.document()


def _members(request: bytes, limits: Limits) -> Document:
    """Parse the query parameter with the members that accompany columns."""
    try:
        return parse(request or b"{}", limits.json_depth)
    except Problem as problem:
        violations = problem.errors or [Violation("", "not_json", problem.detail)]
        raise invalid(
            replace(violation, pointer="/query/request", detail=_of_request(violation.detail))
            for violation in violations
        ) from None


def _of_request(detail: str) -> str:
    """Say of the parameter what was said of a body."""
    return re.sub("[Tt]he body", "`request`", detail).partition(" A table")[0]


def read_members(
    kind: Kind, body: IO[bytes], limits: Limits, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Read evidence, or predictions alone, as the members of a JSON request.

    The request says which columns are read, and which of them are cut: `columns`, `slice_cuts`.

    Raises
    ------
    Problem
        As `read_columns`; also if the items have ids, which JSON cannot hold.
    """
    form = FORMATS[kind]
    untyped = not form.has_types
    first = Columns(Document(dict(request)), limits.sparse_classes, None, untyped=untyped)
    columns = BaselineColumns(first, untyped=untyped, matrix=form.has_matrix)
    _read(kind, body, columns, limits)
    return columns.members()


def _read(kind: Kind, body: IO[bytes], columns: Columns, limits: Limits) -> None:
    form, most = FORMATS[kind], limits.other_body_bytes
    beginning = bytes(body.read(_MAGIC_BYTES))
    if beginning in _FILES:
        raise unreadable(
            f"The body is {_FILES[beginning]}. Send an Arrow IPC stream as "
            f"{FORMATS['arrow'].media_type}, as by pyarrow.ipc.new_stream or polars' "
            "write_ipc_stream."
        )
    if (fault := packed(beginning)) is not None:
        raise unreadable(fault)
    what = next((what for sign, what in _FOREIGN.items() if beginning.startswith(sign)), None)
    if what is not None:
        raise unreadable(f"The body is {what}. {_SAVE}")
    if body.seekable():
        body.seek(0)
        form.read(body, columns, most)
        return
    stream: Any = _Begun(beginning, body)
    if not form.is_spooled:
        form.read(stream, columns, most)
        return
    with TemporaryFile() as file:
        while piece := stream.read(_PIECE):
            file.write(piece)
        file.seek(0)
        form.read(file, columns, most)


class _Begun(RawIOBase):
    """A stream whose first bytes were read already, and are read again."""

    def __init__(self, beginning: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._beginning = beginning
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if not self._beginning:
            return self._rest.read(size)
        content = self._beginning if size < 0 else self._beginning[:size]
        self._beginning = self._beginning[len(content) :]
        return content + self._rest.read(size if size < 0 else size - len(content))
