"""Export and import of the whole history as lines of JSON."""

from collections.abc import AsyncIterator, Iterator

from anyio import from_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.responses import StreamingResponse

from rprime.auth.access import requires
from rprime.problems.problem import Problem, responses
from rprime.routes.descriptions import HISTORY, PROBLEMS, TEXT, route_responses
from rprime.routes.services import Parameters, get_services, get_store
from rprime.schemas.history import ExportQuery, ImportReport
from rprime.server.body import media_type, received_chunks

router = APIRouter(tags=["History"], default_response_class=Response)

NDJSON = "application/x-ndjson"
PIECE = 256 * 1024


@router.get(
    "/v1/export",
    summary="The whole history",
    description="One line of JSON for each evaluation, alias and count of looks; the first one "
    "names the version of the format, the last one counts the others, and is missing where the "
    "export was cut. Evaluations stored during the export are left out.",
    responses=route_responses("The lines.", {NDJSON: TEXT}, "not_found", *PROBLEMS),
)
@requires("admin", cost="store")
def export_evaluations(request: Request, query: Parameters[ExportQuery]) -> Response:
    """Stream the lines as they are read."""
    lines = get_store(request).export(query.project)
    headers = {"Content-Disposition": 'attachment; filename="rprime.ndjson"'}
    threads, pieces = get_services(request).transfer_threads, _pieces(lines)

    async def read() -> AsyncIterator[bytes]:
        # None of the threads is held while the client reads.
        while piece := await threads.run(next, pieces, b""):
            yield piece

    return StreamingResponse(read(), headers=headers, media_type=NDJSON)


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
    description="Existing evaluations stay unchanged, so importing twice changes nothing. An "
    "export that was cut is refused at its end.",
    response_class=JSONResponse,
    response_description="What was added.",
    responses=responses(
        *("body_too_large", "unsupported_media_type", "unsupported_encoding", "store_full"),
        *PROBLEMS,
    ),
    openapi_extra={
        "requestBody": {"required": True, "content": {NDJSON: TEXT | {"example": HISTORY}}}
    },
)
@requires("admin", cost="store")
async def import_evaluations(request: Request) -> ImportReport:
    """Add the lines as they arrive."""
    media_type(request, [NDJSON])
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("unsupported_encoding", "Send an import uncompressed.")
    store, longest = get_store(request), get_services(request).limits.other_body_bytes
    lines = _lines(received_chunks(request), longest)
    return await get_services(request).transfer_threads.run(store.import_lines, lines)


def _lines(pieces: AsyncIterator[bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of a body to the thread that imports them, received no faster than that."""
    started: list[bytes] = []
    while (piece := from_thread.run(anext, pieces, None)) is not None:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join([*started, end])
            started = []
        started.append(rest)
        if sum(map(len, started)) > longest:
            raise Problem("body_too_large", f"A line has at most {longest} bytes.")
    yield b"".join(started)
