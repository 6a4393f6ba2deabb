"""Evidence from files by nothing but what Python and numpy have: JSON, CSV and NPZ."""

import csv
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from rprime.commands.exit_status import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

Columns = dict[str, Any]

NAMES = {
    "y_true": "y_true",
    "y_pred": "y_pred",
    "y_pred_baseline": "y_pred_baseline",
    "sample_weight": "sample_weight",
    "group": "groups",
}
"""Columns of a file, and what they are called in a request."""
LABELS = ("y_true", "y_pred", "y_pred_baseline")
TABLES = ("confusion_matrix", "labels", "unclassified", "spurious")
"""What an archive may hold besides columns."""
SCORE = "score:"
"""Before the name of the class whose scores a column has."""
_SEPARATOR = re.compile(r"[;\t|]")
_ROWS = 65_536
_BUFFER = 1024 * 1024
_MOST = 2**53 - 1
"""The largest integer label of the contract; what is larger is a name."""
_LARGE = 16 * 1024 * 1024
"""Bytes of a file from which on its reading is shown."""


def read_file(file: str) -> bytes | Columns:
    """Read evidence.

    Parameters
    ----------
    file
        A path, or - for JSON from standard input.

    Returns
    -------
    JSON as it stands there, or columns by the names of a request. Labels of a CSV are texts
    still, since whether they are integers is seen from all of them.
    """
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    read: Callable[[Path], bytes | Columns] = _READERS.get(path.suffix.lower(), Path.read_bytes)
    try:
        return read(path)
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror or error}")


def settle_labels(*files: Columns) -> None:
    """Turn labels into integers where all of them are, in all the files together."""
    columns = [file[name] for file in files for name in LABELS if name in file]
    texts = [column for column in columns if _is_text(column)]
    if not texts or not all(map(_integers, texts)):
        return
    for file in files:
        for name in LABELS:
            if name in file and _is_text(file[name]):
                found = {text: text and int(text) for text in set(file[name])}
                file[name] = [found[text] for text in file[name]]


def _is_text(column: object) -> bool:
    return isinstance(column, list)


def _integers(column: "Iterable[str | None]") -> bool:
    """Whether every label is an integer in the one way to write it: 07 and +7 are names."""
    return all(text is None or _canonical(text) for text in set(column))


def _canonical(text: str) -> bool:
    try:
        return str(int(text)) == text and abs(int(text)) <= _MOST
    except ValueError:
        return False


def _read_csv(path: Path) -> Columns:
    with path.open("rb", buffering=0) as stream:
        size = path.stat().st_size
        with shown(stream, size, path.name) as reader:
            # utf-8-sig drops the mark that spreadsheets put in front.
            lines = TextIOWrapper(BufferedReader(reader, _BUFFER), encoding="utf-8-sig", newline="")
            try:
                return _columns(path, csv.reader(lines))
            except UnicodeDecodeError:
                refuse(f"{path} is not UTF-8")


def _columns(path: Path, reader: Any) -> Columns:  # noqa: ANN401 (the type of csv has no name)
    try:
        header = [name.strip() for name in next(reader, [])]
        check_names(path, header)
        columns: list[list[str]] = [[] for _ in header]
        known: dict[str, str] = {}
        filled = filter(None, reader)
        while rows := list(islice(filled, _ROWS)):
            _append(columns, rows, known, lambda: f"{path}, before line {reader.line_num + 1}")
    except csv.Error as error:
        refuse(f"{path}, line {reader.line_num}: {error}")
    found = dict(zip(header, columns, strict=True))
    scores = {
        name.removeprefix(SCORE): _weights(found.pop(name), path, name)
        for name in header
        if name.startswith(SCORE)
    }
    read = {NAMES[name]: _CONVERT[name](column, path, name) for name, column in found.items()}
    if not scores:
        return read
    rows = list(zip(*scores.values(), strict=True))
    return read | {"y_score": rows, "labels": list(scores)}


def _append(
    columns: list[list[str]],
    rows: list[list[str]],
    known: dict[str, str],
    where: Callable[[], str],
) -> None:
    try:
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            # One object for each distinct text, not for each item.
            column.extend(map(known.setdefault, values, values))
    except ValueError:
        refuse(f"{where()}: a row has not {len(columns)} fields, as the header has")


def check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse columns that are not known, stand twice or lack what they need."""
    known = ", ".join([*NAMES, "item_id", f"{SCORE}<label>"])
    for name in names:
        if name not in {*NAMES, "item_id", "y_score"} and not name.startswith(SCORE):
            hint = "" if not _SEPARATOR.search(name) else "; separate the columns by commas"
            refuse(f"{path}: the column {name[:64]!r} is not known; columns are: {known}{hint}")
    if len(set(names)) < len(names):
        refuse(f"{path}: a column stands twice")
    if not any(name in {"y_pred", "y_score"} or name.startswith(SCORE) for name in names):
        refuse(f"{path}: there is no column y_pred; the first line names the columns: {known}")


def _labels(column: list[str], path: Path, name: str) -> list[str | None]:
    if name == "y_true" and "" in column:
        refuse(f"{path}: y_true is empty in row {column.index('') + 1}; each item has a class")
    return [text or None for text in column]


def _weights(column: list[str], path: Path, name: str) -> list[float]:
    try:
        return list(map(float, column))
    except ValueError:
        bad = next(place for place, text in enumerate(column) if not _is_number(text))
        refuse(f"{path}: {name} is no number in row {bad + 1}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _same(column: list[str], _path: Path, _name: str) -> list[str]:
    return column


_CONVERT: Mapping[str, Callable[[list[str], Path, str], Any]] = {
    "y_true": _labels,
    "y_pred": _labels,
    "y_pred_baseline": _labels,
    "sample_weight": _weights,
    "group": _same,
}


def shown(stream: BinaryIO, size: int, name: str) -> Any:  # noqa: ANN401 (a reader of rich)
    """Show whoever watches how far a large file has been read."""
    from contextlib import nullcontext

    if size < _LARGE or not sys.stderr.isatty():
        return nullcontext(stream)
    from rich.console import Console
    from rich.progress import wrap_file

    return wrap_file(stream, size, description=f"Reading {name}", console=Console(stderr=True))


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays of an archive."""
    try:
        with ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except BadZipFile:
        with path.open("rb") as file:
            if file.read(len(_ARRAY)) == _ARRAY:
                refuse(f"{path} is a single array; numpy.savez gives each array its name")
        refuse(f"{path} is no archive of plain arrays")


_ARRAY = b"\x93NUMPY"
"""How a file with one array begins."""


def _read_npz(path: Path) -> Columns:
    import numpy as np

    try:
        known = [*NAMES, "y_score", *TABLES]
        for name in npz_names(path):
            if name not in known:
                refuse(
                    f"{path}: the array {name[:64]!r} is not known; arrays are: {', '.join(known)}"
                )
        with np.load(path, allow_pickle=False) as archive:
            return {NAMES.get(name, name): archive[name] for name in archive.files}
    except (ValueError, EOFError, BadZipFile) as error:
        refuse(f"{path} is no archive of plain arrays: {error}")


_READERS: Mapping[str, Callable[[Path], bytes | Columns]] = {
    ".csv": _read_csv,
    ".npz": _read_npz,
}
