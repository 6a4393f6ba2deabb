"""Reading the body of a request, within its limits."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from io import BytesIO, RawIOBase
from typing import IO

import zstandard
from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request

from rprime.problems.problem import Problem
from rprime.server.services import server_services

_PIECE = 1024 * 1024
# A slice of zstd can put out 4 MiB: it holds up to 32 blocks of 128 KiB.
_SLICE = 128
_SENT_PIECE = 64 * 1024
# The window that RFC 8878 asks every decoder to support.
LARGEST_WINDOW = 8 * 1024 * 1024
MOST_RATIO = 1000
"""How much larger a body may become than it was sent; labels hardly reach a tenth of it."""
FREE_OF_RATIO = 32 * 1024 * 1024
"""Bytes that any body may be inflated to: a few labels, all the same, are no bomb."""


def media_type(request: Request, accepted: Collection[str]) -> str:
    """Give the media type of the body, without parameters.

    Raises
    ------
    Problem
        415 if it is missing or not accepted.
    """
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in accepted:
        raise Problem(
            "unsupported_media_type", f"Content-Type must be one of: {', '.join(accepted)}."
        )
    return found


async def read_body(request: Request, limit: int) -> bytes:
    """Read the whole body, inflated; see `read_chunks`."""
    return join_chunks(await read_chunks(request, limit))


def join_chunks(pieces: list[bytes]) -> bytes:
    """Give the body in one piece."""
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def read_chunks(request: Request, limit: int) -> list[bytes]:
    """Read the whole body, inflated, in the pieces in which it came.

    Parameters
    ----------
    request
        The request; the state of its application has the bodies `AdmissionControl`.
    limit
        In bytes, for the body as it is sent and inflated.

    Raises
    ------
    Problem
        413 over the limit, as early as it shows; 415 for an unknown content encoding; 400 if
        it cannot be inflated; 503 if other requests leave no memory or no time for it.
    """
    encoding = content_encoding(request)
    check_length(request, limit)
    pieces = await _collect(received_chunks(request), request, limit)
    server_services(request).admission.admit(request.scope)
    if encoding == "identity":
        return pieces
    body = join_chunks(pieces)
    bound = inflated_bound(limit, len(body))
    parts = _inflated(_INFLATERS[encoding](BytesIO(body)), server_services(request).inflating)
    try:
        return await _collect(parts, request, bound)
    except BROKEN:
        raise _broken(encoding) from None


def content_encoding(request: Request) -> str:
    """Give how the body is encoded; "identity" for not at all.

    Raises
    ------
    Problem
        415 if it is not known.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity" and encoding not in _INFLATERS:
        raise Problem("unsupported_encoding")
    return encoding


def check_length(request: Request, limit: int) -> None:
    """Refuse a body whose announced length is over a limit."""
    if int(request.headers.get("content-length", 0)) > limit:
        raise too_large(limit)


def inflated_bound(limit: int, sent: int) -> int:
    """Give how many bytes a body may be inflated to."""
    return min(limit, max(FREE_OF_RATIO, sent * MOST_RATIO))


async def _collect(parts: AsyncIterator[bytes], request: Request, limit: int) -> list[bytes]:
    admission = server_services(request).admission
    stored: list[bytes] = []
    size = 0
    async for part in parts:
        size += len(part)
        if size > limit:
            raise too_large(limit)
        admission.hold(request.scope, len(part))
        stored.append(part)
    return stored


async def received_chunks(request: Request) -> AsyncIterator[bytes]:
    """Give the pieces of a body as they come in.

    Raises
    ------
    ClientDisconnect
        If the client goes away.
    """
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _inflated(pieces: Iterator[bytes], limiter: CapacityLimiter) -> AsyncIterator[bytes]:
    # In a thread, so that a large body does not hold up the small requests; and a piece of one
    # body after a piece of another, since many threads would take all the cores from them.
    while piece := await to_thread.run_sync(next, pieces, b"", limiter=limiter):
        yield piece


def _gunzip(body: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=body) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _unzstd(body: IO[bytes]) -> Iterator[bytes]:
    # Frame by frame, since the stream reader of zstandard takes a frame cut short for its end;
    # by small slices, since what one call may put out has no other bound.
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
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
            if len(ready) >= _PIECE:
                yield bytes(ready)
                ready.clear()
    if not frame.eof:
        raise EOFError
    yield bytes(ready)


def too_large(limit: int) -> Problem:
    """Give the problem of a body over a limit."""
    return Problem("body_too_large", f"The body exceeds the limit of {limit} bytes.")


def _broken(encoding: str) -> Problem:
    return Problem("unreadable_body", f"The body is not valid {encoding}.")


class Inflated(RawIOBase):
    """A body that is inflated as it is read.

    Parameters
    ----------
    sent
        The body as it is sent.
    encoding
        A known one.
    bound
        How much it may be inflated to, asked for again with every piece.
    """

    def __init__(self, sent: IO[bytes], encoding: str, bound: Callable[[], int]) -> None:
        super().__init__()
        self._encoding = encoding
        self._bound = bound
        self._pieces = _INFLATERS[encoding](sent)
        self._ready = memoryview(b"")
        self._size = 0

    def readable(self) -> bool:
        """Give True: it is a file to read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Give so many bytes, fewer only at the end."""
        parts: list[memoryview] = []
        wanted = size if size >= 0 else self._bound() + 1
        while wanted and (self._ready or self._more()):
            parts.append(self._ready[:wanted])
            self._ready = self._ready[wanted:]
            wanted -= len(parts[-1])
        return b"".join(parts)

    def _more(self) -> bool:
        try:
            piece = next(self._pieces, b"")
        except BROKEN:
            raise _broken(self._encoding) from None
        self._ready = memoryview(piece)
        self._size += len(piece)
        if self._size > self._bound():
            raise too_large(self._bound())
        return bool(piece)


_INFLATERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {"gzip": _gunzip, "zstd": _unzstd}
BROKEN = (EOFError, OSError, zlib.error, zstandard.ZstdError)
"""What is raised where a body cannot be inflated."""
