"""What the headers of a request ask for: a rendering, a change since, a state of an alias."""

import hashlib
import re
from functools import lru_cache
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

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
