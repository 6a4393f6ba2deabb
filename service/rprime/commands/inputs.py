"""What a command reads: files, pipes and standard input, of which some have no end."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NoReturn

from rprime.commands.exit_status import attempting, refuse
from rprime.commands.options import settings

STDIN = "-"
_MOST_RATIO = 100
"""How much larger than its file what is in gzip or Zstandard may be, above the limit of bytes."""


def read_document(file: str | Path) -> bytes:
    """Read a small document, or end where it is larger than a JSON body of the service."""
    most = settings().limits.json_body_bytes
    with attempting(f"read {file}"):
        if str(file) == STDIN:
            return _read(sys.stdin.buffer, "standard input", most, "json_body_bytes")
        with Path(file).open("rb") as stream:
            return _read(stream, str(file), most, "json_body_bytes")


def read_endless(file: str) -> bytes | None:
    """Read what has no size: standard input, a pipe, a device; None for any other file."""
    most = settings().limits.other_body_bytes
    if file == STDIN:
        return _read(sys.stdin.buffer, "standard input", most, "other_body_bytes")
    path = Path(file)
    if path.is_file() or path.is_dir() or not path.exists():
        return None
    with path.open("rb") as stream:
        return _read(stream, file, most, "other_body_bytes")


def bounded_pieces(pieces: Iterable[bytes], file: str, packed: int) -> Iterator[bytes]:
    """Yield what is unpacked from so many bytes, or end where that is a bomb."""
    most, size = max(settings().limits.other_body_bytes, _MOST_RATIO * packed), 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            _refuse_large(file, most, "other_body_bytes", "unpacked")
        yield piece


def bounded_lines(stream: IO[bytes], file: str) -> Iterator[bytes]:
    """Yield the lines of a stream, or end where one is longer than the service takes."""
    most = settings().limits.other_body_bytes
    while line := stream.readline(most + 1):
        if len(line) > most:
            _refuse_large(file, most, "other_body_bytes", "in one line")
        yield line


def _read(stream: IO[bytes], file: str, most: int, limit: str) -> bytes:
    content = stream.read(most + 1)
    if len(content) > most:
        _refuse_large(file, most, limit)
    return content


def _refuse_large(file: str, most: int, limit: str, how: str = "") -> NoReturn:
    name = f"RPRIME_LIMITS_{limit.upper()}"
    refuse(f"{file} has more than {most} bytes{how and f' {how}'}; {name} raises this limit")
