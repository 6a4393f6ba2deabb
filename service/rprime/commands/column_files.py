"""Files of columns that the reader of the service reads: CSV, Parquet, Arrow and NPZ."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

from rprime.commands.evidence_files import TABLES, check_names, npz_names, shown
from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from rprime.application.files_request import Source
    from rprime.evidence import Kind

_FILE_OF_ARROW = b"ARROW1"
"""How Arrow's format of files begins, which is not that of its streams."""


@dataclass(frozen=True)
class ColumnFile:
    """A file of columns.

    Parameters
    ----------
    path
        Where it is.
    kind
        Of body.
    names
        Of its columns.
    """

    path: Path
    kind: "Kind"
    names: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether `read_file` can read it, too."""
        return self.kind in {"csv", "npz"} and "item_id" not in self.names

    @contextmanager
    def opened(self) -> "Iterator[Source]":
        """Open it; whoever watches sees how far a large one has been read."""
        from rprime.application.files_request import Source

        complete = "y_true" in self.names
        with self.path.open("rb", buffering=0) as file:
            if self.kind == "arrow" and _begins(file, _FILE_OF_ARROW):
                with _streamed(self.path) as stream:
                    yield Source(self.kind, stream, complete)
                return
            with shown(file, self.path.stat().st_size, self.path.name) as reader:
                yield Source(self.kind, cast("IO[bytes]", reader), complete)


def column_file(file: str) -> ColumnFile | None:
    """Recognise a file of columns by its name; None for any other one.

    What is wrong with the names of its columns ends the command.
    """
    from rprime.evidence import SUFFIXES

    path = Path(file)
    found = SUFFIXES.get(path.suffix.lower())
    if found is None:
        return None
    try:
        names = tuple(_NAMES[found](path))
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror or error}")
    # Tables, and names with space around them, are for `read_file`.
    if not set(names).isdisjoint(TABLES) or any(name != name.strip() for name in names):
        return None
    check_names(path, names)
    return ColumnFile(path, found, names)


def _csv_names(path: Path) -> Sequence[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            return next(csv.reader(file), [])
        except UnicodeDecodeError:
            refuse(f"{path} is not UTF-8")
        except csv.Error as error:
            refuse(f"{path}: {error}")


def _arrow_names(path: Path, kind: str) -> Sequence[str]:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        if kind == "parquet":
            return _names(pyarrow.parquet.read_schema(path))
        with path.open("rb") as file:
            is_file = _begins(file, _FILE_OF_ARROW)
            return _names((pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).schema)
    except pa.ArrowException as error:
        refuse(f"{path} is no {kind} file: {' '.join(str(error).split())}")


def _names(schema: Any) -> list[str]:  # noqa: ANN401 (pyarrow has no types)
    found: list[str] = schema.names
    return found


_NAMES: Mapping["Kind", "Callable[[Path], Sequence[str]]"] = {
    "csv": _csv_names,
    "npz": npz_names,
    "parquet": partial(_arrow_names, kind="parquet"),
    "arrow": partial(_arrow_names, kind="arrow"),
}


def _begins(file: IO[bytes], magic: bytes) -> bool:
    found = file.read(len(magic))
    file.seek(0)
    return found == magic


@contextmanager
def _streamed(path: Path) -> Iterator[IO[bytes]]:
    """Return a file of Arrow as the stream that a service reads."""
    import pyarrow as pa

    with TemporaryFile() as stream:
        with (
            pa.memory_map(str(path)) as source,
            pa.ipc.open_file(source) as batches,
            pa.ipc.new_stream(stream, batches.schema) as sink,
        ):
            for number in range(batches.num_record_batches):
                sink.write_batch(batches.get_batch(number))
        stream.seek(0)
        yield stream
