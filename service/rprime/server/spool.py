"""Bodies that wait in the temporary folder until they are complete."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from anyio import to_thread
from starlette.requests import Request

from rprime.problems.problem import Problem

if TYPE_CHECKING:
    from rprime.server.services import ServerServices

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
