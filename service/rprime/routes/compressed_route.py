"""A route whose answers are compressed, and left out where the client has them already."""

import gzip
import hashlib
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import zstandard
from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.responses import FileResponse, StreamingResponse

from rprime.routes.negotiation import is_known, weighted

SMALLEST = 1024
"""Bytes; a shorter answer fits into one packet, compressed or not."""
_IN_THREAD = 128 * 1024
_CODINGS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("zstd", zstandard.compress),
    ("gzip", lambda body: gzip.compress(body, 6)),
)
_OF_THE_BODY = {b"content-length", b"content-type"}
_COMPRESSIBLE = ("text/", "application/json", "application/xml", "image/svg+xml")


class CompressedRoute(APIRoute):
    """A route for what people and scripts read again and again: pages, reports, the catalog.

    The answer of an endpoint gets an entity tag, unless it has one. A GET that names the tag in
    If-None-Match is answered by 304 without a body. Texts of at least a kilobyte are sent in zstd
    or gzip if the request accepts one of them.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint, with its answer compressed."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            response = await handler(request)
            if isinstance(response, FileResponse | StreamingResponse):
                return response
            return await _compressed(request, _revalidated(request, response))

        return handle


def _revalidated(request: Request, response: Response) -> Response:
    if request.method != "GET" or response.status_code != HTTPStatus.OK:
        return response
    digest = hashlib.blake2b(response.body, digest_size=12).hexdigest
    etag = response.headers.get("ETag") or f'"{digest()}"'
    response.headers["ETag"] = etag
    if not is_known(request, etag):
        return response
    # All others replace those that the client has stored, its policy for scripts included.
    unchanged = Response(status_code=HTTPStatus.NOT_MODIFIED)
    unchanged.raw_headers = [
        header for header in response.raw_headers if header[0] not in _OF_THE_BODY
    ]
    return unchanged


async def _compressed(request: Request, response: Response) -> Response:
    body = bytes(response.body)
    kind = response.headers.get("Content-Type", "")
    fits = len(body) >= SMALLEST and kind.startswith(_COMPRESSIBLE)
    if not fits or "Content-Encoding" in response.headers:
        return response
    response.headers.add_vary_header("Accept-Encoding")
    # RFC 9110, 12.5.3.
    ranges = ",".join(request.headers.getlist("accept-encoding")).split(",")
    accepted = {name for name, weight in map(weighted, ranges) if weight > 0}
    for coding, compress in _CODINGS:
        if coding in accepted:
            if len(body) < _IN_THREAD:
                response.body = compress(body)
            else:
                coding_limiter = request.app.state.services.coding
                response.body = await to_thread.run_sync(compress, body, limiter=coding_limiter)
            response.headers["Content-Encoding"] = coding
            response.headers["Content-Length"] = str(len(response.body))
            # A strong tag is of one sequence of bytes, and these are others (RFC 9110, 8.8.1).
            etag = response.headers.get("ETag", "")
            if etag.startswith('"'):
                response.headers["ETag"] = f"W/{etag}"
            break
    return response
