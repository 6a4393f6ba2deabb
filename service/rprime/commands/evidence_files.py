"""Files with evidence: columns in the formats of the service, or JSON."""

import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import orjson

from rprime.commands.exit_status import refuse
from rprime.commands.inputs import bounded_pieces, read_endless
from rprime.evidence import FORMATS, SUFFIXES, Kind

_TABLES = {"confusion_matrix.npy", "labels.npy", "unclassified.npy", "spurious.npy"}
"""Members of an archive that holds a table, not columns."""
_PACKED = {".gz", ".zst"}
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How they begin."""
_PRINTED_ARRAY = re.compile(rb"\[\s*\[?\s*[-+.\d]")
_LARGE = 16 * 1024 * 1024
"""Bytes of a file from which on its reading is shown."""


class ColumnFile(NamedTuple):
    """A file of columns, by its path; or the bytes of standard input, a pipe or a device."""

    name: str
    kind: Kind
    content: bytes | None = None

    @contextmanager
    def opened(self) -> Iterator[tuple[Kind, IO[bytes]]]:
        """Open it; a terminal shows how far a large one has been read."""
        with ExitStack() as files:
            body = files.enter_context(_opened(self.name, self.content))
            # Arrow's format of files begins so, which is not that of its streams.
            if self.kind == "arrow" and _beginning(body).startswith(b"ARROW1"):
                body = files.enter_context(_streamed(self.name, body))
            elif self.content is None:
                body = files.enter_context(_shown(body, Path(self.name)))
            yield self.kind, body

    def place_of(self, item: int) -> str:
        """Return the file, and of CSV the line, of an item, which is counted from 0."""
        if self.kind != "csv":
            return self.name
        with self.opened() as (_, body):
            from rprime.evidence.csv_body import line_number

            return f"{self.name}:{line_number(body, item)}"


def read_evidence(file: str) -> ColumnFile | bytes:
    """Recognise a file by its suffix, where `.gz` or `.zst` may follow, else by how it begins.

    Returns
    -------
    A file of columns, to be read later, or the bytes of a JSON document.
    """
    try:
        content = read_endless(file)
        with _opened(file, content) as body:
            beginning = _beginning(body)
            if beginning.startswith(b"\x93NUMPY"):
                refuse(
                    f"{file} is a single array, which has no name: of a confusion matrix, "
                    f"numpy.savez('m.npz', confusion_matrix=numpy.load('{file}'))"
                )
            kind = _kind(Path(file), beginning)
            if kind is None:
                return body.read()
            if kind == "npz" and (table := _table(body)):
                return table
    except OSError as error:
        hint = "; download it, or name an --engine" if "://" in file else ""
        refuse(f"cannot read {file}: {error.strerror or error}{hint}")
    return ColumnFile(file, kind, content)


def _kind(path: Path, beginning: bytes) -> Kind | None:
    """Return the format of columns, by the suffix or how the file begins; None for JSON."""
    suffix = (Path(path.stem) if path.suffix.lower() in _PACKED else path).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n")
    if _PRINTED_ARRAY.match(start) and (suffix != ".json" or start[1:].lstrip()[:1] == b"["):
        return "csv"
    if suffix == ".json" or start[:1] in {b"{", b"["}:
        return None
    kinds = (kind for kind, form in FORMATS.items() if beginning.startswith(form.begins))
    return next(kinds, "csv")


@contextmanager
def _opened(file: str, content: bytes | None) -> Iterator[IO[bytes]]:
    """Open a file, decompressed; a body that ends too early is found here, not by its reader."""
    with Path(file).open("rb") if content is None else BytesIO(content) as stream:
        beginning = _beginning(stream)
        if not beginning.startswith((_GZIP, _ZSTANDARD)):
            yield stream
            return
        with TemporaryFile() as plain:
            import zstandard

            from rprime.server.inflating import gunzip, unzstd

            packed = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            is_gzip = beginning.startswith(_GZIP)
            try:
                pieces = gunzip(stream) if is_gzip else unzstd(stream, window=0)
                plain.writelines(bounded_pieces(pieces, file, packed))
            except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError):
                refuse(f"{file} is no whole gzip or Zstandard file")
            plain.seek(0)
            yield plain


def _beginning(body: IO[bytes]) -> bytes:
    beginning = body.read(64)
    body.seek(0)
    return beginning


def _table(body: IO[bytes]) -> bytes | None:
    """Return the table in an archive as JSON; None if it holds columns."""
    try:
        with ZipFile(body) as archive:
            if not _TABLES.issuperset(archive.namelist()):
                return None
        with np.load(body, allow_pickle=False) as archive:
            arrays = {name: archive[name].tolist() for name in archive.files}
    except (ValueError, EOFError, BadZipFile):
        return None
    return orjson.dumps(arrays)


@contextmanager
def _streamed(file: str, body: IO[bytes]) -> Iterator[IO[bytes]]:
    """Return a file of Arrow as the stream that a service reads."""
    import pyarrow as pa

    with TemporaryFile() as stream:
        try:
            with pa.ipc.open_file(body) as batches, pa.ipc.new_stream(stream, batches.schema) as to:
                for number in range(batches.num_record_batches):
                    to.write_batch(batches.get_batch(number))
        except (pa.ArrowException, OSError):
            refuse(f"{file} is no Arrow file")
        stream.seek(0)
        yield stream


def _shown(stream: Any, path: Path) -> Any:  # noqa: ANN401 (a reader of rich)
    """Show at a terminal how far a large file has been read."""
    size = path.stat().st_size
    if size < _LARGE or not sys.stderr.isatty() or path.suffix.lower() in _PACKED:
        return nullcontext(stream)
    from rich.console import Console
    from rich.progress import wrap_file

    return wrap_file(stream, size, description=f"Reading {path.name}", console=Console(stderr=True))
