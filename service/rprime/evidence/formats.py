"""The registry of the column formats of bodies and files."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from rprime.evidence.baseline_columns import BaselineColumns
from rprime.evidence.columns import Columns, Hold
from rprime.evidence.npz_body import read_npz
from rprime.problems.problem import Problem
from rprime.schemas.document import Document, parse
from rprime.settings import Limits

Kind = Literal["csv", "arrow", "parquet", "npz"]
_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BodyFormat:
    """A format of columns.

    Parameters
    ----------
    title
        Name of the format, for people.
    media_type
        Content type of a request body.
    suffixes
        File name suffixes that identify the format.
    read
        Reads a body into columns; its last parameter limits the bytes.
    is_spooled
        Whether reading begins at the end of the body, which then needs a file.
    has_types
        Whether integers differ from strings.
    has_matrix
        Whether one array can hold all scores.
    begins
        The first bytes that identify the format; CSV has none.
    """

    title: str
    media_type: str
    suffixes: tuple[str, ...]
    read: Callable[[IO[bytes], Columns, int], None]
    is_spooled: bool = False
    has_types: bool = True
    has_matrix: bool = False
    begins: tuple[bytes, ...] = ()


def _read_csv(body: IO[bytes], columns: Columns, _most: int) -> None:
    from rprime.evidence.csv_body import read_csv  # noqa: PLC0415 (pyarrow takes time to import)

    with _arrow_errors("CSV in UTF-8"):
        read_csv(body, columns)


def _read_arrow(body: IO[bytes], columns: Columns, most: int) -> None:
    from rprime.evidence.arrow_body import read_stream  # noqa: PLC0415 (the same)

    with _arrow_errors("Arrow IPC stream"):
        read_stream(body, columns, most)


def _read_parquet(body: IO[bytes], columns: Columns, most: int) -> None:
    from rprime.evidence.arrow_body import read_parquet  # noqa: PLC0415 (the same)

    with _arrow_errors("Parquet file"):
        read_parquet(body, columns, most)


FORMATS: Mapping[Kind, BodyFormat] = {
    "csv": BodyFormat(
        title="CSV",
        media_type="text/csv",
        suffixes=(".csv", ".tsv"),
        read=_read_csv,
        has_types=False,
    ),
    "arrow": BodyFormat(
        title="Arrow",
        media_type="application/vnd.apache.arrow.stream",
        suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
        read=_read_arrow,
        begins=(b"\xff\xff\xff\xff", b"ARROW1"),
    ),
    "parquet": BodyFormat(
        title="Parquet",
        media_type="application/vnd.apache.parquet",
        suffixes=(".parquet", ".pq"),
        read=_read_parquet,
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
) -> Document:
    """Read the columns of a body while it arrives.

    Parameters
    ----------
    kind
        Format of the body.
    body
        It need not be seekable: formats that seek are copied into a temporary file first.
    request
        The other members of the request, a JSON object; b"" for none.
    limits
        Limits of the body.
    hold
        Reserves the bytes of the columns; None: there is memory for all of them.
    baseline
        A second body: other predictions for the same items, or evidence of its own.

    Raises
    ------
    Problem
        400 if the body does not have that format, 413 if it is too large, 422 if the columns cannot
        be evaluated.
    """
    # Predictions alone share the labels of the first body.
    kinds = {kind} if baseline is None else {kind, baseline[0]}
    columns = Columns(
        parse(request or b"{}", limits.json_depth),
        limits.sparse_classes,
        hold,
        untyped=not all(FORMATS[one].has_types for one in kinds),
        matrix=FORMATS[kind].has_matrix,
    )
    _read(kind, body, columns, limits)
    if baseline is None:
        return columns.document()
    form = FORMATS[baseline[0]]
    other = BaselineColumns(columns, untyped=not form.has_types, matrix=form.has_matrix)
    _read(*baseline, other, limits)
    return other.document()


def read_members(
    kind: Kind, body: IO[bytes], limits: Limits, columns: Mapping[str, str]
) -> dict[str, Any]:
    """Read evidence, or predictions alone, as the members of a JSON request.

    Raises
    ------
    Problem
        As `read_columns`; also if the items have ids, which JSON cannot hold.
    """
    form = FORMATS[kind]
    untyped = not form.has_types
    chosen = Document({"columns": columns})
    first = Columns(chosen, limits.sparse_classes, None, untyped=untyped)
    found = BaselineColumns(first, untyped=untyped, matrix=form.has_matrix)
    _read(kind, body, found, limits)
    return found.members()


def _read(kind: Kind, body: IO[bytes], columns: Columns, limits: Limits) -> None:
    form = FORMATS[kind]
    if not form.is_spooled or body.seekable():
        form.read(body, columns, limits.other_body_bytes)
        return
    with TemporaryFile() as file:
        while piece := body.read(_PIECE):
            file.write(piece)
        file.seek(0)
        form.read(file, columns, limits.other_body_bytes)


@contextmanager
def _arrow_errors(what: str) -> Iterator[None]:
    """Convert errors of pyarrow to errors of the body."""
    import pyarrow as pa  # noqa: PLC0415 (it takes time to import)

    try:
        yield
    except MemoryError:  # pyarrow's own error is one, too, but is no fault of the format
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:  # Unicode: names of columns
        # Errors of Arrow have no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Problem("unreadable_body", f"The body is not a valid {what}.") from None
