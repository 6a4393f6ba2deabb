"""Reading the body of a request, within its limits."""

import errno
import re
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from math import inf
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request

from rprime.problems.problem import Problem
from rprime.server.admission import ANNOUNCED
from rprime.server.inflating import BROKEN, INFLATERS, body_too_large, broken, inflated_bound
from rprime.server.request_record import current_request

if TYPE_CHECKING:
    from rprime.server.services import ServerServices


_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]*)""")
_UTF_8 = {"utf-8", "utf8"}


def media_type(request: Request, accepted: Collection[str]) -> str:
    """Return the media type of the body, without parameters.

    415 if it is missing, given twice or not accepted, or names another charset than UTF-8.
    """
    headers = request.headers.getlist("content-type")
    if len(headers) > 1:
        raise Problem("unsupported_media_type", "Content-Type is there twice: send it once.")
    header = "".join(headers).lower()
    name = header.partition(";")[0].strip()
    if name not in accepted:
        detail = f"Content-Type must be one of: {', '.join(accepted)}."
        raise Problem("unsupported_media_type", detail)
    if (charset := _CHARSET.search(header)) and charset[1] not in _UTF_8:
        raise Problem(
            "unsupported_media_type",
            "The body has to be UTF-8: encode it so, and send Content-Type with charset=utf-8 or "
            "without a charset.",
        )
    return name


async def read_body(request: Request, limit: int) -> bytes:
    """Read the whole body, inflated; see `read_chunks`."""
    return b"".join(await read_chunks(request, limit))


async def read_chunks(request: Request, limit: int) -> list[bytes]:
    """Read the whole body, inflated, in the pieces in which it came.

    413 over the limit in bytes, sent or inflated, as early as it shows; 415 for an unknown content
    encoding; 400 if it cannot be inflated; 503 if other requests leave no memory or no time for it.
    """
    encoding = announced_encoding(request, limit)
    services: ServerServices = request.app.state.services
    pieces = await _collect(received_chunks(request, limit), request, limit)
    services.admission.admit(request.scope)
    if encoding == "identity":
        return pieces
    body = b"".join(pieces)
    bound = inflated_bound(limit, len(body))
    parts = _inflated(INFLATERS[encoding](BytesIO(body)), services.coding)
    try:
        return await _collect(parts, request, bound)
    except BROKEN:
        raise broken(encoding) from None


def announced_encoding(request: Request, limit: int) -> str:
    """Return the content encoding of the body; "identity" if there is none.

    415 if it is not known, 413 if the announced length of the body is over the limit.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity" and encoding not in INFLATERS:
        raise Problem("unsupported_encoding")
    if int(request.headers.get("content-length", 0)) > limit:
        raise body_too_large(limit)
    return encoding


async def _collect(parts: AsyncIterator[bytes], request: Request, limit: int) -> list[bytes]:
    services: ServerServices = request.app.state.services
    stored: list[bytes] = []
    size = 0
    async for part in parts:
        size += len(part)
        if size > limit:
            raise body_too_large(limit)
        services.admission.hold(request.scope, len(part))
        stored.append(part)
    return stored


async def received_chunks(request: Request, limit: float = inf) -> AsyncIterator[bytes]:
    """Return the pieces of a body as they come in; `ClientDisconnect` if the client goes away.

    413 if they exceed a limit of bytes, or if the size of a chunk says that they will.
    """
    more, record = True, current_request.get()
    state, size = request.scope["state"], 0
    while more:
        since = monotonic()
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more, part = message.get("more_body", False), message.get("body", b"")
        if record is not None:
            record.client_seconds += monotonic() - since
            record.received += len(part)
        size += len(part)
        if max(size, state.get(ANNOUNCED, 0)) > limit:
            raise body_too_large(limit)
        yield part


async def _inflated(pieces: Iterator[bytes], limiter: CapacityLimiter) -> AsyncIterator[bytes]:
    # In a thread, so that a large body does not hold up the small requests; and a piece of one
    # body after a piece of another, since many threads would take all the cores from them.
    while piece := await to_thread.run_sync(next, pieces, b"", limiter=limiter):
        yield piece


PIECE = 1 << 20
"""Bytes that are written, or read, at a time; of a smaller body nothing is written."""
NO_ROOM = "The temporary folder of the service lacks room for the body; wait, or send less."
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@asynccontextmanager
async def spooled(
    request: Request, pieces: AsyncIterator[bytes]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Receive a whole body, and yield its pieces: a slow client must hold no place to work.

    503 if the folder has no room, or if other bodies have taken all of it that bodies may take.
    """
    services: ServerServices = request.app.state.services
    begun: list[bytes] = []
    async for piece in pieces:
        services.admission.hold(request.scope, len(piece))
        begun.append(piece)
        if sum(map(len, begun)) >= PIECE:
            break
    else:
        yield _each(begun)
        return
    with TemporaryFile(prefix="rprime-body-") as file:
        await _write(request, file, begun)
        async for piece in pieces:
            begun.append(piece)
            if sum(map(len, begun)) >= PIECE:
                await _write(request, file, begun)
        await _write(request, file, begun)
        file.seek(0)
        yield _read(services, file)


async def _write(request: Request, file: IO[bytes], pieces: list[bytes]) -> None:
    services: ServerServices = request.app.state.services
    content = b"".join(pieces)
    pieces.clear()
    services.admission.spool(request.scope, len(content))
    try:
        await to_thread.run_sync(file.write, content, limiter=services.spooling)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise Problem("overloaded", NO_ROOM, headers={"Retry-After": "2"}) from None


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()


async def _read(services: "ServerServices", file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await to_thread.run_sync(file.read, PIECE, limiter=services.spooling):
        yield piece
