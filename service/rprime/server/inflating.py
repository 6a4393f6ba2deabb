"""Inflating of bodies in gzip and zstd, within bounds."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from io import RawIOBase
from typing import IO

import zstandard

from rprime.problems.problem import Problem

PIECE = 1024 * 1024
# A slice of zstd can put out 4 MiB: it holds up to 32 blocks of 128 KiB.
_SLICE = 128
_SENT_PIECE = 64 * 1024
# The window that RFC 8878 asks every decoder to support.
LARGEST_WINDOW = 8 * 1024 * 1024
MOST_RATIO = 1000
"""How much larger a body may become than it was sent; labels hardly reach a tenth of it."""
FREE_OF_RATIO = 32 * 1024 * 1024
"""Bytes that any body may be inflated to: a few labels, all the same, are no bomb."""


def inflated_bound(limit: int, sent: int) -> int:
    """Return how many bytes a body may be inflated to."""
    return min(limit, max(FREE_OF_RATIO, sent * MOST_RATIO))


def gunzip(body: IO[bytes]) -> Iterator[bytes]:
    """Yield what a body in gzip holds."""
    with gzip.GzipFile(fileobj=body) as stream:
        while piece := stream.read(PIECE):
            yield piece


def unzstd(body: IO[bytes], *, window: int = LARGEST_WINDOW) -> Iterator[bytes]:
    """Yield what a body in zstd holds; a window of 0 allows the 128 MiB of `zstd --long`."""
    # Frame by frame, since the stream reader of zstandard takes a frame cut short for its end;
    # by small slices, since what one call may put out has no other bound.
    decompressor = zstandard.ZstdDecompressor(max_window_size=window)
    frame = decompressor.decompressobj()
    ready = bytearray()
    while piece := body.read(_SENT_PIECE):
        for start in range(0, len(piece), _SLICE):
            part = piece[start : start + _SLICE]
            while part:
                if frame.eof:
                    frame = decompressor.decompressobj()
                ready += frame.decompress(part)
                part = frame.unused_data
            if len(ready) >= PIECE:
                yield bytes(ready)
                ready.clear()
    if not frame.eof:
        raise EOFError
    yield bytes(ready)


def body_too_large(limit: float) -> Problem:
    """Return the problem of a body over a limit."""
    return Problem("body_too_large", f"The body exceeds the limit of {limit} bytes.")


def broken(encoding: str) -> Problem:
    """Return the problem of a body that cannot be inflated."""
    return Problem("unreadable_body", f"The body is not valid {encoding}.")


class Inflated(RawIOBase):
    """A body that is inflated as it is read, up to a bound that is asked for with every piece."""

    def __init__(self, sent: IO[bytes], encoding: str, bound: Callable[[], int]) -> None:
        super().__init__()
        self._encoding = encoding
        self._bound = bound
        self._pieces = INFLATERS[encoding](sent)
        self._ready = memoryview(b"")
        self._size = 0

    def readable(self) -> bool:
        """Return True: the worker only reads it."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes; fewer only at the end."""
        parts: list[memoryview] = []
        left = size if size >= 0 else self._bound() + 1
        while left and (self._ready or self._more()):
            parts.append(self._ready[:left])
            self._ready = self._ready[left:]
            left -= len(parts[-1])
        return b"".join(parts)

    def _more(self) -> bool:
        try:
            piece = next(self._pieces, b"")
        except BROKEN:
            raise broken(self._encoding) from None
        self._ready = memoryview(piece)
        self._size += len(piece)
        if self._size > self._bound():
            raise body_too_large(self._bound())
        return bool(piece)


INFLATERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {"gzip": gunzip, "zstd": unzstd}
BROKEN = (EOFError, OSError, zlib.error, zstandard.ZstdError)
"""What is raised where a body cannot be inflated."""
