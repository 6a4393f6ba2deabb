"""Export and import of the whole history as lines of JSON."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from queue import Queue
from typing import TYPE_CHECKING, Annotated

import orjson
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from rprime.auth.access import requires
from rprime.problems.problem import Problem, responses
from rprime.routes.descriptions import PROBLEMS, TEXT, json_responses
from rprime.routes.examples import HISTORY
from rprime.routes.negotiation import JSON
from rprime.routes.services import get_services, get_store
from rprime.schemas.history import ExportQuery
from rprime.server.body import media_type, received_chunks

if TYPE_CHECKING:
    from rprime.store import Imported

router = APIRouter(tags=["History"], default_response_class=Response)

NDJSON = "application/x-ndjson"
PIECE = 256 * 1024
WAITING = 8
"""Pieces of a body that may wait to be imported, so that a fast client does not fill the memory."""


@router.get(
    "/v1/export",
    summary="The whole history",
    description="One line of JSON for each evaluation, alias and count of looks; the first one "
    "names the version of the format. Evaluations stored during the export are left out.",
    responses={
        **responses(*PROBLEMS),
        200: {"description": "The lines.", "content": {NDJSON: TEXT}},
    },
)
@requires("admin")
async def export_evaluations(request: Request, query: Annotated[ExportQuery, Query()]) -> Response:
    """Stream the lines as they are read."""
    lines = get_store(request).export(query.project)
    headers = {"Content-Disposition": 'attachment; filename="rprime.ndjson"'}
    return StreamingResponse(_pieces(lines), headers=headers, media_type=NDJSON)


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines into larger pieces, since each piece costs a change of threads."""
    stored: list[bytes] = []
    size = 0
    for line in lines:
        stored.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(stored)
            stored, size = [], 0
    yield b"".join(stored)


@router.post(
    "/v1/import",
    summary="Add an export to the history",
    description="Existing evaluations stay unchanged, so importing twice changes nothing.",
    responses=json_responses(
        "What was added.",
        "ImportReport",
        *("body_too_large", "unsupported_media_type", "unsupported_encoding", "store_full"),
        *PROBLEMS,
    ),
    openapi_extra={
        "requestBody": {"required": True, "content": {NDJSON: TEXT | {"example": HISTORY}}}
    },
)
@requires("admin")
async def import_evaluations(request: Request) -> Response:
    """Add the lines as they arrive."""
    media_type(request, [NDJSON])
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("unsupported_encoding", "Send an import uncompressed.")
    store = get_store(request)
    incoming = Incoming(get_services(request).limits.other_body_bytes)
    importing = asyncio.create_task(run_in_threadpool(store.import_lines, incoming))
    try:
        await incoming.fill(request, importing)
    except BaseException:
        incoming.break_off()
        await asyncio.wait([importing])
        raise
    return Response(orjson.dumps(asdict(await importing)), media_type=JSON)


class Incoming(Iterator[bytes]):
    """The lines of a body, passed from the loop that receives it to the thread that imports it.

    The longest line may have `longest` bytes.
    """

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._pieces: Queue[bytes | None] = Queue(WAITING)
        self._lines = self._split()
        self._broken = False

    async def fill(self, request: Request, importing: "asyncio.Task[Imported]") -> None:
        """Receive the body no faster than it is imported; stop if the import fails."""
        async for piece in received_chunks(request):
            if importing.done():
                return
            await self._put(piece, importing)
        await self._put(None, importing)

    async def _put(self, piece: bytes | None, importing: "asyncio.Task[Imported]") -> None:
        while self._pieces.full() and not importing.done():  # noqa: ASYNC110 - of a thread
            await asyncio.sleep(0.005)
        if not importing.done():
            self._pieces.put_nowait(piece)

    def break_off(self) -> None:
        """Let the importing thread end, since the body broke off."""
        self._broken = True
        while not self._pieces.empty():
            self._pieces.get_nowait()
        self._pieces.put(None)

    def __next__(self) -> bytes:
        """Return the next line; wait for it."""
        return next(self._lines)

    def _split(self) -> Iterator[bytes]:
        started: list[bytes] = []
        while (piece := self._pieces.get()) is not None:
            *ends, rest = piece.split(b"\n")
            for end in ends:
                yield b"".join([*started, end])
                started = []
            started.append(rest)
            if sum(map(len, started)) > self.longest:
                detail = f"A line has at most {self.longest} bytes."
                raise Problem("body_too_large", detail)
        if self._broken:
            raise ClientDisconnect
        yield b"".join(started)
