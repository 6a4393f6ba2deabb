"""Formats of bodies and files of columns: the registry from which everything else follows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Literal

from rprime.evidence.columns import Columns, ColumnsRequest, Hold
from rprime.evidence.document import Document, parse
from rprime.evidence.errors import UnreadableBodyError
from rprime.evidence.npz_body import read_npz

Kind = Literal["csv", "arrow", "parquet", "npz"]
_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BodyFormat:
    """A format of columns.

    Parameters
    ----------
    title
        What a body of it is called.
    media_type
        By which a request names it.
    suffixes
        By which a file is recognised.
    read
        Reads a body into columns; it takes no more bytes than the last parameter says.
    is_spooled
        Whether it is read at its end first, so that it has to be put into a file.
    has_types
        Whether integers are told from strings.
    has_matrix
        Whether all scores can be one array.
    """

    title: str
    media_type: str
    suffixes: tuple[str, ...]
    read: Callable[[IO[bytes], Columns, int], None]
    is_spooled: bool = False
    has_types: bool = True
    has_matrix: bool = False


def _read_csv(body: IO[bytes], columns: Columns, _most: int) -> None:
    from rprime.evidence.arrow_body import read_csv  # noqa: PLC0415 (pyarrow takes time to import)

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
        suffixes=(".csv",),
        read=_read_csv,
        has_types=False,
    ),
    "arrow": BodyFormat(
        title="Arrow",
        media_type="application/vnd.apache.arrow.stream",
        suffixes=(".arrow", ".arrows", ".feather", ".ipc"),
        read=_read_arrow,
    ),
    "parquet": BodyFormat(
        title="Parquet",
        media_type="application/vnd.apache.parquet",
        suffixes=(".parquet", ".pq"),
        read=_read_parquet,
        is_spooled=True,
    ),
    "npz": BodyFormat(
        title="NPZ",
        media_type="application/x-npz",
        suffixes=(".npz",),
        read=read_npz,
        is_spooled=True,
        has_matrix=True,
    ),
}
MEDIA_TYPES: Mapping[str, Kind] = {form.media_type: kind for kind, form in FORMATS.items()}
SUFFIXES: Mapping[str, Kind] = {
    suffix: kind for kind, form in FORMATS.items() for suffix in form.suffixes
}


@dataclass(frozen=True)
class Bounds:
    """What a body may cost.

    Parameters
    ----------
    classes
        How many there may be.
    inflated
        Bytes of its columns.
    depth
        Deepest nesting of the request that comes beside it.
    """

    classes: int
    inflated: int
    depth: int


def ask(request: bytes, bounds: Bounds) -> ColumnsRequest:
    """Read what is asked about the columns of a body.

    Parameters
    ----------
    request
        The other members of the request, a JSON object; b"" for none.
    bounds
        What it may cost.

    Raises
    ------
    UnreadableBodyError, InvalidEvidenceError
        If it is no JSON object, or has evidence of its own.
    """
    return ColumnsRequest.of(parse(request or b"{}", bounds.depth))


def read_columns(
    kind: Kind,
    body: IO[bytes],
    columns_request: ColumnsRequest,
    bounds: Bounds,
    hold: Hold,
    *,
    predictions: tuple[Kind, IO[bytes]] | None = None,
) -> Document:
    """Read the columns of a body as they come in.

    Parameters
    ----------
    kind
        Of the body.
    body
        Need not be seekable: what has to be is put into a temporary file first.
    columns_request
        What is asked about them.
    bounds
        What it may cost.
    hold
        Asked for the bytes that are kept.
    predictions
        A second body with other predictions for the same items, which are the baseline.

    Raises
    ------
    UnreadableBodyError
        If the body is not of that kind.
    InvalidEvidenceError
        If what it says cannot be evaluated.
    """
    kinds = (kind,) if predictions is None else (kind, predictions[0])
    untyped = not all(FORMATS[one].has_types for one in kinds)
    matrix = FORMATS[kind].has_matrix
    columns = Columns(columns_request, bounds.classes, hold, untyped=untyped, matrix=matrix)
    _read(kind, body, columns, bounds)
    if predictions is not None:
        other = columns.beside()
        _read(*predictions, other, bounds)
        columns.take(other)
    return columns.document()


def _read(kind: Kind, body: IO[bytes], columns: Columns, bounds: Bounds) -> None:
    form = FORMATS[kind]
    if not form.is_spooled or body.seekable():
        form.read(body, columns, bounds.inflated)
        return
    with TemporaryFile() as file:
        while piece := body.read(_PIECE):
            file.write(piece)
        file.seek(0)
        form.read(file, columns, bounds.inflated)


@contextmanager
def _arrow_errors(what: str) -> Iterator[None]:
    """Turn what pyarrow raises into errors of the body."""
    import pyarrow as pa  # noqa: PLC0415 (it takes time to import)

    try:
        yield
    except MemoryError:  # which is pyarrow's own, too, but says nothing of the format
        raise
    except (pa.ArrowException, UnicodeDecodeError):  # the latter in the names of columns
        raise UnreadableBodyError(f"The body is no valid {what}.") from None
    except OSError as error:
        # Arrow's own have no number.
        if error.errno is not None:
            raise
        raise UnreadableBodyError(f"The body is no valid {what}.") from None
