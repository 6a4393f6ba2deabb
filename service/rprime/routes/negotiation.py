"""What the headers of a request ask for: a rendering, a change since, a state of an alias."""

import gzip
import hashlib
import re
from collections.abc import Callable, Coroutine
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Literal

import zstandard
from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.responses import FileResponse, StreamingResponse

from rprime.problems.problem import Problem
from rprime.report.formats import BY_MEDIA_TYPE, Format
from rprime.store import Expected

JSON = "application/json"
OFFERED = (JSON, *BY_MEDIA_TYPE)
RENDERINGS: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in BY_MEDIA_TYPE}
"""Media types beside JSON, for the OpenAPI document."""
LONGEST = 2000
"""Characters of the header; browsers send about 150."""
_TAG = re.compile(r'(W/)?"([^"]*)"')

# The page itself allows only its own style, by its hash; this policy covers the other pages.
_STYLE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
PAGE_POLICY = f"{_STYLE}form-action 'none'; frame-ancestors 'none'"


def wanted_format(request: Request) -> Format | None:
    """Return the rendering that the request prefers, None for JSON; 406 if it accepts none."""
    accept = request.headers.get("accept", JSON)
    if accept in {"*/*", JSON}:
        return None
    return BY_MEDIA_TYPE.get(preferred(request, OFFERED))


def preferred(request: Request, offered: tuple[str, ...]) -> str:
    """Return the preferred media type, the first without a preference; 406 if none is accepted."""
    accept = request.headers.getlist("accept") or ["*/*"]
    return _chosen(",".join(accept)[:LONGEST], offered)


@lru_cache(maxsize=64)
def _chosen(accept: str, offered: tuple[str, ...]) -> str:
    ranges = [weighted(part) for part in accept.split(",")]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) <= 0:
        raise Problem("not_acceptable")
    return best


def weighted(part: str) -> tuple[str, float]:
    """Read one element of Accept or Accept-Encoding and its weight; an unreadable weight is 0."""
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weights = [p.removeprefix("q=") for p in parameters if p.startswith("q=")]
    try:
        return name, float(weights[0]) if weights else 1.0
    except ValueError:
        return name, 0.0


def _quality(offered: str, ranges: list[tuple[str, float]]) -> float:
    """Return the weight of the most specific range that matches a media type."""
    for pattern in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        weights = [weight for name, weight in ranges if name == pattern]
        if weights:
            return max(weights)
    return 0.0


def verdict_header(verdict: str | None) -> dict[str, str]:
    """Return the header with the verdict of a gate, if there is one."""
    return {} if verdict is None else {"Evaluation-Verdict": verdict}


def rendered(
    content: bytes, form: Format | None, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a rendering as a response; form None means JSON."""
    headers = headers or {}
    if form is None:
        return Response(content, status, headers, media_type=JSON)
    if form.name == "html":
        headers["Content-Security-Policy"] = PAGE_POLICY
    # Set as a header, so that Starlette adds no charset.
    return Response(content, status, {**headers, "Content-Type": form.content_type})


def etag_of(*parts: object) -> str:
    """Make a strong entity tag from the parts that determine every byte of a representation."""
    text = "\n".join(map(str, parts)).encode()
    return f'"{hashlib.blake2b(text, digest_size=12).hexdigest()}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has the representation already (If-None-Match, RFC 9110, 13.1.2)."""
    header = ",".join(request.headers.getlist("if-none-match"))
    return header.strip() == "*" or etag.strip('"') in {tag for _, tag in _TAG.findall(header)}


def expected(request: Request) -> Expected:
    """Return the state of an alias that the request expects; 428 without such a header."""
    match = ",".join(request.headers.getlist("if-match")).strip()
    absent = ",".join(request.headers.getlist("if-none-match")).strip() == "*"
    if not match and not absent:
        raise Problem("precondition_required", "The request needs If-Match or If-None-Match: *.")
    etags: set[str] | Literal["*"] | None = None
    if match:
        # Weak tags never match here (RFC 9110, 13.1.1).
        etags = "*" if match == "*" else {tag for weak, tag in _TAG.findall(match) if not weak}
    return Expected(etags=etags, absent=absent)


SMALLEST = 1024
"""Bytes; a shorter answer fits into one packet, compressed or not."""
_IN_THREAD = 128 * 1024
_CODINGS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("zstd", zstandard.compress),
    ("gzip", lambda body: gzip.compress(body, 6)),
)
_OF_THE_BODY = {b"content-length", b"content-type"}
COMPRESSIBLE = ("text/", "application/json", "application/xml", "image/svg+xml")


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


def accepted_codings(headers: Headers) -> set[str]:
    """Return the content codings that a request accepts (RFC 9110, 12.5.3)."""
    ranges = ",".join(headers.getlist("accept-encoding")).split(",")
    return {name for name, weight in map(weighted, ranges) if weight > 0}


async def _compressed(request: Request, response: Response) -> Response:
    body = bytes(response.body)
    kind = response.headers.get("Content-Type", "")
    fits = len(body) >= SMALLEST and kind.startswith(COMPRESSIBLE)
    if not fits or "Content-Encoding" in response.headers:
        return response
    response.headers.add_vary_header("Accept-Encoding")
    accepted = accepted_codings(request.headers)
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
