"""Negotiation: which of the renderings a client wants, by the header Accept."""

from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rprime.problems.problem import Problem
from rprime.report.formats import BY_MEDIA_TYPE, Format

JSON = "application/json"
OFFERED = (JSON, *BY_MEDIA_TYPE)
RENDERINGS: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in BY_MEDIA_TYPE}
"""What there is beside JSON, for the OpenAPI document."""
LONGEST = 2000
"""Characters of the header; browsers send about 150."""

# The page itself allows its own style alone, by its hash; this is what holds where it does not.
_STYLE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
PAGE_POLICY = f"{_STYLE}form-action 'none'; frame-ancestors 'none'"


def wanted_format(request: Request) -> Format | None:
    """Give the rendering that the request wants most; None for JSON.

    Raises
    ------
    Problem
        406 if it wants nothing that there is.
    """
    accept = request.headers.get("accept", JSON)
    if accept in {"*/*", JSON}:
        return None
    return BY_MEDIA_TYPE.get(preferred(request, OFFERED))


def preferred(request: Request, offered: tuple[str, ...]) -> str:
    """Give the media type that the request wants most; the first one where it does not care.

    Raises
    ------
    Problem
        406 if it wants none of them.
    """
    accept = request.headers.getlist("accept") or ["*/*"]
    return _chosen(",".join(accept)[:LONGEST], offered)


@lru_cache(maxsize=64)
def _chosen(accept: str, offered: tuple[str, ...]) -> str:
    ranges = [_range(part) for part in accept.split(",")]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) <= 0:
        raise Problem("not_acceptable")
    return best


def _range(part: str) -> tuple[str, float]:
    """Read one media range and its weight; what cannot be read weighs nothing."""
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weights = [p.removeprefix("q=") for p in parameters if p.startswith("q=")]
    try:
        return name, float(weights[0]) if weights else 1.0
    except ValueError:
        return name, 0.0


def _quality(offered: str, ranges: list[tuple[str, float]]) -> float:
    """Give the weight of the most specific range that a media type falls into."""
    for pattern in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        found = [weight for name, weight in ranges if name == pattern]
        if found:
            return max(found)
    return 0.0


def rendered(
    content: bytes,
    form: Format | None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Answer with a rendering; form None: JSON."""
    headers = headers or {}
    if form is None:
        return Response(content, status, headers, media_type=JSON)
    if form.name == "html":
        headers["Content-Security-Policy"] = PAGE_POLICY
    # Set as a header, so that nothing is added to it.
    return Response(content, status, {**headers, "Content-Type": form.content_type})
