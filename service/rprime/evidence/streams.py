"""Bodies that are not JSON: which kinds there are, and how each is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import IO, Literal

from rprime.evidence.columns import Columns, ColumnsRequest, Hold
from rprime.evidence.document import Document, parse
from rprime.evidence.errors import UnreadableBodyError
from rprime.evidence.npz_body import read_npz

Kind = Literal["csv", "arrow", "parquet", "npz"]
MEDIA_TYPES: Mapping[str, Kind] = {
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.apache.parquet": "parquet",
    "application/x-npz": "npz",
}
EXTRA = "arrow"
"""The extra of the package that brings pyarrow."""
_PIECE = 1 << 20


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


def is_readable(kind: Kind) -> bool:
    """Whether the libraries are there that a kind of body needs."""
    return kind == "npz" or find_spec("pyarrow") is not None


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
    untyped = kind == "csv" or (predictions is not None and predictions[0] == "csv")
    columns = Columns(columns_request, bounds.classes, hold, untyped=untyped, matrix=kind == "npz")
    _read(kind, body, columns, bounds)
    if predictions is not None:
        other = columns.beside()
        _read(*predictions, other, bounds)
        columns.take(other)
    return columns.document()


def _read(kind: Kind, body: IO[bytes], columns: Columns, bounds: Bounds) -> None:
    if kind == "npz":
        with _spooled(body) as file:
            read_npz(file, columns, bounds.inflated)
    else:
        _read_by_arrow(kind, body, columns, bounds)


def _read_by_arrow(kind: Kind, body: IO[bytes], columns: Columns, bounds: Bounds) -> None:
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    from rprime.evidence import arrow_body  # noqa: PLC0415 (it needs the extra)

    try:
        if kind == "csv":
            arrow_body.read_csv(body, columns)
        elif kind == "arrow":
            arrow_body.read_stream(body, columns, bounds.inflated)
        else:
            with _spooled(body) as file:
                arrow_body.read_parquet(file, columns, bounds.inflated)
    except (pa.ArrowException, UnicodeDecodeError):  # the latter in the names of columns
        raise UnreadableBodyError(f"The body is no valid {_NAMES[kind]}.") from None
    except OSError as error:
        # Arrow's own have no number.
        if error.errno is not None:
            raise
        raise UnreadableBodyError(f"The body is no valid {_NAMES[kind]}.") from None


_NAMES = {"csv": "CSV in UTF-8", "arrow": "Arrow IPC stream", "parquet": "Parquet file"}


def _spooled(body: IO[bytes]) -> IO[bytes]:
    """Put a body that is read at its end first into a temporary file, if it is not one."""
    if body.seekable():
        return body
    file = TemporaryFile()  # noqa: SIM115 (the caller closes it)
    try:
        while piece := body.read(_PIECE):
            file.write(piece)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
